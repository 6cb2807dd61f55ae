//! Which clusters there are.

use ferromesh_core::{Key, Kind};
use ferromesh_testkit::fakeapi::{Fault, Verb};
use serde_json::{Value, json};

use super::world::{World, about, kubeconfig, meta, names, put, remove, secret, service};

/// What discovery has stored of a cluster.
fn mesh(cluster: &str) -> Value {
    json!({
        "metadata": {
            "namespace": "gloo-mesh", "name": format!("istiod-istio-system-{cluster}"),
            "labels": { "cluster.discovery.mesh.gloo.solo.io": cluster },
        },
        "spec": { "istio": { "installation": { "cluster": cluster, "namespace": "istio-system" } } },
    })
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_registered_later_joins_and_its_objects_with_it() {
    let world = World::new().await;
    let cluster = world.register("east");
    put(&cluster, Kind::Service, &service("web"));
    let state = world.until(|state| state.is_complete("east")).await;
    assert_eq!(names(&state, Kind::Service, "east"), ["web"]);
    assert_eq!(names(&state, Kind::KubernetesCluster, ""), ["east"]);
    let view = world.until_condition("east", "connected").await;
    assert!(view.client.is_some() && view.is_declared);
    assert_eq!(view.server.as_deref(), Some("https://east.example"));

    put(&cluster, Kind::Service, &service("db"));
    world
        .until(|state| names(state, Kind::Service, "east") == ["db", "web"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_alone_registers_a_cluster() {
    let world = World::new().await;
    world.register("east");
    remove(
        &world.management,
        Kind::KubernetesCluster,
        "gloo-mesh",
        "east",
    );
    world.until(|state| state.is_complete("east")).await;
    assert!(!world.until_condition("east", "connected").await.is_declared);
}

#[tokio::test(start_paused = true)]
async fn without_its_secret_a_cluster_is_not_reached_and_what_was_read_stands() {
    let (world, cluster) = World::with_cluster("east").await;
    put(&cluster, Kind::Service, &service("web"));
    world
        .until(|state| !names(state, Kind::Service, "east").is_empty())
        .await;

    remove(&world.management, Kind::Secret, "gloo-mesh", "east");
    let view = world.until_condition("east", "credential_invalid").await;
    assert!(view.client.is_none() && view.is_declared);
    assert_eq!(
        view.condition.reason(),
        Some("Secret gloo-mesh/east of type solo.io/kubeconfig is missing")
    );
    remove(&cluster, Kind::Service, "shop", "web");
    world.settled().await;
    let state = world.state();
    assert!(state.is_complete("east"));
    assert_eq!(names(&state, Kind::Service, "east"), ["web"]);

    put(
        &world.management,
        Kind::Secret,
        &kubeconfig("east", "second"),
    );
    world
        .until(|state| names(state, Kind::Service, "east").is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_forgotten_when_both_its_objects_are_gone_in_either_order() {
    for order in [
        [Kind::Secret, Kind::KubernetesCluster],
        [Kind::KubernetesCluster, Kind::Secret],
    ] {
        let (world, cluster) = World::with_cluster("east").await;
        put(&cluster, Kind::Service, &service("web"));
        world
            .until(|state| !names(state, Kind::Service, "east").is_empty())
            .await;

        remove(&world.management, order[0], "gloo-mesh", "east");
        world.settled().await;
        assert!(world.state().is_complete("east"), "{order:?}");

        remove(&world.management, order[1], "gloo-mesh", "east");
        let state = world.until(|state| !state.is_complete("east")).await;
        assert!(names(&state, Kind::Service, "east").is_empty());
        world
            .until_clusters(|clusters| clusters.get("east").is_none())
            .await;
        cluster.forget_requests();
        world.settled().await;
        assert!(cluster.requests().is_empty(), "nobody watches it any more");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_registered_again_is_listed_again() {
    let (world, _) = World::with_cluster("east").await;
    for kind in [Kind::Secret, Kind::KubernetesCluster] {
        remove(&world.management, kind, "gloo-mesh", "east");
    }
    // At the same moment, so that both are in one batch.
    let cluster = world.register("east");
    put(&cluster, Kind::Service, &service("new"));
    let state = world
        .until(|state| names(state, Kind::Service, "east") == ["new"])
        .await;
    drop(state);
    world.until(|state| state.is_complete("east")).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_forgotten_before_both_kinds_that_register_have_been_listed() {
    let unfollowed = World::empty();
    unfollowed.register("east");
    let management = &unfollowed.management;
    management.fail(Fault::Hang, about(Kind::Secret));
    let world = unfollowed.follow();
    world
        .until_clusters(|clusters| clusters.get("east").is_some_and(|it| it.is_declared))
        .await;
    remove(
        &world.management,
        Kind::KubernetesCluster,
        "gloo-mesh",
        "east",
    );
    world
        .until_clusters(|clusters| clusters.get("east").is_some_and(|it| !it.is_declared))
        .await;
    world.settled().await;
    let clusters = world.handle.clusters();
    assert_eq!(clusters.get("east").unwrap().condition.as_str(), "pending");

    world.management.heal();
    world.until(|state| state.is_complete("east")).await;
    assert_eq!(world.connections("east"), 1);
}

#[tokio::test(start_paused = true)]
async fn clusters_that_stored_objects_name_and_nothing_registers_are_forgotten_at_the_start() {
    let unfollowed = World::empty();
    for name in ["east", "west"] {
        put(&unfollowed.management, Kind::Mesh, &mesh(name));
    }
    let east = unfollowed.register("east");
    // It is registered and cannot be reached: what is stored of it stands.
    east.fail(Fault::refuse(503), |_| true);
    let world = unfollowed.follow();
    world
        .until(|state| state.is_complete("") && state.meshes().len() == 1)
        .await;
    let state = world.state();
    let meshes: Vec<_> = state.meshes().keys().map(Key::name).collect();
    assert_eq!(meshes, ["istiod-istio-system-east"]);
    let deregistered: Vec<_> = state.deregistered().map(AsRef::as_ref).collect();
    assert_eq!(deregistered, ["west"]);
    assert_eq!(
        names(&state, Kind::Mesh, "").len(),
        2,
        "both are still stored"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_forgotten_that_an_object_stored_later_names_and_nothing_registers() {
    let world = World::new().await;
    put(&world.management, Kind::Mesh, &mesh("west"));
    let state = world.until(|state| state.is_forgotten("west")).await;
    assert_eq!(state.meshes().len(), 0);
    // Nobody can tell whether a person has done that, or a backup that was restored.
    assert_eq!(state.deregistered().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_not_forgotten_because_its_registration_is_seen_late() {
    let world = World::new().await;
    world.management.fail(Fault::Hang, |request| {
        let is_about_registrations =
            about(Kind::Secret)(request) || about(Kind::KubernetesCluster)(request);
        is_about_registrations && request.verb == Verb::Watch
    });
    world.management.end_watches();
    world.settled().await;
    world.register("west");
    put(&world.management, Kind::Mesh, &mesh("west"));
    world.until(|state| state.meshes().len() == 1).await;
    world.settled().await;
    let clusters = world.handle.clusters();
    assert!(clusters.get("west").is_none(), "no watch has shown it yet");
    assert!(!world.state().is_forgotten("west"));

    world.management.heal();
    world.until(|state| state.is_complete("west")).await;
}

#[tokio::test(start_paused = true)]
async fn secrets_of_other_namespaces_and_of_other_types_register_nothing() {
    let world = World::new().await;
    let mut elsewhere = kubeconfig("east", "token");
    elsewhere["metadata"]["namespace"] = json!("shop");
    let opaque = secret("gloo-mesh", "west", "Opaque", &[("kubeconfig", b"{}")]);
    for object in [elsewhere, opaque] {
        put(&world.management, Kind::Secret, &object);
    }
    put(
        &world.management,
        Kind::KubernetesCluster,
        &json!({ "metadata": meta("shop", "north"), "spec": {} }),
    );
    world
        .until(|state| names(state, Kind::Secret, "").len() == 2)
        .await;
    world.settled().await;
    assert_eq!(world.handle.clusters().iter().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_no_cluster_name_is_shown_and_not_followed() {
    let world = World::new().await;
    let mut object = kubeconfig("east", "token");
    object["metadata"]["name"] = json!("east.example");
    put(&world.management, Kind::Secret, &object);
    let view = world
        .until_condition("east.example", "credential_invalid")
        .await;
    let reason = view.condition.reason().unwrap();
    assert!(
        reason.contains("`east.example` is not a cluster name"),
        "{reason}"
    );
    assert!(view.client.is_none());
    assert!(
        world.handle.readiness().is_empty(),
        "{:?}",
        world.handle.readiness()
    );
}
