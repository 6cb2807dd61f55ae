//! Statuses of traffic policies and access policies.

use std::collections::BTreeSet;
use std::sync::Arc;

use ferromesh_crds as crds;
use ferromesh_crds::approval::ApprovalStatus;

use super::caller::{callers, is_identity, is_source};
use super::{Body, Budget, Status, conditions, message, state};
use crate::diagnose::{Code, Finding};
use crate::graph::PolicyKey;
use crate::key::Key;
use crate::kinds::Kind;
use crate::model::selector::{Destinations, Names};
use crate::model::{AccessPolicy, Destination, Labels, Rejection, TrafficPolicy};
use crate::record::{Bound, Record, SELECTORS};
use crate::state::State;
use crate::table::Set;

/// Room that is kept for callers while destinations are listed.
const RESERVED_FOR_WORKLOADS: usize = 1_500;

pub(super) fn traffic(state: &State, key: &Key) -> Option<Status> {
    let policy = state.snapshot.traffic_policies.get(key)?;
    let parts = Parts::traffic(state, policy);
    let is_effective = policy.rejections.is_empty() && parts.missing().is_empty();
    let mut summary = parts.summary(is_effective, policy.generation);
    let (workloads, omitted) = callers(
        state,
        &summary.meshes,
        &mut summary.budget,
        policy.sources.0.is_empty(),
        policy
            .sources
            .0
            .iter()
            .map(|source| (&source.labels, &source.namespaces)),
        |workload| is_source(&policy.sources, workload),
    );
    summary.budget.omitted += omitted;
    let body = Body::TrafficPolicy(crds::TrafficPolicyStatus {
        observed_generation: policy.generation,
        state: summary.state,
        destinations: summary.destinations,
        workloads,
        errors: summary.errors,
        omitted: summary.budget.omitted(),
        conditions: Vec::new(),
    });
    Some(Status {
        body,
        conditions: summary.conditions,
    })
}

pub(super) fn access(state: &State, key: &Key) -> Option<Status> {
    let policy = state.snapshot.access_policies.get(key)?;
    let parts = Parts::access(state, policy);
    let mut summary = parts.summary(policy.rejections.is_empty(), policy.generation);
    let any = Labels::default();
    let namespaces = Names::default();
    let (workloads, omitted) = callers(
        state,
        &summary.meshes,
        &mut summary.budget,
        policy.sources.is_empty(),
        policy.sources.iter().map(|source| {
            (
                &any,
                source
                    .matcher
                    .as_ref()
                    .map_or(&namespaces, |matcher| &matcher.namespaces),
            )
        }),
        |workload| is_identity(&policy.sources, workload),
    );
    summary.budget.omitted += omitted;
    let body = Body::AccessPolicy(crds::AccessPolicyStatus {
        observed_generation: policy.generation,
        state: summary.state,
        destinations: summary.destinations,
        workloads,
        errors: summary.errors,
        omitted: summary.budget.omitted(),
        conditions: Vec::new(),
    });
    Some(Status {
        body,
        conditions: summary.conditions,
    })
}

pub(super) fn traffic_findings(state: &State, key: &Key) -> Vec<Finding> {
    let policy = state.snapshot.traffic_policies.get(key);
    policy
        .map(|policy| Parts::traffic(state, policy).findings())
        .unwrap_or_default()
}

pub(super) fn access_findings(state: &State, key: &Key) -> Vec<Finding> {
    let policy = state.snapshot.access_policies.get(key);
    policy
        .map(|policy| Parts::access(state, policy).findings())
        .unwrap_or_default()
}

/// What becomes of a policy on a destination: its errors, and how many were accepted before it.
struct Entry<'a> {
    errors: &'a [Finding],
    order: usize,
}

fn entry<'a, P>(
    bound: &'a [Bound<P>],
    parts: impl Fn(&'a P) -> (&'a Key, &'a [Rejection]),
    policy: &Key,
) -> Option<Entry<'a>> {
    let at = bound
        .iter()
        .position(|bound| parts(&bound.policy).0 == policy)?;
    let order = bound[..at]
        .iter()
        .filter(|bound| bound.errors.is_empty() && parts(&bound.policy).1.is_empty())
        .count();
    Some(Entry {
        errors: &bound[at].errors,
        order,
    })
}

/// What both kinds of policies have in common.
struct Parts<'a> {
    state: &'a State,
    policy: PolicyKey,
    destinations: &'a Destinations,
    rejections: &'a [Rejection],
    entry: for<'r> fn(&'r Record, &Key) -> Option<Entry<'r>>,
}

