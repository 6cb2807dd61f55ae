//! States of fleets.

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::{Change, Kind, Object, Scope, State};
use ferromesh_testkit::fleet::Fleet;
use serde_json::{Value, json};

/// An object as it is read at the door.
pub fn object(value: &Value, cluster: &str) -> anyhow::Result<Object> {
    match manifest::read_object(value, cluster) {
        Entry::Object(object) => Ok(object),
        other => anyhow::bail!("{}: {other:?}", manifest::name(value)),
    }
}

/// Changes that bring objects.
pub fn upserts(values: impl Iterator<Item = Value>, cluster: &str) -> anyhow::Result<Vec<Change>> {
    values
        .map(|value| Ok(Change::Upsert(object(&value, cluster)?)))
        .collect()
}

/// Everything of a cluster has been listed.
pub fn listed(cluster: &str) -> impl Iterator<Item = Change> {
    let is_here = |kind: &&Kind| match kind.scope() {
        Scope::Everywhere => true,
        Scope::Management => cluster.is_empty(),
        Scope::Managed => !cluster.is_empty(),
        Scope::Files => false,
    };
    Kind::ALL.iter().filter(is_here).map(|kind| Change::Synced {
        cluster: cluster.into(),
        kind: *kind,
    })
}

/// A state after changes, with nothing else kept.
pub fn stepped(state: State, changes: Vec<Change>) -> State {
    state.step(changes).0
}

/// Everything that a fleet is discovered and translated from.
pub fn kubernetes(fleet: &Fleet) -> anyhow::Result<Vec<Change>> {
    let mut changes = upserts(fleet.policies().chain(clusters(fleet)), "")?;
    changes.extend(listed(""));
    for (number, cluster) in (0..).zip(fleet.cluster_names()) {
        changes.extend(upserts(fleet.kubernetes(number), &cluster)?);
        changes.extend(listed(&cluster));
    }
    Ok(changes)
}

/// A fleet as it has been discovered, and what people have written.
pub fn discovered(fleet: &Fleet) -> anyhow::Result<Vec<Change>> {
    let mut changes = upserts(fleet.discovered().chain(fleet.policies()), "")?;
    changes.extend(listed(""));
    Ok(changes)
}

fn clusters(fleet: &Fleet) -> impl Iterator<Item = Value> {
    fleet.cluster_names().map(|name| {
        json!({
            "apiVersion": "multicluster.solo.io/v1alpha1", "kind": "KubernetesCluster",
            "metadata": { "namespace": "gloo-mesh", "name": name }, "spec": {},
        })
    })
}
