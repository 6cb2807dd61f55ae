//! A management cluster, other clusters, and the server that keeps them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferromesh_controller::certs::Sources;
use ferromesh_controller::{Controller, Metrics};
use ferromesh_core::{Kind, OutputKind, State, for_each_kind};
use ferromesh_istio as istio;
use ferromesh_mirror::{Mirror, Options};
use ferromesh_runtime::backoff::Jitter;
use ferromesh_runtime::{client, shutdown::Shutdown};
use ferromesh_testkit::fakeapi::{FakeApi, Kind as Served, Request};
use jiff::Timestamp;
use kube::Resource;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::estate;

pub(super) const NAMESPACE: &str = "gloo-mesh";
/// Whoever writes what we do not.
pub(super) const WHO: &str = "user";

/// Nothing takes longer by Tokio's paused clock, unless it is never to happen.
const SOON: Duration = Duration::from_mins(10);
/// Whoever has written nothing for so long has nothing to write. Longer than the pauses between attempts.
const QUIET: Duration = Duration::from_mins(3);
/// How often it is looked whether something has come to pass.
const LOOK: Duration = Duration::from_millis(20);

pub(super) struct World {
    pub(super) management: FakeApi,
    fleet: Fleet,
    began: Instant,
    server: Option<Server>,
}

/// The server, without its webhook.
struct Server {
    shutdown: Shutdown,
    cancel: CancellationToken,
    controller: JoinHandle<()>,
}

/// API servers by their addresses.
#[derive(Clone, Default)]
struct Fleet(Arc<Mutex<BTreeMap<String, Member>>>);

struct Member {
    api: FakeApi,
    /// By which it was reached.
    kubeconfigs: Vec<String>,
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
pub(super) fn input(kind: Kind) -> Served {
    let (plural, version) = resource(kind);
    Served::new(&kind.group(), kind.name(), &plural)
        .with_versions(&[&version])
        .with_list("status.conditions", "type")
}

/// A kind that is written, as an API server serves it.
pub(super) fn output(kind: OutputKind) -> Served {
    Served::new(kind.group(), kind.name(), kind.plural()).with_versions(kind.versions())
}

/// The same of Istio's kinds.
pub(super) fn istio(kind: istio::Kind) -> Served {
    output(OutputKind::Istio(kind))
}

pub(super) fn virtual_services() -> Served {
    istio(istio::Kind::VirtualService)
}

/// The kinds that are written to a managed cluster.
pub(super) fn pushed() -> [Served; 8] {
    [
        istio(istio::Kind::ServiceEntry),
        istio(istio::Kind::Gateway),
        istio(istio::Kind::DestinationRule),
        istio(istio::Kind::VirtualService),
        istio(istio::Kind::AuthorizationPolicy),
        output(OutputKind::PodBounceDirective),
        output(OutputKind::IssuedCertificate),
        Served::new(
            ferromesh_crds::CERTIFICATES_GROUP,
            "CertificateRequest",
            "certificaterequests",
        ),
    ]
}

/// The kinds of a cluster; the name is empty for the management cluster.
fn kinds(cluster: &str) -> Vec<Served> {
    let empty = State::default();
    let mut kinds: Vec<_> = empty.unsynced(cluster).collect();
    kinds.extend([Kind::Secret, Kind::ConfigMap]);
    kinds.sort_unstable();
    kinds.dedup();
    let mut kinds: Vec<_> = kinds.into_iter().map(input).collect();
    if !cluster.is_empty() {
        kinds.extend(pushed());
    }
    kinds
}

/// The API server of an empty cluster.
fn api(cluster: &str) -> FakeApi {
    let api = FakeApi::new();
    for kind in kinds(cluster) {
        api.serve(&kind);
    }
    api
}

impl World {
    /// Clusters with Istio and a shop in each, all of it registered and nothing of it known to anybody.
    pub(super) fn new(clusters: &[&str]) -> Self {
        let world = Self {
            management: api(""),
            fleet: Fleet::default(),
            began: Instant::now(),
            server: None,
        };
        for name in clusters {
            let cluster = world.register(name);
            estate::install(&cluster, name);
        }
        world
    }

