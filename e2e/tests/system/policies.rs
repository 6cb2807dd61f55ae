//! What people write, and what becomes of it in the clusters.

use ferromesh_e2e::world::timeout;
use ferromesh_e2e::yaml;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::world::{World, found, is, is_current};

const TIMEOUT: &str = "{ requestTimeout: 2s }";

pub(crate) async fn a_new_service_is_discovered_and_known_in_both_clusters(world: &World) {
    let shop = world.shop().await;
    for (here, there) in [(0, "cluster-2"), (1, "cluster-1")] {
        let entries = world.istio(here, "ServiceEntry", "istio-system");
        let host = format!("reviews.{}.svc.{there}.global", shop.namespace);
        // By way of the gateway, once the pods are known.
        let by_gateway = |entry: &DynamicObject| {
            entry.data["spec"]["endpoints"][0]["ports"]["http"] == json!(15443)
        };
        let entry = world.until(&entries, &host, by_gateway).await;
        assert_eq!(entry.data["spec"]["hosts"], json!([host]));
    }
}

pub(crate) async fn a_policy_reaches_every_cluster_that_it_concerns_and_says_so(world: &World) {
    let shop = world.shop().await;
    yaml::apply(&world.management, &shop.policy("timeout", TIMEOUT))
        .await
        .unwrap();
    for cluster in [0, 1] {
        let local = world.istio(cluster, "VirtualService", &shop.namespace);
        let object = world.until(&local, "reviews", |_| true).await;
        assert_eq!(timeout(&object), Some("2s"));
        let there = ["cluster-2", "cluster-1"][cluster];
        let remote = world.istio(cluster, "VirtualService", "istio-system");
        world
            .until(&remote, &shop.destination(there), |_| true)
            .await;
    }
    let policies = world.own("TrafficPolicy");
    let is_told = |object: &_| is("Programmed", "True")(object) && is_current(object);
    let policy = world.until(&policies, &shop.name("timeout"), is_told).await;
    assert_eq!(policy.data["status"]["state"], "ACCEPTED");
    let destinations = policy.data["status"]["destinations"].as_object().unwrap();
    assert_eq!(destinations.len(), 2);
}

pub(crate) async fn deleting_a_policy_takes_away_what_it_made_and_nothing_else(world: &World) {
    let shop = world.shop().await;
    yaml::apply(&world.management, &shop.policy("timeout", TIMEOUT))
        .await
        .unwrap();
    let services = [0, 1].map(|cluster| world.istio(cluster, "VirtualService", &shop.namespace));
    for services in &services {
        world.until(services, "reviews", |_| true).await;
    }
    let name = shop.name("timeout");
    world
        .traffic_policies()
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    for (cluster, services) in services.iter().enumerate() {
        world.until_gone(services, "reviews").await;
        let rules = world.istio(cluster, "DestinationRule", &shop.namespace);
        world.until(&rules, "reviews", |_| true).await;
    }
}

pub(crate) async fn an_object_that_somebody_edits_or_deletes_is_as_it_was(world: &World) {
    let shop = world.shop().await;
    yaml::apply(&world.management, &shop.policy("timeout", TIMEOUT))
        .await
        .unwrap();
    let services = world.istio(0, "VirtualService", &shop.namespace);
    world.until(&services, "reviews", |_| true).await;
    let patch = json!([{ "op": "replace", "path": "/spec/http/0/timeout", "value": "99s" }]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
    let edited = services
        .patch("reviews", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(timeout(&edited), Some("99s"));
    world
        .until(&services, "reviews", |object| timeout(object) == Some("2s"))
        .await;
    services
        .delete("reviews", &DeleteParams::default())
        .await
        .unwrap();
    let uid = edited.uid();
    let again = world
        .until(&services, "reviews", |object| object.uid() != uid)
        .await;
    assert_eq!(timeout(&again), Some("2s"));
}

pub(crate) async fn an_object_of_somebody_else_is_left_alone_and_the_policy_says_so(world: &World) {
    let shop = world.shop().await;
    let theirs = format!(
        r"
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{ name: reviews, namespace: {} }}
spec:
  hosts: [reviews]
  http: [{{ route: [{{ destination: {{ host: reviews }} }}] }}]
",
        shop.namespace
    );
    yaml::apply(&world.clusters[1], &theirs).await.unwrap();
    yaml::apply(&world.management, &shop.policy("timeout", TIMEOUT))
        .await
        .unwrap();
    let policies = world.own("TrafficPolicy");
    let name = shop.name("timeout");
    let policy = world
        .until(&policies, &name, is("Programmed", "False"))
        .await;
    let programmed = found(&policy, "Programmed").unwrap();
    assert_eq!(programmed["reason"], "ForeignObject");
    let message = programmed["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("{}/reviews", shop.namespace)),
        "{message}"
    );
    let services = world.istio(1, "VirtualService", &shop.namespace);
    let object = services.get("reviews").await.unwrap();
    assert_eq!(object.data["spec"]["hosts"], json!(["reviews"]));
    services
        .delete("reviews", &DeleteParams::default())
        .await
        .unwrap();
    world
        .until(&policies, &name, is("Programmed", "True"))
        .await;
    world
        .until(&services, "reviews", |object| timeout(object) == Some("2s"))
        .await;
}

pub(crate) async fn a_policy_breaks_with_a_service_and_heals_with_it(world: &World) {
    let shop = world.shop().await;
    let shift = format!(
        "{{ trafficShift: {{ destinations: [{{ kubeService: {{ name: reviews, namespace: {}, clusterName: cluster-2 }} }}] }} }}",
        shop.namespace
    );
    yaml::apply(&world.management, &shop.policy("shift", &shift))
        .await
        .unwrap();
    let policies = world.own("TrafficPolicy");
    let name = shop.name("shift");
    let has_state = |state: &'static str| {
        move |object: &DynamicObject| object.data["status"]["state"] == *state
    };
    world.until(&policies, &name, has_state("ACCEPTED")).await;
    let services = yaml::api(&world.clusters[1], "v1", "Service", &shop.namespace);
    services
        .delete("reviews", &DeleteParams::default())
        .await
        .unwrap();
    let broken = world.until(&policies, &name, has_state("INVALID")).await;
    let destination = format!("{}.gloo-mesh.", shop.destination("cluster-1"));
    let errors = broken.data["status"]["destinations"][&destination]["errors"].to_string();
    assert!(
        errors.contains(&format!("reviews.{}.cluster-2", shop.namespace)),
        "{errors}"
    );
    yaml::apply(&world.clusters[1], &shop.reviews("v2"))
        .await
        .unwrap();
    world.until(&policies, &name, has_state("ACCEPTED")).await;
}

pub(crate) async fn a_status_that_somebody_edits_is_put_right(world: &World) {
    let shop = world.shop().await;
    yaml::apply(&world.management, &shop.policy("timeout", TIMEOUT))
        .await
        .unwrap();
    let policies = world.own("TrafficPolicy");
    let name = shop.name("timeout");
    let good = world
        .until(&policies, &name, is("Programmed", "True"))
        .await;
    let patch = Patch::Merge(json!({ "status": { "state": "FAILED" } }));
    let edited = policies
        .patch_status(&name, &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(edited.data["status"]["state"], "FAILED");
    let again = world
        .until(&policies, &name, |object| {
            object.data["status"]["state"] == "ACCEPTED"
        })
        .await;
    assert_eq!(again.data["status"], good.data["status"]);
}
