//! Deletions: those that are held, and those that are not.

use ferromesh_core::Kind;
use serde_json::json;

use super::estate::{SHOP, destination, install, many, mesh};
use super::world::{
    NAMESPACE, WHO, World, found, input, istio, meta, put, until, until_gone, virtual_services,
};

const ANNOTATION: &str = "apply.mesh.gloo.solo.io/release-mass-delete";
/// More than are deleted at once without asking.
const MANY: usize = 60;

impl World {
    fn annotate(&self, cluster: &str, count: &str) {
        let kind = input(Kind::KubernetesCluster);
        self.management.edit(WHO, &kind, NAMESPACE, cluster, |it| {
            it["metadata"]["annotations"][ANNOTATION] = json!(count);
        });
    }

    async fn held(&self, cluster: &str) -> String {
        let kind = Kind::KubernetesCluster;
        let held = ("True", "TooManyDeletions");
        self.told(kind, cluster, "MassDeleteHeld", held).await
    }

    fn destinations(&self, services: &[String]) -> usize {
        let is_there = |name: &&String| {
            let name = destination(name, "east");
            self.own(Kind::Destination, &name).is_some()
        };
        services.iter().filter(is_there).count()
    }
}

/// Sixty services of east, and what was made of them, in both clusters.
async fn estate() -> (World, Vec<String>) {
    let world = World::with(&["east", "west"]).await;
    let services = many(MANY);
    world.add("east", &services);
    world.time_out("timeout", &[], "2s");
    world.quiet().await;
    assert_eq!(world.destinations(&services), MANY);
    let written = world.cluster("east").list(&virtual_services()).len();
    assert_eq!(written, MANY + 1, "one for each, and one for reviews");
    (world, services)
}