    /// The same with a server that has nothing left to do.
    pub(super) async fn with(clusters: &[&str]) -> Self {
        let mut world = Self::new(clusters);
        world.start();
        world.quiet().await;
        world
    }

    /// Registers a cluster; its API server is a new one unless there was one before.
    pub(super) fn register(&self, name: &str) -> FakeApi {
        let mut fleet = self.fleet.0.lock().unwrap();
        let known = fleet.entry(address(name));
        let member = known.or_insert_with(|| Member {
            api: api(name),
            kubeconfigs: Vec::new(),
        });
        let object = json!({ "metadata": meta(NAMESPACE, name), "spec": {} });
        put(&self.management, &input(Kind::KubernetesCluster), &object);
        put(
            &self.management,
            &input(Kind::Secret),
            &kubeconfig(name, "first"),
        );
        member.api.clone()
    }

    pub(super) fn deregister(&self, name: &str) {
        for kind in [Kind::Secret, Kind::KubernetesCluster] {
            self.management.remove(&input(kind), NAMESPACE, name);
        }
    }

    pub(super) fn cluster(&self, name: &str) -> FakeApi {
        let fleet = self.fleet.0.lock().unwrap();
        fleet[&address(name)].api.clone()
    }

    /// The kubeconfigs by which a cluster was reached, the last one last.
    pub(super) fn kubeconfigs(&self, name: &str) -> Vec<String> {
        let fleet = self.fleet.0.lock().unwrap();
        fleet[&address(name)].kubeconfigs.clone()
    }

    /// What time it is.
    pub(super) fn now(&self) -> Timestamp {
        now(self.began)
    }

    /// Starts a server that holds the lease.
    pub(super) fn start(&mut self) {
        assert!(self.server.is_none(), "one of them is enough");
        let fleet = self.fleet.clone();
        let connect = move |bytes: &[u8], options: &client::Options| {
            let mut connection = client::from_bytes(bytes, options)?;
            let mut fleet = fleet.0.lock().unwrap();
            let member = fleet.get_mut(&connection.server).expect("a known address");
            let kubeconfig = String::from_utf8(bytes.to_vec()).unwrap();
            member.kubeconfigs.push(kubeconfig);
            connection.client = member.api.client();
            Ok(connection)
        };
        let options = Options {
            connect: Arc::new(connect),
            jitter: Jitter::seeded(1),
            ..Options::default()
        };
        let shutdown = Shutdown::new();
        let (mirror, mut deltas) = Mirror::start(options, self.management.client(), &shutdown);
        let began = self.began;
        let controller = Controller {
            management: self.management.client(),
            mirror,
            metrics: Metrics::default(),
            sources: Sources {
                now: Arc::new(move || now(began)),
                ..Sources::system()
            },
            jitter: Jitter::seeded(2),
        };
        let cancel = shutdown.token().child_token();
        let token = cancel.clone();
        let controller = tokio::spawn(async move { controller.run(&mut deltas, token).await });
        self.server = Some(Server {
            shutdown,
            cancel,
            controller,
        });
    }

    /// Ends the server.
    pub(super) async fn stop(&mut self) {
        let Some(server) = self.server.take() else {
            return;
        };
        server.cancel.cancel();
        server.controller.await.unwrap();
        server.shutdown.token().cancel();
    }

    /// Waits until nothing changes any more. Returns what stands then, with its versions.
    pub(super) async fn quiet(&self) -> BTreeMap<String, String> {
        let began = Instant::now();
        let mut before = self.versions();
        loop {
            sleep(QUIET).await;
            let after = self.versions();
            let changed: Vec<_> = after
                .iter()
                .filter(|(name, version)| before.get(*name) != Some(version))
                .collect();
            if changed.is_empty() && before.len() == after.len() {
                return after;
            }
            assert!(began.elapsed() < 10 * SOON, "without end: {changed:#?}");
            before = after;
        }
    }

    /// The version of every object there is.
    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        let mut versions = BTreeMap::new();
        for (place, api) in self.apis() {
            for kind in kinds(if place.is_empty() { "" } else { "any" }) {
                for object in api.list(&kind) {
                    let text = |field: &str| object["metadata"][field].as_str().unwrap_or("");
                    let name = format!(
                        "{place} {} {}/{}",
                        object["kind"],
                        text("namespace"),
                        text("name")
                    );
                    versions.insert(name, text("resourceVersion").to_owned());
                }
            }
        }
        versions
    }

