use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use ferromesh_core::State;
use ferromesh_runtime::backoff::Jitter;
use ferromesh_runtime::client::{self, from_bytes};
use ferromesh_runtime::lease::Claim;
use ferromesh_runtime::ready::Readiness;
use ferromesh_runtime::serve::{self, Drain};
use ferromesh_runtime::shutdown::Shutdown;
use ferromesh_testkit::fakeapi::FakeApi;
use ferromesh_webhook::register::Endpoint;
use ferromesh_webhook::{Limits, Metrics, Webhook, certificate, register};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::registration::{mutating, validating};
use crate::{eventually, secrets};

/// Asks the webhook as an API server would that believes `ca_bundle`, which is base64.
async fn ask(address: SocketAddr, ca_bundle: &str, review: &Value) -> Value {
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "webhook",
        "contexts": [{"name": "webhook", "context": {"cluster": "webhook", "user": "nobody"}}],
        "clusters": [{"name": "webhook", "cluster": {
            "server": format!("https://{address}"),
            "certificate-authority-data": ca_bundle,
        }}],
        "users": [{"name": "nobody", "user": {"token": "none"}}],
    });
    let connection = from_bytes(
        kubeconfig.to_string().as_bytes(),
        &client::Options::default(),
    );
    let request = Request::post("/validate")
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes())
        .unwrap();
    connection.unwrap().client.request(request).await.unwrap()
}

#[tokio::test]
async fn nothing_is_registered_before_reviews_can_be_answered() {
    let api = FakeApi::new();
    for kind in [secrets(), validating(), mutating()] {
        api.serve(&kind);
    }
    let listed = Arc::new(AtomicBool::new(false));
    let is_listed = Arc::clone(&listed);
    let blockers = move || {
        let is_listed = is_listed.load(Ordering::Relaxed);
        let blocker = (!is_listed).then(|| "cluster-1: Pod not listed".to_owned());
        blocker.into_iter().collect()
    };
    let endpoint = Endpoint::Url("https://127.0.0.1:9443".parse().unwrap());
    let until = Instant::now() + Duration::from_hours(1);
    let (_claim, claim) = watch::channel(Claim::Held { until });
    let (readiness, shutdown) = (Readiness::new(), Shutdown::new());
    let webhook = Webhook {
        client: api.client(),
        state: Arc::<State>::default,
        blockers,
        claim,
        readiness: readiness.clone(),
        metrics: Metrics::default(),
        address: "127.0.0.1:0".parse().unwrap(),
        connections: serve::Limits::default(),
        reviews: Limits::default(),
        others: Router::new(),
        drain: Drain {
            lame_duck: Duration::ZERO,
            deadline: Duration::from_secs(5),
        },
        certificate: certificate::Options::new("gloo-mesh", endpoint.names().unwrap()),
        registration: register::Options::new("gloo-mesh", endpoint),
        jitter: Jitter::seeded(7),
    };
    let running = webhook.start(&shutdown).await.unwrap();
    assert!(!readiness.is_ready());
    eventually("a certificate is made", || !api.list(&secrets()).is_empty()).await;
    eventually("the clusters are waited for", || {
        let blockers = readiness.blockers();
        blockers.len() == 1 && blockers[0].name.starts_with("cluster-1")
    })
    .await;
    assert_eq!(api.list(&validating()).len(), 0);

    listed.store(true, Ordering::Relaxed);
    eventually("it is registered", || !api.list(&mutating()).is_empty()).await;
    assert!(readiness.is_ready());
    let registered = api.get(&validating(), "", "ferromesh").unwrap();
    let ca_bundle = registered["webhooks"][0]["clientConfig"]["caBundle"].as_str();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": "networking.mesh.gloo.solo.io", "version": "v1", "kind": "TrafficPolicy"},
            "resource": {"group": "networking.mesh.gloo.solo.io", "version": "v1", "resource": "trafficpolicies"},
            "operation": "CREATE",
            "userInfo": {},
            "object": {
                "apiVersion": "networking.mesh.gloo.solo.io/v1",
                "kind": "TrafficPolicy",
                "metadata": {"name": "a", "namespace": "b"},
                "spec": {"policy": {"retries": {"attempts": -1}}},
            },
        },
    });
    let answer = ask(running.address, ca_bundle.unwrap(), &review).await;
    assert_eq!(answer["response"]["allowed"], false, "{answer}");

    shutdown.token().cancel();
    let signals = futures_util::stream::pending();
    shutdown
        .run(signals, Duration::from_secs(10))
        .await
        .unwrap();
    assert_eq!(api.list(&validating()).len(), 1, "other replicas answer");
}
