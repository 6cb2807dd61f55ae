//! Matching one string: Istio's `StringMatch`, wherever it occurs.

use serde::{Deserialize, Serialize};

/// How a string is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StringMatch {
    /// Equal.
    Exact(String),
    /// Starts with.
    Prefix(String),
    /// Matches the whole string, RE2 syntax.
    Regex(String),
}
