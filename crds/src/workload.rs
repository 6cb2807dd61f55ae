//! Workload: a set of pods that take part in a mesh.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mesh::AppliedObject;
use crate::reference::{ClusterObjectRef, ObjectRef};
use crate::{schema, wire};

/// Facts of one workload.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "discovery.mesh.gloo.solo.io",
    version = "v1",
    kind = "Workload",
    plural = "workloads",
    shortname = "mwl",
    category = "gloo-mesh",
    namespaced,
    status = "WorkloadStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A set of like pods that take part in a mesh. Written by discovery.",
    printcolumn = r#"{"name": "Cluster", "type": "string", "jsonPath": ".spec.kubernetes.controller.clusterName"}"#,
    printcolumn = r#"{"name": "Namespace", "type": "string", "jsonPath": ".spec.kubernetes.controller.namespace"}"#,
    printcolumn = r#"{"name": "Controller", "type": "string", "jsonPath": ".spec.kubernetes.controller.name"}"#,
    printcolumn = r#"{"name": "Service Account", "type": "string", "jsonPath": ".spec.kubernetes.serviceAccountName"}"#,
    printcolumn = r#"{"name": "Mesh", "type": "string", "jsonPath": ".spec.mesh.name"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// The workload as Kubernetes knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesWorkload>,
    /// The Mesh that the workload takes part in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<ObjectRef>,
    /// The workload as AWS App Mesh knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_mesh: Option<AppMeshWorkload>,
}

/// A workload as Kubernetes knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesWorkload {
    /// The Deployment, StatefulSet, DaemonSet or ReplicaSet; which one is in the name's suffix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ClusterObjectRef>,
    /// Labels of the pod template.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub pod_labels: BTreeMap<String, String>,
    /// ServiceAccount of the pod template; empty when the template names none.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub service_account_name: String,
}

/// A workload as AWS App Mesh knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppMeshWorkload {
    /// Name of the virtual node.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub virtual_node_name: String,
    /// Ports of the virtual node.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub ports: Vec<AppMeshPort>,
}

/// A port of a virtual node of AWS App Mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppMeshPort {
    /// The port.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::port")]
    pub port: i32,
    /// Its protocol.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub protocol: String,
}

/// What applies to a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// Generation of the workload that this status speaks of.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// Access log records that apply.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub applied_access_log_records: Vec<AppliedObject>,
    /// Wasm deployments that apply.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub applied_wasm_deployments: Vec<AppliedObject>,
    /// What the workload depends on, as declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_dependencies: Option<ServiceDependencies>,
}

/// What a workload depends on, as declared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceDependencies {
    /// The declarations that apply.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub applied_service_dependencies: Vec<AppliedServiceDependency>,
    /// Hosts that the workload may reach.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub destination_hostnames: Vec<String>,
}

/// A declaration of what a workload depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedServiceDependency {
    /// The object that declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_dependency_ref: Option<ObjectRef>,
    /// Generation of that object that applies.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
}
