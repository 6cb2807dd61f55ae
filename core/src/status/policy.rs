//! Statuses of traffic policies and access policies.

use std::collections::BTreeSet;
use std::sync::Arc;

use ferromesh_crds as crds;
use ferromesh_crds::approval::ApprovalStatus;

use super::{Body, Budget, Status, conditions, message, state};
use crate::diagnose::{Code, Finding};
use crate::graph::PolicyKey;
use crate::index::Candidates;
use crate::key::Key;
use crate::kinds::Kind;
use crate::model::access_policy::Identities;
use crate::model::selector::{Destinations, Workloads};
use crate::model::{
    AccessPolicy, Destination, Labels, Rejection, TrafficPolicy, Workload, selector::Names,
};
use crate::record::{Bound, Record};
use crate::state::State;
use crate::table::Set;

/// Room that is kept for callers while destinations are listed.
const RESERVED_FOR_WORKLOADS: usize = 1_500;

/// Whether a workload is among a traffic policy's callers.
pub(crate) fn is_source(sources: &Workloads, workload: &Workload) -> bool {
    sources.0.is_empty()
        || workload.controller.as_ref().is_some_and(|it| {
            let (namespace, cluster) = (it.reference.namespace(), it.reference.cluster());
            sources
                .0
                .iter()
                .any(|source| source.matches(&it.pod_labels, namespace, cluster))
        })
}

/// Whether a workload has one of an access policy's identities.
pub(crate) fn is_identity(sources: &[Identities], workload: &Workload) -> bool {
    if sources.is_empty() {
        return true;
    }
    let Some(it) = &workload.controller else {
        return false;
    };
    let (namespace, cluster) = (it.reference.namespace(), it.reference.cluster());
    // A pod that names no service account runs as its namespace's default.
    let account = if it.service_account.is_empty() {
        "default"
    } else {
        &it.service_account
    };
    sources.iter().any(|source| {
        let matches = source.matcher.as_ref().is_some_and(|matcher| {
            matcher.namespaces.admit(namespace) && matcher.clusters.admit(cluster)
        });
        let admits = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
        let listed = source.accounts.iter().any(|wanted| {
            admits(&wanted.name, account)
                && admits(&wanted.namespace, namespace)
                && admits(&wanted.cluster, cluster)
        });
        matches || listed || (source.matcher.is_none() && source.accounts.is_empty())
    })
}

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
        self.state
            .graph
            .missing
            .get(&self.policy)
            .into_iter()
            .flat_map(|services| services.iter())
            .map(|service| {
                Finding::about(
                    Code::NotFound,
                    service,
                    format!("Destination {service} not found"),
                )
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
                    let mut finding = finding.clone();
                    finding.message = format!("on {destination}: {}", finding.message);
                    findings.push(finding);
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

/// Workloads that call the policy's destinations and that it means: those of the destinations'
/// meshes, and of meshes that share a virtual mesh with them. As many as there is room for, and
/// how many more there are.
fn callers<'a>(
    state: &State,
    meshes: &BTreeSet<Key>,
    budget: &mut Budget,
    means_all: bool,
    terms: impl Iterator<Item = (&'a Labels, &'a Names)>,
    is_meant: impl Fn(&Workload) -> bool,
) -> (Vec<String>, usize) {
    let mut around = meshes.clone();
    for mesh in meshes {
        let membership = state
            .graph
            .estate
            .site(mesh)
            .and_then(|site| site.membership.as_ref());
        around.extend(
            membership
                .iter()
                .flat_map(|it| it.peers.iter())
                .map(|client| client.mesh.clone()),
        );
    }
    let index = &state.graph.workload_index;
    let table = state.graph.workloads.effective();
    let in_meshes = || around.iter().filter_map(|mesh| index.by_mesh.get(mesh));
    let mut sets: Vec<&Set<Key>> = Vec::new();
    let mut narrow = !means_all;
    if narrow {
        for (labels, namespaces) in terms {
            match index.postings.candidates(labels, namespaces) {
                Candidates::All => narrow = false,
                Candidates::Sets(found) => sets.extend(found),
            }
        }
    }
    if !narrow {
        sets = in_meshes().collect();
    }
    if means_all {
        // Everything is meant: the first of all meshes, in order, without looking at the rest.
        let total = sets.iter().map(|set| set.len()).sum();
        let mut rest: Vec<_> = sets.iter().map(|set| set.iter()).collect();
        let mut fronts: Vec<Option<&Key>> = rest.iter_mut().map(Iterator::next).collect();
        let next = std::iter::from_fn(|| {
            let front = fronts.iter().flatten().min().copied()?;
            let at = fronts.iter().position(|other| *other == Some(front))?;
            fronts[at] = rest[at].next();
            Some(front)
        });
        return fill(budget, next, total);
    }
    let mut found: Vec<&Key> = sets
        .iter()
        .flat_map(|set| set.iter())
        .filter(|key| {
            table.get(*key).is_some_and(|workload| {
                workload
                    .mesh
                    .as_ref()
                    .is_some_and(|mesh| around.contains(mesh))
                    && is_meant(workload)
            })
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    let total = found.len();
    fill(budget, found.into_iter(), total)
}

/// As many keys as there is room for, and how many of the `total` that leaves out.
fn fill<'a>(
    budget: &mut Budget,
    keys: impl Iterator<Item = &'a Key>,
    total: usize,
) -> (Vec<String>, usize) {
    let mut listed = Vec::new();
    for key in keys {
        let size = key.as_str().len() + 4;
        if size > budget.left {
            break;
        }
        budget.left -= size;
        listed.push(key.as_str().to_owned());
    }
    let omitted = total - listed.len();
    (listed, omitted)
}
