//! `ServiceEntry`: a host that a cluster's registry does not know by itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Hosts with their ports and endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceEntry {
    /// The hosts.
    pub hosts: Vec<String>,
    /// Virtual addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Ports that clients call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ServicePort>,
    /// Inside the mesh (its own mutual TLS) or outside.
    pub location: Location,
    /// How endpoints are found.
    pub resolution: Resolution,
    /// Where requests go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<WorkloadEntry>,
    /// Namespaces that see the entry; empty for all, `.` for its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub export_to: Vec<String>,
}

/// A port of the hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// The number that clients call.
    pub number: u32,
    /// Istio's protocol name.
    pub protocol: String,
    /// The name, unique in the entry.
    pub name: String,
}

/// Where the hosts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Location {
    /// Reached without the mesh's mutual TLS.
    MeshExternal,
    /// Part of the mesh.
    #[default]
    MeshInternal,
}

/// How endpoint addresses are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Resolution {
    /// IP addresses.
    #[default]
    Static,
    /// Host names that the proxy looks up.
    Dns,
}

/// One endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadEntry {
    /// IP address or host name.
    pub address: String,
    /// Real port by port name of the entry.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<String, u32>,
    /// Labels that subsets select by.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}
