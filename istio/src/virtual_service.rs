//! `VirtualService`: how requests to a host are routed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::StringMatch;

/// Routes of one or more hosts, first match wins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualService {
    /// The hosts whose traffic is routed.
    pub hosts: Vec<String>,
    /// HTTP routes in order of evaluation. A request that none matches gets 404.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRoute>,
}

/// What happens to requests that one of the matches fits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRoute {
    /// Alternatives; empty matches everything.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<HttpMatch>,
    /// Where requests go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<WeightedDestination>,
    /// Bound on the whole request, `0s` for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// When and how often to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<HttpRetry>,
    /// Faults put into the path on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<HttpFaultInjection>,
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMatch {
    /// The path with its query cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<StringMatch>,
    /// Compare `uri` without regard to case, where it is `Exact` or `Prefix`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_uri_case: bool,
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<StringMatch>,
    /// Headers that must match, by lower-case name. `None` asks for presence only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderMatch>,
    /// Headers that must not match, by lower-case name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub without_headers: BTreeMap<String, HeaderMatch>,
    /// Query parameters that must match, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query_params: BTreeMap<String, StringMatch>,
    /// Labels of the calling workload.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub source_labels: BTreeMap<String, String>,
    /// Namespace of the calling workload.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_namespace: String,
    /// Port of the host that is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
}

/// A header by value, or (an empty object) by presence alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HeaderMatch {
    /// The value must match.
    Value(StringMatch),
    /// The header must be there, whatever its value.
    Present {},
}

/// A destination and its share of the requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightedDestination {
    /// Where.
    pub destination: Destination,
    /// Percent; with one destination alone, absence means all.
    #[serde(skip_serializing_if = "is_zero")]
    pub weight: u32,
}

/// A host, one of its ports and one of its subsets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {
    /// Host in the registry of the caller's cluster.
    pub host: String,
    /// Which port; may be left out only where the host has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<PortSelector>,
    /// A subset that a `DestinationRule` of the host defines.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subset: String,
}

/// A port by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSelector {
    /// The number.
    pub number: u32,
}

/// Retry policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRetry {
    /// Tries after the first one; 0 turns retries off.
    pub attempts: i32,
    /// Bound on each try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_try_timeout: Option<String>,
}

/// Delay, abort or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpFaultInjection {
    /// Hold requests back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// Answer in place of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort: Option<Abort>,
}

/// A fixed delay for a share of the requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Delay {
    /// How long.
    pub fixed_delay: String,
    /// Which share; Istio takes absence as none.
    pub percentage: Percent,
}

/// A status code for a share of the requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Abort {
    /// The status code.
    pub http_status: i32,
    /// Which share; Istio takes absence as none.
    pub percentage: Percent,
}

/// A share of the requests, 0 to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Percent {
    /// The number.
    pub value: f64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out a reference"
)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}
