//! What a step changed: the two states, and where to look for the differences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::graph::Graph;
use crate::key::Key;
use crate::output::comparison::{Changed, changes};
use crate::output::destination::Translated;
use crate::output::discovered::Discovered;
use crate::output::{Output, OutputKey, OutputKind};
use crate::record::{Record, Subsets};
use crate::state::State;

/// What a step changed.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    /// The state before.
    pub(crate) before: State,
    /// The state after.
    pub(crate) after: State,
    /// Destinations whose record or subsets may differ.
    pub(crate) destinations: BTreeMap<Key, Moved>,
    /// Meshes whose outputs may differ.
    pub(crate) meshes: BTreeSet<Key>,
    /// What was found, where that may differ.
    pub(crate) found: BTreeSet<(OutputKind, Key)>,
    /// Objects whose status may differ.
    pub(crate) statuses: BTreeSet<StatusKey>,
    /// Whether an object of the management cluster has gone that nobody was seen to delete.
    pub(crate) has_vanished: bool,
}

/// A destination's record as it was and as it is.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub(crate) before: Option<Arc<Record>>,
    pub(crate) after: Option<Arc<Record>>,
}

/// An object that has a status.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusKey {
    /// Its kind.
    pub kind: StatusKind,
    /// Its name.
    pub key: Key,
}

/// Kinds whose status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the kind of its name")]
pub enum StatusKind {
    AccessPolicy,
    Destination,
    Mesh,
    Settings,
    TrafficPolicy,
    VirtualMesh,
    Workload,
}

/// One output that differs.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputChange {
    /// It is new, or looks different.
    Upsert(Box<Output>),
    /// It is gone.
    Delete(OutputKey),
}

impl OutputChange {
    /// Which object it is.
    pub fn key(&self) -> &OutputKey {
        match self {
            Self::Upsert(output) => &output.key,
            Self::Delete(key) => key,
        }
    }
}

/// How many outputs differ, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// New ones.
    pub added: usize,
    /// Those that look different.
    pub changed: usize,
    /// Those that are gone.
    pub removed: usize,
}

impl StatusKind {
    /// Every kind, in the order of its name.
    pub const ALL: [Self; 7] = [
        Self::AccessPolicy,
        Self::Destination,
        Self::Mesh,
        Self::Settings,
        Self::TrafficPolicy,
        Self::VirtualMesh,
        Self::Workload,
    ];

    /// The kind's name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessPolicy => "AccessPolicy",
            Self::Destination => "Destination",
            Self::Mesh => "Mesh",
            Self::Settings => "Settings",
            Self::TrafficPolicy => "TrafficPolicy",
            Self::VirtualMesh => "VirtualMesh",
            Self::Workload => "Workload",
        }
    }
}

impl fmt::Display for StatusKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Delta {
    /// This change and the one that followed it, as one.
    #[must_use]
    pub fn merge(mut self, next: Self) -> Self {
        let Self {
            before: _,
            after,
            destinations,
            meshes,
            found,
            statuses,
            has_vanished,
        } = next;
        self.after = after;
        for (key, moved) in destinations {
            self.move_record(&key, moved.before, moved.after);
        }
        self.meshes.extend(meshes);
        self.found.extend(found);
        self.statuses.extend(statuses);
        self.has_vanished |= has_vanished;
        self
    }

    /// The state before.
    pub fn before(&self) -> &State {
        &self.before
    }

    /// The state after.
    pub fn after(&self) -> &State {
        &self.after
    }

    /// Objects whose status may differ.
    pub fn statuses(&self) -> impl Iterator<Item = &StatusKey> {
        self.statuses.iter()
    }

    /// Destinations whose outputs may differ.
    pub fn destinations(&self) -> impl Iterator<Item = &Key> {
        self.destinations.keys()
    }

    /// Notes what a destination's record has become. What it was at first stays.
    pub(crate) fn move_record(
        &mut self,
        key: &Key,
        before: Option<Arc<Record>>,
        after: Option<Arc<Record>>,
    ) {
        match self.destinations.get_mut(key) {
            Some(moved) => moved.after = after,
            None => {
                self.destinations
                    .insert(key.clone(), Moved { before, after });
            }
        }
    }

