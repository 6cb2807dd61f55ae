//! Taking one change in: tables, indexes, and what it touches.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::draft::Draft;
use super::{Dirty, State, expected};
use crate::change::Change;
use crate::delta::StatusKind;
use crate::discover::index::{controller_owner, pod_owner, service_of};
use crate::discover::mesh::{is_agent, is_candidate};
use crate::graph::{Named, PolicyKey, Unit, control_planes, root_owner};
use crate::key::Key;
use crate::kinds::{Kind, Object, Scope};
use crate::layer::Source;
use crate::model::kubernetes::{Controller, Pod};
use crate::model::selector::Destinations;
use crate::model::{Labels, TrafficPolicy};
use crate::output::OutputKind;
use crate::record::subset_targets;

/// Kinds whose objects can be workloads.
pub(super) const CONTROLLERS: [Kind; 4] = [
    Kind::Deployment,
    Kind::ReplicaSet,
    Kind::DaemonSet,
    Kind::StatefulSet,
];

impl State {
    /// Takes one change in.
    pub(super) fn ingest(&mut self, change: Change, dirty: &mut Dirty, draft: &mut Draft) {
        match change {
            Change::Upsert(object) => {
                let key = object.key().clone();
                self.replace(object.kind(), &key, Some(object), dirty, draft);
            }
            Change::Remove(kind, key) => self.replace(kind, &key, None, dirty, draft),
            Change::Vanish(kind, key) => {
                draft.has_vanished |= kind.scope() == Scope::Management;
                self.replace(kind, &key, None, dirty, draft);
            }
            Change::Synced { cluster, kind } => {
                self.synced.insert((Arc::clone(&cluster), kind));
                if kind == Kind::Secret {
                    // A root that is not there is missing from now on, and no longer unknown.
                    self.touch_virtual_meshes(draft);
                }
                if !self.complete.contains(&cluster)
                    && expected(&cluster).all(|kind| self.is_synced(&cluster, kind))
                {
                    self.complete.insert(Arc::clone(&cluster));
                    self.forgotten.remove(&cluster);
                    self.speak_for(&cluster, dirty, draft);
                }
            }
            Change::Forget {
                cluster,
                has_vanished,
            } => {
                draft.has_vanished |= has_vanished;
                let there = Kind::ALL
                    .iter()
                    .filter(|kind| kind.scope() != Scope::Management);
                for kind in there.copied() {
                    for key in self.keys_in(kind, &cluster) {
                        self.replace(kind, &key, None, dirty, draft);
                    }
                    self.synced.remove(&(Arc::clone(&cluster), kind));
                }
                self.complete.remove(&cluster);
                self.forgotten.insert(Arc::clone(&cluster), has_vanished);
                self.speak_for(&cluster, dirty, draft);
            }
        }
    }

    pub(super) fn keys_in(&self, kind: Kind, cluster: &str) -> Vec<Key> {
        let mut keys = self.snapshot.keys(kind);
        keys.retain(|key| key.cluster() == cluster);
        keys
    }

    /// Discovery starts to speak for a cluster, or stops: everything in it is looked at, and
    /// stored objects stand, or stand no more.
    fn speak_for(&mut self, cluster: &Arc<str>, dirty: &mut Dirty, draft: &mut Draft) {
        dirty.meshes.insert(Arc::clone(cluster));
        for kind in CONTROLLERS {
            let keys = self.keys_in(kind, cluster);
            dirty
                .workloads
                .extend(keys.into_iter().map(|key| Source { kind, key }));
        }
        dirty
            .destinations
            .extend(self.keys_in(Kind::Service, cluster));
        // What was found and has no source any more.
        dirty
            .workloads
            .extend(self.graph.workloads.sources_in(cluster));
        let sources = self.graph.destinations.sources_in(cluster);
        dirty
            .destinations
            .extend(sources.into_iter().map(|source| source.key));
        let of_cluster = |discovered_in: &Arc<str>| discovered_in == cluster;
        let snapshot = self.snapshot.clone();
        for mesh in snapshot
            .meshes
            .values()
            .filter(|it| of_cluster(&it.discovered_in))
        {
            self.settle_mesh(&mesh.key, dirty, draft);
        }
        for workload in snapshot
            .workloads
            .values()
            .filter(|it| of_cluster(&it.discovered_in))
        {
            self.settle_workload(&workload.key, dirty, draft);
        }
        for it in snapshot
            .destinations
            .values()
            .filter(|it| of_cluster(&it.discovered_in))
        {
            self.settle_destination(&it.key, dirty, draft);
        }
    }

