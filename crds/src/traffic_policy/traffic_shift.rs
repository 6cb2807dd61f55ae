//! Sending requests elsewhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::header_manipulation::HeaderManipulation;
use crate::reference::ObjectRef;
use crate::{schema, wire};

/// Divides requests among destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("!has(self.destinations) || self.destinations.size() < 2 || self.destinations.exists(target, has(target.weight) && target.weight > 0)", "give at least one of several destinations a weight above 0: a share is a weight's part of their sum")]))]
pub struct TrafficShift {
    /// The destinations and their shares.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 256))]
    pub destinations: Vec<WeightedDestination>,
}

/// A destination and its share of the requests. Exactly one of the destination types is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::exactly_one(&["kubeService", "virtualDestination", "staticDestination", "clusterHeader"])]))]
pub struct WeightedDestination {
    /// Share of the requests: this weight's part of the sum of all. Percent, where they add up
    /// to 100.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::weight")]
    pub weight: i64,
    /// A Kubernetes Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_service: Option<KubeServiceTarget>,
    /// A `VirtualDestination`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_destination: Option<VirtualDestinationTarget>,
    /// A destination that is configured by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub static_destination: Option<ObjectRef>,
    /// Name of a request header that names the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_header: Option<String>,
    /// What else is done to requests to this destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<DestinationOptions>,
}

/// A Kubernetes Service that requests are sent to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::complete(&["name", "namespace", "clusterName"])]))]
pub struct KubeServiceTarget {
    /// Name of the Service.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub name: String,
    /// Namespace of the Service.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub namespace: String,
    /// Name under which the Service's cluster is registered.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub cluster_name: String,
    /// Labels of the pods that take the requests; none means all pods of the Service.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub subset: BTreeMap<String, String>,
    /// Port of the Service; may be left out when the Service has only one.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::port")]
    pub port: i32,
}

/// A `VirtualDestination` that requests are sent to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::complete(&["name", "namespace"])]))]
pub struct VirtualDestinationTarget {
    /// Name of the `VirtualDestination`.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub name: String,
    /// Namespace of the `VirtualDestination`.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub namespace: String,
    /// Labels of the pods that take the requests; none means all pods behind it.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub subset: BTreeMap<String, String>,
}

/// What else is done to requests to one destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestinationOptions {
    /// Adds and removes headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_manipulation: Option<HeaderManipulation>,
}
