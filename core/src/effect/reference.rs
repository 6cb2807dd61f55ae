//! References that lead nowhere: new or old, wrong or only not known, refused or let through.

use std::collections::BTreeSet;

use ferromesh_crds::meta::{UNRESOLVED_REFERENCES_LABEL, UNRESOLVED_REFERENCES_WARN};

use super::{Remark, Weight};
use crate::delta::{StatusKey, StatusKind};
use crate::diagnose::{Code, Finding};
use crate::graph::PolicyKey;
use crate::key::Key;
use crate::kinds::Kind;
use crate::model::access_policy::Identities;
use crate::model::settings::UnresolvedReferences;
use crate::record::Record;
use crate::state::State;
use crate::table::Set;

/// Whether a policy had this very error on the same destination before. What is wrong in several
/// places is listed for the first of them only, so a policy that lets go of that one has an error
/// listed elsewhere that is not new.
pub(super) fn stood_before(before: &State, subject: &StatusKey, finding: &Finding) -> bool {
    let (kind, errors): (_, fn(&Record, &Key) -> Vec<Finding>) = match subject.kind {
        StatusKind::TrafficPolicy => (Kind::TrafficPolicy, |record, policy| {
            let bound = record.traffic_policies.iter();
            bound
                .filter(|bound| bound.policy.key == *policy)
                .flat_map(|bound| bound.errors.iter().cloned())
                .collect()
        }),
        StatusKind::AccessPolicy => (Kind::AccessPolicy, |record, policy| {
            let bound = record.access_policies.iter();
            bound
                .filter(|bound| bound.policy.key == *policy)
                .flat_map(|bound| bound.errors.iter().cloned())
                .collect()
        }),
        StatusKind::Destination
        | StatusKind::Mesh
        | StatusKind::Settings
        | StatusKind::VirtualMesh
        | StatusKind::Workload => return false,
    };
    let Some((place, message)) = finding
        .message
        .strip_prefix("on ")
        .and_then(|text| text.split_once(": "))
    else {
        return false;
    };
    let policy = PolicyKey {
        kind,
        key: subject.key.clone(),
    };
    before
        .graph
        .faults
        .get(&policy)
        .into_iter()
        .flat_map(Set::iter)
        .filter(|destination| destination.as_str() == place)
        .filter_map(|destination| before.graph.records.get(destination))
        .flat_map(|record| errors(record, &subject.key))
        .any(|known| known.code == finding.code && known.message == message)
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
                "the management cluster has not been listed yet, so this is not certain: {}",
                finding.message
            ),
        ));
    }
    is_relaxed(after, subject).then(|| {
        Remark::new(
            Weight::Unresolved,
            format!("{}; takes effect once that is there", finding.message),
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
        format!(
            "cluster {clusters} has not been listed yet, so this is not certain: {}",
            finding.message
        ),
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
    let is_mesh = finding
        .about
        .as_ref()
        .is_some_and(|about| standing.virtual_mesh.meshes.contains(about));
    let homes: BTreeSet<&str> = standing
        .members
        .iter()
        .filter(|(_, member)| member.errors.contains(finding))
        .filter_map(|(mesh, _)| after.estate().site(mesh))
        .map(|site| site.cluster.as_ref())
        .collect();
    registered(after)
        .filter(|name| is_mesh || homes.contains(name))
        .filter(|name| !after.is_complete(name))
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
    let may_come = |cluster: &&str| registered.contains(cluster) && !after.is_complete(cluster);
    if missing.iter().all(may_come) {
        missing.into_iter().map(str::to_owned).collect()
    } else {
        Vec::new()
    }
}

fn registered(state: &State) -> impl Iterator<Item = &str> {
    let own = &state.options().namespace;
    let clusters = state.snapshot().clusters.keys();
    clusters
        .filter(move |cluster| cluster.namespace() == own)
        .map(Key::name)
}

/// Names of clusters that nobody has registered, and in which no mesh is known either.
pub(super) fn strangers<'a>(
    state: &State,
    field: &str,
    named: impl Iterator<Item = &'a str>,
) -> Option<Remark> {
    let mut strangers: BTreeSet<&str> = named.collect();
    if strangers.is_empty() {
        return None;
    }
    for known in registered(state) {
        strangers.remove(known);
    }
    for site in state.estate().sites.values() {
        strangers.remove(site.cluster.as_ref());
    }
    let list = strangers.into_iter().collect::<Vec<_>>().join(", ");
    (!list.is_empty()).then(|| {
        Remark::new(
            Weight::Unresolved,
            format!("{field} names clusters that are not registered: {list}"),
        )
    })
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
