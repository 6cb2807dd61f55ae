//! What the traffic policies of a destination amount to for callers of one cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ferromesh_istio::virtual_service::HttpMatch;

use super::route::shift::{self, Backend};
use crate::diagnose::{Code, Finding};
use crate::graph::Reader;
use crate::key::Key;
use crate::model::destination::KubeService;
use crate::model::selector::{Names, WorkloadMatcher};
use crate::model::traffic_policy::{Fault, Retries};
use crate::model::{Labels, TrafficPolicy};
use crate::own::Field;

/// Routes in groups: the policies of a group mean the same callers and requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Groups in the order of their first policies.
    pub groups: Vec<Group>,
}

/// What happens to the requests that one set of conditions describes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Alternative conditions, before ports; none means every request.
    pub matches: Vec<HttpMatch>,
    /// Bound on a request.
    pub timeout: Field<Duration>,
    /// Tries after the first.
    pub retries: Field<Retries>,
    /// Faults on purpose.
    pub fault: Field<Fault>,
    /// Where requests go instead.
    pub shift: Field<Arc<[Backend]>>,
}

/// An error of one policy on one destination.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    /// Position of the policy among those bound to the destination.
    pub(crate) policy: usize,
    pub(crate) finding: Finding,
}

/// What the policies amount to for callers in `origin`; `None` stands for every cluster that no
/// source selector names.
///
/// A policy is applied as a whole or, where something in it cannot be, not at all: a later policy
/// never loses to a part of one that was itself refused. Says also which policies have a part in
/// the result.
pub(crate) fn traffic(
    reader: &Reader<'_>,
    policies: &[Arc<TrafficPolicy>],
    origin: Option<&str>,
) -> (Traffic, Vec<Refused>, Vec<usize>) {
    let mut groups: Vec<(Conditions<'_>, Group)> = Vec::new();
    let mut refused = Vec::new();
    let mut applied = Vec::new();
    for (position, policy) in policies.iter().enumerate() {
        // No cluster has an empty name, so an origin that nobody names stands in by that.
        let Some(sources) = policy.sources.within(origin.unwrap_or_default()) else {
            continue;
        };
        let conditions = Conditions {
            sources,
            requests: &policy.matchers,
        };
        let at = groups
            .iter()
            .position(|(other, _)| other.same_as(&conditions));
        let fresh = || Group {
            matches: conditions.matches(),
            ..Group::default()
        };
        let current = at.map_or_else(fresh, |at| groups[at].1.clone());
        match current.with(reader, policy) {
            Ok(group) => {
                applied.push(position);
                match at {
                    Some(at) => groups[at].1 = group,
                    None => groups.push((conditions, group)),
                }
            }
            Err(findings) => refused.extend(findings.into_iter().map(|finding| Refused {
                policy: position,
                finding,
            })),
        }
    }
    let groups = groups
        .into_iter()
        .map(|(_, group)| group)
        .filter(|group| !group.is_idle())
        .collect();
    (Traffic { groups }, refused, applied)
}

impl Traffic {
    /// Whether both render the same routes, whoever asked for them.
    pub(crate) fn renders_like(&self, other: &Self) -> bool {
        self.groups.len() == other.groups.len()
            && self
                .groups
                .iter()
                .zip(&other.groups)
                .all(|(mine, theirs)| mine.renders_like(theirs))
    }
}

impl Group {
    /// This group with what a policy adds, or what keeps the policy out.
    fn with(mut self, reader: &Reader<'_>, policy: &TrafficPolicy) -> Result<Self, Vec<Finding>> {
        let mut findings = Vec::new();
        let actions = &policy.actions;
        let mut keep = |result: Result<(), Finding>| findings.extend(result.err());
        let key = &policy.key;
        let fault = ("fault-injection", "spec.policy.faultInjection");
        keep(self.fault.claim(fault, actions.fault, key));
        let retries = ("retries", "spec.policy.retries");
        keep(self.retries.claim(retries, actions.retries, key));
        let timeout = ("timeout", "spec.policy.requestTimeout");
        keep(self.timeout.claim(timeout, actions.timeout, key));
        if let Some(targets) = &actions.shift {
            match shift::resolve(reader, targets) {
                Ok(backends) => {
                    let shift = ("traffic-shift", shift::PATH);
                    keep(self.shift.claim(shift, Some(backends), key));
                }
                Err(errors) => findings.extend(errors),
            }
        }
        if findings.is_empty() {
            Ok(self)
        } else {
            Err(findings)
        }
    }

    /// Whether both do the same to the same requests, whoever asked for it.
    fn renders_like(&self, other: &Self) -> bool {
        let Self {
            matches,
            timeout,
            retries,
            fault,
            shift,
        } = self;
        *matches == other.matches
            && timeout.value() == other.timeout.value()
            && retries.value() == other.retries.value()
            && fault.value() == other.fault.value()
            && shift.value() == other.shift.value()
    }

    /// Whether it would leave requests as they are.
    fn is_idle(&self) -> bool {
        let Self {
            matches: _,
            timeout,
            retries,
            fault,
            shift,
        } = self;
        timeout.is_free() && retries.is_free() && fault.is_free() && shift.is_free()
    }

    /// The policies that set something.
    pub fn owners(&self) -> BTreeSet<&Key> {
        let Self {
            matches: _,
            timeout,
            retries,
            fault,
            shift,
        } = self;
        [
            timeout.owner(),
            retries.owner(),
            fault.owner(),
            shift.owner(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Which requests of which callers.
struct Conditions<'a> {
    /// Callers in the cluster at hand; empty means all of them.
    sources: Vec<&'a WorkloadMatcher>,
    /// Requests; empty means all of them.
    requests: &'a [HttpMatch],
}

impl Conditions<'_> {
    /// Whether both mean the same: the same callers in any order, the same requests in order.
    fn same_as(&self, other: &Self) -> bool {
        self.sources.len() == other.sources.len()
            && self.requests == other.requests
            && self.callers() == other.callers()
    }

    /// The callers in an order of their own.
    fn callers(&self) -> Vec<(&Labels, &Names)> {
        let sources = self.sources.iter();
        let mut callers: Vec<_> = sources.map(|it| (&it.labels, &it.namespaces)).collect();
        callers.sort_unstable();
        callers
    }

    /// Every caller with every request.
    fn matches(&self) -> Vec<HttpMatch> {
        let mut sources: Vec<HttpMatch> = Vec::new();
        for source in &self.sources {
            let labels = source.labels.to_map();
            if source.namespaces.is_empty() {
                sources.push(HttpMatch {
                    source_labels: labels,
                    ..HttpMatch::default()
                });
                continue;
            }
            sources.extend(source.namespaces.iter().map(|namespace| HttpMatch {
                source_labels: labels.clone(),
                source_namespace: namespace.to_string(),
                ..HttpMatch::default()
            }));
        }
        if self.requests.is_empty() {
            return sources;
        }
        if sources.is_empty() {
            return self.requests.to_vec();
        }
        sources
            .iter()
            .flat_map(|source| {
                self.requests.iter().map(|request| HttpMatch {
                    source_labels: source.source_labels.clone(),
                    source_namespace: source.source_namespace.clone(),
                    ..request.clone()
                })
            })
            .collect()
    }
}

/// What keeps a policy off a destination whose mesh we do not route for.
pub(crate) fn unsupported_mesh(service: &KubeService, mesh: &str) -> Finding {
    Finding::new(
        Code::Unsupported,
        format!(
            "{} is in a mesh of type {mesh}, for which policies are not supported yet",
            service.reference
        ),
    )
}
