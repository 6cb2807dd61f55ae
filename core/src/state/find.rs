//! The first ranks of a step: what there is, as discovery finds it and as it is stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::draft::Draft;
use super::ingest::CONTROLLERS;
use super::{Dirty, State};
use crate::delta::StatusKind;
use crate::discover;
use crate::estate::concerns_estate;
use crate::graph::{Graph, Named, PolicyKey, Unit, control_planes};
use crate::key::Key;
use crate::kinds::{Kind, Snapshot};
use crate::layer::{Found, Layer, Shift, Source, is_as_found};
use crate::model::Destination;
use crate::model::kubernetes::Controller;
use crate::output::OutputKind;
use crate::table::Table;

impl State {
    // Rank 1: meshes.

    pub(super) fn find_meshes(&mut self, cluster: &str, dirty: &mut Dirty, draft: &mut Draft) {
        let mut candidates: BTreeSet<Source> =
            self.graph.meshes.sources_in(cluster).into_iter().collect();
        candidates.extend(control_planes(&self.snapshot, cluster).map(|plane| Source {
            kind: Kind::Deployment,
            key: plane.key.clone(),
        }));
        let mut names = Vec::new();
        for source in candidates {
            let deployment = self.snapshot.deployments.get(&source.key);
            let found = deployment
                .filter(|_| self.complete.contains(cluster))
                .and_then(|deployment| discover::mesh::discover(&self.reader(), deployment));
            names.extend(self.graph.meshes.set_found(&source, found.map(Arc::new)));
        }
        for name in names {
            draft.found.insert((OutputKind::Mesh, name.clone()));
            self.settle_mesh(&name, dirty, draft);
        }
    }

    /// Works out again what there is under a name.
    fn settle<T: Found>(
        &mut self,
        key: &Key,
        layer: impl Fn(&mut Graph) -> &mut Layer<T>,
        table: impl Fn(&mut Snapshot) -> &mut Table<Key, Arc<T>>,
    ) -> Option<Shift<T>> {
        let stored = table(&mut self.snapshot).get(key).cloned();
        let found_in = stored.as_ref().map(|stored| stored.discovered_in());
        let is_told_gone = found_in.is_some_and(|cluster| self.speaks_for(cluster));
        let shift = layer(&mut self.graph).settle(key, stored.as_ref(), is_told_gone);
        // What is stored as it was found is held once.
        if let (Some(stored), Some(now)) = (&stored, layer(&mut self.graph).effective().get(key))
            && !Arc::ptr_eq(stored, now)
            && stored == now
        {
            table(&mut self.snapshot).insert(key.clone(), Arc::clone(now));
        }
        shift
    }

    pub(super) fn settle_mesh(&mut self, key: &Key, dirty: &mut Dirty, draft: &mut Draft) {
        let shift = self.settle(key, |it| &mut it.meshes, |it| &mut it.meshes);
        let Some(shift) = shift else { return };
        dirty.estate = true;
        dirty.mesh_outputs.insert(key.clone());
        draft.touch_status(StatusKind::Mesh, key);
        let clusters: BTreeSet<_> = [&shift.before, &shift.after]
            .into_iter()
            .flatten()
            .filter_map(|mesh| Some(Arc::clone(&mesh.installation()?.cluster)))
            .filter(|cluster| self.complete.contains(cluster))
            .collect();
        for cluster in clusters {
            // Which mesh a proxy belongs to hangs on which meshes there are.
            for kind in CONTROLLERS {
                let keys = self.keys_in(kind, &cluster);
                dirty
                    .workloads
                    .extend(keys.into_iter().map(|key| Source { kind, key }));
            }
            dirty.destinations.extend(
                self.snapshot
                    .services
                    .values()
                    .filter(|service| service.is_enabled && *service.key.cluster() == *cluster)
                    .map(|service| service.key.clone()),
            );
        }
        let table = self.graph.destinations.effective().clone();
        for destination in table.values().filter(|it| it.mesh.as_ref() == Some(key)) {
            self.touch_destination(destination, dirty);
        }
    }

