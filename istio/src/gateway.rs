//! `Gateway`: what a gateway workload listens on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Servers of the selected gateway workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gateway {
    /// Labels of the gateway's pods.
    pub selector: BTreeMap<String, String>,
    /// What they listen on.
    pub servers: Vec<Server>,
}

/// One listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Server {
    /// Port of the pod.
    pub port: Port,
    /// Hosts that may be asked for; `*.suffix` matches every name below.
    pub hosts: Vec<String>,
    /// What happens to TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ServerTls>,
}

/// A port of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Port {
    /// The number.
    pub number: u32,
    /// Istio's protocol name.
    pub protocol: String,
    /// The name.
    pub name: String,
}

/// TLS of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerTls {
    /// How.
    pub mode: ServerTlsMode,
}

/// Modes that we set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ServerTlsMode {
    /// Pass the connection on to the service that its SNI names, TLS untouched.
    AutoPassthrough,
}
