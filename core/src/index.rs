//! Secondary indexes: from what a selector says to what it selects, and back.
//!
//! Two directions are needed. A policy that changes must find its destinations; a destination
//! that is translated must find its policies. Either way the cost follows what is found, not the
//! size of the fleet. An index proposes candidates; whoever asks checks them against the selector
//! itself, so an index may propose too much but never too little.

use std::sync::Arc;

use crate::key::Key;
use crate::model::destination::{Destination, KubeService};
use crate::model::labels::Labels;
use crate::model::selector::{Destinations, Names};
use crate::model::settings::default_gateway_labels;
use crate::model::workload::KubeWorkload;
use crate::naming;
use crate::table::{Multimap, Relation, Set, Table};

/// Objects by their labels and namespaces.
#[derive(Clone, Debug, Default)]
pub struct Postings {
    by_label: Multimap<Arc<str>, Key>,
    by_namespace: Multimap<Arc<str>, Key>,
}

/// What an index proposes.
pub enum Candidates<'a> {
    /// Everything there is: the selector narrows nothing down.
    All,
    /// The members of these sets.
    Sets(Vec<&'a Set<Key>>),
}

/// One label as an index term.
fn term(key: &str, value: &str) -> Arc<str> {
    let mut term = String::new();
    write_term(&mut term, key, value);
    term.into()
}

/// Puts the term of a label in the place of another one.
fn write_term(term: &mut String, key: &str, value: &str) {
    term.clear();
    term.extend([key, "=", value]);
}

impl Postings {
    /// Takes an object up.
    pub fn insert(&mut self, key: &Key, labels: &Labels, namespace: &str) {
        for (name, value) in labels.iter() {
            self.by_label.insert(&term(name, value), key.clone());
        }
        self.by_namespace.insert(&namespace.into(), key.clone());
    }

    /// Lets an object go.
    pub fn remove(&mut self, key: &Key, labels: &Labels, namespace: &str) {
        for (name, value) in labels.iter() {
            self.by_label.remove(&term(name, value), key);
        }
        self.by_namespace.remove(&namespace.into(), key);
    }

    /// Proposes objects that have all of `labels` and are in one of `namespaces`.
    pub fn candidates(&self, labels: &Labels, namespaces: &Names) -> Candidates<'_> {
        let mut smallest: Option<&Set<Key>> = None;
        for (key, value) in labels.iter() {
            let Some(set) = self.by_label.get(&term(key, value)) else {
                return Candidates::Sets(Vec::new());
            };
            if smallest.is_none_or(|smallest| set.len() < smallest.len()) {
                smallest = Some(set);
            }
        }
        if let Some(set) = smallest {
            return Candidates::Sets(vec![set]);
        }
        if namespaces.is_empty() {
            return Candidates::All;
        }
        Candidates::Sets(
            namespaces
                .iter()
                .filter_map(|namespace| self.by_namespace.get(namespace))
                .collect(),
        )
    }
}

/// Finds destinations.
#[derive(Clone, Debug, Default)]
pub struct DestinationIndex {
    postings: Postings,
    /// By the Service that they are: more than one where people wrote a second.
    by_service: Relation<Key, Key>,
    /// By mesh, those whose pods are labelled as Istio's own ingress gateway.
    default_gateways: Multimap<Key, Key>,
    /// By the name of their federated objects, which is not injective.
    by_federated_name: Relation<Arc<str>, Key>,
    /// By the virtual address that the formula gives them.
    by_virtual_ip: Relation<u32, Key>,
    /// How many Services there are in a cluster.
    clusters: Table<Arc<str>, usize>,
}

impl DestinationIndex {
    /// Takes a destination up.
    pub fn insert(&mut self, destination: &Destination) {
        let Some(service) = &destination.service else {
            return;
        };
        let key = &destination.key;
        let (names, vip) = Self::terms(service);
        self.postings
            .insert(key, &service.labels, service.reference.namespace());
        self.by_service.insert(&service.reference, key.clone());
        self.by_federated_name.insert(&names, key.clone());
        self.by_virtual_ip.insert(&vip, key.clone());
        let cluster = service.reference.cluster();
        let others = self.clusters.get(cluster).copied().unwrap_or_default();
        self.clusters.insert(cluster.into(), others + 1);
        if let Some(mesh) = default_gateway_of(destination) {
            self.default_gateways.insert(mesh, key.clone());
        }
    }

