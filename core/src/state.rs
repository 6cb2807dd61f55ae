//! The state of the world as far as it is known, and the one function that moves it.

mod draft;
mod find;
mod ingest;
mod translate;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;

use ferromesh_crds::meta::{DEFAULT_NAMESPACE, DEFAULT_SETTINGS_NAME};

use crate::change::Change;
use crate::delta::Delta;
use crate::estate::Estate;
use crate::graph::{Graph, PolicyKey, Reader};
use crate::key::Key;
use crate::kinds::{Kind, Scope, Snapshot};
use crate::layer::{Layer, Source};
use crate::model::{Destination, Mesh, Workload};
use crate::output::mesh::MeshOutputs;
use crate::record::{Record, Subsets};
use crate::shared::Shared;
use crate::table::{Set, Table};

pub use work::Step;

/// What the management plane is told about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its own namespace in the management cluster.
    pub namespace: String,
    /// The name of its settings, in that namespace.
    pub settings_name: String,
    /// Whether it is told everything at once, as from files: then nothing that is missing may still
    /// come.
    pub is_told_at_once: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: DEFAULT_NAMESPACE.to_owned(),
            settings_name: DEFAULT_SETTINGS_NAME.to_owned(),
            is_told_at_once: false,
        }
    }
}

impl Options {
    /// The settings that hold.
    pub fn settings(&self) -> Key {
        Key::local(&self.settings_name, &self.namespace)
    }
}

/// Every input and everything worked out from it. Cloning is cheap and shares everything.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) options: Arc<Options>,
    pub(crate) snapshot: Shared<Snapshot>,
    pub(crate) graph: Shared<Graph>,
    /// Kinds that have been listed, by cluster.
    synced: Set<(Arc<str>, Kind)>,
    /// Clusters of which every kind has been listed.
    complete: Set<Arc<str>>,
    /// Clusters that were registered and are no more, and whether nobody was seen to take their registration away.
    forgotten: Table<Arc<str>, bool>,
}

impl State {
    /// A state that knows nothing yet.
    pub fn new(options: Options) -> Self {
        Self {
            options: Arc::new(options),
            ..Self::default()
        }
    }

    /// Takes changes in and works out everything that they touch.
    ///
    /// The result depends on the inputs alone: not on the order in which they came, nor on how
    /// many came at once, nor on what was there before.
    #[must_use]
    pub fn step(self, changes: impl IntoIterator<Item = Change>) -> (Self, Delta) {
        let mut step = Step::new(self, changes);
        while !step.advance(usize::MAX) {}
        step.finish()
    }

    /// What the management plane was told about itself.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Every object that was read.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Facts about all meshes.
    pub fn estate(&self) -> &Estate {
        &self.graph.estate
    }

    /// Every mesh there is.
    pub fn meshes(&self) -> &Table<Key, Arc<Mesh>> {
        self.graph.meshes.effective()
    }

    /// Every workload there is.
    pub fn workloads(&self) -> &Table<Key, Arc<Workload>> {
        self.graph.workloads.effective()
    }

    /// Every destination there is.
    pub fn destinations(&self) -> &Table<Key, Arc<Destination>> {
        self.graph.destinations.effective()
    }

    /// What discovery found, apart from what is stored.
    pub fn discovered(&self) -> (&Layer<Mesh>, &Layer<Workload>, &Layer<Destination>) {
        (
            &self.graph.meshes,
            &self.graph.workloads,
            &self.graph.destinations,
        )
    }

    /// A destination, translated.
    pub fn record(&self, destination: &Key) -> Option<&Arc<Record>> {
        self.graph.records.get(destination)
    }

