//! What a collector hears of one change, from the watch to the writes that follow from it, and of a review.

#![allow(
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State as Extract;
use axum::http::Request;
use axum::routing::post;
use ferromesh_controller::certs::Sources;
use ferromesh_controller::{Controller, Metrics};
use ferromesh_core::{Kind, State, for_each_kind};
use ferromesh_mirror::{Handle, Mirror, Options};
use ferromesh_runtime::args::{LogArgs, OtlpArgs};
use ferromesh_runtime::backoff::Jitter;
use ferromesh_runtime::telemetry::LogFormat;
use ferromesh_runtime::{client, shutdown::Shutdown};
use ferromesh_testkit::fakeapi::{FakeApi, Kind as Served};
use ferromesh_webhook as webhook;
use k8s_openapi::ByteString;
use kube_core::Resource;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt as _;

const NAMESPACE: &str = "gloo-mesh";
const DEADLINE: Duration = Duration::from_secs(30);

macro_rules! served {
    ($($kind:ident, $table:ident: $parsed:ty, $scope:ident, $wire:ty => $parse:expr;)*) => {
        /// Plural and version.
        fn resource(kind: Kind) -> (Cow<'static, str>, Cow<'static, str>) {
            match kind { $(Kind::$kind => (<$wire>::plural(&()), <$wire>::version(&())),)* }
        }
    };
}

for_each_kind!(served);

fn kind(kind: Kind) -> Served {
    let (plural, version) = resource(kind);
    Served::new(&kind.group(), kind.name(), &plural).with_versions(&[&version])
}

/// An API server with the kinds of a cluster; the name is empty for the management cluster.
fn api(cluster: &str) -> FakeApi {
    let api = FakeApi::new();
    let state = State::default();
    for of_cluster in state
        .expected(cluster)
        .chain([Kind::Secret, Kind::ConfigMap])
    {
        api.serve(&kind(of_cluster));
    }
    api
}

/// The spans that a collector has heard of.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Span>>>);

impl Heard {
    /// Listens; returns the address.
    async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hear = async |Extract(heard): Extract<Heard>, body: Bytes| {
            let told = ExportTraceServiceRequest::decode(body).unwrap();
            let scopes = told
                .resource_spans
                .into_iter()
                .flat_map(|it| it.scope_spans);
            let spans = scopes.flat_map(|it| it.spans);
            heard.0.lock().unwrap().extend(spans);
        };
        let app = Router::new()
            .route("/v1/traces", post(hear))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("http://{address}")
    }

    /// The spans of a name and with such an attribute.
    fn find(&self, name: &str, attribute: &str, value: &str) -> Option<Span> {
        let spans = self.0.lock().unwrap();
        let mut spans = spans.iter().filter(|span| span.name == name);
        spans
            .find(|span| {
                attributes(span)
                    .get(attribute)
                    .is_some_and(|it| it == value)
            })
            .cloned()
    }

    /// The spans of a trace, by name.
    fn trace(&self, of: &Span) -> BTreeMap<String, Span> {
        let spans = self.0.lock().unwrap();
        let spans = spans.iter().filter(|span| span.trace_id == of.trace_id);
        spans
            .map(|span| (span.name.clone(), span.clone()))
            .collect()
    }
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    let text = |value: &Any| match value {
        Any::StringValue(text) => text.clone(),
        other => format!("{other:?}"),
    };
    let entries = span.attributes.iter();
    let entries = entries.filter_map(|it| {
        let value = it.value.as_ref()?.value.as_ref()?;
        Some((it.key.clone(), text(value)))
    });
    entries.collect()
}

async fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until nothing has changed for a while: what changes together is worked out together.
async fn quiet(mirror: &Handle) {
    let mut revision = mirror.revision();
    while timeout(Duration::from_secs(1), revision.changed())
        .await
        .is_ok()
    {}
}

fn meta(namespace: &str, name: &str) -> Value {
    json!({ "namespace": namespace, "name": name })
}

/// A control plane of Istio, and the registration of its cluster.
fn estate(management: &FakeApi, east: &FakeApi) {
    let labels = json!({ "app": "istiod", "istio": "pilot" });
    let container = json!({ "name": "discovery", "image": "docker.io/istio/pilot:1.29.2" });
    let deployment = json!({
        "metadata": meta("istio-system", "istiod"),
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "serviceAccountName": "istiod", "containers": [container] },
            },
        },
    });
    east.put("user", &kind(Kind::Deployment), &deployment);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "east",
        "contexts": [{ "name": "east", "context": { "cluster": "east", "user": "east" } }],
        "clusters": [{ "name": "east", "cluster": { "server": "https://east.example.com" } }],
        "users": [{ "name": "east", "user": { "token": "first" } }],
    });
    let secret = json!({
        "metadata": meta(NAMESPACE, "east"),
        "type": "solo.io/kubeconfig",
        "data": { "kubeconfig": ByteString(config.to_string().into_bytes()) },
    });
    management.put("user", &kind(Kind::Secret), &secret);
    let cluster = json!({ "metadata": meta(NAMESPACE, "east"), "spec": {} });
    management.put("user", &kind(Kind::KubernetesCluster), &cluster);
}