    /// Lets a destination go.
    pub fn remove(&mut self, destination: &Destination) {
        let Some(service) = &destination.service else {
            return;
        };
        let key = &destination.key;
        let (names, vip) = Self::terms(service);
        self.postings
            .remove(key, &service.labels, service.reference.namespace());
        self.by_service.remove(&service.reference, key);
        self.by_federated_name.remove(&names, key);
        self.by_virtual_ip.remove(&vip, key);
        let cluster = service.reference.cluster();
        match self.clusters.get_mut(cluster) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.clusters.remove(cluster)),
        }
        if let Some(mesh) = default_gateway_of(destination) {
            self.default_gateways.remove(mesh, key);
        }
    }

    fn terms(service: &KubeService) -> (Arc<str>, u32) {
        let reference = &service.reference;
        let (name, namespace, cluster) =
            (reference.name(), reference.namespace(), reference.cluster());
        (
            naming::federated_object(name, namespace, cluster).into(),
            naming::virtual_ip(name, namespace, cluster, 0).to_bits(),
        )
    }

    /// The destination of a Service; the first by key where there are more.
    pub fn of_service(&self, service: &Key) -> Option<&Key> {
        self.by_service.get(service.clone()).next()
    }

    /// Whether there is a Service in a cluster.
    pub fn has_service_in(&self, cluster: &str) -> bool {
        self.clusters.contains_key(cluster)
    }

    /// Destinations that are the same Service, have the same federated name, or the same virtual
    /// address: what one of them gets depends on whether the others are there.
    pub fn rivals(&self, service: &KubeService) -> impl Iterator<Item = &Key> {
        let (names, vip) = Self::terms(service);
        let same_service = self.by_service.get(service.reference.clone());
        let same_name = self.by_federated_name.get(names);
        same_service
            .chain(same_name)
            .chain(self.by_virtual_ip.get(vip))
    }

    /// The destination that holds this one's federated name, where that is not itself.
    pub fn name_holder(&self, key: &Key, service: &KubeService) -> Option<&Key> {
        let (name, _) = Self::terms(service);
        let mut holders = self.by_federated_name.get(name);
        holders.next().filter(|holder| *holder != key)
    }

    /// The destination that holds a federated name.
    pub fn of_federated_name(&self, name: &str) -> Option<&Key> {
        self.by_federated_name.get(name.into()).next()
    }

    /// How many destinations come before this one for the virtual address of the formula.
    pub fn virtual_ip_rank(&self, key: &Key, service: &KubeService) -> u32 {
        let (_, vip) = Self::terms(service);
        let rivals = self.by_virtual_ip.get(vip);
        let before = rivals.take_while(|other| *other < key).count();
        u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// The first destination of a mesh that is Istio's own ingress gateway.
    pub fn default_gateway(&self, mesh: &Key) -> Option<&Key> {
        self.default_gateways.get(mesh)?.first()
    }

    /// Every destination that is selected, in key order.
    pub fn select<'t>(
        &self,
        selection: &Destinations,
        table: &'t Table<Key, Arc<Destination>>,
    ) -> Vec<&'t Arc<Destination>> {
        let mut found: Vec<&'t Arc<Destination>> = Vec::new();
        let Destinations::Selected(selectors) = selection else {
            return table.values().collect();
        };
        for selector in selectors.iter() {
            if let Some(matcher) = &selector.matcher {
                let matches = |destination: &&'t Arc<Destination>| {
                    destination
                        .service
                        .as_ref()
                        .is_some_and(|service| matcher.matches(service))
                };
                match self
                    .postings
                    .candidates(&matcher.labels, &matcher.namespaces)
                {
                    Candidates::All => found.extend(table.values().filter(matches)),
                    Candidates::Sets(sets) => found.extend(
                        sets.into_iter()
                            .flat_map(Set::iter)
                            .filter_map(|key| table.get(key))
                            .filter(matches),
                    ),
                }
            }
            found.extend(
                selector
                    .services
                    .iter()
                    .flat_map(|service| self.by_service.get(service.key.clone()))
                    .filter_map(|key| table.get(key)),
            );
            // A thousand selectors may each select everything.
            if found.len() > 2 * table.len() {
                in_key_order(&mut found);
            }
        }
        in_key_order(&mut found);
        found
    }
}

/// Each destination once, in key order.
fn in_key_order(found: &mut Vec<&Arc<Destination>>) {
    found.sort_unstable_by(|left, right| left.key.cmp(&right.key));
    found.dedup_by(|left, right| left.key == right.key);
}

/// The mesh of a destination that is Istio's own ingress gateway.
pub(crate) fn default_gateway_of(destination: &Destination) -> Option<&Key> {
    let service = destination.service.as_ref()?;
    service
        .selector
        .contain(&default_gateway_labels())
        .then_some(destination.mesh.as_ref())?
}

/// Finds policies.
///
/// A policy stands under one term of each of its selectors: a Service it names, the first label
/// it asks for, the namespaces it asks for, or under none where it asks for nothing that narrows.
#[derive(Clone, Debug, Default)]
pub struct PolicyIndex {
    by_service: Multimap<Key, Key>,
    by_label: Multimap<Arc<str>, Key>,
    by_namespace: Multimap<Arc<str>, Key>,
    broad: Set<Key>,
    /// By the Services that requests are sent to.
    by_target: Multimap<Key, Key>,
}

