//! `AccessPolicy`: who may call what.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approval::{ApprovalState, ApprovalStatus};
use crate::selector::{DestinationSelector, IdentitySelector};
use crate::{schema, wire};

/// Allows requests from the selected sources to the selected destinations.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "networking.mesh.gloo.solo.io",
    version = "v1",
    kind = "AccessPolicy",
    plural = "accesspolicies",
    shortname = "acp",
    category = "gloo-mesh",
    namespaced,
    status = "AccessPolicyStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Allows requests from selected identities to selected destinations.",
    printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#,
    printcolumn = r#"{"name": "Programmed", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Programmed\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct AccessPolicySpec {
    /// Who may call; none means everybody.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub source_selector: Vec<IdentitySelector>,
    /// What may be called; none means every destination.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 256))]
    pub destination_selector: Vec<DestinationSelector>,
    /// Paths that may be called: a whole path, `prefix*` or `*suffix`; none means all. For gRPC a
    /// path is `/package.Service/Method`.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::texts")]
    pub allowed_paths: Vec<String>,
    /// HTTP methods that may be used; none means all.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::texts")]
    pub allowed_methods: Vec<String>,
    /// Ports that may be called; none means all.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::ports")]
    pub allowed_ports: Vec<i32>,
}

/// What became of an access policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessPolicyStatus {
    /// Generation of the policy that this status speaks of.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// Verdict on the whole policy.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub state: ApprovalState,
    /// Verdict on each destination that the policy selects, by the destination's key
    /// (`name.namespace.`).
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub destinations: BTreeMap<String, ApprovalStatus>,
    /// Keys of the workloads that the policy selects.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub workloads: Vec<String>,
    /// Why the whole policy is not accepted.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub errors: Vec<String>,
    /// Number of entries that were left out to keep this status small.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub omitted: i64,
    /// Conditions, one of each type.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
