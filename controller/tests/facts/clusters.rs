//! Clusters that come, hang and go.

use std::collections::BTreeMap;
use std::time::Duration;

use ferromesh_core::Kind;
use ferromesh_testkit::fakeapi::Fault;
use tokio::time::Instant;

use super::estate::{SHOP, destination, many, mesh};
use super::world::{
    NAMESPACE, World, found, input, put, stored, until, until_gone, virtual_services,
};

/// A virtual mesh of two clusters, and a policy for both.
async fn estate() -> World {
    let world = World::with(&["east", "west"]).await;
    world.unite(&["east", "west"]);
    world.time_out("timeout", &[], "2s");
    world.quiet().await;
    let policy = world.own(Kind::TrafficPolicy, "timeout").unwrap();
    assert_eq!(found(&policy, "Programmed")["status"], "True");
    world
}

fn names(objects: &[serde_json::Value]) -> Vec<String> {
    let name = |object: &serde_json::Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        format!("{} {}/{}", object["kind"], text("namespace"), text("name"))
    };
    objects.iter().map(name).collect()
}

/// What is not as it was.
fn changed<'a>(
    before: &BTreeMap<String, String>,
    after: &'a BTreeMap<String, String>,
) -> Vec<&'a str> {
    assert_eq!(before.len(), after.len());
    let differs = |(name, version): &(&String, &String)| before.get(*name) != Some(version);
    let changed = after.iter().filter(differs);
    changed.map(|(name, _)| name.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_hangs_keeps_everything_and_delays_no_other() {
    let world = estate().await;
    let (east, west) = (world.cluster("east"), world.cluster("west"));
    let before = stored(&west);
    let discovered = || {
        let found = world.own(Kind::Destination, &destination("reviews", "west"));
        let found = found.unwrap();
        (found["metadata"]["uid"].clone(), found["spec"].clone())
    };
    let there = discovered();
    west.fail(Fault::Hang, |_| true);
    west.end_watches();
    world.time_out("timeout", &[], "3s");
    let began = Instant::now();
    until(&east, &virtual_services(), SHOP, "reviews", |object| {
        object["spec"]["http"][0]["timeout"] == "3s"
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(5));
    let message = world
        .told(
            Kind::TrafficPolicy,
            "timeout",
            "Programmed",
            ("False", "ClusterUnreachable"),
        )
        .await;
    assert!(message.contains("west"), "{message}");
    let unreachable = ("False", "ClusterUnreachable");
    let ready = world
        .told(Kind::KubernetesCluster, "west", "Ready", unreachable)
        .await;
    assert!(ready.contains("stays as it is"), "{ready}");
    let fine = world.own(Kind::KubernetesCluster, "east").unwrap();
    assert_eq!(found(&fine, "Ready")["status"], "True");
    world.quiet().await;
    assert_eq!(stored(&west), before);
    assert_eq!(discovered(), there);

    west.heal();
    until(&west, &virtual_services(), SHOP, "reviews", |object| {
        object["spec"]["http"][0]["timeout"] == "3s"
    })
    .await;
    for (kind, name, condition, so) in [
        (Kind::TrafficPolicy, "timeout", "Programmed", "Programmed"),
        (Kind::KubernetesCluster, "west", "Ready", "Synced"),
        (Kind::VirtualMesh, "all", "TrustReady", "Verified"),
    ] {
        world.told(kind, name, condition, ("True", so)).await;
    }
    assert_eq!(names(&stored(&west)), names(&before));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_starts_while_a_cluster_hangs_takes_nothing_back() {
    let mut world = estate().await;
    let (east, west) = (world.cluster("east"), world.cluster("west"));
    let (in_east, in_west) = (stored(&east), stored(&west));
    let policy = world.own(Kind::TrafficPolicy, "timeout").unwrap();
    world.stop().await;
    west.fail(Fault::Hang, |_| true);
    west.end_watches();
    world.start();
    let unreachable = ("False", "ClusterUnreachable");
    world
        .told(Kind::KubernetesCluster, "west", "Ready", unreachable)
        .await;
    let quiet = world.quiet().await;
    assert_eq!(stored(&east), in_east);
    assert_eq!(stored(&west), in_west);
    for (kind, name) in [
        (Kind::Mesh, mesh("west")),
        (Kind::Destination, destination("reviews", "west")),
    ] {
        assert!(world.own(kind, &name).is_some(), "{name}");
    }
    // Nobody can tell what stands in west, so what was told of it stands as well.
    let after = world.own(Kind::TrafficPolicy, "timeout").unwrap();
    assert_eq!(after["status"], policy["status"]);

    // Another one that hangs changes nothing of that.
    let told = |world: &World| {
        let registered = world.own(Kind::KubernetesCluster, "west").unwrap();
        registered["status"].clone()
    };
    let before = told(&world);
    world.stop().await;
    world.start();
    let after = world.quiet().await;
    // Which of its kinds has failed first may have been told in between.
    let mut changed = changed(&quiet, &after);
    changed.retain(|name| !name.contains("KubernetesCluster"));
    assert_eq!(changed, [""; 0]);
    assert_eq!(told(&world), before);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_credential_is_refused_keeps_everything_and_is_told() {
    let world = estate().await;
    let west = world.cluster("west");
    let before = stored(&west);
    west.fail(Fault::refuse(401), |_| true);
    west.end_watches();
    let rejected = ("False", "CredentialRejected");
    let message = world
        .told(Kind::KubernetesCluster, "west", "Ready", rejected)
        .await;
    assert!(message.contains("register the cluster again"), "{message}");
    world.quiet().await;
    assert_eq!(stored(&west), before);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_its_secret_keeps_everything() {
    let world = estate().await;
    let west = world.cluster("west");
    let before = stored(&west);
    let secret = input(Kind::Secret);
    world.management.remove(&secret, NAMESPACE, "west");
    let invalid = ("False", "CredentialInvalid");
    world
        .told(Kind::KubernetesCluster, "west", "Ready", invalid)
        .await;
    world.quiet().await;
    assert_eq!(stored(&west), before);
    assert!(
        world
            .own(Kind::Destination, &destination("reviews", "west"))
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn a_deregistered_cluster_keeps_what_was_written_and_its_discovery_goes() {
    for is_running in [true, false] {
        let mut world = estate().await;
        // So many that whoever took them away would be asked, had it not been by hand.
        world.add("west", &many(60));
        world.quiet().await;
        let west = world.cluster("west");
        let before = stored(&west);
        assert!(before.len() > 60);
        if !is_running {
            world.stop().await;
        }
        world.deregister("west");
        if !is_running {
            world.start();
        }
        for (kind, name) in [
            (Kind::Mesh, mesh("west")),
            (Kind::Destination, destination("reviews", "west")),
        ] {
            until_gone(&world.management, &input(kind), NAMESPACE, &name).await;
        }
        world.quiet().await;
        assert_eq!(stored(&west), before, "{is_running}");
        for kind in [Kind::Mesh, Kind::Workload, Kind::Destination] {
            for object in world.management.list(&input(kind)) {
                let cluster = &object["metadata"]["labels"]["cluster.discovery.mesh.gloo.solo.io"];
                assert_eq!(*cluster, "east");
            }
        }
        // What east was told of west goes.
        let east = stored(&world.cluster("east"));
        let of_west: Vec<_> = names(&east)
            .into_iter()
            .filter(|name| name.contains("west"))
            .collect();
        assert!(of_west.is_empty(), "{of_west:?}");

        world.register("west");
        let reviews = destination("reviews", "west");
        world.until(Kind::Destination, &reviews, |_| true).await;
        world
            .told(Kind::VirtualMesh, "all", "TrustReady", ("True", "Verified"))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_to_stand_of_a_deregistered_cluster_goes_too() {
    let world = estate().await;
    let (kind, name) = (Kind::Destination, destination("reviews", "west"));
    let mut late = world.own(kind, &name).unwrap();
    world.deregister("west");
    for (kind, name) in [(Kind::Mesh, mesh("west")), (kind, name.clone())] {
        until_gone(&world.management, &input(kind), NAMESPACE, &name).await;
    }
    world.quiet().await;
    // It was being written when its writer was told to end.
    late["metadata"].as_object_mut().unwrap().remove("uid");
    put(&world.management, &input(kind), &late);
    until_gone(&world.management, &input(kind), NAMESPACE, &name).await;
}
