//! `VirtualMesh`: meshes that are one.

mod federation;
mod mtls;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::federation::{Federation, FederationSelector};
pub use self::mtls::{
    IntermediateCertificateAuthority, MtlsConfig, RootCertificateAuthority, SharedTrust,
};
use crate::approval::{ApprovalState, ApprovalStatus};
use crate::reference::ObjectRef;
use crate::{schema, wire};

/// Groups meshes, gives them one root of trust and makes their services known to each other.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.mesh.gloo.solo.io",
    version = "v1",
    kind = "VirtualMesh",
    plural = "virtualmeshes",
    shortname = "vmesh",
    category = "gloo-mesh",
    namespaced,
    status = "VirtualMeshStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Groups meshes, gives them one root of trust and makes their services known to each other.",
    printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#,
    printcolumn = r#"{"name": "Trust", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"TrustReady\")].status"}"#,
    printcolumn = r#"{"name": "Programmed", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Programmed\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMeshSpec {
    /// The meshes; a mesh can be in one `VirtualMesh` only.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::mesh_refs")]
    pub meshes: Vec<ObjectRef>,
    /// How the meshes come to trust each other; when left out, certificates are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtls_config: Option<MtlsConfig>,
    /// Which services are made known to which meshes; when left out, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub federation: Option<Federation>,
    /// Whether requests need an access policy that allows them.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub global_access_policy: GlobalAccessPolicy,
}

/// Whether requests need an access policy that allows them.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GlobalAccessPolicy {
    /// Whatever the mesh does by itself.
    #[default]
    MeshDefault,
    /// They need one.
    Enabled,
    /// They need none.
    Disabled,
}

/// What became of a virtual mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMeshStatus {
    /// Generation of the virtual mesh that this status speaks of.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// Verdict on the whole virtual mesh.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub state: ApprovalState,
    /// Why the whole virtual mesh is not accepted.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub errors: Vec<String>,
    /// Verdict on each mesh, by the mesh's key (`name.namespace.`).
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub meshes: BTreeMap<String, ApprovalStatus>,
    /// Verdict on each federated destination, by the destination's key (`name.namespace.`).
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub destinations: BTreeMap<String, ApprovalStatus>,
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
