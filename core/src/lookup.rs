//! One output by its name: what an object of a cluster is to look like, if it is to be there.
//!
//! Names lead back to what they were made of, so nothing is kept for this.

use crate::delta::{Changed, Delta, changes};
use crate::index::DestinationIndex;
use crate::key::Key;
use crate::output::destination::Translated;
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

    fn output_of_mesh(&self, key: &OutputKey) -> Option<Output> {
        let owner = &self.options.namespace;
        self.graph
            .mesh_outputs
            .values()
            .filter(|mesh| mesh.site().cluster == key.cluster)
            .flat_map(|mesh| mesh.render(owner))
            .find(|output| output.key == *key)
    }

    /// The name of every object that is to stand in some cluster, what was found included.
    pub fn output_keys(&self) -> impl Iterator<Item = OutputKey> {
        let owner = &self.options.namespace;
        let destinations = self
            .graph
            .records
            .keys()
            .filter_map(|key| self.translated(key));
        let destinations = destinations.flat_map(|translated| {
            translated
                .slots()
                .into_iter()
                .filter_map(move |slot| translated.key(slot))
        });
        let meshes = self
            .graph
            .mesh_outputs
            .values()
            .flat_map(|mesh| mesh.render(owner));
        destinations
            .chain(meshes.map(|output| output.key))
            .chain(self.found_keys())
    }
}

impl Delta {
    /// The name of every output that differs, without rendering those of a destination.
    pub fn output_keys(&self) -> Vec<OutputKey> {
        let mut keys = Vec::new();
        for key in &self.destinations {
            let (before, after) = self.translated(key);
            keys.extend(changes(before, after, |change| match change {
                Changed::Added(translated, slot) | Changed::Differs(translated, slot) => {
                    translated.key(slot)
                }
                Changed::Removed(key) => Some(key),
            }));
        }
        keys.extend(self.other_outputs().map(|change| change.key().clone()));
        keys
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

fn render(translated: Translated<'_>, key: &OutputKey, owner: &str) -> Option<Output> {
    let slot = translated
        .slots()
        .into_iter()
        .find(|slot| translated.key(*slot).as_ref() == Some(key))?;
    translated.render(slot, owner)
}
