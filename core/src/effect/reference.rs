//! References that lead nowhere: new or old, wrong or only not known, refused or let through.

use std::collections::BTreeSet;

use ferromesh_crds::meta::{UNRESOLVED_REFERENCES_LABEL, UNRESOLVED_REFERENCES_WARN};

use super::{Remark, Weight};
use crate::delta::{StatusKey, StatusKind};
use crate::diagnose::{Code, Finding};
use crate::key::Key;
use crate::model::access_policy::Identities;
use crate::model::settings::UnresolvedReferences;
use crate::state::State;

/// Whether a policy had this very error on the same destination before. What is wrong in several
/// places is listed for the first of them only, so a policy that lets go of that one has an error
/// listed elsewhere that is not new.
pub(super) fn stood_before(before: &State, subject: &StatusKey, finding: &Finding) -> bool {
    let place = finding.place.as_ref();
    let Some((place, record)) = place.and_then(|place| Some((place, before.record(place)?))) else {
        return false;
    };
    let errors = match subject.kind {
        StatusKind::TrafficPolicy => {
            let mut bound = record.traffic_policies.iter();
            let bound = bound.find(|bound| bound.policy.key == subject.key);
            bound.map(|bound| &bound.errors)
        }
        StatusKind::AccessPolicy => {
            let mut bound = record.access_policies.iter();
            let bound = bound.find(|bound| bound.policy.key == subject.key);
            bound.map(|bound| &bound.errors)
        }
        StatusKind::Destination
        | StatusKind::Mesh
        | StatusKind::Settings
        | StatusKind::VirtualMesh
        | StatusKind::Workload => None,
    };
    let mut errors = errors.into_iter().flatten().cloned();
    errors.any(|known| known.on(place).repeats(finding))
}

/// Why an error of the object lets it through all the same, where something does.
pub(super) fn excuse(after: &State, subject: &StatusKey, finding: &Finding) -> Option<Remark> {
    let is_reference = match finding.code {
        Code::NotFound | Code::NotReady => true,
        Code::Invalid | Code::Required | Code::Unsupported | Code::TooLarge | Code::Conflicted => {
            false
        }
    };
    if !is_reference {
        return None;
    }
    let blind = blind_spots(after, subject, finding);
    if !blind.is_empty() {
        return Some(not_listed(finding, &blind.join(", ")));
    }
    if !after.is_complete("") {
        return Some(Remark::new(
            Weight::Unresolved,
            format!(
                "the management cluster has not been listed yet, so this is not certain: {finding}"
            ),
        ));
    }
    is_relaxed(after, subject).then(|| {
        Remark::new(
            Weight::Unresolved,
            format!("{finding}; takes effect once that is there"),
        )
    })
}

/// What is to be said of a reference into a cluster that has not been listed.
pub(super) fn unknown(finding: &Finding) -> Remark {
    let cluster = finding.about.as_ref().map_or("", Key::cluster);
    not_listed(finding, cluster)
}

fn not_listed(finding: &Finding, clusters: &str) -> Remark {
    Remark::new(
        Weight::Unresolved,
        format!("cluster {clusters} has not been listed yet, so this is not certain: {finding}"),
    )
}

/// Clusters that have not been listed and because of which a reference may seem to lead nowhere.
fn blind_spots(after: &State, subject: &StatusKey, finding: &Finding) -> Vec<String> {
    match subject.kind {
        StatusKind::VirtualMesh => around_meshes(after, &subject.key, finding),
        StatusKind::AccessPolicy if finding.about.is_none() => {
            without_trust_domain(after, &subject.key)
        }
        StatusKind::AccessPolicy
        | StatusKind::Destination
        | StatusKind::Mesh
        | StatusKind::Settings
        | StatusKind::TrafficPolicy
        | StatusKind::Workload => Vec::new(),
    }
}

/// A mesh is named as an object of the management cluster, wherever it was found: one that is
/// missing may be in any cluster. A gateway that is missing is missing in the mesh's own.
fn around_meshes(after: &State, key: &Key, finding: &Finding) -> Vec<String> {
    let Some(standing) = after.estate().virtual_meshes.get(key) else {
        return Vec::new();
    };
    let is_mesh = finding.about.as_ref().is_some_and(|about| {
        let mut meshes = standing.virtual_mesh.meshes.iter();
        meshes.any(|listed| listed.key == *about)
    });
    let homes: BTreeSet<&str> = standing
        .members
        .iter()
        .filter(|(_, member)| member.errors.contains(finding))
        .filter_map(|(mesh, _)| after.estate().site(mesh))
        .map(|site| site.cluster.as_ref())
        .collect();
    registered(after)
        .filter(|name| is_mesh || homes.contains(name))
        .filter(|name| after.awaits(name))
        .map(str::to_owned)
        .collect()
}

/// Clusters that an access policy names and whose trust domain is not known; none where one of
/// them has been listed or is not registered, so that waiting would not help.
fn without_trust_domain(after: &State, key: &Key) -> Vec<String> {
    let Some(policy) = after.snapshot().access_policies.get(key) else {
        return Vec::new();
    };
    let known = &after.estate().trust_domains;
    let missing: BTreeSet<&str> = policy
        .sources
        .iter()
        .flat_map(Identities::clusters)
        .filter(|cluster| !known.contains_key(*cluster))
        .collect();
    let registered: BTreeSet<&str> = registered(after).collect();
    let may_come = |cluster: &&str| registered.contains(cluster) && after.awaits(cluster);
    if missing.iter().all(may_come) {
        missing.into_iter().map(str::to_owned).collect()
    } else {
        Vec::new()
    }
}

/// Clusters that are registered.
pub(super) fn registered(state: &State) -> impl Iterator<Item = &str> {
    let own = &state.options().namespace;
    let clusters = state.snapshot().clusters.keys();
    clusters
        .filter(move |cluster| cluster.namespace() == own)
        .map(Key::name)
}

/// Whether references to what does not exist are let through, for this object.
fn is_relaxed(state: &State, subject: &StatusKey) -> bool {
    let settings = state.snapshot().settings.get(&state.options().settings());
    if settings.is_some_and(|it| it.unresolved_references == UnresolvedReferences::Warn) {
        return true;
    }
    let namespace = Key::local(subject.key.namespace(), "");
    state
        .snapshot()
        .namespaces
        .get(&namespace)
        .and_then(|namespace| namespace.labels.get(UNRESOLVED_REFERENCES_LABEL))
        == Some(UNRESOLVED_REFERENCES_WARN)
}
