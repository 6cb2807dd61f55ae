//! What the traffic policies of a destination amount to for callers of one cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::conditions::Conditions;
use super::route::shift::{self, Backend};
use crate::diagnose::{Code, Finding};
use crate::graph::Reader;
use crate::key::Key;
use crate::model::TrafficPolicy;
use crate::model::destination::KubeService;
use crate::model::traffic_policy::{Fault, Retries};
use crate::own::Field;

/// Routes in groups: the policies of a group mean the same callers and requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Groups in the order of their first policies.
    pub groups: Vec<Group>,
}

/// What happens to the requests that one set of conditions describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Which requests of which callers.
    pub conditions: Conditions,
    /// Bound on a request.
    pub timeout: Field<Duration>,
    /// Tries after the first.
    pub retries: Field<Retries>,
    /// Faults on purpose.
    pub fault: Field<Fault>,
    /// Where requests go instead.
    pub shift: Field<Arc<[Backend]>>,
}

/// Most bytes that the routes to a destination may come to: no API server takes an object of more.
const MAX_BYTES: usize = 3 << 20;
/// Bytes of a route, and of each backend of it, besides its conditions.
const ROUTE: usize = 100;

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
    service: &KubeService,
    policies: &[Arc<TrafficPolicy>],
    origin: Option<&Arc<str>>,
) -> (Traffic, Vec<Refused>, Vec<usize>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut bytes = 0;
    let mut refused = Vec::new();
    let mut applied = Vec::new();
    for (position, policy) in policies.iter().enumerate() {
        let Some(conditions) = Conditions::new(policy, origin) else {
            continue;
        };
        let mut others = groups.iter();
        let at = others.position(|other| other.conditions.mean_like(&conditions));
        let current = at.map_or_else(|| Group::new(conditions), |at| groups[at].clone());
        let others = bytes - at.map_or(0, |at| groups[at].bytes());
        let group = current.with(reader, policy).and_then(|group| {
            bytes = group.fit(others, service)?;
            Ok(group)
        });
        match (group, at) {
            (Ok(group), Some(at)) => groups[at] = group,
            (Ok(group), None) => groups.push(group),
            (Err(findings), _) => {
                refused.extend(findings.into_iter().map(|finding| Refused {
                    policy: position,
                    finding,
                }));
                continue;
            }
        }
        applied.push(position);
    }
    groups.retain(|group| !group.is_idle());
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
    fn new(conditions: Conditions) -> Self {
        Self {
            conditions,
            timeout: Field::default(),
            retries: Field::default(),
            fault: Field::default(),
            shift: Field::default(),
        }
    }

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

    /// How many bytes its routes come to for each port.
    fn bytes(&self) -> usize {
        if self.is_idle() {
            return 0;
        }
        let backends = self.shift.value().map_or(1, |backends| backends.len());
        let (routes, conditions) = self.conditions.size();
        let route = ROUTE + ROUTE * backends;
        routes.saturating_mul(route).saturating_add(conditions)
    }

    /// How many bytes they come to beside `others`, if that can be stored.
    fn fit(&self, others: usize, service: &KubeService) -> Result<usize, Vec<Finding>> {
        let bytes = self.bytes().saturating_add(others);
        let ports = service.ports.len();
        let all = bytes.saturating_mul(ports);
        if all <= MAX_BYTES {
            return Ok(bytes);
        }
        let text = format!(
            "the routes to {} come to {all} bytes on {ports} ports, and an API server takes {MAX_BYTES}; write fewer matchers, callers and shift targets, or give the Service fewer ports",
            service.reference
        );
        Err(vec![Finding::new(Code::TooLarge, text).at("spec")])
    }

    /// Whether both do the same to the same requests, whoever asked for it.
    fn renders_like(&self, other: &Self) -> bool {
        let Self {
            conditions,
            timeout,
            retries,
            fault,
            shift,
        } = self;
        *conditions == other.conditions
            && timeout.value() == other.timeout.value()
            && retries.value() == other.retries.value()
            && fault.value() == other.fault.value()
            && shift.value() == other.shift.value()
    }

    /// Whether it would leave requests as they are.
    fn is_idle(&self) -> bool {
        let Self {
            conditions: _,
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
            conditions: _,
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
