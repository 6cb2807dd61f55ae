//! Restarts at the wire.

use ferromesh_hands::perform::Restart;
use ferromesh_hands::restart::Waiting;
use ferromesh_testkit::fakeapi::Fault;
use serde_json::{Value, json};

use super::cluster::{Cluster, certificates, config_maps, directives, pods, secrets};
use super::world::{ISTIO, MESH, NAMESPACE};

fn pod(namespace: &str, name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": namespace, "name": name, "labels": { "app": app },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "x", "controller": true,
            }],
        },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

/// The control plane, then the workload once it has the root.
fn allow_restarts(cluster: &Cluster) {
    let reference = json!({ "name": MESH, "namespace": NAMESPACE });
    cluster
        .api
        .edit("apply", &certificates(), NAMESPACE, MESH, |object| {
            object["spec"]["podBounceDirective"] = reference;
        });
    let directive = json!({
        "apiVersion": "certificates.mesh.gloo.solo.io/v1", "kind": "PodBounceDirective",
        "metadata": { "name": MESH, "namespace": NAMESPACE },
        "spec": { "podsToBounce": [
            { "namespace": ISTIO, "labels": { "app": "istiod" } },
            { "namespace": "bookinfo", "labels": { "app": "reviews" }, "rootCertSync": {
                "secretRef": { "name": "cacerts", "namespace": ISTIO }, "secretKey": "root-cert.pem",
                "configMapRef": { "name": "istio-ca-root-cert", "namespace": "bookinfo" },
                "configMapKey": "root-cert.pem",
            } },
        ] },
    });
    cluster.api.put("apply", &directives(), &directive);
    for (namespace, name, app) in [
        (ISTIO, "istiod-1", "istiod"),
        ("bookinfo", "reviews-1", "reviews"),
        ("bookinfo", "ratings-1", "ratings"),
    ] {
        cluster
            .api
            .put("controller", &pods(), &pod(namespace, name, app));
    }
}

/// Evictions are carried out at once, and nothing is started again.
fn evict(cluster: &Cluster) {
    let api = cluster.api.clone();
    cluster.api.fail(Fault::Answer("{}"), move |request| {
        let Some(path) = request.uri.split("/eviction").next() else {
            return false;
        };
        let parts: Vec<&str> = path.split('/').collect();
        let [.., namespace, "pods", name] = parts.as_slice() else {
            return false;
        };
        let is_eviction = request.uri.contains("/eviction");
        if is_eviction {
            api.remove(&pods(), namespace, name);
        }
        is_eviction
    });
}

fn bounced(cluster: &Cluster) -> Value {
    let directive = cluster.api.get(&directives(), NAMESPACE, MESH).unwrap();
    directive["status"]["podsBounced"].clone()
}

fn has_pod(cluster: &Cluster, namespace: &str, name: &str) -> bool {
    cluster.api.get(&pods(), namespace, name).is_some()
}

