//! Which requests of which callers a group of routes is for.

use std::sync::Arc;

use ferromesh_istio::StringMatch;
use ferromesh_istio::virtual_service::HttpMatch;

use crate::model::selector::{Names, WorkloadMatcher};
use crate::model::{Labels, TrafficPolicy};

/// What a policy asks of requests, seen from the cluster of their callers.
///
/// It is written out when it is rendered: a policy may ask for much, and does so on every destination.
#[derive(Clone, Debug)]
pub struct Conditions {
    policy: Arc<TrafficPolicy>,
    /// None stands for every cluster that no source selector names.
    origin: Option<Arc<str>>,
}

impl PartialEq for Conditions {
    /// Whether both are written alike.
    fn eq(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.policy, &other.policy) && self.origin == other.origin)
            || (self.requests() == other.requests() && self.callers() == other.callers())
    }
}

impl Conditions {
    /// Those of a policy for callers in `origin`; none where it means nobody there.
    pub(super) fn new(policy: &Arc<TrafficPolicy>, origin: Option<&Arc<str>>) -> Option<Self> {
        let conditions = Self {
            policy: Arc::clone(policy),
            origin: origin.cloned(),
        };
        conditions.sources().is_some().then_some(conditions)
    }

    /// How many there are when they are written out, and how many bytes they come to then.
    pub(super) fn size(&self) -> (usize, usize) {
        let (mut callers, mut bytes) = (0, 0);
        for source in self.sources().into_iter().flatten() {
            let names = source.namespaces.iter().map(|name| name.len());
            let labels = source.labels.iter();
            let labels = labels.map(|(key, value)| key.len() + value.len());
            callers += source.alternatives();
            bytes += names.sum::<usize>() + labels.sum::<usize>() * source.alternatives();
        }
        let (callers, requests) = (callers.max(1), self.requests().len().max(1));
        let bytes = bytes * requests + self.policy.bytes_of_matchers * callers;
        (callers * requests, bytes)
    }

    /// Whether both mean the same: the same callers in any order, the same requests in order.
    pub(super) fn mean_like(&self, other: &Self) -> bool {
        if self.requests() != other.requests() {
            return false;
        }
        let [mut mine, mut theirs] = [self, other].map(Self::callers);
        mine.len() == theirs.len() && {
            mine.sort_unstable();
            theirs.sort_unstable();
            mine == theirs
        }
    }

    /// Whether every request of every caller fits.
    pub(crate) fn fit_all(&self) -> bool {
        let requests = self.requests();
        self.callers().is_empty() && (requests.is_empty() || requests.iter().any(fits_all))
    }

    /// Every caller with every request, each on its own.
    pub(super) fn alternatives(&self) -> Vec<HttpMatch> {
        let any = [HttpMatch::default()];
        let mut sources: Vec<HttpMatch> = Vec::new();
        for (labels, namespaces) in self.callers() {
            let source = HttpMatch {
                source_labels: labels.to_map(),
                ..HttpMatch::default()
            };
            if namespaces.is_empty() {
                sources.push(source);
                continue;
            }
            sources.extend(namespaces.iter().map(|namespace| HttpMatch {
                source_namespace: namespace.to_string(),
                ..source.clone()
            }));
        }
        let sources = if sources.is_empty() {
            &any[..]
        } else {
            &sources
        };
        let requests = match self.requests() {
            [] => &any,
            requests => requests,
        };
        let pairs = sources.iter().flat_map(|source| {
            requests.iter().map(|request| HttpMatch {
                source_labels: source.source_labels.clone(),
                source_namespace: source.source_namespace.clone(),
                ..request.clone()
            })
        });
        pairs.collect()
    }

    /// Requests; empty means all of them.
    fn requests(&self) -> &[HttpMatch] {
        &self.policy.matchers
    }

    /// Callers in the cluster at hand, as they are written; empty means all of them.
    fn callers(&self) -> Vec<(&Labels, &Names)> {
        let sources = self.sources().into_iter().flatten();
        sources.map(|it| (&it.labels, &it.namespaces)).collect()
    }

    fn sources(&self) -> Option<Vec<&WorkloadMatcher>> {
        // No cluster has an empty name, so an origin that nobody names stands in by that.
        let origin = self.origin.as_deref().unwrap_or_default();
        self.policy.sources.within(origin)
    }
}

/// Whether every request fits.
fn fits_all(request: &HttpMatch) -> bool {
    let HttpMatch {
        uri,
        ignore_uri_case: _,
        method,
        headers,
        without_headers,
        query_params,
        source_labels,
        source_namespace,
        port: _,
    } = request;
    let any_path = match uri {
        None => true,
        Some(StringMatch::Prefix(prefix)) => prefix == "/",
        Some(StringMatch::Regex(regex)) => regex == ".*",
        Some(StringMatch::Exact(_)) => false,
    };
    any_path
        && method.is_none()
        && headers.is_empty()
        && without_headers.is_empty()
        && query_params.is_empty()
        && source_labels.is_empty()
        && source_namespace.is_empty()
}
