//! Cross-origin requests of browsers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::string_match::StringMatch;
use crate::{schema, wire};

/// What browsers are told about requests from pages of other origins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CorsPolicy {
    /// Origins that may send requests.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 256))]
    pub allow_origins: Vec<StringMatch>,
    /// HTTP methods that they may use.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::texts")]
    pub allow_methods: Vec<String>,
    /// Request headers that they may set.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::texts")]
    pub allow_headers: Vec<String>,
    /// Response headers that they may read.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::texts")]
    pub expose_headers: Vec<String>,
    /// How long a browser may remember the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub max_age: Option<String>,
    /// Whether requests may carry credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_credentials: Option<bool>,
}
