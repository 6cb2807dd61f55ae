//! `KubernetesCluster`: a registered cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, wire};

/// Facts of a registered cluster. The object's name is the name of the cluster.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "multicluster.solo.io",
    version = "v1alpha1",
    kind = "KubernetesCluster",
    plural = "kubernetesclusters",
    shortname = "kc",
    category = "gloo-mesh",
    namespaced,
    status = "KubernetesClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    validation = Rule::new("!self.metadata.name.contains('.') && self.metadata.name.size() <= 63")
        .message("a cluster name becomes a label and a part of host names: use at most 63 characters and no dot"),
    doc = "A cluster that is registered with the management plane.",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Domain", "type": "string", "jsonPath": ".spec.clusterDomain"}"#,
    printcolumn = r#"{"name": "Secret", "type": "string", "jsonPath": ".spec.secretName", "priority": 1}"#,
    printcolumn = r#"{"name": "Namespace", "type": "string", "jsonPath": ".status.namespace", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesClusterSpec {
    /// Secret, in the same namespace, that holds the kubeconfig.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub secret_name: String,
    /// DNS domain of the cluster; `cluster.local` when left out.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::dns_name")]
    pub cluster_domain: String,
    /// What the cluster's provider calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_info: Option<ProviderInfo>,
}

/// What a cluster's provider calls it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderInfo {
    /// Amazon EKS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eks: Option<Eks>,
}

/// What Amazon EKS calls a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Eks {
    /// Amazon resource name.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub arn: String,
    /// AWS account.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub account_id: String,
    /// AWS region.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub region: String,
    /// Name of the cluster in EKS.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub name: String,
}

/// What became of a cluster's registration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesClusterStatus {
    /// Namespace of the registration's objects in the registered cluster.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub namespace: String,
    /// Rights that the management plane was given in the registered cluster.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub policy_rules: Vec<PolicyRule>,
    /// Verdicts of those who process the object. Not written here; see the conditions.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub status: Vec<ProcessingStatus>,
    /// Conditions, one of each type.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A right in the registered cluster, in the words of Kubernetes RBAC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// What may be done.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub verbs: Vec<String>,
    /// In which API groups.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub api_groups: Vec<String>,
    /// To which resources.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub resources: Vec<String>,
    /// To which objects by name; none means all.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub resource_names: Vec<String>,
    /// At which URLs that are not resources.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub non_resource_urls: Vec<String>,
}

/// Verdict of one of those who process an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessingStatus {
    /// The verdict.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub state: ProcessingState,
    /// Why, for a person.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub message: String,
    /// Generation of the object that the verdict speaks of.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// When the object was processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processing_time: Option<Time>,
    /// Who processed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// Where the processing of an object stands.
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
pub enum ProcessingState {
    /// Not begun.
    #[default]
    Pending,
    /// Begun.
    Processing,
    /// The object is wrong.
    Invalid,
    /// It went wrong.
    Failed,
    /// Done.
    Accepted,
}
