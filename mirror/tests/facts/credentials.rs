//! How clusters are reached, and what becomes of those that are not.

use ferromesh_core::Kind;
use ferromesh_testkit::fakeapi::Fault;
use serde_json::json;

use tokio::time::Instant;

use super::world::{
    World, about, kubeconfig, meta, names, put, refuse_all, remove, secret, service,
};

#[tokio::test(start_paused = true)]
async fn another_credential_reconnects_and_drops_nothing() {
    let (world, cluster) = World::with_cluster("east").await;
    for name in ["goes", "stays"] {
        put(&cluster, Kind::Service, &service(name));
    }
    world
        .until(|state| names(state, Kind::Service, "east").len() == 2)
        .await;

    // No watch notices what happens while the credential is being changed.
    refuse_all(&cluster, 401);
    world.until_condition("east", "credential_rejected").await;
    remove(&cluster, Kind::Service, "shop", "goes");
    put(&cluster, Kind::Service, &service("comes"));
    cluster.heal();
    cluster.compact();

    let mut revision = world.handle.revision();
    let mut seen = Vec::new();
    put(
        &world.management,
        Kind::Secret,
        &kubeconfig("east", "second"),
    );
    while seen.last().map(Vec::as_slice) != Some(&["comes".into(), "stays".to_owned()]) {
        revision.changed().await.unwrap();
        let state = world.state();
        assert!(state.is_complete("east"), "it stays complete throughout");
        seen.push(names(&state, Kind::Service, "east"));
    }
    for names in &seen {
        assert!(names.contains(&"stays".to_owned()), "{seen:?}");
    }
    world.until_condition("east", "connected").await;
    assert_eq!(world.connections("east"), 2);
}

