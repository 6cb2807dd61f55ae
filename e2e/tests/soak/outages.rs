//! API servers that are away, credentials that are taken away, registrations that are.

use std::collections::BTreeMap;
use std::time::Duration;

use ferromesh_e2e::account::NAMESPACE;
use ferromesh_e2e::replica::Replica;
use ferromesh_e2e::world::{Shop, World, found, is, is_current, meshctl, register, timeout};
use ferromesh_e2e::written::{identities, lost};
use ferromesh_e2e::{MANAGEMENT, eventually, kubeconfigs, testbed, yaml};
use kube::api::{DeleteParams, DynamicObject};
use tokio::time::sleep;

use crate::share;

async fn put(world: &World, shop: &Shop, timeout: &str) {
    let text = shop.policy("timeout", &format!("{{ requestTimeout: {timeout} }}"));
    eventually("a policy is let through", async || {
        yaml::apply(&world.management, &text).await.ok()
    })
    .await;
}

/// Waits until the policy of a shop is in force in a cluster.
async fn arrived(world: &World, cluster: usize, shop: &Shop, wanted: &str) {
    let services = world.istio(cluster, "VirtualService", &shop.namespace);
    let has_timeout = |object: &_| timeout(object) == Some(wanted);
    world.until(&services, "reviews", has_timeout).await;
}

/// The same in both clusters.
async fn arrived_everywhere(world: &World, shop: &Shop, wanted: &str) {
    for cluster in [0, 1] {
        arrived(world, cluster, shop, wanted).await;
    }
}

async fn told(world: &World, shop: &Shop, status: &'static str) -> DynamicObject {
    let policies = world.own("TrafficPolicy");
    let is_told = |object: &_| is("Programmed", status)(object) && is_current(object);
    world.until(&policies, &shop.name("timeout"), is_told).await
}

async fn ready(world: &World, cluster: &str, status: &'static str) -> DynamicObject {
    let clusters = world.own("KubernetesCluster");
    world.until(&clusters, cluster, is("Ready", status)).await
}

/// A busy machine may cost a server its lease, which is no fault of the server.
fn tell(server: &Replica) {
    println!(
        "the server was started {} times and ended by itself {} times",
        server.started(),
        server.ended()
    );
}

fn assert_nothing_lost(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let lost = lost(before, after, |_| true);
    assert!(lost.is_empty(), "deleted or made anew: {lost:?}");
}

/// The objects of each cluster.
async fn everything(world: &World) -> [BTreeMap<String, String>; 2] {
    [identities(world, 0).await, identities(world, 1).await]
}

async fn assert_nothing_lost_anywhere(world: &World, before: &[BTreeMap<String, String>; 2]) {
    for (before, after) in before.iter().zip(everything(world).await) {
        assert_nothing_lost(before, &after);
    }
}

pub(crate) async fn an_api_server_that_is_away_delays_nobody_and_is_made_as_it_should_be_when_it_returns(
    world: &World,
) {
    let server = Replica::start(world.start.clone()).await;
    let shop = world.shop().await;
    put(world, &shop, "2s").await;
    arrived_everywhere(world, &shop, "2s").await;
    for round in 0..share(10) {
        let before = everything(world).await;
        let wanted = format!("{}s", round + 3);
        testbed::stop(2);
        put(world, &shop, &wanted).await;
        arrived(world, 0, &shop, &wanted).await;
        let away = ready(world, "cluster-2", "False").await;
        let reason = &found(&away, "Ready").unwrap()["reason"];
        assert_eq!(reason, "ClusterUnreachable");
        let policy = told(world, &shop, "False").await;
        let reason = &found(&policy, "Programmed").unwrap()["reason"];
        assert_eq!(reason, "ClusterUnreachable");
        ready(world, "cluster-1", "True").await;
        testbed::start(2);
        arrived(world, 1, &shop, &wanted).await;
        told(world, &shop, "True").await;
        ready(world, "cluster-2", "True").await;
        assert_nothing_lost_anywhere(world, &before).await;
    }
    tell(&server);
}

pub(crate) async fn a_management_cluster_that_is_away_costs_the_lease_and_nothing_else(
    world: &World,
) {
    let server = Replica::start(world.start.clone()).await;
    let shop = world.shop().await;
    put(world, &shop, "2s").await;
    arrived_everywhere(world, &shop, "2s").await;
    told(world, &shop, "True").await;
    for round in 0..share(10) {
        let before = everything(world).await;
        let ended = server.ended();
        let hangs = round % 2 == 1;
        if hangs {
            testbed::pause(MANAGEMENT);
        } else {
            testbed::stop(MANAGEMENT);
        }
        eventually("a holder that cannot renew its lease ends", async || {
            (server.ended() > ended).then_some(())
        })
        .await;
        // Whoever is started now knows nothing, and must not act on that.
        sleep(Duration::from_secs(3)).await;
        assert_nothing_lost_anywhere(world, &before).await;
        if hangs {
            testbed::resume(MANAGEMENT);
        } else {
            testbed::start(MANAGEMENT);
        }
        server.until_ready().await;
        let wanted = format!("{}s", round + 3);
        put(world, &shop, &wanted).await;
        arrived_everywhere(world, &shop, &wanted).await;
        told(world, &shop, "True").await;
        assert_nothing_lost_anywhere(world, &before).await;
    }
    tell(&server);
}