/// What both kinds of statuses have in common.
struct Summary {
    state: crds::approval::ApprovalState,
    errors: Vec<String>,
    destinations: std::collections::BTreeMap<String, ApprovalStatus>,
    meshes: BTreeSet<Key>,
    budget: Budget,
    conditions: Vec<crds::condition::Finding>,
}

impl<'a> Parts<'a> {
    fn traffic(state: &'a State, policy: &'a TrafficPolicy) -> Self {
        Self {
            state,
            policy: PolicyKey {
                kind: Kind::TrafficPolicy,
                key: policy.key.clone(),
            },
            destinations: &policy.destinations,
            rejections: &policy.rejections,
            entry: |record, key| {
                entry(
                    &record.traffic_policies,
                    |it| (&it.key, &it.rejections),
                    key,
                )
            },
        }
    }

    fn access(state: &'a State, policy: &'a AccessPolicy) -> Self {
        Self {
            state,
            policy: PolicyKey {
                kind: Kind::AccessPolicy,
                key: policy.key.clone(),
            },
            destinations: &policy.destinations,
            rejections: &policy.rejections,
            entry: |record, key| {
                entry(&record.access_policies, |it| (&it.key, &it.rejections), key)
            },
        }
    }

    /// Services that the policy names and that do not exist.
    fn missing(&self) -> Vec<Finding> {
        let Some(missing) = self.state.graph.missing.get(&self.policy) else {
            return Vec::new();
        };
        let missing: BTreeSet<&Key> = missing.iter().collect();
        let listed = self.destinations.services();
        listed
            .filter(|listed| missing.contains(listed.service))
            .map(|listed| {
                let service = listed.service;
                let text = format!("Destination {service} not found");
                Finding::about(Code::NotFound, service, text).at(listed.path(SELECTORS))
            })
            .collect()
    }

    /// What is wrong with the policy as a whole.
    fn own_findings(&self) -> Vec<Finding> {
        self.rejections
            .iter()
            .map(Finding::from)
            .chain(self.missing())
            .collect()
    }

    /// Destinations on which something is wrong.
    fn faulty(&self) -> impl Iterator<Item = &'a Key> + use<'a> {
        let faults = self.state.graph.faults.get(&self.policy);
        faults.into_iter().flat_map(Set::iter)
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = self.own_findings();
        let mut seen = BTreeSet::new();
        for destination in self.faulty() {
            let record = self.state.graph.records.get(destination);
            let entry = record.and_then(|record| (self.entry)(record, &self.policy.key));
            for finding in entry.iter().flat_map(|entry| entry.errors) {
                if seen.insert(finding) {
                    findings.push(finding.clone().on(destination));
                }
            }
        }
        findings
    }

    fn approval(&self, destination: &Key) -> Option<ApprovalStatus> {
        let record = self.state.graph.records.get(destination)?;
        let Entry { errors, order } = (self.entry)(record, &self.policy.key)?;
        let is_accepted = errors.is_empty();
        let order = if is_accepted { order } else { 0 };
        Some(ApprovalStatus {
            acceptance_order: i64::try_from(order).unwrap_or(i64::MAX),
            state: state(is_accepted),
            errors: errors.iter().map(message).collect(),
            warnings: Vec::new(),
        })
    }

    fn summary(&self, is_effective: bool, generation: i64) -> Summary {
        let mut budget = Budget::new();
        let findings = self.findings();
        let selected = if is_effective {
            let table = self.state.graph.destinations.effective();
            self.state
                .graph
                .destination_index
                .select(self.destinations, table)
        } else {
            Vec::new()
        };
        let meshes = selected.iter().filter_map(|it| it.mesh.clone()).collect();
        let errors = budget.messages(&self.own_findings());
        let faulty: BTreeSet<&Key> = self.faulty().collect();
        let others = selected
            .iter()
            .map(|destination: &&Arc<Destination>| &destination.key)
            .filter(|key| !faulty.contains(key));
        let destinations = budget.entries(
            faulty
                .iter()
                .copied()
                .chain(others)
                .filter_map(|key| Some((key.clone(), self.approval(key)?))),
            RESERVED_FOR_WORKLOADS,
        );
        Summary {
            state: state(findings.is_empty()),
            errors,
            destinations,
            meshes,
            budget,
            conditions: conditions(&findings, generation),
        }
    }
}
