//! What disturbs a cluster or the server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use ferromesh_e2e::written::versions;
use ferromesh_e2e::{eventually, testbed, yaml};
use kube::api::DeleteParams;

use crate::world::{NAMESPACE, Shop, World, found, is, is_current, meshctl, register};

const TIMEOUT: &str = "{ requestTimeout: 2s }";

/// Waits until nothing is written any more: two looks, an edit of a policy apart, see the same but for
/// what the edit changes.
///
/// `edits` counts the edits, which are of a policy for `shop`.
async fn quiet(world: &World, shop: &Shop, edits: &AtomicU32) -> BTreeMap<String, String> {
    let unrest = Mutex::new(Vec::new());
    eventually(Unrest(&unrest), async || {
        let mut before = versions(world).await;
        let seconds = edits.fetch_add(1, Ordering::Relaxed);
        let timeout = format!("{{ requestTimeout: {seconds}s }}");
        // Whoever has written what follows from this has nothing else to write.
        yaml::apply(&world.management, &shop.policy("edited", &timeout))
            .await
            .ok()?;
        let is_told = |object: &_| is("Programmed", "True")(object) && is_current(object);
        world
            .until(&world.own("TrafficPolicy"), &shop.name("edited"), is_told)
            .await;
        let mut after = versions(world).await;
        for versions in [&mut before, &mut after] {
            versions.retain(|name, _| !name.contains(&shop.namespace));
        }
        let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let written = names
            .into_iter()
            .filter(|name| before.get(*name) != after.get(*name));
        *unrest.lock().unwrap() = written.cloned().collect();
        (before == after).then_some(after)
    })
    .await
}

/// What was still being written at the last look.
struct Unrest<'a>(&'a Mutex<Vec<String>>);

impl fmt::Display for Unrest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "everything is written, except {:?}",
            self.0.lock().unwrap()
        )
    }
}

pub(crate) async fn a_server_that_is_killed_changes_nothing_when_it_comes_back(world: &World) {
    let (shop, edits) = (world.shop().await, AtomicU32::new(1));
    let before = quiet(world, &shop, &edits).await;
    world.kill().await;
    world.revive().await;
    let after = quiet(world, &shop, &edits).await;
    for (name, version) in before {
        assert_eq!(after.get(&name), Some(&version), "{name} was written");
    }
}

pub(crate) async fn a_policy_that_is_deleted_while_nobody_looks_takes_its_objects_along(
    world: &World,
) {
    let shop = world.shop().await;
    yaml::apply(&world.management, &shop.policy("timeout", TIMEOUT))
        .await
        .unwrap();
    let services = [0, 1].map(|cluster| world.istio(cluster, "VirtualService", &shop.namespace));
    for services in &services {
        world.until(services, "reviews", |_| true).await;
    }
    world.kill().await;
    // A deletion is let through when nobody answers.
    let name = shop.name("timeout");
    world
        .traffic_policies()
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    world.revive().await;
    for services in &services {
        world.until_gone(services, "reviews").await;
    }
}

pub(crate) async fn a_cluster_that_hangs_delays_nobody_and_keeps_what_it_has(world: &World) {
    let shop = world.shop().await;
    let there = versions(world)
        .await
        .keys()
        .filter(|name| name.starts_with('1'))
        .count();
    testbed::pause(2);
    yaml::apply(&world.management, &shop.policy("timeout", TIMEOUT))
        .await
        .unwrap();
    let services = [0, 1].map(|cluster| world.istio(cluster, "VirtualService", &shop.namespace));
    world.until(&services[0], "reviews", |_| true).await;
    let clusters = world.own("KubernetesCluster");
    world
        .until(&clusters, "cluster-2", is("Ready", "False"))
        .await;
    assert!(is("Ready", "True")(
        &clusters.get("cluster-1").await.unwrap()
    ));
    let policies = world.own("TrafficPolicy");
    let policy = world
        .until(&policies, &shop.name("timeout"), is("Programmed", "False"))
        .await;
    assert_eq!(
        found(&policy, "Programmed").unwrap()["reason"],
        "ClusterUnreachable"
    );
    // A server that starts now knows the cluster by what is stored of it.
    world.kill().await;
    world.revive().await;
    let destinations = world.own("Destination");
    assert!(
        destinations
            .get_opt(&shop.destination("cluster-2"))
            .await
            .unwrap()
            .is_some()
    );
    testbed::resume(2);
    world.until(&services[1], "reviews", |_| true).await;
    world
        .until(&clusters, "cluster-2", is("Ready", "True"))
        .await;
    world
        .until(&policies, &shop.name("timeout"), is("Programmed", "True"))
        .await;
    let after = versions(world)
        .await
        .keys()
        .filter(|name| name.starts_with('1'))
        .count();
    assert!(after > there, "what stood there has gone");
}

pub(crate) async fn a_revoked_credential_degrades_its_cluster_alone(world: &World) {
    let accounts = yaml::api(&world.clusters[1], "v1", "ServiceAccount", NAMESPACE);
    accounts
        .delete("cluster-2", &DeleteParams::default())
        .await
        .unwrap();
    let clusters = world.own("KubernetesCluster");
    let revoked = world
        .until(&clusters, "cluster-2", is("Ready", "False"))
        .await;
    assert_eq!(
        found(&revoked, "Ready").unwrap()["reason"],
        "CredentialRejected"
    );
    assert!(is("Ready", "True")(
        &clusters.get("cluster-1").await.unwrap()
    ));
    register(1);
    world
        .until(&clusters, "cluster-2", is("Ready", "True"))
        .await;
}

pub(crate) async fn a_deregistered_cluster_keeps_what_was_written_and_its_discovery_goes(
    world: &World,
) {
    let shop = world.shop().await;
    let entries = world.istio(1, "ServiceEntry", "istio-system");
    let host = format!("reviews.{}.svc.cluster-1.global", shop.namespace);
    world.until(&entries, &host, |_| true).await;
    let kubeconfigs = ferromesh_e2e::kubeconfigs();
    meshctl(&[
        "cluster",
        "deregister",
        "cluster-2",
        "--remote-kubeconfig",
        &kubeconfigs[2],
    ]);
    let destinations = world.own("Destination");
    world
        .until_gone(&destinations, &shop.destination("cluster-2"))
        .await;
    world
        .until_gone(&world.own("Mesh"), "istiod-istio-system-cluster-2")
        .await;
    assert!(entries.get_opt(&host).await.unwrap().is_some());
    assert!(
        destinations
            .get_opt(&shop.destination("cluster-1"))
            .await
            .unwrap()
            .is_some()
    );
    register(1);
    world
        .until(&destinations, &shop.destination("cluster-2"), |_| true)
        .await;
    world
        .until(&world.own("VirtualMesh"), "shop", is("TrustReady", "True"))
        .await;
}
