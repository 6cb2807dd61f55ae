//! Which workloads call a policy's destinations.

use std::collections::BTreeSet;

use super::Budget;
use crate::index::Candidates;
use crate::key::Key;
use crate::model::access_policy::Identities;
use crate::model::selector::{Names, Workloads};
use crate::model::{Labels, Workload};
use crate::state::State;
use crate::table::Set;

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

/// Workloads that call the policy's destinations and that it means: those of the destinations'
/// meshes, and of meshes that share a virtual mesh with them. As many as there is room for, and
/// how many more there are.
pub(super) fn callers<'a>(
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
