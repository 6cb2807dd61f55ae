//! What is done, and what is not, before everything has been listed.

use ferromesh_core::Kind;
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Kind as Served};
use serde_json::{Value, json};

use super::estate::{SHOP, destination, mesh};
use super::world::{NAMESPACE, World, input, istio, meta, put, until_gone, virtual_services};

/// An object as an earlier server has written it, that nobody wants any more.
fn leftover(namespace: &str, name: &str, labels: &Value) -> Value {
    let mut metadata = meta(namespace, name);
    metadata["labels"] = labels.clone();
    json!({ "metadata": metadata, "spec": {} })
}

/// What an earlier server has left in a cluster.
fn leave_behind(cluster: &FakeApi, name: &str) {
    let labels = json!({
        "owner.networking.mesh.gloo.solo.io": NAMESPACE, "cluster.multicluster.solo.io": name,
    });
    put(
        cluster,
        &virtual_services(),
        &leftover(SHOP, "leftover", &labels),
    );
}

fn hang(api: &FakeApi, kind: &Served) {
    let kind = format!("{kind:?}");
    api.fail(Fault::Hang, move |request| {
        !request.plural.is_empty() && kind.contains(&format!("\"{}\"", request.plural))
    });
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_the_management_cluster_has_told_all_it_has() {
    let mut world = World::new(&["east"]);
    let east = world.cluster("east");
    leave_behind(&east, "east");
    world.time_out("timeout", &[], "2s");
    hang(&world.management, &input(Kind::AccessPolicy));
    world.start();
    world.quiet().await;
    assert!(world.writes().is_empty(), "{:#?}", world.writes());

    world.management.heal();
    world.management.end_watches();
    world
        .told(
            Kind::TrafficPolicy,
            "timeout",
            "Programmed",
            ("True", "Programmed"),
        )
        .await;
    until_gone(&east, &virtual_services(), SHOP, "leftover").await;
    assert!(
        east.get(&virtual_services(), SHOP, "reviews").is_some(),
        "it is wanted"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_of_a_cluster_before_it_has_told_all_it_has() {
    let mut world = World::with(&["east", "west"]).await;
    let stored = |world: &World, cluster: &str| {
        let reviews = destination("reviews", cluster);
        world.own(Kind::Destination, &reviews).is_some()
            && world.own(Kind::Mesh, &mesh(cluster)).is_some()
    };
    assert!(stored(&world, "east") && stored(&world, "west"));
    world.stop().await;
    let (east, west) = (world.cluster("east"), world.cluster("west"));
    leave_behind(&east, "east");
    leave_behind(&west, "west");
    for cluster in [&east, &west] {
        cluster.remove(&input(Kind::Service), SHOP, "reviews");
    }
    hang(&west, &input(Kind::Pod));
    world.start();
    // East has told all it has.
    until_gone(&east, &virtual_services(), SHOP, "leftover").await;
    let gone = destination("reviews", "east");
    until_gone(
        &world.management,
        &input(Kind::Destination),
        NAMESPACE,
        &gone,
    )
    .await;
    world.quiet().await;
    assert!(west.get(&virtual_services(), SHOP, "leftover").is_some());
    assert!(stored(&world, "west"));

    west.heal();
    west.end_watches();
    until_gone(&west, &virtual_services(), SHOP, "leftover").await;
    let gone = destination("reviews", "west");
    until_gone(
        &world.management,
        &input(Kind::Destination),
        NAMESPACE,
        &gone,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_made_of_a_cluster_that_has_not_told_all_it_has_stays_in_the_others() {
    let mut world = World::with(&["east", "west"]).await;
    world.unite(&["east", "west"]);
    world.quiet().await;
    let (east, west) = (world.cluster("east"), world.cluster("west"));
    let entries = istio(ferromesh_istio::Kind::ServiceEntry);
    let of_west = || {
        let mut all = east.list(&entries);
        all.retain(|entry| {
            let name = entry["metadata"]["name"].as_str();
            name.is_some_and(|name| name.contains(".svc.west."))
        });
        all
    };
    let before = of_west();
    assert!(!before.is_empty());
    world.stop().await;
    hang(&west, &input(Kind::Pod));
    // What was discovered stands in for the cluster, and somebody takes it away.
    for object in world.management.list(&input(Kind::Destination)) {
        let name = object["metadata"]["name"].as_str().unwrap();
        if name.ends_with("-west") {
            let kind = input(Kind::Destination);
            world.management.remove(&kind, NAMESPACE, name);
        }
    }
    world.start();
    world.quiet().await;
    assert_eq!(of_west(), before);
    west.heal();
    west.end_watches();
    let reviews = destination("reviews", "west");
    world.until(Kind::Destination, &reviews, |_| true).await;
    world.quiet().await;
    assert_eq!(of_west(), before);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_of_a_cluster_before_what_stands_there_has_been_listed() {
    let mut world = World::new(&["east"]);
    let east = world.cluster("east");
    leave_behind(&east, "east");
    let entries = istio(ferromesh_istio::Kind::ServiceEntry);
    hang(&east, &entries);
    world.start();
    world.quiet().await;
    assert!(east.get(&virtual_services(), SHOP, "leftover").is_some());
    east.heal();
    until_gone(&east, &virtual_services(), SHOP, "leftover").await;
}

#[tokio::test(start_paused = true)]
async fn what_carries_the_label_of_another_management_plane_is_not_deleted() {
    let mut world = World::new(&["east"]);
    let east = world.cluster("east");
    leave_behind(&east, "east");
    let labels = json!({
        "owner.networking.mesh.gloo.solo.io": "another", "cluster.multicluster.solo.io": "east",
    });
    let other = leftover(SHOP, "theirs", &labels);
    put(&east, &virtual_services(), &other);
    world.start();
    until_gone(&east, &virtual_services(), SHOP, "leftover").await;
    world.quiet().await;
    assert!(east.get(&virtual_services(), SHOP, "theirs").is_some());
}
