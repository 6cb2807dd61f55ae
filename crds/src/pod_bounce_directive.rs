//! `PodBounceDirective`: which pods to restart, and when.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::ObjectRef;
use crate::{schema, wire};

/// Which pods to restart once a certificate is stored.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "certificates.mesh.gloo.solo.io",
    version = "v1",
    kind = "PodBounceDirective",
    plural = "podbouncedirectives",
    shortname = "pbd",
    category = "gloo-mesh",
    namespaced,
    status = "PodBounceDirectiveStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Which pods to restart once a certificate is stored. Written by the management plane.",
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PodBounceDirectiveSpec {
    /// The pods, in the order in which they are restarted.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub pods_to_bounce: Vec<PodSelector>,
}

/// Pods that are restarted together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSelector {
    /// Namespace of the pods.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub namespace: String,
    /// Labels of the pods.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub labels: BTreeMap<String, String>,
    /// Pods that must be ready again before the next ones are restarted.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::uint32")]
    pub wait_for_replicas: i64,
    /// Waits until the new root has reached the pods' namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_cert_sync: Option<RootCertSync>,
}

/// A root in a Secret and its copy in a ConfigMap, which must be the same before pods restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RootCertSync {
    /// The Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<ObjectRef>,
    /// Key within the Secret.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub secret_key: String,
    /// The ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ObjectRef>,
    /// Key within the ConfigMap.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub config_map_key: String,
}

/// Which pods were restarted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodBounceDirectiveStatus {
    /// The pods of each entry of the spec, in the same order.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub pods_bounced: Vec<BouncedPods>,
}

/// Pods that were restarted together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BouncedPods {
    /// Their names.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub bounced_pods: Vec<String>,
}