#[tokio::test(start_paused = true)]
async fn pods_restart_in_order_and_the_certificate_is_finished_after_them() {
    let mut cluster = Cluster::new();
    allow_restarts(&cluster);
    evict(&cluster);
    cluster.pass().await;
    assert!(
        has_pod(&cluster, ISTIO, "istiod-1"),
        "nothing is stored yet"
    );
    cluster.sign().await;

    let first = cluster.pass().await;
    assert!(matches!(
        first.restart,
        Restart::Waiting(Waiting::Eviction { .. })
    ));
    assert_eq!(cluster.status().0, "ISSUED");
    assert!(!has_pod(&cluster, ISTIO, "istiod-1"));
    assert!(has_pod(&cluster, "bookinfo", "reviews-1"));

    let second = cluster.pass().await;
    assert!(matches!(
        second.restart,
        Restart::Waiting(Waiting::Root { .. })
    ));
    assert!(second.again.is_some());
    let root = cluster.cacerts().unwrap()["data"]["root-cert.pem"].clone();
    let root: k8s_openapi::ByteString = serde_json::from_value(root).unwrap();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "bookinfo", "name": "istio-ca-root-cert" },
        "data": { "root-cert.pem": String::from_utf8(root.0).unwrap() },
    });
    cluster.api.put("istiod", &config_maps(), &map);
    cluster.pass().await;
    let last = cluster.pass().await;
    assert_eq!(last.restart, Restart::Finished(None));
    assert_eq!(cluster.status().0, "FINISHED");
    assert!(!has_pod(&cluster, "bookinfo", "reviews-1"));
    assert!(has_pod(&cluster, "bookinfo", "ratings-1"));
    assert_eq!(
        bounced(&cluster),
        json!([{ "bouncedPods": ["istiod-1"] }, { "bouncedPods": ["reviews-1"] }])
    );

    // A pass later nothing is asked about pods any more.
    cluster.api.forget_requests();
    cluster.pass().await;
    assert!(cluster.api.requests().iter().all(|it| it.plural != "pods"));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_forbids_a_restart_is_waited_for() {
    let mut cluster = Cluster::new();
    allow_restarts(&cluster);
    let is_eviction =
        |request: &ferromesh_testkit::fakeapi::Request| request.uri.contains("/eviction");
    cluster.api.fail(Fault::refuse(429), is_eviction);
    let progress = cluster.issue().await;
    let Restart::Waiting(waiting @ Waiting::Budget { .. }) = &progress.restart else {
        panic!("{progress:?}");
    };
    assert!(waiting.to_string().contains("istio-system/istiod-1"));
    assert_eq!(cluster.status().0, "ISSUED");
    assert!(has_pod(&cluster, ISTIO, "istiod-1"));
    cluster.api.heal();
    // The client repeats a refusal until it is given up: the same answer.
    cluster.api.fail(Fault::Hang, is_eviction);
    let progress = cluster.pass().await;
    assert!(matches!(
        progress.restart,
        Restart::Waiting(Waiting::Budget { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_is_refused_takes_nothing_from_what_is_stored() {
    let mut cluster = Cluster::new();
    allow_restarts(&cluster);
    cluster
        .api
        .fail(Fault::refuse(403), |request| request.plural == "pods");
    let progress = cluster.issue().await;
    assert!(matches!(
        progress.restart,
        Restart::Waiting(Waiting::Refused { .. })
    ));
    assert_eq!(cluster.status(), ("ISSUED".into(), String::new()));
    let key = cluster.api.get(&secrets(), NAMESPACE, MESH);
    cluster.pass().await;
    assert_eq!(cluster.api.get(&secrets(), NAMESPACE, MESH), key);
}

#[tokio::test(start_paused = true)]
async fn an_istiod_that_must_be_restarted_by_a_person_is_named() {
    let mut cluster = Cluster::new();
    cluster
        .api
        .put("controller", &pods(), &pod(ISTIO, "istiod-1", "istiod"));
    let progress = cluster.issue().await;
    let Restart::Finished(Some(person)) = &progress.restart else {
        panic!("{progress:?}");
    };
    assert!(person.to_string().contains("istiod-1"), "{person}");
    assert_eq!(cluster.status().0, "FINISHED");
    assert!(has_pod(&cluster, ISTIO, "istiod-1"));
    cluster.api.remove(&pods(), ISTIO, "istiod-1");
    assert_eq!(cluster.pass().await.restart, Restart::Finished(None));
}

#[tokio::test(start_paused = true)]
async fn a_directive_that_is_not_there_yet_is_waited_for() {
    let mut cluster = Cluster::new();
    allow_restarts(&cluster);
    cluster.api.remove(&directives(), NAMESPACE, MESH);
    let progress = cluster.issue().await;
    assert!(matches!(
        progress.restart,
        Restart::Waiting(Waiting::Directive { .. })
    ));
    assert_eq!(cluster.status().0, "ISSUED");
}