    /// Puts an object in place of what was there, or takes that away.
    fn replace(
        &mut self,
        kind: Kind,
        key: &Key,
        now: Option<Object>,
        dirty: &mut Dirty,
        draft: &mut Draft,
    ) {
        let before = self.snapshot.get(kind, key);
        if before == now {
            return;
        }
        if let Some(before) = &before {
            self.graph.cluster_index.remove(before);
            self.unindex_policy(before);
            self.touch(before, dirty, draft);
        }
        match now {
            Some(now) => {
                self.graph.cluster_index.insert(&now);
                self.index_policy(&now);
                self.snapshot.put(now.clone());
                self.touch(&now, dirty, draft);
            }
            None => self.snapshot.take(kind, key),
        }
        match kind {
            Kind::Mesh => self.settle_mesh(key, dirty, draft),
            Kind::Workload => self.settle_workload(key, dirty, draft),
            Kind::Destination => self.settle_destination(key, dirty, draft),
            Kind::TrafficPolicy | Kind::AccessPolicy => {
                dirty.references.insert(PolicyKey {
                    kind,
                    key: key.clone(),
                });
            }
            Kind::KubernetesCluster
            | Kind::Settings
            | Kind::VirtualMesh
            | Kind::Secret
            | Kind::Namespace
            | Kind::Node
            | Kind::ConfigMap
            | Kind::Deployment
            | Kind::ReplicaSet
            | Kind::DaemonSet
            | Kind::StatefulSet
            | Kind::Pod
            | Kind::Service
            | Kind::EndpointSlice
            | Kind::Endpoints => {}
        }
    }

    fn index_policy(&mut self, object: &Object) {
        if let Object::TrafficPolicy(policy) = object {
            let targets = policy.targets().map(|target| &target.service);
            self.graph
                .traffic_index
                .insert(&policy.key, &policy.destinations, targets);
        } else if let Object::AccessPolicy(policy) = object {
            let targets = std::iter::empty();
            self.graph
                .access_index
                .insert(&policy.key, &policy.destinations, targets);
        }
    }

    fn unindex_policy(&mut self, object: &Object) {
        if let Object::TrafficPolicy(policy) = object {
            let targets = policy.targets().map(|target| &target.service);
            self.graph
                .traffic_index
                .remove(&policy.key, &policy.destinations, targets);
        } else if let Object::AccessPolicy(policy) = object {
            let targets = std::iter::empty();
            self.graph
                .access_index
                .remove(&policy.key, &policy.destinations, targets);
        }
    }

    /// What an object touches, in the form before a change or in the form after it.
    fn touch(&self, object: &Object, dirty: &mut Dirty, draft: &mut Draft) {
        let key = object.key();
        let cluster = || Arc::<str>::from(key.cluster());
        match object {
            Object::TrafficPolicy(policy) => {
                self.touch_selected(&policy.destinations, &mut dirty.traffic);
                self.touch_subsets(policy, dirty);
                draft.touch_status(StatusKind::TrafficPolicy, key);
            }
            Object::AccessPolicy(policy) => {
                self.touch_selected(&policy.destinations, &mut dirty.access);
                draft.touch_status(StatusKind::AccessPolicy, key);
            }
            Object::VirtualMesh(_) => {
                dirty.estate = true;
                draft.touch_status(StatusKind::VirtualMesh, key);
            }
            Object::Secret(_) => self.touch_virtual_meshes(draft),
            Object::Settings(_) => {
                dirty.estate = true;
                dirty.meshes.extend(
                    self.complete
                        .iter()
                        .filter(|name| !name.is_empty())
                        .cloned(),
                );
                draft.touch_status(StatusKind::Settings, key);
            }
            Object::KubernetesCluster(_) => dirty.estate = true,
            Object::Mesh(mesh) => {
                // A mesh that discovery cannot read falls back on what is stored.
                if !mesh.discovered_in.is_empty() {
                    dirty.meshes.insert(Arc::clone(&mesh.discovered_in));
                }
                draft.touch_status(StatusKind::Mesh, key);
                draft.found.insert((OutputKind::Mesh, key.clone()));
            }
            Object::Workload(_) => {
                draft.touch_status(StatusKind::Workload, key);
                draft.found.insert((OutputKind::Workload, key.clone()));
            }
            Object::Destination(_) => {
                draft.touch_status(StatusKind::Destination, key);
                draft.found.insert((OutputKind::Destination, key.clone()));
            }
            Object::Namespace(_) => {
                let namespace = Key::new("", key.name(), key.cluster());
                let beside = self.graph.cluster_index.controllers_beside(&namespace);
                dirty.workloads.extend(beside.cloned());
                // The namespace of a control plane names its network.
                if self.hosts_control_plane(&namespace) {
                    dirty.meshes.insert(cluster());
                }
            }
            Object::Node(_) => {
                dirty.meshes.insert(cluster());
                self.touch_named(&Named::Node(key.clone()), dirty);
            }
            Object::ConfigMap(_) => {
                dirty.meshes.insert(cluster());
            }
            Object::Deployment(controller)
            | Object::DaemonSet(controller)
            | Object::StatefulSet(controller) => {
                if is_candidate(key.name()) || is_agent(&controller.pod_labels) {
                    dirty.meshes.insert(cluster());
                }
                let (kind, key) = (object.kind(), key.clone());
                self.touch_controller(Source { kind, key }, controller, dirty);
            }
            Object::ReplicaSet(controller) => {
                let (kind, key) = (Kind::ReplicaSet, key.clone());
                self.touch_controller(Source { kind, key }, controller, dirty);
            }
            Object::Pod(pod) => self.touch_pod(pod, dirty),
            Object::Service(_) => {
                dirty.destinations.insert(key.clone());
                if self.hosts_control_plane(key) {
                    dirty.meshes.insert(cluster());
                }
            }
            Object::EndpointSlice(slice) => dirty.destinations.extend(service_of(slice)),
            Object::Endpoints(_) => {
                dirty.destinations.insert(key.clone());
            }
        }
    }

