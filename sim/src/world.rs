//! A management cluster, managed clusters, and what lies between them and the replicas.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use ferromesh_core::{Kind, OutputKind, State, for_each_kind};
use ferromesh_testkit::fakeapi::{FakeApi, Kind as Served};
use jiff::Timestamp;
use kube::Resource;
use serde_json::Value;

use crate::dice::Dice;
use crate::journal::Journal;
use crate::network::Network;
use crate::watchdog::Watchdog;

/// Our own namespace.
pub(crate) const NAMESPACE: &str = "gloo-mesh";
/// The name of the Lease.
pub(crate) const LEASE: &str = "ferromesh";
/// Whoever writes what we do not.
pub(crate) const PEOPLE: &str = "people";
/// What the name of a cluster ends with that is registered a second time, under another name.
const AGAIN: &str = "-again";
/// When every day begins: what is signed in it says so.
const MORNING: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Everything outside of the replicas. The management cluster has no name.
pub(crate) struct World {
    clusters: BTreeMap<String, Cluster>,
    pub(crate) network: Network,
    pub(crate) watchdog: Watchdog,
    pub(crate) journal: Journal,
    /// The tokens that each API server accepts.
    tokens: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

struct Cluster {
    api: FakeApi,
    kinds: Vec<Served>,
}

macro_rules! served {
    ($($kind:ident, $table:ident: $parsed:ty, $scope:ident, $wire:ty => $parse:expr;)*) => {
        /// Plural and version.
        fn resource(kind: Kind) -> (Cow<'static, str>, Cow<'static, str>) {
            match kind { $(Kind::$kind => (<$wire>::plural(&()), <$wire>::version(&())),)* }
        }
    };
}

for_each_kind!(served);

/// A kind that is read, as an API server serves it.
pub(crate) fn input(kind: Kind) -> Served {
    let (plural, version) = resource(kind);
    Served::new(&kind.group(), kind.name(), &plural)
        .with_versions(&[&version])
        .with_list("status.conditions", "type")
}

/// A kind that is written, as an API server serves it.
pub(crate) fn output(kind: OutputKind) -> Served {
    Served::new(kind.group(), kind.name(), kind.plural()).with_versions(kind.versions())
}

/// The kinds that are read in a cluster.
pub(crate) fn inputs(cluster: &str) -> Vec<Kind> {
    State::default().unsynced(cluster).collect()
}

/// The name under which a cluster may be registered a second time.
pub(crate) fn again(cluster: &str) -> String {
    format!("{cluster}{AGAIN}")
}

/// The cluster that is registered under a name.
pub(crate) fn place_of(name: &str) -> &str {
    name.strip_suffix(AGAIN).unwrap_or(name)
}

const UNPOISONED: &str = "nobody panics while holding this lock";

pub(crate) fn leases() -> Served {
    Served::new("coordination.k8s.io", "Lease", "leases")
}

/// Everything that the API server of a cluster serves, by the names of kinds.
fn kinds(cluster: &str) -> Vec<Served> {
    let mut kinds = inputs(cluster);
    kinds.extend([Kind::Secret, Kind::ConfigMap]);
    kinds.sort_unstable();
    kinds.dedup();
    let mut kinds: Vec<_> = kinds.into_iter().map(input).collect();
    if cluster.is_empty() {
        kinds.push(leases());
    } else {
        kinds.extend(OutputKind::PUSHED.map(output));
        kinds.push(Served::new(
            ferromesh_crds::CERTIFICATES_GROUP,
            "CertificateRequest",
            "certificaterequests",
        ));
    }
    kinds
}

impl World {
    /// Empty clusters of these names, and so many replicas that can reach them.
    pub(crate) fn new(names: &[String], replicas: u32, dice: &mut Dice) -> Self {
        let names = names.iter().map(String::as_str).chain([""]);
        let cluster = |name: &str| {
            let (api, kinds) = (FakeApi::new(), kinds(name));
            for kind in &kinds {
                api.serve(kind);
            }
            (name.to_owned(), Cluster { api, kinds })
        };
        let clusters: BTreeMap<_, _> = names.map(cluster).collect();
        Self {
            network: Network::new(clusters.keys(), replicas, dice.fork()),
            clusters,
            watchdog: Watchdog::default(),
            journal: Journal::new(),
            tokens: Mutex::default(),
        }
    }

    /// The API server of a cluster.
    pub(crate) fn api(&self, cluster: &str) -> &FakeApi {
        &self.clusters[cluster].api
    }

    /// The management cluster, under the empty name, and the others.
    pub(crate) fn places(&self) -> impl Iterator<Item = &str> {
        self.clusters.keys().map(String::as_str)
    }

    /// The managed clusters.
    pub(crate) fn managed(&self) -> impl Iterator<Item = &str> {
        self.places().filter(|name| !name.is_empty())
    }

    /// From now on the API server of a cluster accepts these tokens and no others. Returns which it did before.
    pub(crate) fn accept(&self, cluster: &str, tokens: BTreeSet<String>) -> BTreeSet<String> {
        let mut accepted = self.tokens.lock().expect(UNPOISONED);
        let before = accepted.insert(place_of(cluster).to_owned(), tokens);
        before.unwrap_or_default()
    }

    /// The API server of a cluster accepts one token more.
    pub(crate) fn accept_too(&self, cluster: &str, token: &str) {
        let mut accepted = self.tokens.lock().expect(UNPOISONED);
        let accepted = accepted.entry(place_of(cluster).to_owned()).or_default();
        accepted.insert(token.to_owned());
    }

    /// Whether the API server of a cluster accepts a token.
    pub(crate) fn accepts(&self, cluster: &str, token: &str) -> bool {
        let accepted = self.tokens.lock().expect(UNPOISONED);
        let accepted = accepted.get(place_of(cluster));
        accepted.is_some_and(|accepted| accepted.contains(token))
    }

    /// What time it is: seconds of Tokio's paused clock.
    pub(crate) fn now(&self) -> Timestamp {
        MORNING + self.journal.began().elapsed()
    }

    /// What an API server serves under a plural.
    pub(crate) fn kind_of(&self, cluster: &str, plural: &str) -> Option<&Served> {
        let mut kinds = self.clusters[cluster].kinds.iter();
        kinds.find(|kind| kind.plural() == plural)
    }

    /// Creates or replaces an object, as people do.
    pub(crate) fn put(&self, cluster: &str, object: &Value) {
        let kinds = &self.clusters[cluster].kinds;
        let name = object["kind"].as_str().unwrap_or_default();
        let kind = kinds.iter().find(|kind| kind.name() == name);
        let kind = kind.expect("people write what is served");
        let put = self.api(cluster).put(PEOPLE, kind, object);
        assert!(put.is_object(), "{object} was not stored");
    }

    /// Deletes an object, as people do.
    pub(crate) fn remove(&self, cluster: &str, object: &Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let kinds = &self.clusters[cluster].kinds;
        let kind = kinds.iter().find(|kind| object["kind"] == *kind.name());
        let kind = kind.expect("people delete what is served");
        self.api(cluster)
            .remove(kind, text("namespace"), text("name"));
    }
}
