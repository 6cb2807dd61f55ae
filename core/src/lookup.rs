//! One output by its name: what an object of a cluster is to look like, if it is to be there.
//!
//! Names lead back to what they were made of, so nothing is kept for this.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::delta::{Delta, StatusKey, StatusKind};
use crate::index::DestinationIndex;
use crate::key::Key;
use crate::output::comparison::{Changed, changes};
use crate::output::destination::{Slot, Translated};
use crate::output::discovered::Discovered;
use crate::output::mesh::MeshOutputs;
use crate::output::{Output, OutputKey, OutputKind};
use crate::state::State;

impl State {
    /// What an object is to look like; none where it is not to be there.
    pub fn output(&self, key: &OutputKey) -> Option<Output> {
        let owner = &self.options.namespace;
        match key.kind {
            OutputKind::Mesh | OutputKind::Workload | OutputKind::Destination => {
                let name = Key::local(&key.name, &key.namespace);
                let found = self
                    .found(key.kind, &name)
                    .filter(|_| key.cluster.is_empty())?;
                Some(found.render(owner))
            }
            OutputKind::Istio(_) => {
                let destinations = candidates(&self.graph.destination_index, key);
                let of_destination = destinations
                    .into_iter()
                    .filter_map(|destination| self.translated(destination))
                    .find_map(|translated| render(translated, key, owner));
                of_destination.or_else(|| self.output_of_mesh(key))
            }
            OutputKind::IssuedCertificate | OutputKind::PodBounceDirective => {
                self.output_of_mesh(key)
            }
        }
    }

    /// The policies and virtual meshes that have a part in an output, in order; none where it is not to
    /// be there, or was found.
    pub fn parents(&self, key: &OutputKey) -> Arc<[StatusKey]> {
        let OutputKind::Istio(_) = key.kind else {
            return self.parents_by_mesh(key);
        };
        let of_destination = candidates(&self.graph.destination_index, key)
            .into_iter()
            .filter_map(|destination| self.translated(destination))
            .find(|translated| has(*translated, key).is_some());
        match of_destination {
            Some(translated) => OutputSet::of_destination(Vec::new(), [translated]).parents,
            None => self.parents_by_mesh(key),
        }
    }

    fn parents_by_mesh(&self, key: &OutputKey) -> Arc<[StatusKey]> {
        let owner = &self.options.namespace;
        let on_cluster = self.graph.mesh_outputs.values();
        let mut on_cluster = on_cluster.filter(|mesh| mesh.site().cluster == key.cluster);
        let mesh =
            on_cluster.find(|mesh| mesh.render(owner).iter().any(|output| output.key == *key));
        let forms = mesh.map(AsRef::as_ref);
        OutputSet::of_mesh(Vec::new(), forms).parents
    }

    fn output_of_mesh(&self, key: &OutputKey) -> Option<Output> {
        let owner = &self.options.namespace;
        self.graph
            .mesh_outputs
            .values()
            .filter(|mesh| mesh.site().cluster == key.cluster)
            .flat_map(|mesh| mesh.render(owner))
            .find(|output| output.key == *key)
    }

    /// Every object that is to stand in some cluster, by name, with whose they are.
    pub fn output_sets(&self) -> impl Iterator<Item = OutputSet> {
        let destinations = self.graph.records.keys().filter_map(|key| {
            let translated = self.translated(key)?;
            let keys = translated.slots().filter_map(|slot| translated.key(slot));
            Some(OutputSet::of_destination(keys.collect(), [translated]))
        });
        let owner = &self.options.namespace;
        let meshes = self.graph.mesh_outputs.values().map(|mesh| {
            let keys = mesh.render(owner).into_iter().map(|output| output.key);
            OutputSet::of_mesh(keys.collect(), [mesh.as_ref()])
        });
        let found = self.all_found().map(|found| OutputSet {
            keys: vec![found.key()],
            discovered_in: Some(Arc::clone(found.cluster())),
            ..OutputSet::default()
        });
        destinations.chain(meshes).chain(found)
    }
}

