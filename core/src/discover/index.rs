//! Indexes over the objects of clusters.

use std::sync::Arc;

use super::mesh::is_agent;
use super::namespace_of;
use crate::key::Key;
use crate::kinds::Object;
use crate::layer::Source;
use crate::model::kubernetes::{Controller, EndpointSlice, Owner, Pod};
use crate::table::{Multimap, Set};

/// Finds objects of clusters by what they belong to.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterIndex {
    /// Pods by the controller that owns them.
    pods_by_owner: Multimap<Source, Key>,
    /// Pods by namespace.
    pods_by_namespace: Multimap<Key, Key>,
    /// ReplicaSets by the Deployment that owns them.
    replica_sets_by_owner: Multimap<Source, Key>,
    /// Services by namespace.
    services_by_namespace: Multimap<Key, Key>,
    /// EndpointSlices by Service.
    slices_by_service: Multimap<Key, Key>,
    /// Controllers whose pods could be workloads, by namespace.
    controllers_by_namespace: Multimap<Key, Source>,
    /// Deployments and pods of certificate agents, by cluster.
    agents_by_cluster: Multimap<Arc<str>, Source>,
    /// Nodes by cluster.
    nodes_by_cluster: Multimap<Arc<str>, Key>,
}

/// The controller that an owner reference leads to; none for a kind that we do not read.
pub(crate) fn owner_source(owner: &Owner, of: &Key) -> Option<Source> {
    let Owner::Known(kind, name) = owner else {
        return None;
    };
    Some(Source {
        kind: *kind,
        key: Key::new(name, of.namespace(), of.cluster()),
    })
}

impl ClusterIndex {
    /// Takes an object up.
    pub(crate) fn insert(&mut self, object: &Object) {
        self.change(object, true);
    }

    /// Lets an object go.
    pub(crate) fn remove(&mut self, object: &Object) {
        self.change(object, false);
    }

    fn change(&mut self, object: &Object, is_new: bool) {
        fn set<K: Ord + Clone, V: Ord + Clone>(
            map: &mut Multimap<K, V>,
            key: &K,
            value: V,
            is_new: bool,
        ) {
            if is_new {
                map.insert(key, value);
            } else {
                map.remove(key, &value);
            }
        }
        let key = object.key();
        let source = || Source {
            kind: object.kind(),
            key: key.clone(),
        };
        let cluster = || Arc::<str>::from(key.cluster());
        match object {
            Object::Node(_) => {
                set(&mut self.nodes_by_cluster, &cluster(), key.clone(), is_new);
            }
            Object::Pod(pod) => {
                if is_agent(&pod.labels) {
                    set(&mut self.agents_by_cluster, &cluster(), source(), is_new);
                }
                if let Some(owner) = pod_owner(pod) {
                    set(&mut self.pods_by_owner, &owner, key.clone(), is_new);
                }
                set(
                    &mut self.pods_by_namespace,
                    &namespace_of(key),
                    key.clone(),
                    is_new,
                );
            }
            Object::ReplicaSet(replica_set) => {
                if let Some(owner) = controller_owner(replica_set) {
                    set(&mut self.replica_sets_by_owner, &owner, key.clone(), is_new);
                }
                if replica_set.owner.is_none() {
                    set(
                        &mut self.controllers_by_namespace,
                        &namespace_of(key),
                        source(),
                        is_new,
                    );
                }
            }
            Object::Deployment(deployment) => {
                if is_agent(&deployment.pod_labels) {
                    set(&mut self.agents_by_cluster, &cluster(), source(), is_new);
                }
                set(
                    &mut self.controllers_by_namespace,
                    &namespace_of(key),
                    source(),
                    is_new,
                );
            }
            Object::DaemonSet(_) | Object::StatefulSet(_) => {
                set(
                    &mut self.controllers_by_namespace,
                    &namespace_of(key),
                    source(),
                    is_new,
                );
            }
            Object::Service(_) => {
                set(
                    &mut self.services_by_namespace,
                    &namespace_of(key),
                    key.clone(),
                    is_new,
                );
            }
            Object::EndpointSlice(slice) => {
                if let Some(service) = service_of(slice) {
                    set(&mut self.slices_by_service, &service, key.clone(), is_new);
                }
            }
            Object::KubernetesCluster(_)
            | Object::Settings(_)
            | Object::Mesh(_)
            | Object::Workload(_)
            | Object::Destination(_)
            | Object::VirtualMesh(_)
            | Object::TrafficPolicy(_)
            | Object::AccessPolicy(_)
            | Object::Secret(_)
            | Object::Namespace(_)
            | Object::ConfigMap(_)
            | Object::Endpoints(_) => {}
        }
    }

    /// Pods that a controller owns, in key order.
    pub(crate) fn pods_of<'a>(&'a self, owner: &Source) -> impl Iterator<Item = &'a Key> + use<'a> {
        members(self.pods_by_owner.get(owner))
    }

    /// Pods of a namespace, in key order.
    pub(crate) fn pods_in<'a>(
        &'a self,
        namespace: &Key,
    ) -> impl Iterator<Item = &'a Key> + use<'a> {
        members(self.pods_by_namespace.get(namespace))
    }

    /// ReplicaSets that a Deployment owns, in key order.
    pub(crate) fn replica_sets_of<'a>(
        &'a self,
        owner: &Source,
    ) -> impl Iterator<Item = &'a Key> + use<'a> {
        members(self.replica_sets_by_owner.get(owner))
    }

    /// Services of a namespace, in key order.
    pub(crate) fn services_in<'a>(
        &'a self,
        namespace: &Key,
    ) -> impl Iterator<Item = &'a Key> + use<'a> {
        members(self.services_by_namespace.get(namespace))
    }

    /// EndpointSlices of a Service, in key order.
    pub(crate) fn slices_of<'a>(
        &'a self,
        service: &Key,
    ) -> impl Iterator<Item = &'a Key> + use<'a> {
        members(self.slices_by_service.get(service))
    }

    /// Controllers of a namespace.
    pub(crate) fn controllers_in<'a>(
        &'a self,
        namespace: &Key,
    ) -> impl Iterator<Item = &'a Source> + use<'a> {
        members(self.controllers_by_namespace.get(namespace))
    }

    /// Deployments and pods of certificate agents in a cluster, Deployments first.
    pub(crate) fn agents_in<'a>(
        &'a self,
        cluster: &str,
    ) -> impl Iterator<Item = &'a Source> + use<'a> {
        members(self.agents_by_cluster.get(cluster))
    }

    /// Nodes of a cluster, in key order.
    pub(crate) fn nodes_in<'a>(&'a self, cluster: &str) -> impl Iterator<Item = &'a Key> + use<'a> {
        members(self.nodes_by_cluster.get(cluster))
    }
}

/// The controller that owns a pod.
pub(crate) fn pod_owner(pod: &Pod) -> Option<Source> {
    owner_source(pod.owner.as_ref()?, &pod.key)
}

/// The controller that owns a controller.
pub(crate) fn controller_owner(controller: &Controller) -> Option<Source> {
    owner_source(controller.owner.as_ref()?, &controller.key)
}

/// The Service that a slice belongs to.
pub(crate) fn service_of(slice: &EndpointSlice) -> Option<Key> {
    (!slice.service.is_empty())
        .then(|| Key::new(&slice.service, slice.key.namespace(), slice.key.cluster()))
}

fn members<T: Ord + Clone>(set: Option<&Set<T>>) -> impl Iterator<Item = &T> {
    set.into_iter().flat_map(Set::iter)
}
