//! What has been worked out, and what it was worked out from.
//!
//! [`Graph`] holds every derived value; [`Reader`] is the only way in which a value may look at
//! anything. What a value depends on is known in one of three ways:
//!
//! - *its own*: the object that it is about, and what the indexes relate to that object (the
//!   policies that select a destination, the pods that a controller owns). A change there finds
//!   its readers through the same index.
//! - *broad*: facts about a mesh or a cluster that everything in it shares. A change there goes
//!   to everything in it.
//! - *named*: any other object. The reader writes down its name, whether it is there or not, and
//!   a change there goes to whoever wrote that name down.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::discover::index::{ClusterIndex, controller_owner, is_owned, is_slice_of, pod_owner};
use crate::discover::mesh as control_plane;
use crate::estate::Estate;
use crate::federate::federate;
use crate::index::{DestinationIndex, PolicyIndex, WorkloadIndex};
use crate::key::Key;
use crate::kinds::{Kind, Snapshot};
use crate::layer::{Layer, Source};
use crate::model::destination::KubeService;
use crate::model::kubernetes::{
    ConfigMap, Controller, EndpointSlice, Namespace, Node, Pod, Service,
};
use crate::model::selector::Destinations;
use crate::model::{AccessPolicy, Destination, Labels, Mesh, Settings, TrafficPolicy, Workload};
use crate::output::mesh::MeshOutputs;
use crate::record::{Record, Subsets};
use crate::state::Options;
use crate::table::{Multimap, Number, Relation, Table, number};

/// Every derived value. Cloning shares everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) meshes: Layer<Mesh>,
    pub(crate) workloads: Layer<Workload>,
    pub(crate) destinations: Layer<Destination>,
    pub(crate) cluster_index: ClusterIndex,
    pub(crate) destination_index: DestinationIndex,
    pub(crate) workload_index: WorkloadIndex,
    pub(crate) traffic_index: PolicyIndex,
    pub(crate) access_index: PolicyIndex,
    pub(crate) estate: Arc<Estate>,
    /// Services that a policy names in a selector and that do not exist; only policies with any.
    pub(crate) missing: Table<PolicyKey, Arc<[Key]>>,
    pub(crate) records: Table<Key, Arc<Record>>,
    /// Only destinations with any.
    pub(crate) subsets: Table<Key, Arc<Subsets>>,
    pub(crate) mesh_outputs: Table<Key, Arc<MeshOutputs>>,
    /// Destinations with errors of a policy, or on which a virtual mesh cannot do all it is to.
    pub(crate) faults: Multimap<PolicyKey, Key>,
    /// Destinations by the virtual mesh that federates them.
    pub(crate) federated: Multimap<Key, Key>,
    /// On how many destinations a policy that asks for subsets is applied.
    pub(crate) applied: Table<Key, usize>,
    /// By numbers of what they looked at. Who has looked at another of the same number is worked out again, and is as
    /// it was.
    readers: Relation<Number, Unit>,
    reads: Table<Unit, Arc<[Number]>>,
}

/// A policy, or a virtual mesh.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PolicyKey {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
}

/// Something that is worked out and writes down what it reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    /// What a Service is as a destination.
    Destination(Key),
    /// What a destination becomes.
    Record(Key),
}

/// An object that somebody looked at by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Named {
    /// A destination, by its Service.
    Service(Key),
    /// A Pod.
    Pod(Key),
    /// A Node.
    Node(Key),
}

impl Graph {
    /// Whoever looked at an object by name.
    pub(crate) fn readers_of(&self, named: &Named) -> impl Iterator<Item = &Unit> {
        self.readers.get(number(named))
    }

    /// Writes down what a unit has read this time.
    pub(crate) fn remember(&mut self, unit: &Unit, now: &BTreeSet<Named>) {
        let now: BTreeSet<Number> = now.iter().map(number).collect();
        let before = self.reads.get(unit).cloned();
        let before: &[Number] = before.as_deref().unwrap_or_default();
        if before.iter().eq(now.iter()) {
            return;
        }
        for read in before.iter().filter(|read| !now.contains(read)) {
            self.readers.remove(read, unit);
        }
        for read in now
            .iter()
            .filter(|read| before.binary_search(read).is_err())
        {
            self.readers.insert(read, unit.clone());
        }
        if now.is_empty() {
            self.reads.remove(unit);
        } else {
            self.reads.insert(unit.clone(), now.into_iter().collect());
        }
    }
}

