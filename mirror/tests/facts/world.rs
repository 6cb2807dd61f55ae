//! A management cluster, other clusters, and a mirror of them, all in memory.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use ferromesh_core::{Key, Kind, Object, State, for_each_kind};
use ferromesh_mirror::{ClusterView, Clusters, Deltas, Handle, Mirror, Options};
use ferromesh_runtime::{backoff::Jitter, client, shutdown::Shutdown};
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Kind as Served, Request};
use kube::Resource;
use serde_json::{Value, json};
use tokio::time::timeout;

/// Who writes to the API servers.
const WHO: &str = "test";

pub(super) struct World {
    pub(super) management: FakeApi,
    pub(super) handle: Handle,
    pub(super) shutdown: Shutdown,
    deltas: Option<Deltas>,
    fleet: Fleet,
}

/// API servers by their addresses, and how often a client was made for each.
#[derive(Clone, Default)]
struct Fleet(Arc<Mutex<BTreeMap<String, (FakeApi, usize)>>>);

macro_rules! served {
    ($($kind:ident, $table:ident: $parsed:ty, $scope:ident, $wire:ty => $parse:expr;)*) => {
        /// Plural and version.
        fn resource(kind: Kind) -> (Cow<'static, str>, Cow<'static, str>) {
            match kind { $(Kind::$kind => (<$wire>::plural(&()), <$wire>::version(&())),)* }
        }
    };
}

for_each_kind!(served);

/// A kind as an API server serves it.
pub(super) fn served(kind: Kind) -> Served {
    let (plural, version) = resource(kind);
    Served::new(&kind.group(), kind.name(), &plural).with_versions(&[&version])
}

/// An API server of an empty cluster; the name is empty for the management cluster.
fn server(name: &str) -> FakeApi {
    let server = FakeApi::new();
    for kind in State::default().unsynced(name) {
        server.serve(&served(kind));
    }
    server
}

/// Nothing takes longer by Tokio's paused clock, unless it is never to happen.
const SOON: Duration = Duration::from_mins(10);

impl World {
    /// A management cluster with nothing in it, and nobody who follows it yet.
    pub(super) fn empty() -> Unfollowed {
        Unfollowed {
            management: server(""),
            fleet: Fleet::default(),
        }
    }

    /// A mirror of an empty management cluster that has listed everything.
    pub(super) async fn new() -> Self {
        let world = Self::empty().follow();
        world.until(|state| state.is_complete("")).await;
        world
    }

    /// A mirror of an empty management cluster and one cluster that has been listed.
    pub(super) async fn with_cluster(name: &str) -> (Self, FakeApi) {
        let world = Self::new().await;
        let cluster = world.register(name);
        world.until(|state| state.is_complete(name)).await;
        (world, cluster)
    }

    pub(super) fn register(&self, name: &str) -> FakeApi {
        register(&self.management, &self.fleet, name)
    }

    pub(super) fn state(&self) -> Arc<State> {
        self.handle.state()
    }

    pub(super) fn revision(&self) -> u64 {
        *self.handle.revision().borrow()
    }

    /// How often a client was made for a cluster.
    pub(super) fn connections(&self, name: &str) -> usize {
        let fleet = self.fleet.0.lock().unwrap();
        fleet.get(&address(name)).map_or(0, |(_, times)| *times)
    }

    pub(super) fn deltas(&mut self) -> Deltas {
        self.deltas.take().expect("nobody else took them")
    }

    /// Waits until the state is so.
    pub(super) async fn until(&self, is_so: impl Fn(&State) -> bool) -> Arc<State> {
        let mut revision = self.handle.revision();
        let waiting = async {
            loop {
                let state = self.handle.state();
                if is_so(&state) {
                    return state;
                }
                revision.changed().await.unwrap();
            }
        };
        timeout(SOON, waiting).await.expect("the state becomes so")
    }

    /// Waits until the clusters are so.
    pub(super) async fn until_clusters(&self, are_so: impl Fn(&Clusters) -> bool) -> Arc<Clusters> {
        let mut revision = self.handle.clusters_revision();
        let waiting = async {
            loop {
                let clusters = self.handle.clusters();
                if are_so(&clusters) {
                    return clusters;
                }
                revision.changed().await.unwrap();
            }
        };
        timeout(SOON, waiting)
            .await
            .expect("the clusters become so")
    }

    /// Waits until a cluster fares so.
    pub(super) async fn until_condition(&self, name: &str, condition: &str) -> ClusterView {
        let clusters = self
            .until_clusters(|clusters| {
                clusters
                    .get(name)
                    .is_some_and(|view| view.condition.as_str() == condition)
            })
            .await;
        clusters.get(name).unwrap().clone()
    }

