//! Faults on purpose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, wire};

/// Delays or aborts a share of the requests. Exactly one of the two is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::exactly_one(&["fixedDelay", "abort"])]))]
pub struct FaultInjection {
    /// Delays requests for that long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub fixed_delay: Option<String>,
    /// Answers requests with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<Abort>,
    /// Share of the requests; 100 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::percentage")]
    pub percentage: Option<f64>,
}

/// The error with which requests are answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("has(self.httpStatus)", "write the HTTP status to answer with, for example 503")]))]
pub struct Abort {
    /// HTTP status code.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(range(min = 200, max = 599))]
    pub http_status: i32,
}
