//! Keepalive of connections between clusters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, wire};

/// When and how often an idle TCP connection is probed. What is left out is the operating system's
/// own setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TcpKeepalive {
    /// Probes without an answer after which the connection is dead.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::uint32")]
    pub probes: i64,
    /// How long the connection must be idle before the first probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub time: Option<String>,
    /// Time from probe to probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub interval: Option<String>,
}