    /// Every API server with its address; that of the management cluster has none.
    fn apis(&self) -> Vec<(String, FakeApi)> {
        let fleet = self.fleet.0.lock().unwrap();
        let managed = fleet.iter().map(|(name, it)| (name.clone(), &it.api));
        let all = managed.chain([(String::new(), &self.management)]);
        all.map(|(name, api)| (name, api.clone())).collect()
    }

    /// Forgets what was written so far.
    pub(super) fn forget_writes(&self) {
        for (_, api) in self.apis() {
            api.forget_requests();
        }
    }

    /// What was written since then, wherever.
    pub(super) fn writes(&self) -> Vec<Request> {
        let all = self.apis().into_iter();
        all.flat_map(|(_, api)| api.writes()).collect()
    }

    /// An object of ours in the management cluster.
    pub(super) fn own(&self, kind: Kind, name: &str) -> Option<Value> {
        self.management.get(&input(kind), NAMESPACE, name)
    }

    /// Waits until such an object is so.
    pub(super) async fn until(
        &self,
        kind: Kind,
        name: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Value {
        until(&self.management, &input(kind), NAMESPACE, name, is_so).await
    }

    /// Waits until such an object has a condition of this status and reason, and returns its message.
    pub(super) async fn told(
        &self,
        kind: Kind,
        name: &str,
        condition: &str,
        (status, reason): (&str, &str),
    ) -> String {
        let is_so = |object: &Value| {
            let found = found(object, condition);
            found["status"] == *status && found["reason"] == *reason
        };
        let object = self.until(kind, name, is_so).await;
        let message = found(&object, condition)["message"].as_str().unwrap();
        message.to_owned()
    }
}

/// Seconds of the paused clock are those of the certificates' clock.
fn now(began: Instant) -> Timestamp {
    let start: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
    start + began.elapsed()
}

/// Waits until an object is so.
pub(super) async fn until(
    api: &FakeApi,
    kind: &Served,
    namespace: &str,
    name: &str,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    let waiting = async {
        loop {
            if let Some(object) = api.get(kind, namespace, name).filter(&is_so) {
                return object;
            }
            sleep(LOOK).await;
        }
    };
    let waited = timeout(SOON, waiting).await;
    waited.unwrap_or_else(|_| panic!("{name} is {:#?}", api.get(kind, namespace, name)))
}

/// Waits until there is no such object.
pub(super) async fn until_gone(api: &FakeApi, kind: &Served, namespace: &str, name: &str) {
    let waiting = async {
        while api.get(kind, namespace, name).is_some() {
            sleep(LOOK).await;
        }
    };
    let waited = timeout(SOON, waiting).await;
    waited.unwrap_or_else(|_| panic!("{name} stays {:#?}", api.get(kind, namespace, name)));
}

/// A condition of an object; null if it has none of that type.
pub(super) fn found<'a>(object: &'a Value, condition: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|it| it["type"] == *condition));
    found.unwrap_or(&Value::Null)
}

pub(super) fn put(api: &FakeApi, kind: &Served, object: &Value) {
    let put = api.put(WHO, kind, object);
    assert!(put.is_object(), "{object} was not stored");
}

pub(super) fn meta(namespace: &str, name: &str) -> Value {
    json!({ "namespace": namespace, "name": name })
}

/// Everything of ours that stands in a managed cluster.
pub(super) fn stored(cluster: &FakeApi) -> Vec<Value> {
    let kinds = pushed();
    let all = kinds.iter().flat_map(|kind| cluster.list(kind));
    all.collect()
}

fn address(name: &str) -> String {
    format!("https://{name}.example")
}

/// The Secret by which a cluster is reached.
pub(super) fn kubeconfig(name: &str, token: &str) -> Value {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
        "clusters": [{ "name": name, "cluster": { "server": address(name) } }],
        "users": [{ "name": name, "user": { "token": token } }],
    });
    let config = k8s_openapi::ByteString(config.to_string().into_bytes());
    json!({
        "metadata": meta(NAMESPACE, name),
        "type": "solo.io/kubeconfig",
        "data": { "kubeconfig": config },
    })
}