    fn touch_virtual_meshes(&self, draft: &mut Draft) {
        for virtual_mesh in self.snapshot.virtual_meshes.keys() {
            draft.touch_status(StatusKind::VirtualMesh, virtual_mesh);
        }
    }

    /// A controller, and whoever has looked at its pods or counts the pods of its owner: which workload a
    /// pod belongs to hangs on who owns its ReplicaSet.
    fn touch_controller(&self, source: Source, controller: &Controller, dirty: &mut Dirty) {
        if let Some(owner) = controller_owner(controller) {
            self.touch_services_of(&owner, dirty);
            dirty.workloads.insert(owner);
        }
        if source.kind == Kind::ReplicaSet {
            for pod in self.graph.cluster_index.pods_of(&source) {
                self.touch_named(&Named::Pod(pod.clone()), dirty);
            }
        }
        dirty.workloads.insert(source);
    }

    fn touch_pod(&self, pod: &Arc<Pod>, dirty: &mut Dirty) {
        if is_agent(&pod.labels) || self.hosts_control_plane(&pod.key) {
            dirty.meshes.insert(pod.key.cluster().into());
        }
        self.touch_named(&Named::Pod(pod.key.clone()), dirty);
        let Some(owner) = pod_owner(pod) else { return };
        let root = root_owner(&self.snapshot, owner.clone());
        // A Service of node ports has the addresses of the nodes of its pods.
        self.touch_services_of(&root, dirty);
        dirty.workloads.insert(owner);
        dirty.workloads.insert(root);
    }

    /// Services that select the pods of a workload.
    fn touch_services_of(&self, source: &Source, dirty: &mut Dirty) {
        let workload = self.graph.workloads.found_as(source);
        if let Some(workload) = workload.and_then(|workload| workload.controller.as_ref()) {
            self.touch_services(&source.key, &workload.pod_labels, dirty);
        }
    }

    /// Services in an object's namespace that select pods of these labels.
    pub(super) fn touch_services(&self, beside: &Key, pod_labels: &Labels, dirty: &mut Dirty) {
        let table = &self.snapshot.services;
        let candidates = self
            .graph
            .cluster_index
            .services_selecting(beside, pod_labels);
        let selecting = candidates.filter(|key| {
            table
                .get(key)
                .is_some_and(|service| pod_labels.contain(&service.selector))
        });
        dirty.destinations.extend(selecting.cloned());
    }

    /// Whether a control plane is in the object's namespace: its gateways are looked for there.
    fn hosts_control_plane(&self, key: &Key) -> bool {
        control_planes(&self.snapshot, key.cluster())
            .any(|deployment| deployment.key.namespace() == key.namespace())
    }

    pub(super) fn touch_named(&self, named: &Named, dirty: &mut Dirty) {
        for unit in self.graph.readers_of(named) {
            match unit {
                Unit::Destination(service) => dirty.destinations.insert(service.clone()),
                Unit::Record(destination) => dirty.records.insert(destination.clone()),
            };
        }
    }

    pub(super) fn touch_selected(&self, selection: &Destinations, dirty: &mut BTreeSet<Key>) {
        let table = self.graph.destinations.effective();
        let selected = self.graph.destination_index.select(selection, table);
        // As one, since it may be everything there is, and is in order.
        let mut keys = selected.into_iter().map(|it| it.key.clone()).collect();
        dirty.append(&mut keys);
    }

    /// Destinations of which a policy takes a subset.
    pub(super) fn touch_subsets(&self, policy: &TrafficPolicy, dirty: &mut Dirty) {
        let targets = subset_targets(policy);
        let index = &self.graph.destination_index;
        dirty.subsets.extend(
            targets
                .into_iter()
                .filter_map(|it| index.of_service(it))
                .cloned(),
        );
    }
}
