//! Repeating requests that failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, wire};

/// How often a failed request is repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("!has(self.perTryTimeout) || (has(self.attempts) && self.attempts > 0)", "perTryTimeout needs attempts above 0: without attempts there are no retries")]))]
pub struct Retries {
    /// How many times; zero means never.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(range(min = 0))]
    pub attempts: i32,
    /// Time after which one try fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub per_try_timeout: Option<String>,
}
