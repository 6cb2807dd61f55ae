//! Clusters whose etcd goes back to an older snapshot. docs/operations/backup-and-restore.md says what
//! follows; it is proven here.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use ferromesh_crds::meta::CACERTS_SECRET;
use ferromesh_e2e::account::NAMESPACE;
use ferromesh_e2e::replica::Replica;
use ferromesh_e2e::world::{Shop, World, is, is_current, timeout};
use ferromesh_e2e::written::{identities, lost};
use ferromesh_e2e::{MANAGEMENT, eventually, testbed, yaml};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;

const BREAK_GLASS: &str = "admission.mesh.gloo.solo.io/break-glass";
const RELEASE: &str = "apply.mesh.gloo.solo.io/release-mass-delete";
/// Services of a crowd. A policy for all of them makes two objects of each in each cluster, and more than
/// fifty are a mass.
const CROWD: usize = 30;

/// A file for a snapshot. It is removed with this.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let name = format!("ferromesh-soak-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // It may never have been written.
        fs::remove_file(&self.0).unwrap_or_default();
    }
}

/// Waits until a policy of a shop is told to be in force in both clusters, and is.
async fn settled(world: &World, shop: &Shop, policy: &str, wanted: &'static str) {
    let is_told = |object: &_| is("Programmed", "True")(object) && is_current(object);
    let policies = world.own("TrafficPolicy");
    world.until(&policies, &shop.name(policy), is_told).await;
    for cluster in [0, 1] {
        let services = world.istio(cluster, "VirtualService", &shop.namespace);
        let has_timeout = |object: &_| timeout(object) == Some(wanted);
        world.until(&services, "reviews", has_timeout).await;
    }
}

async fn put(world: &World, shop: &Shop, policy: &str, timeout: &str) {
    let text = shop.policy(policy, &format!("{{ requestTimeout: {timeout} }}"));
    yaml::apply(&world.management, &text).await.unwrap();
}

/// Waits until both clusters are told to be as they should be.
async fn clusters_are_ready(world: &World) {
    for cluster in ["cluster-1", "cluster-2"] {
        let clusters = world.own("KubernetesCluster");
        world.until(&clusters, cluster, is("Ready", "True")).await;
    }
}

/// The objects of both clusters, by what tells them from others of their names.
async fn everything(world: &World) -> BTreeMap<String, String> {
    let mut all = identities(world, 0).await;
    all.extend(identities(world, 1).await);
    all
}

