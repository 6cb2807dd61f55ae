//! Limiting the rate of requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::empty::Empty;
use crate::reference::ObjectRef;
use crate::{schema, wire};

/// Limits the rate of requests. At most one of the members is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::at_most_one(&["basic", "advanced", "configRefs"])]))]
pub struct RateLimit {
    /// Limits by whether the user is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic: Option<BasicRateLimit>,
    /// Limits by descriptors that are made of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advanced: Option<AdvancedRateLimit>,
    /// Limits that are kept in objects of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_refs: Option<RateLimitConfigRefs>,
}

/// Limits by whether the user is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicRateLimit {
    /// Limit of each known user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorized_limits: Option<RateLimitRatio>,
    /// Limit of each address from which unknown users come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous_limits: Option<RateLimitRatio>,
}

/// So many requests in a unit of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitRatio {
    /// The unit of time.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub unit: RateLimitUnit,
    /// Requests in one unit.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::uint32")]
    pub requests_per_unit: i64,
}

/// Unit of time of a rate limit.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RateLimitUnit {
    /// Not set.
    #[default]
    Unknown,
    /// One second.
    Second,
    /// One minute.
    Minute,
    /// One hour.
    Hour,
    /// One day.
    Day,
}

/// Limits by descriptors that are made of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdvancedRateLimit {
    /// How descriptors are made.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 64))]
    pub actions: Vec<RateLimitActions>,
}

/// Makes one descriptor, or one set of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitActions {
    /// Entries of the descriptor, in order.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 32))]
    pub actions: Vec<RateLimitAction>,
    /// Entries of the set, in any order.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 32))]
    pub set_actions: Vec<RateLimitAction>,
}

/// Makes one entry of a descriptor. At most one of the members is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::at_most_one(&["sourceCluster", "destinationCluster", "requestHeaders", "remoteAddress", "genericKey", "headerValueMatch"])]))]
pub struct RateLimitAction {
    /// Where the request comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_cluster: Option<Empty>,
    /// Where the request is sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_cluster: Option<Empty>,
    /// The value of a request header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_headers: Option<RequestHeadersKey>,
    /// The address of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_address: Option<Empty>,
    /// Always the same value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generic_key: Option<GenericKey>,
    /// A value when the request's headers match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_value_match: Option<HeaderValueMatch>,
}

/// Takes an entry from a request header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestHeadersKey {
    /// Name of the header.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub header_name: String,
    /// Key of the entry.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub descriptor_key: String,
}

/// An entry that is always the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenericKey {
    /// Value of the entry.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub descriptor_value: String,
}

/// An entry that is made when headers match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderValueMatch {
    /// Value of the entry.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub descriptor_value: String,
    /// False makes the entry when the headers do not match; true when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_match: Option<bool>,
    /// The headers, all of which must match.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 32))]
    pub headers: Vec<HeaderValueMatcher>,
}

/// Matches one header in at most one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::at_most_one(&["exactMatch", "regexMatch", "rangeMatch", "presentMatch", "prefixMatch", "suffixMatch"])]))]
pub struct HeaderValueMatcher {
    /// Name of the header.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub name: String,
    /// The header must not match.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub invert_match: bool,
    /// The whole value must be this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_match: Option<String>,
    /// The whole value must match this regular expression (RE2 syntax).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex_match: Option<String>,
    /// The value must be a number in this range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_match: Option<Int64Range>,
    /// The header must be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present_match: Option<bool>,
    /// The value must begin with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_match: Option<String>,
    /// The value must end with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix_match: Option<String>,
}

/// A range of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Int64Range {
    /// First number that is in the range.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub start: i64,
    /// First number that is not in the range any more.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub end: i64,
}

/// Limits that are kept in objects of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitConfigRefs {
    /// The objects.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub refs: Vec<ObjectRef>,
}