/// Looks at things, and writes down the names of those that nothing else would lead back from.
pub(crate) struct Reader<'a> {
    options: &'a Options,
    snapshot: &'a Snapshot,
    graph: &'a Graph,
    named: RefCell<BTreeSet<Named>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(options: &'a Options, snapshot: &'a Snapshot, graph: &'a Graph) -> Self {
        Self {
            options,
            snapshot,
            graph,
            named: RefCell::default(),
        }
    }

    /// The names written down.
    pub(crate) fn into_names(self) -> BTreeSet<Named> {
        self.named.into_inner()
    }

    fn write_down(&self, named: Named) {
        self.named.borrow_mut().insert(named);
    }

    // Broad.

    /// Our own namespace in the management cluster.
    pub(crate) fn namespace(&self) -> &'a str {
        &self.options.namespace
    }

    pub(crate) fn settings(&self) -> Option<&'a Settings> {
        self.snapshot
            .settings
            .get(&self.options.settings())
            .map(AsRef::as_ref)
    }

    pub(crate) fn estate(&self) -> &'a Estate {
        &self.graph.estate
    }

    pub(crate) fn domain(&self, cluster: &str) -> Arc<str> {
        self.graph.estate.domain(cluster)
    }

    pub(crate) fn index(&self) -> &'a DestinationIndex {
        &self.graph.destination_index
    }

    pub(crate) fn mesh(&self, destination: &Destination) -> Option<&'a Arc<Mesh>> {
        self.graph
            .meshes
            .effective()
            .get(destination.mesh.as_ref()?)
    }

    pub(crate) fn stored_mesh(&self, key: &Key) -> Option<&'a Arc<Mesh>> {
        self.snapshot.meshes.get(key)
    }

    /// Meshes found in a cluster, in the order of their control planes.
    pub(crate) fn found_meshes(
        &self,
        cluster: &str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Mesh>)> {
        control_planes(self.snapshot, cluster).filter_map(|controller| {
            let source = Source {
                kind: Kind::Deployment,
                key: controller.key.clone(),
            };
            Some((&controller.key, self.graph.meshes.found_as(&source)?))
        })
    }

    /// Nodes of a cluster, in key order.
    pub(crate) fn nodes(&self, cluster: &str) -> impl Iterator<Item = &'a Arc<Node>> {
        self.graph
            .cluster_index
            .nodes_in(cluster)
            .filter_map(|key| self.snapshot.nodes.get(key))
    }

    /// Deployments and pods of certificate agents in a cluster, Deployments first.
    pub(crate) fn agents_in(&self, cluster: &str) -> impl Iterator<Item = &'a Source> {
        self.graph.cluster_index.agents_in(cluster)
    }

    pub(crate) fn config_map(&self, key: &Key) -> Option<&'a Arc<ConfigMap>> {
        self.snapshot.config_maps.get(key)
    }

    pub(crate) fn namespace_of(&self, key: &Key) -> Option<&'a Arc<Namespace>> {
        self.snapshot
            .namespaces
            .get(&Key::new(key.namespace(), "", key.cluster()))
    }

    // Its own, through the indexes.

    /// Services in an object's namespace, in key order.
    pub(crate) fn services_beside(&self, key: &Key) -> impl Iterator<Item = &'a Arc<Service>> {
        self.graph
            .cluster_index
            .services_beside(key)
            .filter_map(|key| self.snapshot.services.get(key))
    }

    /// Pods in an object's namespace, in key order.
    pub(crate) fn pods_beside(&self, key: &Key) -> impl Iterator<Item = &'a Pod> {
        self.graph
            .cluster_index
            .pods_beside(key)
            .filter_map(|key| self.snapshot.pods.get(key))
            .map(AsRef::as_ref)
    }

    /// Workloads found in a Service's namespace whose pods it selects.
    pub(crate) fn workloads_selected(
        &self,
        service: &'a Service,
    ) -> impl Iterator<Item = (&'a Source, &'a Arc<Workload>)> {
        self.graph
            .cluster_index
            .controllers_selected(&service.key, &service.selector)
            .filter_map(|source| Some((source, self.graph.workloads.found_as(source)?)))
            .filter(|(_, workload)| {
                let controller = workload.controller.as_ref();
                controller.is_some_and(|it| it.pod_labels.contain(&service.selector))
            })
    }

    /// Pods that a controller owns, those of a Deployment by way of its ReplicaSets.
    pub(crate) fn pods_of(&self, source: &Source) -> impl Iterator<Item = &'a Pod> {
        let (index, snapshot) = (&self.graph.cluster_index, self.snapshot);
        let owned = move |owner: Source| {
            let pods = index.pods_of(&owner);
            let pods = pods.filter_map(|key| snapshot.pods.get(key));
            pods.filter(move |pod| is_owned(&pod.key, pod.owner.as_ref(), &owner))
        };
        let deployment = source.clone();
        let by_replica_set = index
            .replica_sets_of(source)
            .filter_map(|key| snapshot.replica_sets.get(key))
            .filter(move |it| is_owned(&it.key, it.owner.as_ref(), &deployment))
            .flat_map(move |replica_set| {
                owned(Source {
                    kind: Kind::ReplicaSet,
                    key: replica_set.key.clone(),
                })
            });
        let direct = owned(source.clone());
        direct.chain(by_replica_set).map(AsRef::as_ref)
    }

    /// EndpointSlices of a Service; where it has none, its Endpoints.
    pub(crate) fn slices_of(&self, service: &Key) -> impl Iterator<Item = &'a Arc<EndpointSlice>> {
        let mut slices = self
            .graph
            .cluster_index
            .slices_of(service)
            .filter_map(|key| self.snapshot.endpoint_slices.get(key))
            .filter(|slice| is_slice_of(slice, service))
            .peekable();
        let older = match slices.peek() {
            Some(_) => None,
            None => self.snapshot.endpoints.get(service),
        };
        slices.chain(older)
    }

    /// Labels of the pods of the workload that a pod belongs to.
    pub(crate) fn workload_labels(&self, pod: &Pod) -> Option<Labels> {
        let source = root_owner(self.snapshot, pod_owner(pod)?);
        let workload = self.graph.workloads.found_as(&source)?;
        Some(workload.controller.as_ref()?.pod_labels.clone())
    }

    /// Traffic policies that apply to a destination, in key order: those that select it, and have
    /// nothing wrong with them.
    pub(crate) fn traffic_policies(
        &self,
        service: Option<&KubeService>,
    ) -> Vec<Arc<TrafficPolicy>> {
        self.graph
            .traffic_index
            .candidates(service)
            .into_iter()
            .filter_map(|key| self.snapshot.traffic_policies.get(key))
            .filter(|policy| policy.rejections.is_empty() && policy.destinations.select(service))
            .filter(|policy| {
                matches!(policy.destinations, Destinations::All)
                    || self.graph.missing.is_empty()
                    || !self.graph.missing.contains_key(&PolicyKey {
                        kind: Kind::TrafficPolicy,
                        key: policy.key.clone(),
                    })
            })
            .cloned()
            .collect()
    }

    /// Access policies that select a destination, in key order, whatever is wrong with them: one
    /// that cannot be read keeps its destinations closed, and one that names a service too many
    /// goes on guarding the others.
    pub(crate) fn access_policies(&self, service: Option<&KubeService>) -> Vec<Arc<AccessPolicy>> {
        self.graph
            .access_index
            .candidates(service)
            .into_iter()
            .filter_map(|key| self.snapshot.access_policies.get(key))
            .filter(|policy| policy.destinations.select(service))
            .cloned()
            .collect()
    }

    /// Whether another destination of a lower key is the same Service.
    pub(crate) fn is_duplicate(&self, destination: &Destination, service: &KubeService) -> bool {
        self.index()
            .of_service(&service.reference)
            .is_some_and(|first| *first != destination.key)
    }

    // Named.

    pub(crate) fn pod(&self, key: Key) -> Option<&'a Arc<Pod>> {
        let pod = self.snapshot.pods.get(&key);
        // One text for both, if it is there.
        self.write_down(Named::Pod(pod.map_or(key, |pod| pod.key.clone())));
        pod
    }

    pub(crate) fn node(&self, name: &str, cluster: &str) -> Option<&'a Arc<Node>> {
        if name.is_empty() {
            return None;
        }
        let key = Key::new(name, "", cluster);
        let node = self.snapshot.nodes.get(&key);
        self.write_down(Named::Node(node.map_or(key, |node| node.key.clone())));
        node
    }

    /// The destination of a Service.
    pub(crate) fn destination(&self, service: &Key) -> Option<&'a Arc<Destination>> {
        self.write_down(Named::Service(service.clone()));
        let key = self.index().of_service(service)?;
        self.graph.destinations.effective().get(key)
    }

    /// The name under which other meshes see a Service, where any does.
    pub(crate) fn federated_hostname(&self, service: &Key) -> Option<Arc<str>> {
        let destination = self.destination(service)?;
        let site = self.estate().site(destination.mesh.as_ref()?)?;
        Some(federate(destination, site, self.index())?.hostname)
    }
}

/// Deployments that could be control planes of a cluster's meshes, in key order.
pub(crate) fn control_planes<'a>(
    snapshot: &'a Snapshot,
    cluster: &str,
) -> impl Iterator<Item = &'a Arc<Controller>> {
    [control_plane::ISTIOD, control_plane::OSM_CONTROLLER]
        .into_iter()
        .flat_map(move |prefix| {
            // A hyphen sorts before the dot that ends a name: names that go on come first.
            snapshot
                .deployments
                .starting_at(&Key::new(&format!("{prefix}-"), "", ""))
                .take_while(move |(key, _)| key.name().starts_with(prefix))
                .map(|(_, deployment)| deployment)
                .filter(move |deployment| deployment.key.cluster() == cluster)
        })
}

/// The controller at the end of a chain of owners: a ReplicaSet's Deployment, if it has one.
pub(crate) fn root_owner(snapshot: &Snapshot, source: Source) -> Source {
    if source.kind != Kind::ReplicaSet {
        return source;
    }
    snapshot
        .replica_sets
        .get(&source.key)
        .and_then(|replica_set| controller_owner(replica_set))
        .unwrap_or(source)
}