/// A Service that is a destination whatever is behind it.
fn service() -> Value {
    let mut meta = meta("shop", "reviews");
    meta["annotations"] = json!({ "discovery.mesh.gloo.solo.io/enabled": "true" });
    json!({
        "metadata": meta,
        "spec": { "selector": { "app": "reviews" }, "ports": [{ "name": "http", "port": 9080 }] },
    })
}

fn review() -> Request<Body> {
    let policy = json!({
        "apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "TrafficPolicy",
        "metadata": meta(NAMESPACE, "slow"), "spec": { "policy": { "requestTimeout": "2s" } },
    });
    let group = "networking.mesh.gloo.solo.io";
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": NAMESPACE, "name": "slow",
            "kind": { "group": group, "version": "v1", "kind": "TrafficPolicy" },
            "resource": { "group": group, "version": "v1", "resource": "trafficpolicies" },
            "userInfo": {}, "object": policy,
        },
    });
    let request = Request::post("/validate").header("content-type", "application/json");
    request.body(Body::from(review.to_string())).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_one_trace_from_the_watch_to_the_write_and_a_review_is_another() {
    let heard = Heard::default();
    let otlp = OtlpArgs {
        otlp_endpoint: Some(heard.listen().await),
    };
    let log = LogArgs {
        log_level: "error".to_owned(),
        log_format: LogFormat::Text,
    };
    let (_log, traces) = otlp.init(&log, "ferromesh").unwrap();

    let (management, east) = (api(""), api("east"));
    estate(&management, &east);
    let reached = east.clone();
    let connect = move |bytes: &[u8], options: &client::Options| {
        let mut connection = client::from_bytes(bytes, options)?;
        connection.client = reached.client();
        Ok(connection)
    };
    let options = Options {
        connect: Arc::new(connect),
        ..Options::default()
    };
    let shutdown = Shutdown::new();
    let (mirror, mut deltas) = Mirror::start(options, management.client(), &shutdown);
    let state = mirror.clone();
    let controller = Controller {
        management: management.client(),
        mirror,
        metrics: Metrics::default(),
        sources: Sources::system(),
        jitter: Jitter::seeded(1),
    };
    let cancel = shutdown.token().child_token();
    let token = cancel.clone();
    let controller = tokio::spawn(async move { controller.run(&mut deltas, token).await });
    eventually("the mesh is written", || {
        let meshes = management.list(&kind(Kind::Mesh));
        (!meshes.is_empty()).then_some(())
    })
    .await;
    quiet(&state).await;

    east.put("user", &kind(Kind::Service), &service());
    let name = "reviews-shop-east";
    let write = eventually("the write of the destination is told", || {
        heard.find("apply", "name", name)
    })
    .await;
    assert_eq!(attributes(&write)["kind"], "Destination");
    let change = eventually("the change is told when all is done", || {
        heard.trace(&write).get("change").cloned()
    })
    .await;
    assert_eq!(attributes(&change)["kind"], "Service");
    assert_eq!(attributes(&change)["cluster"], "east");
    assert_eq!(attributes(&change)["object"], "reviews.shop.east");
    let trace = heard.trace(&write);
    for (name, parent) in [
        ("watch", "change"),
        ("step", "change"),
        ("reconcile", "change"),
        ("apply", "reconcile"),
    ] {
        assert_eq!(trace[name].parent_span_id, trace[parent].span_id, "{name}");
        assert!(trace[name].start_time_unix_nano >= change.start_time_unix_nano);
        assert!(trace[name].end_time_unix_nano <= change.end_time_unix_nano);
    }

    let router = webhook::router(
        move || state.state(),
        webhook::Limits::default(),
        webhook::Metrics::default(),
    );
    let answer = router.oneshot(review()).await.unwrap();
    assert_eq!(answer.status(), 200);
    cancel.cancel();
    controller.await.unwrap();
    shutdown.token().cancel();
    // What has not been told yet is told at the end.
    let traces = traces.unwrap();
    tokio::task::spawn_blocking(move || traces.end())
        .await
        .unwrap();
    let review = heard.find("review", "name", "slow").unwrap();
    assert!(review.parent_span_id.is_empty(), "{review:?}");
    assert_ne!(review.trace_id, write.trace_id);
}
