//! Indexes over the objects of clusters.

use std::sync::Arc;

use super::mesh::is_agent;
use crate::key::Key;
use crate::kinds::{Kind, Object};
use crate::layer::Source;
use crate::model::Labels;
use crate::model::kubernetes::{Controller, EndpointSlice, Owner, Pod};
use crate::table::{Number, Relation, number};

/// Finds objects of clusters by what they belong to.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterIndex {
    /// Pods by the controller that owns them.
    pods_by_owner: Relation<Number, Key>,
    /// Pods by namespace.
    pods_by_namespace: Relation<Number, Key>,
    /// ReplicaSets by the Deployment that owns them.
    replica_sets_by_owner: Relation<Number, Key>,
    /// Services by namespace.
    services_by_namespace: Relation<Number, Key>,
    /// Services by the first label that they select, in their namespace.
    services_by_selector: Relation<Number, Key>,
    /// EndpointSlices by Service.
    slices_by_service: Relation<Number, Key>,
    /// Controllers whose pods could be workloads, by namespace.
    controllers_by_namespace: Relation<Number, Source>,
    /// The same by each label of their pods, in their namespace.
    controllers_by_label: Relation<Number, Source>,
    /// Deployments and pods of certificate agents, by cluster.
    agents_by_cluster: Relation<Arc<str>, Source>,
    /// Nodes by cluster.
    nodes_by_cluster: Relation<Arc<str>, Key>,
}

/// The number of a namespace, or of a label in a namespace.
fn posting(beside: &Key, label: Option<(&str, &str)>) -> Number {
    number(&(beside.cluster(), beside.namespace(), label))
}

/// The number of an object beside another one.
fn posting_of(kind: Kind, name: &str, beside: &Key) -> Number {
    posting(beside, Some((kind.name(), name)))
}

fn set<K: Ord + Clone, V: Ord + Clone>(
    relation: &mut Relation<K, V>,
    key: &K,
    value: V,
    is_new: bool,
) {
    if is_new {
        relation.insert(key, value);
    } else {
        relation.remove(key, &value);
    }
}