pub(crate) async fn credentials_are_revoked_and_rotated_under_load(world: &World) {
    let server = Replica::start(world.start.clone()).await;
    let shop = world.shop().await;
    put(world, &shop, "2s").await;
    arrived_everywhere(world, &shop, "2s").await;
    let mut seconds = 2;
    for _ in 0..share(10) {
        let before = everything(world).await;
        let accounts = yaml::api(&world.clusters[1], "v1", "ServiceAccount", NAMESPACE);
        accounts
            .delete("cluster-2", &DeleteParams::default())
            .await
            .unwrap();
        // Others go on meanwhile.
        for _ in 0..5 {
            seconds += 1;
            let wanted = format!("{seconds}s");
            put(world, &shop, &wanted).await;
            arrived(world, 0, &shop, &wanted).await;
        }
        let revoked = ready(world, "cluster-2", "False").await;
        let reason = &found(&revoked, "Ready").unwrap()["reason"];
        assert_eq!(reason, "CredentialRejected");
        register(1);
        arrived(world, 1, &shop, &format!("{seconds}s")).await;
        ready(world, "cluster-2", "True").await;
        // Another credential takes the place of one that still works.
        register(1);
        seconds += 1;
        let wanted = format!("{seconds}s");
        put(world, &shop, &wanted).await;
        arrived_everywhere(world, &shop, &wanted).await;
        told(world, &shop, "True").await;
        assert_nothing_lost_anywhere(world, &before).await;
    }
    tell(&server);
}

pub(crate) async fn a_cluster_that_is_deregistered_while_it_is_away_keeps_what_it_has(
    world: &World,
) {
    let server = Replica::start(world.start.clone()).await;
    let shop = world.shop().await;
    put(world, &shop, "2s").await;
    arrived_everywhere(world, &shop, "2s").await;
    let before = identities(world, 1).await;
    testbed::stop(2);
    ready(world, "cluster-2", "False").await;
    meshctl(&["cluster", "deregister", "cluster-2", "--unreachable"]);
    let destinations = world.own("Destination");
    world
        .until_gone(&destinations, &shop.destination("cluster-2"))
        .await;
    // What made it known in the other cluster goes with it.
    let host = format!("reviews.{}.svc.cluster-2.global", shop.namespace);
    let entries = world.istio(0, "ServiceEntry", "istio-system");
    world.until_gone(&entries, &host).await;
    // A person has asked for it: however much it is, it is not held.
    let is_of_gone =
        |name: &String| name.contains("ServiceEntry") && name.ends_with(".svc.cluster-2.global");
    eventually("nothing makes the cluster known any more", async || {
        let there = identities(world, 0).await;
        let mut left = there.keys().filter(|name| is_of_gone(name));
        left.next().is_none().then_some(())
    })
    .await;
    testbed::start(2);
    put(world, &shop, "3s").await;
    arrived(world, 0, &shop, "3s").await;
    assert_nothing_lost(&before, &identities(world, 1).await);
    register(1);
    arrived(world, 1, &shop, "3s").await;
    world.until(&entries, &host, |_| true).await;
    let meshes = world.own("VirtualMesh");
    world.until(&meshes, "shop", is("TrustReady", "True")).await;
    assert_nothing_lost(&before, &identities(world, 1).await);
    tell(&server);
}

pub(crate) async fn a_cluster_that_is_registered_twice_keeps_what_it_has_and_says_so(
    world: &World,
) {
    let _server = Replica::start(world.start.clone()).await;
    let shop = world.shop().await;
    put(world, &shop, "2s").await;
    arrived_everywhere(world, &shop, "2s").await;
    told(world, &shop, "True").await;
    let before = identities(world, 1).await;
    let remote = &kubeconfigs()[2];
    meshctl(&[
        "cluster",
        "register",
        "again",
        "--remote-kubeconfig",
        remote,
    ]);
    let destinations = world.own("Destination");
    world
        .until(&destinations, &shop.destination("again"), |_| true)
        .await;
    ready(world, "again", "True").await;
    put(world, &shop, "3s").await;
    arrived_everywhere(world, &shop, "3s").await;
    // Each of the two registrations marks the objects as its own, and the other one puts that right.
    let policies = world.own("TrafficPolicy");
    let is_unsettled = |object: &DynamicObject| !is("Programmed", "True")(object);
    world
        .until(&policies, &shop.name("timeout"), is_unsettled)
        .await;
    meshctl(&[
        "cluster",
        "deregister",
        "again",
        "--remote-kubeconfig",
        remote,
    ]);
    world
        .until_gone(&destinations, &shop.destination("again"))
        .await;
    put(world, &shop, "4s").await;
    arrived_everywhere(world, &shop, "4s").await;
    assert_nothing_lost(&before, &identities(world, 1).await);
}
