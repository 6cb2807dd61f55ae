//! States of fleets.

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::{Change, Kind, Object, Scope, State};
use serde_json::Value;

/// An object as it is read at the door.
pub(crate) fn object(value: &Value, cluster: &str) -> anyhow::Result<Object> {
    match manifest::read_object(value, cluster) {
        Entry::Object(object) => Ok(object),
        other => anyhow::bail!("{}: {other:?}", manifest::name(value)),
    }
}

/// Changes that bring objects.
pub(crate) fn upserts(
    values: impl Iterator<Item = Value>,
    cluster: &str,
) -> anyhow::Result<Vec<Change>> {
    values
        .map(|value| Ok(Change::Upsert(object(&value, cluster)?)))
        .collect()
}

/// Everything of a cluster has been listed.
pub(crate) fn listed(cluster: &str) -> impl Iterator<Item = Change> {
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
pub(crate) fn stepped(state: State, changes: Vec<Change>) -> State {
    state.step(changes).0
}