/// Outputs that belong together, and whose they are.
#[derive(Clone, Debug, Default)]
pub struct OutputSet {
    /// Which objects.
    pub keys: Vec<OutputKey>,
    /// The cluster in which they were found, for outputs of discovery.
    pub discovered_in: Option<Arc<str>>,
    /// The policies and virtual meshes that have a part in them, in order, each once.
    pub parents: Arc<[StatusKey]>,
    /// Whether those of them that are gone are gone because a person took something away: a policy, a
    /// virtual mesh, or the registration of a cluster.
    pub is_by_hand: bool,
}

impl OutputSet {
    fn new(keys: Vec<OutputKey>, parents: BTreeSet<StatusKey>) -> Self {
        Self {
            keys,
            parents: parents.into_iter().collect(),
            ..Self::default()
        }
    }

    fn of_destination<'a>(
        keys: Vec<OutputKey>,
        forms: impl IntoIterator<Item = Translated<'a>>,
    ) -> Self {
        let parents = forms.into_iter().flat_map(Translated::parents);
        Self::new(keys, parents.collect())
    }

    fn of_mesh<'a>(keys: Vec<OutputKey>, forms: impl IntoIterator<Item = &'a MeshOutputs>) -> Self {
        let parents = forms.into_iter().map(|mesh| StatusKey {
            kind: StatusKind::VirtualMesh,
            key: mesh.virtual_mesh().clone(),
        });
        Self::new(keys, parents.collect())
    }
}

impl Translated<'_> {
    /// What has a part in the objects of a destination.
    fn parents(self) -> Vec<StatusKey> {
        let key = |kind, key: &Key| StatusKey {
            kind,
            key: key.clone(),
        };
        let traffic = self.record.traffic_policies.iter();
        let traffic = traffic.filter(|bound| bound.is_applied);
        let traffic = traffic.map(|bound| &bound.policy.key);
        let subsets = self.subsets.0.iter().map(|policy| &policy.key);
        let access = self.record.access_policies.iter();
        let access = access.filter(|bound| bound.is_applied);
        let access = access.map(|bound| key(StatusKind::AccessPolicy, &bound.policy.key));
        let virtual_mesh = self.record.federation.iter();
        let virtual_mesh =
            virtual_mesh.map(|federation| key(StatusKind::VirtualMesh, &federation.virtual_mesh));
        traffic
            .chain(subsets)
            .map(|policy| key(StatusKind::TrafficPolicy, policy))
            .chain(access)
            .chain(virtual_mesh)
            .collect()
    }
}

impl Delta {
    /// The name of every output that differs, with whose it is or was. Nothing of a destination is
    /// rendered for it.
    pub fn output_sets(&self) -> Vec<OutputSet> {
        let is_policy_gone = self.is_policy_gone();
        let mut sets = Vec::new();
        for (key, moved) in &self.destinations {
            let (before, after) = self.translated(key, moved);
            let keys = changes(before, after, Changed::into_key);
            if keys.is_empty() {
                continue;
            }
            let stays = self.after.destinations().contains_key(key);
            let was_in = before.map(|before| &before.record.destination.discovered_in);
            sets.push(OutputSet {
                is_by_hand: self.is_by_hand(is_policy_gone, stays, was_in),
                ..OutputSet::of_destination(keys, before.into_iter().chain(after))
            });
        }
        for key in &self.meshes {
            let forms = [&self.before, &self.after].map(|state| state.graph.mesh_outputs.get(key));
            let keys: Vec<_> = self
                .outputs_of_mesh(key)
                .map(|change| change.key().clone())
                .collect();
            if keys.is_empty() {
                continue;
            }
            let stays = self.after.meshes().contains_key(key);
            let was_in = self.before.meshes().get(key);
            let was_in = was_in.map(|mesh| &mesh.discovered_in);
            sets.push(OutputSet {
                is_by_hand: self.is_by_hand(is_policy_gone, stays, was_in),
                ..OutputSet::of_mesh(keys, forms.into_iter().flatten().map(AsRef::as_ref))
            });
        }
        for (kind, key) in &self.found {
            let [before, after] = [&self.before, &self.after].map(|state| state.found(*kind, key));
            let cluster = |found: &Discovered| Arc::clone(found.cluster());
            let was_in = before.as_ref().map(cluster);
            let keys: Vec<_> = self
                .outputs_found(*kind, key)
                .map(|change| change.key().clone())
                .collect();
            if keys.is_empty() {
                continue;
            }
            sets.push(OutputSet {
                keys,
                is_by_hand: was_in.as_ref().is_some_and(|it| self.is_forgotten(it)),
                discovered_in: was_in.or(after.as_ref().map(cluster)),
                parents: Arc::default(),
            });
        }
        sets
    }

