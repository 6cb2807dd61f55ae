//! A server that comes back.

use ferromesh_core::Kind;
use ferromesh_testkit::fakeapi::Fault;
use serde_json::json;

use super::estate::{SHOP, many};
use super::world::{
    NAMESPACE, World, input, meta, put, stored, until, until_gone, virtual_services,
};

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing() {
    let mut world = World::with(&["east", "west"]).await;
    world.unite(&["east", "west"]);
    world.time_out("timeout", &[], "2s");
    world.guard();
    for (kind, name) in [
        (Kind::TrafficPolicy, "timeout"),
        (Kind::AccessPolicy, "callers"),
        (Kind::VirtualMesh, "all"),
    ] {
        world
            .told(kind, name, "Programmed", ("True", "Programmed"))
            .await;
    }
    world
        .told(Kind::VirtualMesh, "all", "TrustReady", ("True", "Verified"))
        .await;
    let before = world.quiet().await;
    for cluster in ["east", "west"] {
        assert!(stored(&world.cluster(cluster)).len() > 5);
    }
    world.stop().await;
    world.forget_writes();
    world.start();
    assert_eq!(world.quiet().await, before);
    assert!(world.writes().is_empty(), "{:#?}", world.writes());
    // It is at work.
    world.time_out("timeout", &[], "3s");
    for cluster in ["east", "west"] {
        until(
            &world.cluster(cluster),
            &virtual_services(),
            SHOP,
            "reviews",
            |object| object["spec"]["http"][0]["timeout"] == "3s",
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_deleted_while_nobody_looks_takes_its_objects_along() {
    let mut world = World::with(&["east"]).await;
    world.time_out("timeout", &[], "2s");
    let east = world.cluster("east");
    until(&east, &virtual_services(), SHOP, "reviews", |_| true).await;
    world.stop().await;
    world
        .management
        .remove(&input(Kind::TrafficPolicy), NAMESPACE, "timeout");
    world.start();
    until_gone(&east, &virtual_services(), SHOP, "reviews").await;
}

/// After a restart nobody knows who took it away.
#[tokio::test(start_paused = true)]
async fn a_policy_that_made_much_and_is_deleted_while_nobody_looks_is_asked_about() {
    let mut world = World::with(&["east"]).await;
    world.add("east", &many(60));
    world.time_out("timeout", &[], "2s");
    world.quiet().await;
    world.stop().await;
    world
        .management
        .remove(&input(Kind::TrafficPolicy), NAMESPACE, "timeout");
    world.start();
    let held = ("True", "TooManyDeletions");
    world
        .told(Kind::KubernetesCluster, "east", "MassDeleteHeld", held)
        .await;
    world.quiet().await;
    assert!(world.cluster("east").list(&virtual_services()).len() > 60);
}

#[tokio::test(start_paused = true)]
async fn a_restart_takes_nothing_back_of_what_was_told_of_trouble() {
    let mut world = World::with(&["east", "west"]).await;
    world.unite(&["east", "west"]);
    let services = many(60);
    world.add("east", &services);
    let (east, west) = (world.cluster("east"), world.cluster("west"));
    let foreign = json!({ "metadata": meta(SHOP, "reviews"), "spec": { "hosts": ["theirs"] } });
    put(&east, &virtual_services(), &foreign);
    west.fail(Fault::refuse(403), |request| {
        request.plural == "virtualservices" && request.verb.is_write()
    });
    world.time_out("in-east", &["east"], "2s");
    world.time_out("in-west", &["west"], "2s");
    world.quiet().await;
    world.take_away("east", &services);
    for (kind, name, condition, told) in [
        (
            Kind::TrafficPolicy,
            "in-east",
            "Programmed",
            ("False", "ForeignObject"),
        ),
        (
            Kind::TrafficPolicy,
            "in-west",
            "Programmed",
            ("False", "ApplyFailed"),
        ),
        (
            Kind::KubernetesCluster,
            "east",
            "MassDeleteHeld",
            ("True", "TooManyDeletions"),
        ),
    ] {
        world.told(kind, name, condition, told).await;
    }
    let before = world.quiet().await;
    world.stop().await;
    world.start();
    assert_eq!(world.quiet().await, before);
}