/// Where a policy stands in the index.
enum Anchor<'a> {
    Service(&'a Key),
    Label(Arc<str>),
    Namespace(&'a Arc<str>),
    Broad,
}

fn anchors(selection: &Destinations) -> Vec<Anchor<'_>> {
    let Destinations::Selected(selectors) = selection else {
        return vec![Anchor::Broad];
    };
    let mut anchors = Vec::new();
    for selector in selectors.iter() {
        let services = selector.services.iter();
        anchors.extend(services.map(|service| Anchor::Service(&service.key)));
        let Some(matcher) = &selector.matcher else {
            continue;
        };
        if let Some((key, value)) = matcher.labels.iter().next() {
            anchors.push(Anchor::Label(term(key, value)));
        } else if matcher.namespaces.is_empty() {
            anchors.push(Anchor::Broad);
        } else {
            anchors.extend(matcher.namespaces.iter().map(Anchor::Namespace));
        }
    }
    anchors
}

impl PolicyIndex {
    /// Takes a policy up.
    pub fn insert<'t>(
        &mut self,
        policy: &Key,
        selection: &Destinations,
        targets: impl Iterator<Item = &'t Key>,
    ) {
        for anchor in anchors(selection) {
            match anchor {
                Anchor::Service(service) => self.by_service.insert(service, policy.clone()),
                Anchor::Label(label) => self.by_label.insert(&label, policy.clone()),
                Anchor::Namespace(name) => self.by_namespace.insert(name, policy.clone()),
                Anchor::Broad => self.broad.insert(policy.clone()),
            }
        }
        for target in targets {
            self.by_target.insert(target, policy.clone());
        }
    }

    /// Lets a policy go.
    pub fn remove<'t>(
        &mut self,
        policy: &Key,
        selection: &Destinations,
        targets: impl Iterator<Item = &'t Key>,
    ) {
        for anchor in anchors(selection) {
            match anchor {
                Anchor::Service(service) => self.by_service.remove(service, policy),
                Anchor::Label(label) => self.by_label.remove(&label, policy),
                Anchor::Namespace(name) => self.by_namespace.remove(name, policy),
                Anchor::Broad => {
                    self.broad.remove(policy);
                }
            }
        }
        for target in targets {
            self.by_target.remove(target, policy);
        }
    }

    /// Proposes the policies that may select a destination, in key order.
    pub fn candidates(&self, service: Option<&KubeService>) -> Vec<&Key> {
        // Room for what most destinations have: this is asked for each of them.
        let mut found: Vec<&Key> = Vec::with_capacity(8);
        found.extend(self.broad.iter());
        if let Some(service) = service {
            found.extend(members(self.by_service.get(&service.reference)));
            found.extend(members(
                self.by_namespace.get(service.reference.namespace()),
            ));
            let mut term = String::with_capacity(64);
            for (key, value) in service.labels.iter() {
                write_term(&mut term, key, value);
                found.extend(members(self.by_label.get(&*term)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Policies that name a Service in a selector.
    pub fn naming(&self, service: &Key) -> impl Iterator<Item = &Key> {
        members(self.by_service.get(service))
    }

    /// Policies that send requests to a Service.
    pub fn targeting(&self, service: &Key) -> impl Iterator<Item = &Key> {
        members(self.by_target.get(service))
    }
}

fn members(set: Option<&Set<Key>>) -> impl Iterator<Item = &Key> {
    set.into_iter().flat_map(Set::iter)
}

/// Finds workloads.
#[derive(Clone, Debug, Default)]
pub struct WorkloadIndex {
    /// By the labels of their pods and their namespaces.
    pub postings: Postings,
    /// By mesh.
    pub by_mesh: Multimap<Key, Key>,
}

impl WorkloadIndex {
    /// Takes a workload up.
    pub fn insert(&mut self, key: &Key, mesh: Option<&Key>, workload: Option<&KubeWorkload>) {
        if let Some(mesh) = mesh {
            self.by_mesh.insert(mesh, key.clone());
        }
        if let Some(workload) = workload {
            self.postings
                .insert(key, &workload.pod_labels, workload.reference.namespace());
        }
    }

    /// Lets a workload go.
    pub fn remove(&mut self, key: &Key, mesh: Option<&Key>, workload: Option<&KubeWorkload>) {
        if let Some(mesh) = mesh {
            self.by_mesh.remove(mesh, key);
        }
        if let Some(workload) = workload {
            self.postings
                .remove(key, &workload.pod_labels, workload.reference.namespace());
        }
    }
}