    /// Every output that differs, rendered. One that came about in another way may turn out to be
    /// the same; one that is not named here is.
    pub fn outputs(&self) -> impl Iterator<Item = OutputChange> {
        let owner = &self.after.options.namespace;
        let destinations = self.destinations.iter().flat_map(move |(key, moved)| {
            let (before, after) = self.translated(key, moved);
            changes(before, after, |change| match change {
                Changed::Added(translated, slot) | Changed::Differs(translated, slot) => translated
                    .render(slot, owner)
                    .map(|output| OutputChange::Upsert(Box::new(output))),
                Changed::Removed(gone) if self.is_taken_over(key, &gone) => None,
                Changed::Removed(gone) => Some(OutputChange::Delete(gone)),
            })
        });
        let meshes = self.meshes.iter().flat_map(|key| self.outputs_of_mesh(key));
        let found = self
            .found
            .iter()
            .flat_map(|(kind, key)| self.outputs_found(*kind, key));
        destinations.chain(meshes).chain(found)
    }

    /// The name of every output that differs, but for what is found. Nothing of a destination is rendered for
    /// it.
    pub(crate) fn names(&self) -> impl Iterator<Item = OutputKey> {
        let destinations = self.destinations.iter().flat_map(move |(key, moved)| {
            let (before, after) = self.translated(key, moved);
            changes(before, after, |change| match change {
                Changed::Removed(gone) if self.is_taken_over(key, &gone) => None,
                Changed::Added(..) | Changed::Differs(..) | Changed::Removed(_) => {
                    change.into_key()
                }
            })
        });
        let meshes = self.meshes.iter().flat_map(|key| self.outputs_of_mesh(key));
        destinations.chain(meshes.map(|change| change.key().clone()))
    }

    /// Outputs of a mesh as a whole that differ.
    pub(crate) fn outputs_of_mesh(&self, mesh: &Key) -> impl Iterator<Item = OutputChange> + use<> {
        let render = |state: &State| {
            let outputs = state.graph.mesh_outputs.get(mesh);
            outputs
                .map(|outputs| outputs.render(&self.after.options.namespace))
                .unwrap_or_default()
        };
        whole(&render(&self.before), render(&self.after)).into_iter()
    }

    /// An output of discovery that differs.
    pub(crate) fn outputs_found(
        &self,
        kind: OutputKind,
        key: &Key,
    ) -> impl Iterator<Item = OutputChange> + use<> {
        let render = |state: &State| {
            let found = state.found(kind, key);
            found
                .map(|found| found.render(&self.after.options.namespace))
                .into_iter()
                .collect::<Vec<_>>()
        };
        whole(&render(&self.before), render(&self.after)).into_iter()
    }

    /// How many outputs differ on each cluster of the fleet, without rendering any of a
    /// destination. What is found is not counted.
    pub fn effect(&self) -> Effect {
        let mut effect = Effect::default();
        for (key, moved) in &self.destinations {
            let (before, after) = self.translated(key, moved);
            changes(before, after, |change| -> Option<()> {
                match change {
                    Changed::Added(..) => effect.added += 1,
                    Changed::Differs(..) => effect.changed += 1,
                    Changed::Removed(gone) if self.is_taken_over(key, &gone) => {}
                    Changed::Removed(_) => effect.removed += 1,
                }
                None
            });
        }
        for key in &self.meshes {
            let owner = &self.after.options.namespace;
            let render = |state: &State| {
                state
                    .graph
                    .mesh_outputs
                    .get(key)
                    .map(|mesh| mesh.render(owner))
                    .unwrap_or_default()
            };
            let before = render(&self.before);
            for change in whole(&before, render(&self.after)) {
                match change {
                    OutputChange::Upsert(output) => {
                        if before.iter().any(|before| before.key == output.key) {
                            effect.changed += 1;
                        } else {
                            effect.added += 1;
                        }
                    }
                    OutputChange::Delete(_) => effect.removed += 1,
                }
            }
        }
        effect
    }