/// Switches the webhook off, as docs/operations/break-glass.md tells: nobody answers reviews.
async fn break_glass(world: &World) {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(world.management.clone());
    let patch =
        json!({ "metadata": { "annotations": { BREAK_GLASS: "restoring" } }, "webhooks": [] });
    api.patch("ferromesh", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

/// Switches it on again, and waits until it is.
async fn mend_glass(world: &World) {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(world.management.clone());
    let patch = json!({ "metadata": { "annotations": { BREAK_GLASS: null } } });
    api.patch("ferromesh", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    eventually("the webhook is registered again", async || {
        let webhooks = api.get("ferromesh").await.ok()?.webhooks;
        webhooks.filter(|webhooks| !webhooks.is_empty())
    })
    .await;
}

/// A shop before the snapshot and a shop after it.
struct Days {
    older: Shop,
    younger: Shop,
    snapshot: File,
}

/// Two policies before the snapshot, one of which is edited and the other deleted after it, and one that
/// is younger.
async fn days(world: &World) -> Days {
    let older = world.shop().await;
    put(world, &older, "edited", "2s").await;
    settled(world, &older, "edited", "2s").await;
    let deleted = world.shop().await;
    put(world, &deleted, "deleted", "3s").await;
    settled(world, &deleted, "deleted", "3s").await;
    let snapshot = File::new("management.db");
    testbed::snapshot(MANAGEMENT, &snapshot.0);

    put(world, &older, "edited", "4s").await;
    settled(world, &older, "edited", "4s").await;
    let name = deleted.name("deleted");
    world
        .traffic_policies()
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    let younger = world.shop().await;
    put(world, &younger, "younger", "5s").await;
    settled(world, &younger, "younger", "5s").await;
    for cluster in [0, 1] {
        let services = world.istio(cluster, "VirtualService", &deleted.namespace);
        world.until_gone(&services, "reviews").await;
    }
    Days {
        older,
        younger,
        snapshot,
    }
}

/// What was made of the younger policy in a cluster.
fn is_of_younger(younger: &Shop) -> impl Fn(&str) -> bool {
    move |name: &str| name.contains("VirtualService") && name.contains(&younger.namespace)
}

pub(crate) async fn a_management_cluster_goes_back_and_what_is_put_back_before_the_server_starts_stays(
    world: &World,
) {
    let server = Replica::start(world.start.clone()).await;
    let days = days(world).await;
    let before = everything(world).await;
    server.end().await;

    testbed::restore(MANAGEMENT, &days.snapshot.0);
    let text = days.younger.policy("younger", "{ requestTimeout: 5s }");
    let refused = yaml::apply(&world.management, &text).await;
    assert!(refused.is_err(), "nobody answers reviews");
    break_glass(world).await;
    put(world, &days.younger, "younger", "5s").await;
    put(world, &days.older, "edited", "4s").await;
    let _server = Replica::start(world.start.clone()).await;
    mend_glass(world).await;
    settled(world, &days.younger, "younger", "5s").await;
    settled(world, &days.older, "edited", "4s").await;
    clusters_are_ready(world).await;
    let after = everything(world).await;
    let lost = lost(&before, &after, |_| true);
    assert!(lost.is_empty(), "deleted or made anew: {lost:?}");
}

/// What becomes of the clusters when nothing is put back.
async fn nothing_else_is_deleted(world: &World, days: &Days, before: &BTreeMap<String, String>) {
    settled(world, &days.older, "edited", "2s").await;
    for cluster in [0, 1] {
        let services = world.istio(cluster, "VirtualService", &days.younger.namespace);
        world.until_gone(&services, "reviews").await;
    }
    clusters_are_ready(world).await;
    // Whoever has written this has done everything before.
    put(world, &days.older, "edited", "6s").await;
    settled(world, &days.older, "edited", "6s").await;
    let after = everything(world).await;
    let is_of_younger = is_of_younger(&days.younger);
    let lost = lost(before, &after, |name| !is_of_younger(name));
    assert!(lost.is_empty(), "deleted or made anew: {lost:?}");
    let mut left = after.keys().filter(|name| is_of_younger(name));
    assert_eq!(left.next(), None, "made of a policy that is not there");
}

pub(crate) async fn a_management_cluster_goes_back_and_only_what_it_does_not_know_is_deleted(
    world: &World,
) {
    let server = Replica::start(world.start.clone()).await;
    let days = days(world).await;
    let before = everything(world).await;
    server.end().await;
    testbed::restore(MANAGEMENT, &days.snapshot.0);
    let _server = Replica::start(world.start.clone()).await;
    nothing_else_is_deleted(world, &days, &before).await;
}

pub(crate) async fn a_management_cluster_goes_back_under_a_running_server_and_only_what_it_does_not_know_is_deleted(
    world: &World,
) {
    let server = Replica::start(world.start.clone()).await;
    let days = days(world).await;
    let before = everything(world).await;
    testbed::restore(MANAGEMENT, &days.snapshot.0);
    nothing_else_is_deleted(world, &days, &before).await;
    println!("the server ended by itself {} times", server.ended());
}

/// A namespace with many services in both clusters.
async fn crowd(world: &World) -> Shop {
    let shop = world.shop().await;
    let namespace = &shop.namespace;
    let service = |number| {
        format!(
            r#"---
apiVersion: v1
kind: Service
metadata:
  name: crowd-{number}
  namespace: {namespace}
  annotations: {{ discovery.mesh.gloo.solo.io/enabled: "true" }}
spec:
  selector: {{ app: crowd }}
  ports: [{{ name: http, port: 9080 }}]
"#
        )
    };
    let text: String = (0..CROWD).map(service).collect();
    for cluster in &world.clusters {
        yaml::apply(cluster, &text).await.unwrap();
    }
    let destinations = world.own("Destination");
    for number in 0..CROWD {
        for cluster in ["cluster-1", "cluster-2"] {
            let name = format!("crowd-{number}-{namespace}-{cluster}");
            world.until(&destinations, &name, |_| true).await;
        }
    }
    shop
}

/// What was made of a crowd's policy in both clusters.
async fn made(world: &World, crowd: &Shop) -> usize {
    let all = everything(world).await;
    let of_policy = all
        .keys()
        .filter(|name| name.contains("VirtualService") && name.contains(&crowd.namespace));
    of_policy.count()
}

/// A mass delete that follows from the past waits for a person in each cluster, and comes when it is released.
async fn the_mass_is_held_until_it_is_released(world: &World, crowd: &Shop, whole: usize) {
    let clusters = world.own("KubernetesCluster");
    for cluster in ["cluster-1", "cluster-2"] {
        world
            .until(&clusters, cluster, is("MassDeleteHeld", "True"))
            .await;
    }
    assert_eq!(made(world, crowd).await, whole, "all of it is there");
    for cluster in ["cluster-1", "cluster-2"] {
        let object = clusters.get(cluster).await.unwrap();
        let held = ferromesh_e2e::world::found(&object, "MassDeleteHeld").unwrap();
        let message = held["message"].as_str().unwrap().to_owned();
        let number = message
            .split(|letter: char| !letter.is_ascii_digit())
            .find(|part| !part.is_empty())
            .unwrap_or_else(|| panic!("no number in {message}"));
        let patch = json!({ "metadata": { "annotations": { RELEASE: number } } });
        clusters
            .patch(cluster, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }
    eventually("what was released is deleted", async || {
        (made(world, crowd).await == 0).then_some(())
    })
    .await;
}

/// A crowd that had no policy when the snapshot was taken, and has one.
async fn young_crowd(world: &World) -> (Shop, File, usize) {
    let crowd = crowd(world).await;
    let snapshot = File::new("crowd.db");
    testbed::snapshot(MANAGEMENT, &snapshot.0);
    put(world, &crowd, "crowd", "2s").await;
    settled(world, &crowd, "crowd", "2s").await;
    let whole = made(world, &crowd).await;
    assert!(whole > 4 * CROWD, "{whole}");
    (crowd, snapshot, whole)
}

pub(crate) async fn a_mass_delete_that_follows_from_the_past_waits_for_a_person(world: &World) {
    let server = Replica::start(world.start.clone()).await;
    let (crowd, snapshot, whole) = young_crowd(world).await;
    server.end().await;
    testbed::restore(MANAGEMENT, &snapshot.0);
    let _server = Replica::start(world.start.clone()).await;
    the_mass_is_held_until_it_is_released(world, &crowd, whole).await;
}

pub(crate) async fn a_mass_delete_that_follows_from_the_past_waits_for_a_person_under_a_running_server(
    world: &World,
) {
    let _server = Replica::start(world.start.clone()).await;
    let (crowd, snapshot, whole) = young_crowd(world).await;
    testbed::restore(MANAGEMENT, &snapshot.0);
    the_mass_is_held_until_it_is_released(world, &crowd, whole).await;
}

/// The certificate authorities of both clusters.
async fn authorities(world: &World) -> Vec<Secret> {
    let mut found = Vec::new();
    for cluster in &world.clusters {
        let secrets: Api<Secret> = Api::namespaced(cluster.clone(), "istio-system");
        found.push(secrets.get(CACERTS_SECRET).await.unwrap());
    }
    found
}

/// What `roots.yaml` is made of, by the commands that docs/operations/backup-and-restore.md names.
fn roots() -> String {
    let secrets = [
        "get",
        "secrets",
        "-n",
        NAMESPACE,
        "--field-selector",
        "type=certificates.mesh.gloo.solo.io/generated_signing_cert",
        "-o",
        "yaml",
    ];
    let maps = [
        "get",
        "configmaps",
        "-n",
        NAMESPACE,
        "-l",
        "owner.networking.mesh.gloo.solo.io",
        "-o",
        "yaml",
    ];
    let (secrets, maps) = (
        testbed::kubectl(MANAGEMENT, &secrets),
        testbed::kubectl(MANAGEMENT, &maps),
    );
    format!("{secrets}---\n{maps}")
}

pub(crate) async fn a_root_that_is_younger_than_the_snapshot_is_put_back_and_no_other_is_made(
    world: &World,
) {
    let server = Replica::start(world.start.clone()).await;
    let meshes = world.own("VirtualMesh");
    world.until(&meshes, "shop", is("TrustReady", "True")).await;
    server.end().await;
    let (before, stood) = (authorities(world).await, everything(world).await);
    let file = File::new("roots.yaml");
    fs::write(&file.0, roots()).unwrap();
    let put_back = || testbed::kubectl(MANAGEMENT, &["apply", "-f", file.0.to_str().unwrap()]);

    // The day before: neither virtual mesh nor root.
    testbed::kubectl(
        MANAGEMENT,
        &["delete", "virtualmesh", "shop", "-n", NAMESPACE],
    );
    testbed::kubectl(MANAGEMENT, &["delete", "-f", file.0.to_str().unwrap()]);
    let snapshot = File::new("rootless.db");
    testbed::snapshot(MANAGEMENT, &snapshot.0);

    testbed::restore(MANAGEMENT, &snapshot.0);
    put_back();
    break_glass(world).await;
    yaml::apply(&world.management, ferromesh_e2e::world::VIRTUAL_MESH)
        .await
        .unwrap();
    let _server = Replica::start(world.start.clone()).await;
    mend_glass(world).await;
    world.until(&meshes, "shop", is("TrustReady", "True")).await;
    let shop = world.shop().await;
    put(world, &shop, "after", "2s").await;
    settled(world, &shop, "after", "2s").await;
    for (before, after) in before.iter().zip(authorities(world).await) {
        assert_eq!(before.data, after.data, "certificates were made anew");
    }
    let lost = lost(&stood, &everything(world).await, |_| true);
    assert!(lost.is_empty(), "deleted or made anew: {lost:?}");
}

pub(crate) async fn a_managed_cluster_goes_back_and_is_made_as_it_should_be(world: &World) {
    let server = Replica::start(world.start.clone()).await;
    let older = world.shop().await;
    put(world, &older, "older", "2s").await;
    settled(world, &older, "older", "2s").await;
    let deleted = world.shop().await;
    put(world, &deleted, "deleted", "3s").await;
    settled(world, &deleted, "deleted", "3s").await;
    let snapshot = File::new("managed.db");
    testbed::snapshot(2, &snapshot.0);

    put(world, &older, "older", "4s").await;
    settled(world, &older, "older", "4s").await;
    let name = deleted.name("deleted");
    let policies = world.traffic_policies();
    policies
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    for cluster in [0, 1] {
        let services = world.istio(cluster, "VirtualService", &deleted.namespace);
        world.until_gone(&services, "reviews").await;
    }
    let younger = world.shop().await;
    put(world, &younger, "younger", "5s").await;
    settled(world, &younger, "younger", "5s").await;
    let (first, authorities_before) = (identities(world, 0).await, authorities(world).await);

    testbed::restore(2, &snapshot.0);
    // The service of the second cluster is not there any more, and nothing else is different.
    let destinations = world.own("Destination");
    world
        .until_gone(&destinations, &younger.destination("cluster-2"))
        .await;
    for shop in [&older, &younger] {
        let services = world.istio(0, "VirtualService", &shop.namespace);
        world.until(&services, "reviews", |_| true).await;
    }
    let services = world.istio(1, "VirtualService", &older.namespace);
    let has_timeout = |object: &_| timeout(object) == Some("4s");
    world.until(&services, "reviews", has_timeout).await;
    let services = world.istio(1, "VirtualService", &deleted.namespace);
    world.until_gone(&services, "reviews").await;
    // The local one of the other cluster's service is known again where it was forgotten.
    let host = format!("reviews.{}.svc.cluster-1.global", younger.namespace);
    let entries = world.istio(1, "ServiceEntry", "istio-system");
    world.until(&entries, &host, |_| true).await;
    clusters_are_ready(world).await;
    let away = younger.destination("cluster-2");
    let away_host = format!("reviews.{}.svc.cluster-2.global", younger.namespace);
    let is_kept = |name: &str| !name.contains(&away) && !name.contains(&away_host);
    let lost = lost(&first, &identities(world, 0).await, is_kept);
    assert!(lost.is_empty(), "in the other cluster: {lost:?}");
    for (before, after) in authorities_before.iter().zip(authorities(world).await) {
        assert_eq!(before.data, after.data, "certificates were made anew");
    }
    assert_eq!(server.ended(), 0, "the server has ended");
}