    /// Destinations in key order, translated.
    pub(crate) fn records_of<'a>(
        &'a self,
        destinations: &[&Arc<Destination>],
    ) -> impl Iterator<Item = &'a Arc<Record>> {
        let records = &self.graph.records;
        // Going along both lists costs less than many searches.
        let is_most = destinations.len() > records.len() / 8;
        let mut all = is_most.then(|| records.iter().peekable());
        destinations.iter().filter_map(move |it| match &mut all {
            Some(all) => {
                while all.next_if(|(key, _)| **key < it.key).is_some() {}
                let (_, record) = all.next_if(|(key, _)| **key == it.key)?;
                Some(record)
            }
            None => records.get(&it.key),
        })
    }

    /// Subsets that policies take of a destination.
    pub fn subsets(&self, destination: &Key) -> Option<&Arc<Subsets>> {
        self.graph.subsets.get(destination)
    }

    /// Whether every kind of a cluster (empty for the management cluster) has been listed.
    pub fn is_complete(&self, cluster: &str) -> bool {
        self.complete.contains(cluster)
    }

    /// Whether a kind of a cluster has been listed.
    pub fn is_synced(&self, cluster: &str, kind: Kind) -> bool {
        self.synced.contains(&(Arc::from(cluster), kind))
    }

    /// Kinds that a cluster must have listed before it is complete.
    pub fn expected(&self, cluster: &str) -> impl Iterator<Item = Kind> + use<> {
        expected(cluster)
    }

    /// Kinds of a cluster that have not been listed yet.
    pub fn unsynced<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = Kind> + 'a {
        expected(cluster).filter(|kind| !self.is_synced(cluster, *kind))
    }

    /// What is made for each mesh of a virtual mesh as a whole.
    pub fn mesh_outputs(&self) -> impl Iterator<Item = &Arc<MeshOutputs>> {
        self.graph.mesh_outputs.values()
    }

    /// Whether a cluster was registered and is not any more.
    pub fn is_forgotten(&self, cluster: &str) -> bool {
        self.forgotten.contains_key(cluster)
    }

    /// Clusters that were registered and are no more because a person has taken their registration away.
    pub fn deregistered(&self) -> impl Iterator<Item = &Arc<str>> {
        let gone = self.forgotten.iter();
        gone.filter_map(|(cluster, has_vanished)| (!has_vanished).then_some(cluster))
    }

    /// Whether discovery speaks for a cluster: what it does not find there is not there.
    pub fn speaks_for(&self, cluster: &str) -> bool {
        !cluster.is_empty() && (self.is_complete(cluster) || self.is_forgotten(cluster))
    }

    /// Whether a registered cluster may still tell what is missing.
    pub(crate) fn awaits(&self, cluster: &str) -> bool {
        !self.options.is_told_at_once && !self.is_complete(cluster)
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader::new(&self.options, &self.snapshot, &self.graph)
    }
}

/// Kinds that a cluster must have listed before it is complete.
fn expected(cluster: &str) -> impl Iterator<Item = Kind> + use<> {
    let is_management = cluster.is_empty();
    Kind::ALL
        .iter()
        .copied()
        .filter(move |kind| match kind.scope() {
            Scope::Management => is_management,
            Scope::Managed => !is_management,
            Scope::Everywhere => true,
            Scope::Files => false,
        })
}

/// What is still to be worked out, each rank only from what earlier ranks have settled.
#[derive(Clone, Debug, Default)]
struct Dirty {
    /// Clusters whose meshes are to be looked for.
    meshes: BTreeSet<Arc<str>>,
    /// Controllers that may be workloads.
    workloads: BTreeSet<Source>,
    /// Services that may be destinations.
    destinations: BTreeSet<Key>,
    /// Facts about all meshes.
    estate: bool,
    /// Policies whose references are to be looked up.
    references: BTreeSet<PolicyKey>,
    /// Destinations to translate.
    records: BTreeSet<Key>,
    /// Destinations of which nothing but the traffic policies may have changed.
    traffic: BTreeSet<Key>,
    /// Destinations of which nothing but the access policies may have changed.
    access: BTreeSet<Key>,
    /// Destinations whose subsets are to be gathered.
    subsets: BTreeSet<Key>,
    /// Meshes whose outputs are to be worked out.
    mesh_outputs: BTreeSet<Key>,
    /// Workloads that are new, different or gone, in both forms.
    callers: Vec<Arc<Workload>>,
}
