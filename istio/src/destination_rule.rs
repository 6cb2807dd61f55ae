//! `DestinationRule`: how to talk to a host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Client-side settings of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationRule {
    /// The host.
    pub host: String,
    /// Settings for all its subsets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_policy: Option<TrafficPolicy>,
    /// Named groups of its endpoints.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subsets: Vec<Subset>,
}

/// Connection settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrafficPolicy {
    /// TLS towards the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ClientTls>,
    /// Connection pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_pool: Option<ConnectionPool>,
}

/// TLS of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientTls {
    /// How.
    pub mode: ClientTlsMode,
}

/// Modes that we set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ClientTlsMode {
    /// Plain text.
    #[default]
    Disable,
    /// Originate TLS.
    Simple,
    /// Mutual TLS with the mesh's own certificates.
    IstioMutual,
}

/// Connection pool settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectionPool {
    /// TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpSettings>,
}

/// TCP settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpSettings {
    /// Keepalive probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_keepalive: Option<TcpKeepalive>,
}

/// Keepalive probes; what is left out is the operating system's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpKeepalive {
    /// Unanswered probes before the connection is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<u32>,
    /// Idle time before the first probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Time between probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
}

/// Endpoints that carry all the labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subset {
    /// The name that routes use.
    pub name: String,
    /// Labels of the endpoints.
    pub labels: BTreeMap<String, String>,
}
