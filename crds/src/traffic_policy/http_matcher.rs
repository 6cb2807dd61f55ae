//! Which HTTP requests a policy is for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::string_match::StringMatch;
use crate::{schema, wire};

/// Matches HTTP requests. All members must match; a member that is left out matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("!has(self.method) || self.method.matches('^[A-Za-z]*$')", "write an HTTP method, for example GET")]))]
pub struct HttpMatcher {
    /// Name of this matcher, for the reader.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub name: String,
    /// The path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<StringMatch>,
    /// Headers of the request, all of which must match.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 256))]
    pub headers: Vec<HeaderMatcher>,
    /// Query parameters of the request, all of which must match.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 256))]
    pub query_parameters: Vec<QueryParameterMatcher>,
    /// The HTTP method.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 64))]
    pub method: String,
}

/// Matches one header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("has(self.name) && self.name != ''", "name the header to match")]))]
pub struct HeaderMatcher {
    /// Name of the header.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub name: String,
    /// Value of the header; empty means that the header must be there, with any value.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub value: String,
    /// The value is a regular expression (RE2 syntax).
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub regex: bool,
    /// The header must not match.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub invert_match: bool,
}

/// Matches one query parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("has(self.name) && self.name != ''", "name the query parameter to match")]))]
pub struct QueryParameterMatcher {
    /// Name of the parameter.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub name: String,
    /// Value of the parameter; empty means that the parameter must be there, with any value.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub value: String,
    /// The value is a regular expression (RE2 syntax).
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub regex: bool,
}