    // Rank 2: workloads.

    pub(super) fn find_workload(&mut self, source: &Source, dirty: &mut Dirty, draft: &mut Draft) {
        let found = self
            .controller(source)
            .filter(|_| self.complete.contains(source.key.cluster()))
            .and_then(|it| discover::workload::discover(&self.reader(), source, it))
            .map(Arc::new);
        let before = self.graph.workloads.found_as(source).cloned();
        if !is_as_found(before.as_ref(), found.as_ref()) {
            for workload in [&before, &found].into_iter().flatten() {
                if let Some(workload) = &workload.controller {
                    self.touch_services(&source.key, &workload.pod_labels, dirty);
                }
            }
            // Endpoints of any other Service may be its pods too, and have its labels.
            for pod in self.reader().pods_of(source) {
                self.touch_named(&Named::Pod(pod.key.clone()), dirty);
            }
        }
        for name in self.graph.workloads.set_found(source, found) {
            draft.found.insert((OutputKind::Workload, name.clone()));
            self.settle_workload(&name, dirty, draft);
        }
    }

    fn controller(&self, source: &Source) -> Option<&Arc<Controller>> {
        let snapshot = &self.snapshot;
        [
            (Kind::Deployment, &snapshot.deployments),
            (Kind::ReplicaSet, &snapshot.replica_sets),
            (Kind::DaemonSet, &snapshot.daemon_sets),
            (Kind::StatefulSet, &snapshot.stateful_sets),
        ]
        .into_iter()
        .find(|(kind, _)| *kind == source.kind)
        .and_then(|(_, table)| table.get(&source.key))
    }

    pub(super) fn settle_workload(&mut self, key: &Key, dirty: &mut Dirty, draft: &mut Draft) {
        let shift = self.settle(key, |it| &mut it.workloads, |it| &mut it.workloads);
        let Some(shift) = shift else { return };
        draft.touch_status(StatusKind::Workload, key);
        let index = &mut self.graph.workload_index;
        if let Some(before) = &shift.before {
            index.remove(key, before.mesh.as_ref(), before.controller.as_ref());
        }
        if let Some(after) = &shift.after {
            index.insert(key, after.mesh.as_ref(), after.controller.as_ref());
        }
        for workload in [shift.before, shift.after].into_iter().flatten() {
            dirty.mesh_outputs.extend(workload.mesh.clone());
            dirty.callers.push(workload);
        }
    }

    // Rank 3: destinations.

    pub(super) fn find_destination(&mut self, key: &Key, dirty: &mut Dirty, draft: &mut Draft) {
        let reader = self.reader();
        let service = self.snapshot.services.get(key);
        let found = service
            .filter(|_| self.complete.contains(key.cluster()))
            .and_then(|service| discover::destination::discover(&reader, service))
            .map(Arc::new);
        let names = reader.into_names();
        self.graph.remember(&Unit::Destination(key.clone()), &names);
        let source = Source {
            kind: Kind::Service,
            key: key.clone(),
        };
        for name in self.graph.destinations.set_found(&source, found) {
            draft.found.insert((OutputKind::Destination, name.clone()));
            self.settle_destination(&name, dirty, draft);
        }
    }

    pub(super) fn settle_destination(&mut self, key: &Key, dirty: &mut Dirty, draft: &mut Draft) {
        let shift = self.settle(key, |it| &mut it.destinations, |it| &mut it.destinations);
        let Some(shift) = shift else { return };
        dirty.records.insert(key.clone());
        dirty.subsets.insert(key.clone());
        draft.touch_status(StatusKind::Destination, key);
        if let Some(before) = &shift.before {
            self.touch_destination(before, dirty);
            self.graph.destination_index.remove(before);
        }
        if let Some(after) = &shift.after {
            self.graph.destination_index.insert(after);
            self.touch_destination(after, dirty);
        }
        dirty.estate |= [shift.before, shift.after]
            .iter()
            .flatten()
            .any(|destination| {
                concerns_estate(
                    destination,
                    |mesh| self.graph.meshes.effective().get(mesh),
                    self.snapshot.virtual_meshes.values(),
                )
            });
    }