    /// Waits until everything that has happened has been published.
    pub(super) async fn settled(&self) {
        let mut revision = self.handle.revision();
        loop {
            revision.mark_unchanged();
            // Longer than a batch may be open.
            if timeout(Duration::from_secs(1), revision.changed())
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

/// A management cluster that nobody follows yet.
pub(super) struct Unfollowed {
    pub(super) management: FakeApi,
    fleet: Fleet,
}

impl Unfollowed {
    pub(super) fn register(&self, name: &str) -> FakeApi {
        register(&self.management, &self.fleet, name)
    }

    pub(super) fn follow(self) -> World {
        let Self { management, fleet } = self;
        let shutdown = Shutdown::new();
        let reach = fleet.clone();
        let connect = move |bytes: &[u8], options: &client::Options| {
            let mut connection = client::from_bytes(bytes, options)?;
            let mut fleet = reach.0.lock().unwrap();
            let (server, times) = fleet.get_mut(&connection.server).expect("a known address");
            *times += 1;
            connection.client = server.client();
            Ok(connection)
        };
        let options = Options {
            connect: Arc::new(connect),
            jitter: Jitter::seeded(1),
            ..Options::default()
        };
        let (handle, deltas) = Mirror::start(options, management.client(), &shutdown);
        World {
            management,
            handle,
            shutdown,
            deltas: Some(deltas),
            fleet,
        }
    }
}

fn address(name: &str) -> String {
    format!("https://{name}.example")
}

fn register(management: &FakeApi, fleet: &Fleet, name: &str) -> FakeApi {
    let cluster = server(name);
    let mut clusters = fleet.0.lock().unwrap();
    clusters.insert(address(name), (cluster.clone(), 0));
    put(
        management,
        Kind::KubernetesCluster,
        &json!({ "metadata": meta("gloo-mesh", name), "spec": {} }),
    );
    put(management, Kind::Secret, &kubeconfig(name, "first"));
    cluster
}

/// The Secret by which a cluster is reached.
pub(super) fn kubeconfig(name: &str, token: &str) -> Value {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
        "clusters": [{ "name": name, "cluster": { "server": address(name) } }],
        "users": [{ "name": name, "user": { "token": token } }],
    });
    secret(
        "gloo-mesh",
        name,
        "solo.io/kubeconfig",
        &[("kubeconfig", config.to_string().as_bytes())],
    )
}

pub(super) fn secret(namespace: &str, name: &str, sort: &str, data: &[(&str, &[u8])]) -> Value {
    let data: BTreeMap<_, _> = data
        .iter()
        .map(|(key, bytes)| ((*key).to_owned(), k8s_openapi::ByteString(bytes.to_vec())))
        .collect();
    json!({ "metadata": meta(namespace, name), "type": sort, "data": data })
}

pub(super) fn meta(namespace: &str, name: &str) -> Value {
    json!({ "namespace": namespace, "name": name })
}

pub(super) fn service(name: &str) -> Value {
    json!({
        "metadata": meta("shop", name),
        "spec": { "selector": { "app": name }, "ports": [{ "name": "http", "port": 80 }] },
    })
}

pub(super) fn put(server: &FakeApi, kind: Kind, object: &Value) {
    let put = server.put(WHO, &served(kind), object);
    assert!(put.is_object(), "{object} was not stored");
}

pub(super) fn remove(server: &FakeApi, kind: Kind, namespace: &str, name: &str) {
    server.remove(&served(kind), namespace, name);
}

/// The names of a kind's objects in a cluster, as the state has them.
pub(super) fn names(state: &State, kind: Kind, cluster: &str) -> Vec<String> {
    let keys = state.snapshot().keys(kind);
    keys.iter()
        .filter(|key| key.cluster() == cluster)
        .map(|key| key.name().to_owned())
        .collect()
}

pub(super) fn object(state: &State, kind: Kind, name: &str, namespace: &str) -> Option<Object> {
    state.snapshot().get(kind, &Key::local(name, namespace))
}

/// Requests for a kind.
pub(super) fn about(kind: Kind) -> impl Fn(&Request) -> bool + Send {
    let (plural, _) = resource(kind);
    move |request| request.plural == plural
}

/// From now on every request is refused so, and watches end.
pub(super) fn refuse_all(server: &FakeApi, code: u16) {
    server.fail(Fault::refuse(code), |_| true);
    server.end_watches();
}
