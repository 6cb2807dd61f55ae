//! Requests that other sites forged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::string_match::StringMatch;
use crate::{schema, wire};

/// Refuses requests that pages of other origins make on a user's behalf.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CsrfPolicy {
    /// Refuses them.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub filter_enabled: bool,
    /// Only counts what would be refused.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub shadow_enabled: bool,
    /// Share of the requests in percent that is looked at; 100 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::percentage")]
    pub percentage: Option<f64>,
    /// Origins that are allowed besides the destination's own.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 256))]
    pub additional_origins: Vec<StringMatch>,
}
