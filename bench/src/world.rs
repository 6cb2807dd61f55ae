//! States of fleets.

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::{Change, Kind, Object, OutputKey, OutputKind, Scope, State};
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
pub fn stepped(state: State, changes: impl IntoIterator<Item = Change>) -> State {
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

/// What discovery has written, as an API server hands it back.
pub fn stored(state: &State) -> anyhow::Result<Vec<Change>> {
    let meshes = state.meshes().keys().map(|key| (OutputKind::Mesh, key));
    let workloads = state.workloads().keys();
    let workloads = workloads.map(|key| (OutputKind::Workload, key));
    let destinations = state.destinations().keys();
    let destinations = destinations.map(|key| (OutputKind::Destination, key));
    let written = meshes.chain(workloads).chain(destinations);
    let written = written.filter_map(|(kind, key)| {
        let output = state.output(&OutputKey {
            cluster: "".into(),
            kind,
            namespace: key.namespace().into(),
            name: key.name().into(),
        })?;
        Some(json!({
            "apiVersion": format!("{}/{}", kind.group(), kind.versions()[0]), "kind": kind.name(),
            "metadata": {
                "namespace": output.key.namespace, "name": output.key.name, "generation": 1,
                "labels": output.labels, "annotations": output.annotations,
            },
            "spec": output.spec,
        }))
    });
    upserts(written, "")
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