    /// Whether an object that a destination had is another destination's now: two can be the same
    /// Service, or have the same federated name.
    fn is_taken_over(&self, by_other_than: &Key, gone: &OutputKey) -> bool {
        let Some(before) = self.before.translated(by_other_than) else {
            return false;
        };
        let Some(service) = before.record.service() else {
            return false;
        };
        self.after
            .graph
            .destination_index
            .rivals(service)
            .filter(|rival| *rival != by_other_than)
            .filter_map(|rival| self.after.translated(rival))
            .any(|rival| {
                rival
                    .slots()
                    .any(|slot| rival.key(slot).as_ref() == Some(gone))
            })
    }

    pub(crate) fn translated<'a>(
        &'a self,
        key: &Key,
        moved: &'a Moved,
    ) -> (Option<Translated<'a>>, Option<Translated<'a>>) {
        let with_subsets = |state: &'a State, record: &'a Option<Arc<Record>>| {
            let record = record.as_deref()?;
            Some(state.with_subsets(key, record))
        };
        (
            with_subsets(&self.before, &moved.before),
            with_subsets(&self.after, &moved.after),
        )
    }
}

impl State {
    /// A destination's record with its subsets.
    pub(crate) fn translated(&self, key: &Key) -> Option<Translated<'_>> {
        Some(self.with_subsets(key, self.graph.records.get(key)?))
    }

    fn with_subsets<'a>(&'a self, key: &Key, record: &'a Record) -> Translated<'a> {
        static NONE: Subsets = Subsets::none();
        Translated {
            record,
            subsets: self.graph.subsets.get(key).map_or(&NONE, AsRef::as_ref),
        }
    }

    /// What was found under a name.
    pub(crate) fn found(&self, kind: OutputKind, key: &Key) -> Option<Discovered> {
        match kind {
            OutputKind::Mesh => self.graph.meshes.found(key).cloned().map(Discovered::Mesh),
            OutputKind::Workload => self
                .graph
                .workloads
                .found(key)
                .cloned()
                .map(Discovered::Workload),
            OutputKind::Destination => self
                .graph
                .destinations
                .found(key)
                .cloned()
                .map(Discovered::Destination),
            OutputKind::Istio(_)
            | OutputKind::IssuedCertificate
            | OutputKind::PodBounceDirective => None,
        }
    }

    pub(crate) fn all_found(&self) -> impl Iterator<Item = Discovered> {
        let Graph {
            meshes,
            workloads,
            destinations,
            ..
        } = &*self.graph;
        let meshes = meshes.all_found().cloned().map(Discovered::Mesh);
        let workloads = workloads.all_found().cloned().map(Discovered::Workload);
        let destinations = destinations
            .all_found()
            .cloned()
            .map(Discovered::Destination);
        meshes.chain(workloads).chain(destinations)
    }

    /// Every object that is to stand in some cluster, what was found included, rendered one by
    /// one. The order is not that of their keys.
    pub fn outputs(&self) -> impl Iterator<Item = Output> {
        let owner = &self.options.namespace;
        let destinations = self.graph.records.keys().flat_map(move |key| {
            let translated = self.translated(key);
            translated.into_iter().flat_map(move |translated| {
                translated
                    .slots()
                    .filter_map(move |slot| translated.render(slot, owner))
            })
        });
        let meshes = self
            .graph
            .mesh_outputs
            .values()
            .flat_map(|mesh| mesh.render(owner));
        let found = self.all_found().map(|found| found.render(owner));
        destinations.chain(meshes).chain(found)
    }
}

/// Compares lists of rendered outputs.
fn whole(before: &[Output], after: Vec<Output>) -> Vec<OutputChange> {
    let mut changes: Vec<_> = before
        .iter()
        .filter(|old| !after.iter().any(|new| new.key == old.key))
        .map(|old| OutputChange::Delete(old.key.clone()))
        .collect();
    changes.extend(
        after
            .into_iter()
            .filter(|new| !before.contains(new))
            .map(|new| OutputChange::Upsert(Box::new(new))),
    );
    changes
}
