//! Headers that are added and removed on the way.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, wire};

/// Headers to add to and to remove from requests and responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderManipulation {
    /// Names of headers to remove from requests.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::texts")]
    pub remove_request_headers: Vec<String>,
    /// Headers to add to requests: name and value.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::headers")]
    pub append_request_headers: BTreeMap<String, String>,
    /// Names of headers to remove from responses.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::texts")]
    pub remove_response_headers: Vec<String>,
    /// Headers to add to responses: name and value.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::headers")]
    pub append_response_headers: BTreeMap<String, String>,
}
