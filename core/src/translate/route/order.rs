//! In which order routes are tried: the more specific first.

use std::cmp::Ordering;

use ferromesh_istio::StringMatch;
use ferromesh_istio::virtual_service::HttpMatch;

/// Orders two conditions; the smaller is tried first.
///
/// Exact paths before regular expressions before prefixes before none, longer before shorter;
/// then more headers, more query parameters, more labels of the caller; then a caller's
/// namespace, a method, more forbidden headers, and the smaller port.
pub(crate) fn specificity(left: &HttpMatch, right: &HttpMatch) -> Ordering {
    uri(left, right)
        .then_with(|| right.headers.len().cmp(&left.headers.len()))
        .then_with(|| right.query_params.len().cmp(&left.query_params.len()))
        .then_with(|| right.source_labels.len().cmp(&left.source_labels.len()))
        .then_with(|| right.source_namespace.cmp(&left.source_namespace))
        .then_with(|| text(right.method.as_ref()).cmp(text(left.method.as_ref())))
        .then_with(|| right.without_headers.len().cmp(&left.without_headers.len()))
        .then_with(|| left.port.cmp(&right.port))
}

fn uri(left: &HttpMatch, right: &HttpMatch) -> Ordering {
    let rank = |uri: &HttpMatch| match &uri.uri {
        Some(StringMatch::Exact(_)) => 0,
        Some(StringMatch::Regex(_)) => 1,
        Some(StringMatch::Prefix(_)) => 2,
        None => 3,
    };
    let (left_text, right_text) = (text(left.uri.as_ref()), text(right.uri.as_ref()));
    rank(left)
        .cmp(&rank(right))
        .then_with(|| right_text.len().cmp(&left_text.len()))
        .then_with(|| left_text.cmp(right_text))
}

fn text(value: Option<&StringMatch>) -> &str {
    match value {
        Some(StringMatch::Exact(text) | StringMatch::Prefix(text) | StringMatch::Regex(text)) => {
            text
        }
        None => "",
    }
}
