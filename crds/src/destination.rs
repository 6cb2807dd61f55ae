//! Destination: what requests are sent to.

mod applied;
mod external_service;
mod kube_service;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::applied::{
    AppliedAccessPolicy, AppliedFederation, AppliedTrafficPolicy, RequiredSubsets,
};
pub use self::external_service::{ExternalService, ExternalServiceEndpoint, ExternalServicePort};
pub use self::kube_service::{
    Endpoint, EndpointPort, EndpointsSubset, ExternalAddress, KubeService, KubeServicePort,
    ServiceType, SubLocality, SubsetValues,
};
use crate::reference::ObjectRef;
use crate::{schema, wire};

/// Facts of one destination. At most one of the destination types is set.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "discovery.mesh.gloo.solo.io",
    version = "v1",
    kind = "Destination",
    plural = "destinations",
    shortname = "dst",
    category = "gloo-mesh",
    namespaced,
    status = "DestinationStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What requests are sent to: a Service of a cluster (written by discovery) or a service outside.",
    printcolumn = r#"{"name": "Cluster", "type": "string", "jsonPath": ".spec.kubeService.ref.clusterName"}"#,
    printcolumn = r#"{"name": "Mesh", "type": "string", "jsonPath": ".spec.mesh.name"}"#,
    printcolumn = r#"{"name": "Host", "type": "string", "jsonPath": ".status.localFqdn"}"#,
    printcolumn = r#"{"name": "Federated Host", "type": "string", "jsonPath": ".status.appliedFederation.federatedHostname"}"#,
    printcolumn = r#"{"name": "Type", "type": "string", "jsonPath": ".spec.kubeService.serviceType", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::at_most_one(&["kubeService", "externalService"])]))]
pub struct DestinationSpec {
    /// A Kubernetes Service of a registered cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_service: Option<KubeService>,
    /// A service outside every registered cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_service: Option<ExternalService>,
    /// The Mesh that the destination takes part in; absent for external services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<ObjectRef>,
}

/// What applies to a destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestinationStatus {
    /// Generation of the destination that this status speaks of.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// Traffic policies that apply, in order of precedence.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::opaque_list")]
    pub applied_traffic_policies: Vec<AppliedTrafficPolicy>,
    /// Access policies that apply.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub applied_access_policies: Vec<AppliedAccessPolicy>,
    /// Host name by which clients in the same cluster call the destination.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub local_fqdn: String,
    /// How clients in other meshes call the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_federation: Option<AppliedFederation>,
    /// Subsets of this destination that traffic policies shift requests to.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub required_subsets: Vec<RequiredSubsets>,
    /// Number of list entries that were left out to keep this status small.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub omitted: i64,
    /// Conditions, one of each type.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
