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
    origin: Option<&Arc<str>>,
) -> (Traffic, Vec<Refused>, Vec<usize>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut refused = Vec::new();
    let mut applied = Vec::new();
    for (position, policy) in policies.iter().enumerate() {
        let Some(conditions) = Conditions::new(policy, origin) else {
            continue;
        };
        let mut others = groups.iter();
        let at = others.position(|other| other.conditions.mean_like(&conditions));
        let current = at.map_or_else(|| Group::new(conditions), |at| groups[at].clone());
        match current.with(reader, policy) {
            Ok(group) => {
                applied.push(position);
                match at {
                    Some(at) => groups[at] = group,
                    None => groups.push(group),
                }
            }
            Err(findings) => refused.extend(findings.into_iter().map(|finding| Refused {
                policy: position,
                finding,
            })),
        }
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
