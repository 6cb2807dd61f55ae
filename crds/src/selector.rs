//! Selectors: how policies name what they apply to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::ClusterObjectRef;
use crate::{schema, wire};

/// Selects destinations. Both members may be set: a destination is selected when either matches.
/// A selector with neither member selects nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestinationSelector {
    /// Selects Kubernetes Services by what they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_service_matcher: Option<KubeServiceMatcher>,
    /// Selects Kubernetes Services by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_service_refs: Option<KubeServiceRefs>,
}

/// Selects Kubernetes Services. All members must match; an empty member matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeServiceMatcher {
    /// Labels that the Service must carry, all of them.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub labels: BTreeMap<String, String>,
    /// Namespaces, one of which the Service must be in.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub namespaces: Vec<String>,
    /// Registered clusters, one of which the Service must be in.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub clusters: Vec<String>,
}

/// Selects Kubernetes Services by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeServiceRefs {
    /// The Services; each needs name, namespace and cluster.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::service_refs")]
    pub services: Vec<ClusterObjectRef>,
}

/// Selects the workloads from which requests come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSelector {
    /// Selects Kubernetes workloads by what they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_workload_matcher: Option<KubeWorkloadMatcher>,
}

/// Selects Kubernetes workloads. All members must match; an empty member matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeWorkloadMatcher {
    /// Labels that the workload's pods must carry, all of them.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub labels: BTreeMap<String, String>,
    /// Namespaces, one of which the workload must be in.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub namespaces: Vec<String>,
    /// Registered clusters, one of which the workload must be in.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub clusters: Vec<String>,
}

/// Selects the identities from which requests are allowed. Both members may be set: an identity
/// is selected when either matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentitySelector {
    /// Selects identities by where their workloads run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_identity_matcher: Option<KubeIdentityMatcher>,
    /// Selects identities by ServiceAccount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_service_account_refs: Option<KubeServiceAccountRefs>,
}

/// Selects identities by where their workloads run. Both members must match; an empty member
/// matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeIdentityMatcher {
    /// Namespaces, one of which the ServiceAccount must be in.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub namespaces: Vec<String>,
    /// Registered clusters, one of which the ServiceAccount must be in.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub clusters: Vec<String>,
}

/// Selects identities by ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeServiceAccountRefs {
    /// The service accounts; a field that is left out matches any value.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub service_accounts: Vec<ClusterObjectRef>,
}

/// Selects the destinations that serve as east-west gateways, and their port for mutual TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressGatewaySelector {
    /// The destinations; none means every destination of the mesh.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 32))]
    pub destination_selectors: Vec<DestinationSelector>,
    /// Name of the Service's port that takes mutual TLS; `tls` when left out.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub port_name: String,
}
