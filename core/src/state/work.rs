//! Working out what changes have touched, in slices of bounded work.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::draft::Draft;
use super::ingest::CONTROLLERS;
use super::{Dirty, State};
use crate::change::Change;
use crate::delta::{Delta, StatusKind};
use crate::discover;
use crate::estate::{Estate, Inputs, concerns_estate};
use crate::graph::{Named, PolicyKey, Unit, control_planes};
use crate::key::Key;
use crate::kinds::{Kind, Object};
use crate::layer::Source;
use crate::model::kubernetes::Controller;
use crate::model::{Destination, Workload};
use crate::output::OutputKind;
use crate::record::Part;
use crate::status::caller::{is_identity, is_source};
use crate::table::Set;

/// Changed workloads beyond which every policy's status is looked at, rather than those of the
/// policies that the workloads concern.
const MANY_WORKLOADS: usize = 256;

/// A step that is under way.
///
/// Whoever has a deadline to keep advances it in slices and looks at the time in between; a step
/// that is dropped half way has changed nothing.
#[derive(Debug)]
pub struct Step {
    state: State,
    dirty: Dirty,
    draft: Draft,
}

impl Step {
    /// Takes changes in; nothing is worked out yet.
    pub fn new(state: State, changes: impl IntoIterator<Item = Change>) -> Self {
        let mut step = Self {
            draft: Draft::new(state.clone()),
            dirty: Dirty::default(),
            state,
        };
        for change in changes {
            step.state.ingest(change, &mut step.dirty, &mut step.draft);
        }
        step
    }

    /// Works out at most `fuel` things, each of bounded size; says whether everything is done.
    pub fn advance(&mut self, fuel: usize) -> bool {
        for _ in 0..fuel {
            if !self.work_one() {
                return true;
            }
        }
        false
    }

    /// The state with everything worked out so far, and what changed.
    pub fn finish(self) -> (State, Delta) {
        let delta = self.draft.finish(self.state.clone());
        (self.state, delta)
    }

    /// Works out the next thing; each rank looks only at what earlier ranks have settled.
    fn work_one(&mut self) -> bool {
        let Self {
            state,
            dirty,
            draft,
        } = self;
        if let Some(cluster) = dirty.meshes.pop_first() {
            state.find_meshes(&cluster, dirty, draft);
        } else if let Some(source) = dirty.workloads.pop_first() {
            state.find_workload(&source, dirty, draft);
        } else if let Some(service) = dirty.destinations.pop_first() {
            state.find_destination(&service, dirty, draft);
        } else if dirty.estate {
            dirty.estate = false;
            state.survey(dirty, draft);
        } else if let Some(policy) = dirty.references.pop_first() {
            state.look_up_references(&policy, dirty, draft);
        } else if let Some(destination) = dirty.records.pop_first() {
            dirty.traffic.remove(&destination);
            dirty.access.remove(&destination);
            state.translate(&destination, Part::Whole, dirty, draft);
        } else if let Some(destination) = dirty.traffic.pop_first() {
            state.translate(&destination, Part::Traffic, dirty, draft);
        } else if let Some(destination) = dirty.access.pop_first() {
            state.translate(&destination, Part::Access, dirty, draft);
        } else if let Some(destination) = dirty.subsets.pop_first() {
            state.gather_subsets(&destination, draft);
        } else if let Some(mesh) = dirty.mesh_outputs.pop_first() {
            state.translate_mesh(&mesh, draft);
        } else if !dirty.callers.is_empty() {
            state.find_callers(&std::mem::take(&mut dirty.callers), draft);
        } else {
            return false;
        }
        true
    }
}

/// The change that puts an object there.
impl From<Object> for Change {
    fn from(object: Object) -> Self {
        Self::Upsert(object)
    }
}

impl State {
    // Rank 1: meshes.