fn is_beside(key: &Key, other: &Key) -> bool {
    key.namespace() == other.namespace() && key.cluster() == other.cluster()
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
        let key = object.key();
        let source = || Source {
            kind: object.kind(),
            key: key.clone(),
        };
        let cluster = || Arc::<str>::from(key.cluster());
        if let Object::Deployment(controller)
        | Object::ReplicaSet(controller)
        | Object::DaemonSet(controller)
        | Object::StatefulSet(controller) = object
            && is_workload(object.kind(), controller)
        {
            set(
                &mut self.controllers_by_namespace,
                &posting(key, None),
                source(),
                is_new,
            );
            for label in controller.pod_labels.iter() {
                let posting = posting(key, Some(label));
                set(&mut self.controllers_by_label, &posting, source(), is_new);
            }
        }
        match object {
            Object::Node(_) => {
                set(&mut self.nodes_by_cluster, &cluster(), key.clone(), is_new);
            }
            Object::Pod(pod) => {
                if is_agent(&pod.labels) {
                    set(&mut self.agents_by_cluster, &cluster(), source(), is_new);
                }
                if let Some(Owner::Known(kind, name)) = &pod.owner {
                    let owner = posting_of(*kind, name, key);
                    set(&mut self.pods_by_owner, &owner, key.clone(), is_new);
                }
                set(
                    &mut self.pods_by_namespace,
                    &posting(key, None),
                    key.clone(),
                    is_new,
                );
            }
            Object::ReplicaSet(replica_set) => {
                if let Some(Owner::Known(kind, name)) = &replica_set.owner {
                    let owner = posting_of(*kind, name, key);
                    set(&mut self.replica_sets_by_owner, &owner, key.clone(), is_new);
                }
            }
            Object::Deployment(deployment) => {
                if is_agent(&deployment.pod_labels) {
                    set(&mut self.agents_by_cluster, &cluster(), source(), is_new);
                }
            }
            Object::Service(service) => {
                if let Some(label) = service.selector.iter().next() {
                    let posting = posting(key, Some(label));
                    set(
                        &mut self.services_by_selector,
                        &posting,
                        key.clone(),
                        is_new,
                    );
                }
                set(
                    &mut self.services_by_namespace,
                    &posting(key, None),
                    key.clone(),
                    is_new,
                );
            }
            Object::EndpointSlice(slice) => {
                if !slice.service.is_empty() {
                    let service = posting_of(Kind::Service, &slice.service, key);
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
            | Object::DaemonSet(_)
            | Object::StatefulSet(_)
            | Object::Endpoints(_) => {}
        }
    }

    /// Pods that a controller may own, in key order.
    pub(crate) fn pods_of(&self, owner: &Source) -> impl Iterator<Item = &Key> + use<'_> {
        let owner = posting_of(owner.kind, owner.key.name(), &owner.key);
        self.pods_by_owner.get(owner)
    }

    /// Pods beside an object, in key order.
    pub(crate) fn pods_beside(&self, key: &Key) -> impl Iterator<Item = &Key> + use<'_> {
        let (pods, key) = (self.pods_by_namespace.get(posting(key, None)), key.clone());
        pods.filter(move |pod| is_beside(pod, &key))
    }

    /// ReplicaSets that a Deployment may own, in key order.
    pub(crate) fn replica_sets_of(&self, owner: &Source) -> impl Iterator<Item = &Key> + use<'_> {
        let owner = posting_of(owner.kind, owner.key.name(), &owner.key);
        self.replica_sets_by_owner.get(owner)
    }

    /// Services beside an object, in key order.
    pub(crate) fn services_beside(&self, key: &Key) -> impl Iterator<Item = &Key> + use<'_> {
        let services = self.services_by_namespace.get(posting(key, None));
        let key = key.clone();
        services.filter(move |service| is_beside(service, &key))
    }

    /// Services beside an object that may select pods of these labels.
    pub(crate) fn services_selecting<'a>(
        &'a self,
        beside: &Key,
        pod_labels: &Labels,
    ) -> impl Iterator<Item = &'a Key> + use<'a> {
        let postings: Vec<_> = pod_labels
            .iter()
            .map(|it| posting(beside, Some(it)))
            .collect();
        let found = move |posting| self.services_by_selector.get(posting);
        postings.into_iter().flat_map(found)
    }

    /// Controllers beside a Service whose pods it may select; none where it selects nothing.
    pub(crate) fn controllers_selected<'a>(
        &'a self,
        service: &Key,
        selector: &Labels,
    ) -> impl Iterator<Item = &'a Source> + use<'a> {
        let postings: Vec<_> = selector
            .iter()
            .map(|it| posting(service, Some(it)))
            .collect();
        let fewest = self.controllers_by_label.fewest(postings);
        fewest.into_iter().flatten()
    }

    /// What may be EndpointSlices of a Service, in key order.
    pub(crate) fn slices_of(&self, service: &Key) -> impl Iterator<Item = &Key> + use<'_> {
        self.slices_by_service
            .get(posting_of(Kind::Service, service.name(), service))
    }

    /// Controllers beside an object.
    pub(crate) fn controllers_beside(&self, key: &Key) -> impl Iterator<Item = &Source> + use<'_> {
        let controllers = self.controllers_by_namespace.get(posting(key, None));
        let key = key.clone();
        controllers.filter(move |controller| is_beside(&controller.key, &key))
    }

    /// Deployments and pods of certificate agents in a cluster, Deployments first.
    pub(crate) fn agents_in(&self, cluster: &str) -> impl Iterator<Item = &Source> + use<'_> {
        self.agents_by_cluster.get(cluster.into())
    }

    /// Nodes of a cluster, in key order.
    pub(crate) fn nodes_in(&self, cluster: &str) -> impl Iterator<Item = &Key> + use<'_> {
        self.nodes_by_cluster.get(cluster.into())
    }
}

/// Whether a controller's pods could be a workload: those of what a Deployment owns are the Deployment's.
fn is_workload(kind: Kind, controller: &Controller) -> bool {
    kind != Kind::ReplicaSet || controller.owner.is_none()
}

/// The controller that owns a pod.
pub(crate) fn pod_owner(pod: &Pod) -> Option<Source> {
    owner_source(pod.owner.as_ref()?, &pod.key)
}

/// The controller that owns a controller.
pub(crate) fn controller_owner(controller: &Controller) -> Option<Source> {
    owner_source(controller.owner.as_ref()?, &controller.key)
}

/// Whether an owner reference of an object leads to a controller.
pub(crate) fn is_owned(object: &Key, owner: Option<&Owner>, by: &Source) -> bool {
    let Some(Owner::Known(kind, name)) = owner else {
        return false;
    };
    *kind == by.kind && **name == *by.key.name() && is_beside(object, &by.key)
}

/// Whether a slice belongs to a Service.
pub(crate) fn is_slice_of(slice: &EndpointSlice, service: &Key) -> bool {
    *slice.service == *service.name() && is_beside(&slice.key, service)
}

/// The Service that a slice belongs to.
pub(crate) fn service_of(slice: &EndpointSlice) -> Option<Key> {
    (!slice.service.is_empty())
        .then(|| Key::new(&slice.service, slice.key.namespace(), slice.key.cluster()))
}