#[tokio::test(start_paused = true)]
async fn the_same_kubeconfig_in_another_secret_does_not_reconnect() {
    let (world, _) = World::with_cluster("east").await;
    let mut same = kubeconfig("east", "first");
    same["metadata"]["labels"] = json!({ "edited": "yes" });
    put(&world.management, Kind::Secret, &same);
    world.settled().await;
    assert_eq!(world.connections("east"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_not_answered_yet_is_not_called_connected() {
    let (world, cluster) = World::with_cluster("east").await;
    world.until_condition("east", "connected").await;
    cluster.fail(Fault::Hang, |_| true);
    put(
        &world.management,
        Kind::Secret,
        &kubeconfig("east", "second"),
    );
    world.until_condition("east", "pending").await;
    assert!(world.handle.readiness().is_empty(), "it has been listed");
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_about_a_cluster_is_not_announced() {
    let (world, _) = World::with_cluster("east").await;
    world.until_condition("east", "connected").await;
    world.settled().await;
    let before = *world.handle.clusters_revision().borrow();
    let labels = json!({ "edited": "yes" });
    let mut secret = kubeconfig("east", "first");
    let mut declared = json!({ "metadata": meta("gloo-mesh", "east"), "spec": {} });
    for object in [&mut secret, &mut declared] {
        object["metadata"]["labels"] = labels.clone();
    }
    put(&world.management, Kind::Secret, &secret);
    put(&world.management, Kind::KubernetesCluster, &declared);
    world.settled().await;
    assert_eq!(*world.handle.clusters_revision().borrow(), before);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_credential_degrades_that_cluster_alone() {
    let (world, east) = World::with_cluster("east").await;
    let west = world.register("west");
    world.until(|state| state.is_complete("west")).await;
    put(&east, Kind::Service, &service("web"));
    world
        .until(|state| !names(state, Kind::Service, "east").is_empty())
        .await;

    refuse_all(&east, 401);
    let view = world.until_condition("east", "credential_rejected").await;
    assert!(view.failing.contains_key(&Kind::Service));
    assert!(view.client.is_some(), "it may be accepted again");
    put(&west, Kind::Service, &service("db"));
    let state = world
        .until(|state| names(state, Kind::Service, "west") == ["db"])
        .await;
    assert_eq!(names(&state, Kind::Service, "east"), ["web"]);
    assert!(state.is_complete("east"));
    let clusters = world.handle.clusters();
    assert_eq!(
        clusters.get("west").unwrap().condition.as_str(),
        "connected"
    );

    east.heal();
    world.until_condition("east", "connected").await;
}

#[tokio::test(start_paused = true)]
async fn a_revoked_credential_is_noticed_though_the_watches_go_on() {
    let (world, east) = World::with_cluster("east").await;
    world.until_condition("east", "connected").await;
    let before = Instant::now();
    east.fail(Fault::refuse(401), |_| true);
    let view = world.until_condition("east", "credential_rejected").await;
    assert!(before.elapsed().as_secs() < 30, "{:?}", before.elapsed());
    assert!(view.failing.is_empty(), "no watch has ended");
    east.heal();
    world.until_condition("east", "connected").await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_hangs_is_noticed_though_no_watch_ends() {
    let (world, east) = World::with_cluster("east").await;
    world.until_condition("east", "connected").await;
    let before = Instant::now();
    east.fail(Fault::Hang, |_| true);
    let view = world.until_condition("east", "unreachable").await;
    assert!(before.elapsed().as_secs() < 60, "{:?}", before.elapsed());
    assert!(view.since >= before && view.since.elapsed().as_secs() < 60);
    let reason = view.condition.reason().unwrap();
    assert!(reason.contains("did not answer"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn what_a_watch_missed_while_its_api_server_hung_is_seen_when_it_is_back() {
    let (world, east) = World::with_cluster("east").await;
    east.fail(Fault::Mute, about(Kind::Service));
    east.end_watches();
    world.settled().await;
    east.heal();
    east.fail(Fault::Hang, |request| request.plural.is_empty());
    world.until_condition("east", "unreachable").await;
    put(&east, Kind::Service, &service("web"));
    east.heal();
    let before = Instant::now();
    world
        .until(|state| names(state, Kind::Service, "east") == ["web"])
        .await;
    assert!(before.elapsed().as_secs() < 120, "{:?}", before.elapsed());
    world.until_condition("east", "connected").await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_too_busy_for_one_question_is_there() {
    let (world, east) = World::with_cluster("east").await;
    world.until_condition("east", "connected").await;
    let before = *world.handle.clusters_revision().borrow();
    east.fail(Fault::refuse(429), |request| request.plural.is_empty());
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    assert_eq!(*world.handle.clusters_revision().borrow(), before);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_tells_since_when() {
    let (world, cluster) = World::with_cluster("east").await;
    world.until_condition("east", "connected").await;
    let before = tokio::time::Instant::now();
    refuse_all(&cluster, 503);
    let view = world.until_condition("east", "unreachable").await;
    assert!(view.since >= before && view.since.elapsed().as_secs() < 10);
    tokio::time::sleep(std::time::Duration::from_mins(3)).await;
    let clusters = world.handle.clusters();
    assert_eq!(clusters.get("east").unwrap().since, view.since);
    assert!(clusters.get("east").unwrap().stale().as_secs() >= 180);
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_is_no_outage() {
    let (world, cluster) = World::with_cluster("east").await;
    cluster.fail(Fault::refuse(403), about(Kind::Node));
    cluster.end_watches();
    let view = world.until_condition("east", "refusing").await;
    assert_eq!(view.failing.keys().collect::<Vec<_>>(), [&Kind::Node]);
    let reason = view.condition.reason().unwrap();
    assert!(reason.contains("/api/v1/nodes"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_cannot_be_used_says_why_and_quotes_nothing() {
    let (world, _) = World::with_cluster("east").await;
    let cases: [(&[u8], &str); 3] = [
        (b"token: hunter2", "current-context"),
        (b"{hunter2", "not YAML of kind Config"),
        (&[], "no key `kubeconfig`"),
    ];
    for (bytes, reason) in cases {
        let broken = secret(
            "gloo-mesh",
            "east",
            "solo.io/kubeconfig",
            &[("kubeconfig", bytes)],
        );
        put(&world.management, Kind::Secret, &broken);
        let clusters = world
            .until_clusters(|clusters| {
                let told = clusters.get("east").and_then(|it| it.condition.reason());
                told.is_some_and(|told| told.contains(reason))
            })
            .await;
        let view = clusters.get("east").unwrap();
        assert_eq!(view.condition.as_str(), "credential_invalid");
        assert!(!format!("{view:?}").contains("hunter2"), "{view:?}");
        assert!(world.state().is_complete("east"), "its tables stay");
    }
    put(
        &world.management,
        Kind::Secret,
        &kubeconfig("east", "second"),
    );
    world.until_condition("east", "connected").await;
}
