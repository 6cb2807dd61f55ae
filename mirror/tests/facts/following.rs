//! What is watched, and when it counts as listed.

use ferromesh_core::{Kind, State};
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Request, Verb};
use serde_json::{Value, json};

use super::world::{World, about, meta, names, put, remove, service};

fn istiod(name: &str) -> Value {
    let labels = json!({ "app": "istiod" });
    json!({
        "metadata": meta("istio-system", name),
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "discovery", "image": "docker.io/istio/pilot:1.29.0" }] },
            },
        },
    })
}

fn mesh_config(name: &str, trust_domain: &str) -> Value {
    json!({
        "metadata": meta("istio-system", name),
        "data": { "mesh": format!("trustDomain: {trust_domain}") },
    })
}

fn trust_domains(state: &State) -> Vec<String> {
    let meshes = state.meshes().values().filter_map(|mesh| mesh.istio());
    meshes.map(|istio| istio.trust_domain.clone()).collect()
}

/// Watches for one revision's configuration.
fn of_revision(request: &Request) -> bool {
    request.uri.contains("metadata.name%3Distio-canary")
        && request.uri.contains("/namespaces/istio-system/")
}

fn asked(server: &FakeApi, verb: Verb, is_meant: impl Fn(&Request) -> bool) -> usize {
    let requests = server.requests();
    let meant = requests
        .iter()
        .filter(|request| request.verb == verb && is_meant(request));
    meant.count()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_synced_before_its_list_is_complete() {
    let world = World::new().await;
    let cluster = world.register("east");
    let pages: Vec<_> = (0..501).map(|i| service(&format!("s{i:03}"))).collect();
    for object in &pages {
        put(&cluster, Kind::Service, object);
    }
    // The first page is answered, the second is not.
    let is_second = |request: &Request| request.uri.contains("continue=");
    cluster.fail(Fault::Hang, is_second);
    world
        .until(|state| names(state, Kind::Service, "east").len() == 500)
        .await;
    world.settled().await;
    let state = world.state();
    assert!(!state.is_synced("east", Kind::Service));
    assert_eq!(state.unsynced("east").collect::<Vec<_>>(), [Kind::Service]);

    cluster.heal();
    let state = world.until(|state| state.is_complete("east")).await;
    assert_eq!(names(&state, Kind::Service, "east").len(), 501);
}

#[tokio::test(start_paused = true)]
async fn a_relist_removes_what_has_vanished_and_nothing_else() {
    let (world, cluster) = World::with_cluster("east").await;
    for name in ["goes", "stays"] {
        put(&cluster, Kind::Service, &service(name));
    }
    world
        .until(|state| names(state, Kind::Service, "east").len() == 2)
        .await;
    cluster.fail(Fault::refuse(503), about(Kind::Service));
    cluster.end_watches();
    world.until_condition("east", "unreachable").await;
    remove(&cluster, Kind::Service, "shop", "goes");
    cluster.compact();
    world.settled().await;
    assert_eq!(
        names(&world.state(), Kind::Service, "east"),
        ["goes", "stays"],
        "an API server that does not answer has deleted nothing"
    );
    cluster.heal();
    world
        .until(|state| names(state, Kind::Service, "east") == ["stays"])
        .await;
    assert!(world.state().is_complete("east"));
}

#[tokio::test(start_paused = true)]
async fn only_what_is_needed_is_asked_for() {
    let (world, cluster) = World::with_cluster("east").await;
    let queries = |server: &FakeApi, kind: Kind| -> Vec<String> {
        let requests = server.requests();
        let lists = requests
            .into_iter()
            .filter(|request| request.verb == Verb::List && about(kind)(request));
        lists.map(|request| request.uri).collect()
    };
    let [config_maps] = &*queries(&cluster, Kind::ConfigMap) else {
        panic!("one list of ConfigMaps");
    };
    assert!(
        config_maps.starts_with("/api/v1/configmaps?"),
        "{config_maps}"
    );
    assert!(
        config_maps.contains("fieldSelector=metadata.name%3Distio&")
            || config_maps.ends_with("fieldSelector=metadata.name%3Distio"),
        "{config_maps}"
    );
    let [secrets] = &*queries(&world.management, Kind::Secret) else {
        panic!("one list of Secrets");
    };
    assert!(secrets.contains("type%21%3Dhelm.sh"), "{secrets}");
    let [clusters] = &*queries(&world.management, Kind::KubernetesCluster) else {
        panic!("one list of KubernetesClusters");
    };
    assert!(clusters.contains("/namespaces/gloo-mesh/"), "{clusters}");
    assert_eq!(asked(&cluster, Verb::List, about(Kind::Secret)), 0);
    assert_eq!(cluster.writes().len() + world.management.writes().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_configuration_of_a_revision_is_read_before_the_cluster_is_complete() {
    let world = World::new().await;
    let cluster = world.register("east");
    put(&cluster, Kind::Deployment, &istiod("istiod-canary"));
    put(
        &cluster,
        Kind::ConfigMap,
        &mesh_config("istio-canary", "canary.example"),
    );
    cluster.fail(Fault::refuse(503), of_revision);
    world.until_condition("east", "unreachable").await;
    world.settled().await;
    let state = world.state();
    assert_eq!(
        state.unsynced("east").collect::<Vec<_>>(),
        [Kind::ConfigMap]
    );

    cluster.heal();
    let state = world.until(|state| state.is_complete("east")).await;
    assert_eq!(trust_domains(&state), ["canary.example"]);
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_comes_later_is_followed_until_it_goes() {
    let (world, cluster) = World::with_cluster("east").await;
    put(
        &cluster,
        Kind::ConfigMap,
        &mesh_config("istio-canary", "canary.example"),
    );
    put(&cluster, Kind::Deployment, &istiod("istiod-canary"));
    world
        .until(|state| trust_domains(state) == ["canary.example"])
        .await;
    assert!(asked(&cluster, Verb::List, of_revision) > 0);

    remove(&cluster, Kind::Deployment, "istio-system", "istiod-canary");
    world.until(|state| state.meshes().is_empty()).await;
    world.settled().await;
    cluster.forget_requests();
    cluster.end_watches();
    world.settled().await;
    assert!(asked(&cluster, Verb::Watch, |_| true) > 0);
    assert_eq!(asked(&cluster, Verb::Watch, of_revision), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_named_like_a_control_plane_does_not_keep_a_cluster_from_being_complete() {
    let world = World::new().await;
    let cluster = world.register("east");
    put(&cluster, Kind::Deployment, &istiod("istiod-canary"));
    cluster.fail(Fault::refuse(403), of_revision);
    world.until(|state| state.is_complete("east")).await;
    let view = world.until_condition("east", "connected").await;
    let reason = &view.failing[&Kind::ConfigMap].reason;
    assert!(
        reason.contains("/api/v1/namespaces/istio-system/configmaps"),
        "{reason}"
    );
}