    fn find_meshes(&mut self, cluster: &str, dirty: &mut Dirty, draft: &mut Draft) {
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

    pub(super) fn settle_mesh(&mut self, key: &Key, dirty: &mut Dirty, draft: &mut Draft) {
        let mut meshes = std::mem::take(&mut self.graph.meshes);
        let stored = self.snapshot.meshes.get(key);
        let shift = meshes.settle(key, stored, |cluster| self.speaks_for(cluster));
        self.graph.meshes = meshes;
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

    fn find_workload(&mut self, source: &Source, dirty: &mut Dirty, draft: &mut Draft) {
        let found = self
            .controller(source)
            .filter(|_| self.complete.contains(source.key.cluster()))
            .and_then(|it| discover::workload::discover(&self.reader(), source, it))
            .map(Arc::new);
        let before = self.graph.workloads.found_as(source).cloned();
        if before != found {
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
        let mut workloads = std::mem::take(&mut self.graph.workloads);
        let stored = self.snapshot.workloads.get(key);
        let shift = workloads.settle(key, stored, |cluster| self.speaks_for(cluster));
        self.graph.workloads = workloads;
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

    fn find_destination(&mut self, key: &Key, dirty: &mut Dirty, draft: &mut Draft) {
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
        let mut destinations = std::mem::take(&mut self.graph.destinations);
        let stored = self.snapshot.destinations.get(key);
        let shift = destinations.settle(key, stored, |cluster| self.speaks_for(cluster));
        self.graph.destinations = destinations;
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
    fn touch_destination(&self, destination: &Destination, dirty: &mut Dirty) {
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

    // Rank 4: the estate.

    fn survey(&mut self, dirty: &mut Dirty, draft: &mut Draft) {
        let now = Estate::new(&Inputs {
            namespace: &self.options.namespace,
            meshes: self.graph.meshes.effective(),
            virtual_meshes: &self.snapshot.virtual_meshes,
            clusters: &self.snapshot.clusters,
            settings: self.snapshot.settings.get(&self.options.settings()),
            destinations: self.graph.destinations.effective(),
            index: &self.graph.destination_index,
        });
        let now = Arc::new(now.sharing(&self.graph.estate));
        let before = std::mem::replace(&mut self.graph.estate, Arc::clone(&now));
        for key in before
            .virtual_meshes
            .keys()
            .chain(now.virtual_meshes.keys())
        {
            if before.virtual_meshes.get(key) != now.virtual_meshes.get(key) {
                draft.touch_status(StatusKind::VirtualMesh, key);
            }
        }
        let changed: BTreeSet<&Key> = before
            .sites
            .keys()
            .chain(now.sites.keys())
            .filter(|mesh| before.sites.get(*mesh) != now.sites.get(*mesh))
            .collect();
        for mesh in &changed {
            dirty.mesh_outputs.insert((*mesh).clone());
            draft.touch_status(StatusKind::Mesh, mesh);
        }
        let everywhere = before.domains != now.domains || before.trust_domains != now.trust_domains;
        if changed.is_empty() && !everywhere {
            return;
        }
        let table = self.graph.destinations.effective().clone();
        let concerned = |it: &Destination| {
            everywhere || it.mesh.as_ref().is_some_and(|mesh| changed.contains(mesh))
        };
        for destination in table.values().filter(|it| concerned(it)) {
            self.touch_destination(destination, dirty);
            draft.touch_status(StatusKind::Destination, &destination.key);
        }
        if !changed.is_empty() {
            // Which workloads call a policy's destinations hangs on who shares a virtual mesh.
            self.touch_all_policies(draft);
        }
    }

    fn touch_all_policies(&self, draft: &mut Draft) {
        for policy in self.snapshot.traffic_policies.keys() {
            draft.touch_status(StatusKind::TrafficPolicy, policy);
        }
        for policy in self.snapshot.access_policies.keys() {
            draft.touch_status(StatusKind::AccessPolicy, policy);
        }
    }

    // Rank 5: references of policies.

    fn look_up_references(&mut self, policy: &PolicyKey, dirty: &mut Dirty, draft: &mut Draft) {
        let snapshot = &self.snapshot;
        let (selection, status, dirty) = if policy.kind == Kind::TrafficPolicy {
            let policy = snapshot.traffic_policies.get(&policy.key);
            let selection = policy.map(|policy| &policy.destinations);
            (selection, StatusKind::TrafficPolicy, &mut dirty.traffic)
        } else {
            let policy = snapshot.access_policies.get(&policy.key);
            let selection = policy.map(|policy| &policy.destinations);
            (selection, StatusKind::AccessPolicy, &mut dirty.access)
        };
        let missing: Arc<[Key]> = selection
            .iter()
            .flat_map(|selection| selection.services())
            .map(|listed| listed.service)
            .filter(|service| self.graph.destination_index.of_service(service).is_none())
            .cloned()
            .collect();
        let before = self.graph.missing.get(policy);
        if before.map(AsRef::as_ref).unwrap_or_default() == &*missing {
            return;
        }
        if let Some(selection) = selection {
            self.touch_selected(selection, dirty);
        }
        draft.touch_status(status, &policy.key);
        if missing.is_empty() {
            self.graph.missing.remove(policy);
        } else {
            self.graph.missing.insert(policy.clone(), missing);
        }
    }

    // Rank 9: policies whose status lists a workload among their callers, or did.

    fn find_callers(&self, workloads: &[Arc<Workload>], draft: &mut Draft) {
        if workloads.len() > MANY_WORKLOADS {
            self.touch_all_policies(draft);
            return;
        }
        for policy in self.snapshot.traffic_policies.values() {
            if workloads
                .iter()
                .any(|workload| is_source(&policy.sources, workload))
            {
                draft.touch_status(StatusKind::TrafficPolicy, &policy.key);
            }
        }
        for policy in self.snapshot.access_policies.values() {
            if workloads
                .iter()
                .any(|workload| is_identity(&policy.sources, workload))
            {
                draft.touch_status(StatusKind::AccessPolicy, &policy.key);
            }
        }
    }

    pub(super) fn workloads_of(&self, mesh: &Key) -> Vec<Arc<Workload>> {
        let table = self.graph.workloads.effective();
        let members = self
            .graph
            .workload_index
            .by_mesh
            .get(mesh)
            .into_iter()
            .flat_map(Set::iter);
        members
            .filter_map(|workload| table.get(workload).cloned())
            .collect()
    }
}
