//! A Kubernetes Service as a destination.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::ClusterObjectRef;
use crate::{schema, wire};

/// A Kubernetes Service and what stands behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeService {
    /// The Service.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ClusterObjectRef>,
    /// Labels by which the Service selects its pods.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub workload_selector_labels: BTreeMap<String, String>,
    /// Labels of the Service.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub labels: BTreeMap<String, String>,
    /// Ports of the Service.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 1024))]
    pub ports: Vec<KubeServicePort>,
    /// Label keys by which the pods behind the Service differ, and their values.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub subsets: BTreeMap<String, SubsetValues>,
    /// Region of a node that a pod behind the Service runs on.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub region: String,
    /// Addresses that are ready, grouped by the ports they serve.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub endpoint_subsets: Vec<EndpointsSubset>,
    /// Addresses at which the Service is reached from outside its cluster.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 16384))]
    pub external_addresses: Vec<ExternalAddress>,
    /// Type of the Service.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub service_type: ServiceType,
}

/// Type of a Kubernetes Service.
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
pub enum ServiceType {
    /// Reached within its cluster only.
    #[default]
    ClusterIp,
    /// Reached through a port of every node.
    NodePort,
    /// Reached through a load balancer.
    LoadBalancer,
    /// A name for a host elsewhere.
    ExternalName,
}

/// A port of a Kubernetes Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::at_most_one(&["targetPortName", "targetPortNumber"])]))]
pub struct KubeServicePort {
    /// Port of the Service.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::port")]
    pub port: i32,
    /// Name of the port.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub name: String,
    /// Transport protocol: TCP, UDP or SCTP.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub protocol: String,
    /// Protocol of the application.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub app_protocol: String,
    /// Name of the container's port behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_port_name: Option<String>,
    /// Number of the container's port behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::port")]
    pub target_port_number: Option<i32>,
    /// Port of every node that leads to it.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::port")]
    pub node_port: i32,
}

/// Values that one label key has among the pods behind a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubsetValues {
    /// The values.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub values: Vec<String>,
}

/// Addresses that serve the same ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointsSubset {
    /// The addresses.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub endpoints: Vec<Endpoint>,
    /// The ports that they serve.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub ports: Vec<EndpointPort>,
}

/// One address behind a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// IP address.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub ip_address: String,
    /// Labels of the pod.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub labels: BTreeMap<String, String>,
    /// Where within its region the address is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_locality: Option<SubLocality>,
}

/// A place within a region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubLocality {
    /// Zone of the region.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub zone: String,
    /// Part of the zone.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub sub_zone: String,
}

/// A port that addresses behind a Service serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointPort {
    /// The port.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::port")]
    pub port: i32,
    /// Name of the Service's port that leads to it.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub name: String,
    /// Transport protocol: TCP, UDP or SCTP.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub protocol: String,
    /// Protocol of the application.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub app_protocol: String,
}

/// An address at which a Service is reached from outside its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::at_most_one(&["dnsName", "ip"])]))]
pub struct ExternalAddress {
    /// Host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_name: Option<String>,
    /// IP address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
}
