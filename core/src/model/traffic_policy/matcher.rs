//! Request matchers: from the policy's words into Istio's.

use std::collections::BTreeMap;
use std::fmt;

use ferromesh_crds::{string_match as words, traffic_policy as wire};
use ferromesh_istio::StringMatch;
use ferromesh_istio::virtual_service::{HeaderMatch, HttpMatch};

use super::expression::Expressions;
use crate::model::reject::{Code, Door};

const MAX_MATCHERS: usize = 256;
const MAX_CONDITIONS: usize = 64;

pub(super) fn parse(door: &mut Door, path: &str, matchers: &[wire::HttpMatcher]) -> Vec<HttpMatch> {
    door.limit(path, matchers.len(), MAX_MATCHERS);
    let mut expressions = Expressions::new();
    matchers
        .iter()
        .take(MAX_MATCHERS)
        .enumerate()
        .map(|(i, matcher)| one(door, &mut expressions, format_args!("{path}[{i}]"), matcher))
        .collect()
}

/// How many bytes they come to when they are written out.
pub(super) fn bytes(matchers: &[HttpMatch]) -> usize {
    let text = serde_json::to_string(matchers);
    text.expect("matchers are text and numbers").len()
}

fn one<'a>(
    door: &mut Door,
    expressions: &mut Expressions<'a>,
    path: fmt::Arguments<'_>,
    matcher: &'a wire::HttpMatcher,
) -> HttpMatch {
    let (uri, ignore_uri_case) = match &matcher.uri {
        Some(uri) => string_match(door, expressions, format_args!("{path}.uri"), uri),
        None => (None, false),
    };
    let (headers, without_headers) = headers(
        door,
        expressions,
        format_args!("{path}.headers"),
        &matcher.headers,
    );
    if !matcher
        .method
        .bytes()
        .all(|byte| byte.is_ascii_alphabetic())
    {
        door.refuse(
            format_args!("{path}.method"),
            Code::Invalid,
            "write an HTTP method, for example GET; for several, write a matcher each",
        );
    }
    HttpMatch {
        uri,
        ignore_uri_case,
        method: (!matcher.method.is_empty()).then(|| StringMatch::Exact(matcher.method.clone())),
        headers,
        without_headers,
        query_params: query(
            door,
            expressions,
            format_args!("{path}.queryParameters"),
            &matcher.query_parameters,
        ),
        ..HttpMatch::default()
    }
}

/// Istio has no suffix, and ignores case only beside `exact` and `prefix`: the rest becomes a
/// regular expression that says the same.
fn string_match<'a>(
    door: &mut Door,
    expressions: &mut Expressions<'a>,
    path: fmt::Arguments<'_>,
    text: &'a words::StringMatch,
) -> (Option<StringMatch>, bool) {
    let members = [&text.exact, &text.prefix, &text.regex, &text.suffix];
    if members.iter().filter(|member| member.is_some()).count() > 1 {
        door.refuse(
            path,
            Code::Invalid,
            "exact, prefix, regex and suffix exclude each other; keep one",
        );
        return (None, false);
    }
    let case = if text.ignore_case { "(?i)" } else { "" };
    if let Some(exact) = &text.exact {
        (Some(StringMatch::Exact(exact.clone())), text.ignore_case)
    } else if let Some(prefix) = &text.prefix {
        (Some(StringMatch::Prefix(prefix.clone())), text.ignore_case)
    } else if let Some(suffix) = &text.suffix {
        (
            Some(StringMatch::Regex(format!(
                "{case}.*{}",
                regex::escape(suffix)
            ))),
            false,
        )
    } else if let Some(pattern) = &text.regex {
        expressions.check(door, path, pattern);
        (Some(StringMatch::Regex(format!("{case}{pattern}"))), false)
    } else {
        door.refuse(
            path,
            Code::Required,
            "set one of exact, prefix, regex and suffix",
        );
        (None, false)
    }
}

type Headers = BTreeMap<String, HeaderMatch>;

fn headers<'a>(
    door: &mut Door,
    expressions: &mut Expressions<'a>,
    path: fmt::Arguments<'_>,
    headers: &'a [wire::HeaderMatcher],
) -> (Headers, Headers) {
    door.limit(path, headers.len(), MAX_CONDITIONS);
    let mut with = Headers::new();
    let mut without = Headers::new();
    for (i, header) in headers.iter().take(MAX_CONDITIONS).enumerate() {
        let path = format_args!("{path}[{i}]");
        if header.name.is_empty() {
            door.refuse(
                format_args!("{path}.name"),
                Code::Required,
                "name the header",
            );
            continue;
        }
        if !is_header_name(&header.name) {
            let name = &header.name;
            door.refuse(
                format_args!("{path}.name"),
                Code::Invalid,
                format!("`{name}` is not a header name; use letters, digits and `-` (Istio refuses the route)"),
            );
        }
        let value = if header.value.is_empty() {
            HeaderMatch::Present {}
        } else if header.regex {
            expressions.check(door, format_args!("{path}.value"), &header.value);
            HeaderMatch::Value(StringMatch::Regex(header.value.clone()))
        } else {
            HeaderMatch::Value(StringMatch::Exact(header.value.clone()))
        };
        let side = if header.invert_match {
            &mut without
        } else {
            &mut with
        };
        // Istio wants header names in lower case; HTTP compares them without regard to it.
        side.insert(header.name.to_ascii_lowercase(), value);
    }
    (with, without)
}

fn query<'a>(
    door: &mut Door,
    expressions: &mut Expressions<'a>,
    path: fmt::Arguments<'_>,
    parameters: &'a [wire::QueryParameterMatcher],
) -> BTreeMap<String, StringMatch> {
    door.limit(path, parameters.len(), MAX_CONDITIONS);
    let mut query = BTreeMap::new();
    for (i, parameter) in parameters.iter().take(MAX_CONDITIONS).enumerate() {
        let path = format_args!("{path}[{i}]");
        if parameter.name.is_empty() {
            door.refuse(
                format_args!("{path}.name"),
                Code::Required,
                "name the query parameter",
            );
            continue;
        }
        let value = if parameter.regex {
            expressions.check(door, format_args!("{path}.value"), &parameter.value);
            StringMatch::Regex(parameter.value.clone())
        } else {
            StringMatch::Exact(parameter.value.clone())
        };
        query.insert(parameter.name.clone(), value);
    }
    query
}

/// Whether Istio matches headers of this name: those that HTTP knows (RFC 9110: a token), and some
/// of HTTP/2's own.
fn is_header_name(name: &str) -> bool {
    let is_token =
        |letter: u8| letter.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&letter);
    matches!(name, ":authority" | ":method" | ":scheme") || name.bytes().all(is_token)
}
