//! Taking failing endpoints out of load balancing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, wire};

/// When an endpoint is ejected, and for how long. What is left out or zero is the mesh's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutlierDetection {
    /// Consecutive errors after which an endpoint is ejected.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::uint32")]
    pub consecutive_errors: i64,
    /// Time from one look at the endpoints to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub interval: Option<String>,
    /// Time for which an endpoint is ejected, multiplied by how often it has been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub base_ejection_time: Option<String>,
    /// Share of the endpoints in percent that may be ejected at a time.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::percent")]
    pub max_ejection_percent: i64,
}