    /// A destination looks different: it, its rivals, and whoever looked at it by name.
    pub(super) fn touch_destination(&self, destination: &Destination, dirty: &mut Dirty) {
        dirty.records.insert(destination.key.clone());
        let Some(service) = &destination.service else {
            return;
        };
        for rival in self.graph.destination_index.rivals(service) {
            dirty.records.insert(rival.clone());
            dirty.subsets.insert(rival.clone());
        }
        self.touch_named(&Named::Service(service.reference.clone()), dirty);
        let graph = &self.graph;
        for (kind, index) in [
            (Kind::TrafficPolicy, &graph.traffic_index),
            (Kind::AccessPolicy, &graph.access_index),
        ] {
            let naming = index.naming(&service.reference);
            dirty.references.extend(naming.map(|key| PolicyKey {
                kind,
                key: key.clone(),
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::kinds::Object;
    use crate::manifest::{self, Entry};

    /// A cluster, of which everything is known.
    fn discovered() -> State {
        let cluster = include_str!("../../tests/universe/cluster.yaml");
        let objects = manifest::read(cluster, "c1").into_iter();
        let objects = objects.filter_map(|entry| match entry {
            Entry::Object(object) => Some(Change::Upsert(object)),
            Entry::Ignored { .. } | Entry::Unreadable { .. } => None,
        });
        let synced = Kind::ALL.iter().map(|kind| Change::Synced {
            cluster: "c1".into(),
            kind: *kind,
        });
        State::default().step(objects.chain(synced)).0
    }

    fn stored(state: &State, generation: i64) -> Vec<Change> {
        let there = state.destinations().values();
        let destinations =
            there.map(|it| Object::Destination(it.with_generation(generation).into()));
        let there = state.workloads().values();
        let workloads = there.map(|it| Object::Workload(it.with_generation(generation).into()));
        destinations.chain(workloads).map(Change::Upsert).collect()
    }

    #[test]
    fn what_is_stored_as_it_was_found_is_held_once() {
        let state = discovered();
        let changes = stored(&state, 3);
        assert!(changes.len() > 3);
        let (state, delta) = state.step(changes);
        assert_eq!(delta.outputs().count(), 0);
        for (key, now) in state.destinations().iter() {
            assert_eq!(now.generation, 3);
            let found = state.graph.destinations.found(key).unwrap();
            let stored = state.snapshot.destinations.get(key).unwrap();
            assert!(Arc::ptr_eq(now, found) && Arc::ptr_eq(now, stored), "{key}");
        }
        for (key, now) in state.workloads().iter() {
            let found = state.graph.workloads.found(key).unwrap();
            let stored = state.snapshot.workloads.get(key).unwrap();
            assert!(Arc::ptr_eq(now, found) && Arc::ptr_eq(now, stored), "{key}");
        }
    }

    #[test]
    fn what_was_found_has_the_generation_of_what_is_stored_now() {
        let state = discovered();
        let changes = stored(&state, 3);
        let state = state.step(changes).0;
        let (key, mut other) = {
            let (key, first) = state.destinations().iter().next().unwrap();
            (key.clone(), first.with_generation(4))
        };
        other.annotations = [("edited", "by hand")].into_iter().collect();
        let state = state
            .step([Change::Upsert(Object::Destination(other.into()))])
            .0;
        let now = state.destinations().get(&key).unwrap();
        assert_eq!((now.generation, now.annotations.get("edited")), (4, None));
        let (state, delta) = state.step([Change::Remove(Kind::Destination, key.clone())]);
        assert_eq!(state.destinations().get(&key).unwrap().generation, 0);
        assert_eq!(delta.outputs().count(), 0);
    }
}