#[tokio::test(start_paused = true)]
async fn what_an_api_server_that_went_back_in_time_has_forgotten_was_not_deleted_by_hand() {
    let world = World::with(&["east"]).await;
    let services = many(MANY);
    world.add("east", &services);
    world.quiet().await;
    let before = world.management.snapshot();
    world.time_out("timeout", &[], "2s");
    world.quiet().await;
    let written = || world.cluster("east").list(&virtual_services()).len();
    assert_eq!(written(), MANY + 1);

    world.management.restore(&before);
    world.held("east").await;
    world.quiet().await;
    assert_eq!(written(), MANY + 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_registration_was_forgotten_was_not_deregistered_by_hand() {
    let world = World::with(&["west"]).await;
    world.unite(&["west", "east"]);
    world.quiet().await;
    let before = world.management.snapshot();
    install(&world.register("east"), "east");
    world.add("east", &many(MANY));
    world.quiet().await;
    let entries = istio(ferromesh_istio::Kind::ServiceEntry);
    let known = || world.cluster("west").list(&entries).len();
    let all = known();
    assert!(all > MANY, "{all}");

    world.management.restore(&before);
    world.held("west").await;
    world.quiet().await;
    assert_eq!(known(), all);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_deregistered_takes_along_what_makes_it_known_elsewhere() {
    let world = World::with(&["west", "east"]).await;
    world.unite(&["west", "east"]);
    world.add("east", &many(MANY));
    world.quiet().await;
    let entries = istio(ferromesh_istio::Kind::ServiceEntry);
    let known = || world.cluster("west").list(&entries).len();
    let all = known();
    world.deregister("east");
    world.quiet().await;
    assert!(known() + MANY < all, "{} of {all}", known());
}

#[tokio::test(start_paused = true)]
async fn a_mass_deletion_is_held_and_told_and_released_by_its_count() {
    let (mut world, services) = estate().await;
    world.take_away("east", &services);
    let told = |count: usize| {
        format!("kubectl annotate kubernetescluster -n gloo-mesh east {ANNOTATION}={count}")
    };
    // A VirtualService and a DestinationRule for each, and what had been discovered of it.
    let (pushed, discovered) = (2 * MANY, MANY);
    world.quiet().await;
    let message = world.held("east").await;
    assert!(message.contains(&told(pushed)), "{message}");
    assert!(message.contains(&told(discovered)), "{message}");
    let east = world.cluster("east");
    let written = || east.list(&virtual_services()).len();
    assert_eq!(written(), MANY + 1);
    assert_eq!(world.destinations(&services), MANY);
    let west = world.own(Kind::KubernetesCluster, "west").unwrap();
    assert_eq!(found(&west, "MassDeleteHeld")["status"], "False");

    // What is wrong, or of another size, releases nothing.
    for count in ["", "yes", "59", "600"] {
        world.annotate("east", count);
        world.quiet().await;
        assert_eq!((written(), world.destinations(&services)), (MANY + 1, MANY));
    }

    // It is held by the next server, too.
    world.stop().await;
    world.start();
    world.quiet().await;
    assert_eq!((written(), world.destinations(&services)), (MANY + 1, MANY));
    assert_eq!(world.held("east").await, message);

    world.annotate("east", &discovered.to_string());
    world.quiet().await;
    assert_eq!((written(), world.destinations(&services)), (MANY + 1, 0));
    let message = world.held("east").await;
    assert!(message.contains(&told(pushed)), "{message}");
    assert!(!message.contains(&told(discovered)), "{message}");
    world.annotate("east", &pushed.to_string());
    let kind = Kind::KubernetesCluster;
    let released = ("False", "Released");
    world.told(kind, "east", "MassDeleteHeld", released).await;
    world.quiet().await;
    assert_eq!((written(), world.destinations(&services)), (1, 0));
    let registered = world.own(kind, "east").unwrap();
    let annotation = &registered["metadata"]["annotations"][ANNOTATION];
    assert!(
        annotation.is_null(),
        "it stands for one deletion: {annotation}"
    );

    // The next one is held again.
    world.add("east", &services);
    world.quiet().await;
    assert_eq!(world.destinations(&services), MANY);
    world.take_away("east", &services);
    world.held("east").await;
    world.quiet().await;
    assert_eq!(world.destinations(&services), MANY);
}

#[tokio::test(start_paused = true)]
async fn a_hold_ends_when_what_was_gone_comes_back() {
    let (world, services) = estate().await;
    world.take_away("east", &services);
    world.held("east").await;
    world.add("east", &services);
    let kind = Kind::KubernetesCluster;
    let released = ("False", "Released");
    world.told(kind, "east", "MassDeleteHeld", released).await;
    world.quiet().await;
    assert_eq!(world.destinations(&services), MANY);
}

#[tokio::test(start_paused = true)]
async fn what_came_of_a_registered_cluster_is_held_though_its_name_ends_like_one_that_was_deregistered()
 {
    let names = ["east", "west", "north-west"];
    let world = World::with(&names).await;
    world.unite(&names);
    let services = many(MANY);
    world.add("north-west", &services);
    world.quiet().await;
    world.deregister("west");
    until_gone(
        &world.management,
        &input(Kind::Mesh),
        NAMESPACE,
        &mesh("west"),
    )
    .await;
    world.quiet().await;
    world.take_away("north-west", &services);
    world.held("east").await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_deleted_takes_along_whatever_it_made() {
    let (world, services) = estate().await;
    let kind = input(Kind::TrafficPolicy);
    world.management.remove(&kind, NAMESPACE, "timeout");
    let east = world.cluster("east");
    for name in services.iter().map(String::as_str).chain(["reviews"]) {
        until_gone(&east, &virtual_services(), SHOP, name).await;
    }
    world.quiet().await;
    let clusters = world.own(Kind::KubernetesCluster, "east").unwrap();
    assert_eq!(found(&clusters, "MassDeleteHeld")["status"], "False");
    assert_eq!(world.destinations(&services), MANY);
}

#[tokio::test(start_paused = true)]
async fn destinations_that_a_person_wrote_take_along_whatever_they_made() {
    let world = World::with(&["east"]).await;
    let services = many(MANY);
    let kind = input(Kind::Destination);
    for name in &services {
        let object = json!({
            "metadata": meta(NAMESPACE, name),
            "spec": {
                "mesh": { "name": mesh("east"), "namespace": NAMESPACE },
                "kubeService": {
                    "ref": { "name": name, "namespace": SHOP, "clusterName": "east" },
                    "ports": [{ "name": "http", "port": 9080, "protocol": "TCP" }],
                },
            },
        });
        put(&world.management, &kind, &object);
    }
    world.time_out("timeout", &[], "2s");
    world.quiet().await;
    let east = world.cluster("east");
    let written = || east.list(&virtual_services()).len();
    assert_eq!(written(), MANY + 1);

    for name in &services {
        world.management.remove(&kind, NAMESPACE, name);
    }
    world.quiet().await;
    assert_eq!(written(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_takes_its_objects_along() {
    let (world, services) = estate().await;
    world.take_away("east", &services[..1]);
    let east = world.cluster("east");
    until_gone(&east, &virtual_services(), SHOP, &services[0]).await;
    let name = destination(&services[0], "east");
    until_gone(
        &world.management,
        &input(Kind::Destination),
        NAMESPACE,
        &name,
    )
    .await;
    until(&east, &virtual_services(), SHOP, &services[1], |_| true).await;
}