    /// Whether a person has taken away what outputs of a destination or a mesh were made of: a policy, a
    /// registration, or the object itself where a person had written it. What is gone from its cluster has
    /// been taken away by nobody.
    fn is_by_hand(&self, is_policy_gone: bool, stays: bool, was_in: Option<&Arc<str>>) -> bool {
        if stays && is_policy_gone {
            return true;
        }
        was_in.is_some_and(|cluster| {
            let is_of_people = cluster.is_empty();
            !self.has_vanished && (self.is_forgotten(cluster) || (is_of_people && !stays))
        })
    }

    /// Whether a policy or a virtual mesh was there before and is not any more, and has not just vanished.
    fn is_policy_gone(&self) -> bool {
        if self.has_vanished {
            return false;
        }
        self.statuses.iter().any(|StatusKey { kind, key }| {
            let is_in = |state: &State| match kind {
                StatusKind::AccessPolicy => state.snapshot.access_policies.contains_key(key),
                StatusKind::TrafficPolicy => state.snapshot.traffic_policies.contains_key(key),
                StatusKind::VirtualMesh => state.snapshot.virtual_meshes.contains_key(key),
                StatusKind::Destination
                | StatusKind::Mesh
                | StatusKind::Settings
                | StatusKind::Workload => false,
            };
            is_in(&self.before) && !is_in(&self.after)
        })
    }

    /// Whether a cluster was registered before and is not any more.
    fn is_forgotten(&self, cluster: &Arc<str>) -> bool {
        self.after.is_forgotten(cluster) && !self.before.is_forgotten(cluster)
    }
}

impl OutputKey {
    /// Whether an object of this name can be made of what is in a cluster. Its own cluster has always a
    /// part in it; others where it makes one of their services known.
    ///
    /// An object that nobody wants any more has nothing but its name to tell by. A cluster too many is
    /// named sooner than one too few.
    pub fn may_derive_from(&self, cluster: &str) -> bool {
        *self.cluster == *cluster
            || self.name.contains(&format!(".svc.{cluster}."))
            || self
                .name
                .strip_suffix(cluster)
                .is_some_and(|name| name.ends_with('-'))
    }
}

/// Destinations whose objects may have this name: the Service of the name, the one that its
/// federated host name spells out, and those of the federated name.
fn candidates<'a>(index: &'a DestinationIndex, key: &OutputKey) -> Vec<&'a Key> {
    let local = Key::new(&key.name, &key.namespace, &key.cluster);
    let mut found: Vec<&Key> = index.of_service(&local).into_iter().collect();
    let mut labels = key.name.split('.');
    if let (Some(service), Some(namespace), Some("svc"), Some(cluster)) =
        (labels.next(), labels.next(), labels.next(), labels.next())
    {
        found.extend(index.of_service(&Key::new(service, namespace, cluster)));
    }
    found.extend(index.of_federated_name(&key.name));
    found
}

fn has<'a>(translated: Translated<'a>, key: &OutputKey) -> Option<Slot<'a>> {
    let mut slots = translated.slots();
    slots.find(|slot| translated.key(*slot).as_ref() == Some(key))
}

fn render(translated: Translated<'_>, key: &OutputKey, owner: &str) -> Option<Output> {
    translated.render(has(translated, key)?, owner)
}
