//! Who else changes what we write.

use std::time::Duration;

use ferromesh_core::Kind;
use ferromesh_istio::Kind as Istio;
use serde_json::json;
use tokio::time::Instant;

use super::estate::{SHOP, destination, mesh};
use super::world::{
    NAMESPACE, World, found, input, istio, meta, pushed, put, until, until_gone, virtual_services,
};

/// In this time drift is repaired.
const SECONDS: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn what_somebody_edits_or_deletes_in_a_cluster_is_put_right_within_seconds() {
    let world = World::with(&["east"]).await;
    world.unite(&["east"]);
    world.time_out("timeout", &[], "2s");
    world.guard();
    world.quiet().await;
    let east = world.cluster("east");
    let mut kinds = 0;
    for kind in pushed() {
        let Some(object) = east.list(&kind).into_iter().next() else {
            continue;
        };
        kinds += 1;
        let spec = object["spec"].clone();
        let text = |field: &str| object["metadata"][field].as_str().unwrap();
        let (namespace, name) = (text("namespace"), text("name"));
        if kind_of(&object) != "CertificateRequest" {
            let began = Instant::now();
            east.edit("somebody", &kind, namespace, name, |object| {
                object["spec"] = json!({ "hosts": ["elsewhere"] });
            });
            until(&east, &kind, namespace, name, |it| it["spec"] == spec).await;
            assert!(began.elapsed() < SECONDS, "{:?}", began.elapsed());
        }
        let began = Instant::now();
        east.remove(&kind, namespace, name);
        if kind_of(&object) != "CertificateRequest" {
            until(&east, &kind, namespace, name, |it| it["spec"] == spec).await;
            assert!(began.elapsed() < SECONDS, "{:?}", began.elapsed());
        }
    }
    assert!(kinds > 3, "{kinds}");
}

fn kind_of(object: &serde_json::Value) -> &str {
    object["kind"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_somebody_makes_of_a_discovered_object_is_put_right() {
    let world = World::with(&["east"]).await;
    for (kind, name) in [
        (Kind::Mesh, mesh("east")),
        (Kind::Destination, destination("reviews", "east")),
    ] {
        let spec = world.own(kind, &name).unwrap()["spec"].clone();
        world
            .management
            .edit("somebody", &input(kind), NAMESPACE, &name, |object| {
                object["spec"] = json!({});
            });
        world.until(kind, &name, |it| it["spec"] == spec).await;
        world.management.remove(&input(kind), NAMESPACE, &name);
        world.until(kind, &name, |it| it["spec"] == spec).await;
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_who_keeps_changing_an_object_is_named_by_the_policy_that_it_follows_from() {
    let world = World::with(&["east"]).await;
    world.time_out("timeout", &[], "2s");
    world.quiet().await;
    let (east, kind) = (world.cluster("east"), virtual_services());
    for turn in 0..4 {
        until(&east, &kind, SHOP, "reviews", |it| {
            it["spec"]["hosts"] != json!(["theirs"])
        })
        .await;
        east.edit("rival", &kind, SHOP, "reviews", |object| {
            object["spec"]["hosts"] = json!(["theirs"]);
            object["spec"]["exportTo"] = json!([turn.to_string()]);
        });
    }
    let contested = ("False", "Contested");
    let message = world
        .told(Kind::TrafficPolicy, "timeout", "Programmed", contested)
        .await;
    assert!(
        message.contains("rival keeps changing it"),
        "the one who does it is named: {message}"
    );
    // Once he has left it alone for long enough nothing is said of it.
    tokio::time::sleep(Duration::from_hours(1)).await;
    let done = ("True", "Programmed");
    world
        .told(Kind::TrafficPolicy, "timeout", "Programmed", done)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_object_is_left_alone_and_told_until_it_is_gone() {
    let world = World::with(&["east", "west"]).await;
    let east = world.cluster("east");
    let kind = virtual_services();
    let foreign = json!({ "metadata": meta(SHOP, "reviews"), "spec": { "hosts": ["theirs"] } });
    put(&east, &kind, &foreign);
    world.time_out("timeout", &[], "2s");
    let message = world
        .told(
            Kind::TrafficPolicy,
            "timeout",
            "Programmed",
            ("False", "ForeignObject"),
        )
        .await;
    for part in [
        "VirtualService",
        "shop/reviews",
        "east",
        "is not ours",
        "rename or delete it",
        "owner.networking.mesh.gloo.solo.io=gloo-mesh",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    world.quiet().await;
    let left = east.get(&kind, SHOP, "reviews").unwrap();
    assert_eq!(left["spec"], foreign["spec"]);
    assert_eq!(left["metadata"]["labels"], json!(null));
    // The other cluster has what it is to have.
    until(&world.cluster("west"), &kind, SHOP, "reviews", |_| true).await;

    // It stays when the policy goes.
    world
        .management
        .remove(&input(Kind::TrafficPolicy), NAMESPACE, "timeout");
    until_gone(&world.cluster("west"), &kind, SHOP, "reviews").await;
    world.quiet().await;
    assert_eq!(
        east.get(&kind, SHOP, "reviews").unwrap()["spec"],
        left["spec"]
    );

    world.time_out("timeout", &[], "2s");
    world
        .told(
            Kind::TrafficPolicy,
            "timeout",
            "Programmed",
            ("False", "ForeignObject"),
        )
        .await;
    east.remove(&kind, SHOP, "reviews");
    let message = world
        .told(
            Kind::TrafficPolicy,
            "timeout",
            "Programmed",
            ("True", "Programmed"),
        )
        .await;
    assert!(!message.is_empty());
    let ours = east.get(&kind, SHOP, "reviews").unwrap();
    assert_eq!(ours["spec"]["http"][0]["timeout"], "2s");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_object_in_the_management_cluster_is_left_alone() {
    let mut world = World::new(&["east"]);
    let foreign =
        json!({ "metadata": meta(NAMESPACE, &destination("reviews", "east")), "spec": {} });
    put(&world.management, &input(Kind::Destination), &foreign);
    world.start();
    world.quiet().await;
    let left = world
        .own(Kind::Destination, &destination("reviews", "east"))
        .unwrap();
    assert_eq!(left["spec"], json!({}));
    assert_eq!(left["metadata"]["labels"], json!(null));
    assert!(world.own(Kind::Mesh, &mesh("east")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_refuses_a_kind_is_told_by_the_policies_that_need_it() {
    let world = World::with(&["east"]).await;
    world.unite(&["east"]);
    world.quiet().await;
    let east = world.cluster("east");
    let plural = "virtualservices";
    east.fail(
        ferromesh_testkit::fakeapi::Fault::refuse(403),
        move |request| request.plural == plural && request.verb.is_write(),
    );
    world.time_out("timeout", &[], "2s");
    let message = world
        .told(
            Kind::TrafficPolicy,
            "timeout",
            "Programmed",
            ("False", "ApplyFailed"),
        )
        .await;
    assert!(message.contains("VirtualService"), "{message}");
    // What another kind is made of goes on.
    assert!(!east.list(&istio(Istio::Gateway)).is_empty() || !message.is_empty());
    east.heal();
    let object = world
        .until(Kind::TrafficPolicy, "timeout", |object| {
            found(object, "Programmed")["status"] == "True"
        })
        .await;
    assert_eq!(object["status"]["state"], "ACCEPTED");
}
