//! Objects that are not what their kind should be.

use ferromesh_core::{Kind, Object, State, model::selector::Destinations};
use ferromesh_testkit::fakeapi::FakeApi;
use serde_json::{Value, json};

use super::world::{World, kubeconfig, meta, names, object, put, remove, service};

fn access_policy(spec: &Value) -> Value {
    json!({ "metadata": meta("gloo-mesh", "guard"), "spec": spec })
}

/// Selects one service, and lets nobody in but one namespace.
fn guard() -> Value {
    json!({
        "sourceSelector": [{ "kubeIdentityMatcher": { "namespaces": ["front"] } }],
        "destinationSelector": [{ "kubeServiceMatcher": { "namespaces": ["shop"] } }],
    })
}

/// The policy as the state has it, once it is so.
async fn policy(
    world: &World,
    is_so: impl Fn(&ferromesh_core::model::AccessPolicy) -> bool,
) -> std::sync::Arc<ferromesh_core::model::AccessPolicy> {
    let read = |state: &State| match object(state, Kind::AccessPolicy, "guard", "gloo-mesh") {
        Some(Object::AccessPolicy(policy)) => Some(policy),
        _ => None,
    };
    let state = world
        .until(|state| read(state).is_some_and(|policy| is_so(&policy)))
        .await;
    read(&state).unwrap()
}

fn put_guard(server: &FakeApi, spec: &Value) {
    put(server, Kind::AccessPolicy, &access_policy(spec));
}

#[tokio::test(start_paused = true)]
async fn an_access_policy_that_cannot_be_read_closes_what_it_selects() {
    let world = World::new().await;
    put_guard(&world.management, &guard());
    let readable = policy(&world, |policy| policy.rejections.is_empty()).await;

    let mut broken = guard();
    broken["sourceSelector"][0]["kubeIdentityMatcher"]["namespaces"] = json!("front");
    put_guard(&world.management, &broken);
    let closed = policy(&world, |policy| !policy.rejections.is_empty()).await;
    assert_eq!(closed.rejections[0].path, "spec.sourceSelector");
    assert_eq!(closed.destinations, readable.destinations);

    put_guard(&world.management, &guard());
    let again = policy(&world, |policy| policy.rejections.is_empty()).await;
    assert_eq!(again.sources, readable.sources);
}

#[tokio::test(start_paused = true)]
async fn an_access_policy_whose_selector_cannot_be_read_closes_everything() {
    let world = World::new().await;
    let mut narrow = guard();
    narrow["destinationSelector"][0]["kubeServiceMatcher"]["namespaces"] = json!(7);
    for broken in [narrow, json!("guard")] {
        put_guard(&world.management, &broken);
        let closed = policy(&world, |policy| policy.destinations == Destinations::All).await;
        assert!(!closed.rejections.is_empty(), "it allows nothing");
        put_guard(&world.management, &guard());
        policy(&world, |policy| policy.rejections.is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_traffic_policy_that_cannot_be_read_is_rejected_and_others_live() {
    let world = World::new().await;
    let traffic_policy = |name: &str, attempts: Value| {
        json!({
            "metadata": meta("gloo-mesh", name),
            "spec": { "policy": { "retries": { "attempts": attempts } } },
        })
    };
    for (name, attempts) in [("bad", json!("many")), ("good", json!(3))] {
        put(
            &world.management,
            Kind::TrafficPolicy,
            &traffic_policy(name, attempts),
        );
    }
    let state = world
        .until(|state| names(state, Kind::TrafficPolicy, "").len() == 2)
        .await;
    let rejections = |name: &str| match object(&state, Kind::TrafficPolicy, name, "gloo-mesh") {
        Some(Object::TrafficPolicy(policy)) => policy.rejections.to_vec(),
        _ => panic!("{name} is there"),
    };
    assert!(rejections("good").is_empty());
    assert_eq!(rejections("bad")[0].path, "spec.policy");
    assert!(
        rejections("bad")[0]
            .message
            .contains("spec.policy.retries.attempts"),
        "{:?}",
        rejections("bad")
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_of_kubernetes_is_taken_as_far_as_it_can_be_read_and_shown() {
    let (world, cluster) = World::with_cluster("east").await;
    let mut odd = service("odd");
    odd["spec"]["ports"] = json!("http");
    for object in [odd, service("web")] {
        put(&cluster, Kind::Service, &object);
    }
    let state = world
        .until(|state| names(state, Kind::Service, "east") == ["odd", "web"])
        .await;
    let ports: Vec<_> = state
        .snapshot()
        .services
        .values()
        .map(|it| it.ports.len())
        .collect();
    assert_eq!(ports, [0, 1]);
    let clusters = world
        .until_clusters(|clusters| {
            let view = clusters.get("east");
            view.is_some_and(|view| view.unreadable.contains_key(&Kind::Service))
        })
        .await;
    let shown = &clusters.get("east").unwrap().unreadable[&Kind::Service];
    assert_eq!(shown.count, 1);
    let (key, reason) = &shown.first[0];
    assert_eq!(key.as_str(), "odd.shop.east");
    assert!(reason.starts_with("spec.ports: "), "{reason}");

    put(&cluster, Kind::Service, &service("odd"));
    world
        .until_clusters(|clusters| clusters.get("east").unwrap().unreadable.is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_object_that_is_gone_is_shown_no_longer() {
    let (world, cluster) = World::with_cluster("east").await;
    let mut odd = service("odd");
    odd["spec"]["ports"] = json!("http");
    put(&cluster, Kind::Service, &odd);
    world
        .until_clusters(|clusters| !clusters.get("east").unwrap().unreadable.is_empty())
        .await;
    remove(&cluster, Kind::Service, "shop", "odd");
    world
        .until_clusters(|clusters| clusters.get("east").unwrap().unreadable.is_empty())
        .await;
    world
        .until(|state| names(state, Kind::Service, "east").is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_registered_cluster_that_cannot_be_read_stays_registered() {
    let (world, _) = World::with_cluster("east").await;
    put(
        &world.management,
        Kind::KubernetesCluster,
        &json!({ "metadata": meta("gloo-mesh", "east"), "spec": { "clusterDomain": [], "secretName": "east" } }),
    );
    world
        .until_clusters(|clusters| !clusters.management().unreadable.is_empty())
        .await;
    remove(&world.management, Kind::Secret, "gloo-mesh", "east");
    world.until_condition("east", "credential_invalid").await;
    world.settled().await;
    assert!(world.state().is_complete("east"), "it is not forgotten");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_secret_cuts_the_connection_and_is_not_quoted() {
    let (world, _) = World::with_cluster("east").await;
    let mut broken = kubeconfig("east", "first");
    broken["data"]["kubeconfig"] = json!("hunter2!");
    put(&world.management, Kind::Secret, &broken);
    world.until_condition("east", "credential_invalid").await;
    let clusters = world
        .until_clusters(|clusters| !clusters.management().unreadable.is_empty())
        .await;
    assert!(!format!("{clusters:?}").contains("hunter2"), "{clusters:?}");
}
