//! How a policy compares one string.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, wire};

/// Compares a string in exactly one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::exactly_one(&["exact", "prefix", "regex", "suffix"])]))]
pub struct StringMatch {
    /// The whole string must be this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// The string must begin with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The whole string must match this regular expression (RE2 syntax).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The string must end with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
    /// Upper and lower case are the same. Does not apply to a regular expression.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub ignore_case: bool,
}
