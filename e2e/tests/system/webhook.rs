//! What the API server says to people, because it asks the webhook.

use ferromesh_e2e::{eventually, yaml};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::world::{Shop, World};

/// A policy that shifts to a service that is not there.
fn astray(shop: &Shop) -> String {
    let shift = format!(
        "{{ trafficShift: {{ destinations: [{{ kubeService: {{ name: review, namespace: {}, clusterName: cluster-2 }} }}] }} }}",
        shop.namespace
    );
    shop.policy("astray", &shift)
}

fn words(refused: Result<(), kube::Error>) -> String {
    let Err(kube::Error::Api(status)) = refused else {
        panic!("it was not refused: {refused:?}");
    };
    status.message.clone()
}

pub(crate) async fn a_policy_that_would_not_work_is_refused_with_the_reason(world: &World) {
    let shop = world.shop().await;
    let said = words(yaml::apply(&world.management, &astray(&shop)).await);
    for part in [
        "spec.policy.trafficShift.destinations[0]",
        &format!("review.{}.cluster-2", shop.namespace),
    ] {
        assert!(said.contains(part), "{said}");
    }
    let stored = world
        .traffic_policies()
        .get_opt(&shop.name("astray"))
        .await
        .unwrap();
    assert!(stored.is_none());
}

pub(crate) async fn a_dry_run_gives_the_same_answer(world: &World) {
    let shop = world.shop().await;
    let tried = words(yaml::try_out(&world.management, &astray(&shop)).await);
    let applied = words(yaml::apply(&world.management, &astray(&shop)).await);
    assert_eq!(tried, applied);
    let good = shop.policy("timeout", "{ requestTimeout: 2s }");
    yaml::try_out(&world.management, &good).await.unwrap();
    let stored = world
        .traffic_policies()
        .get_opt(&shop.name("timeout"))
        .await
        .unwrap();
    assert!(stored.is_none());
}

pub(crate) async fn what_was_wrong_before_does_not_block_another_change(world: &World) {
    let shop = world.shop().await;
    let shift = |timeout: &str| {
        let shift = format!(
            "{{ {timeout} trafficShift: {{ destinations: [{{ kubeService: {{ name: reviews, namespace: {}, clusterName: cluster-2 }} }}] }} }}",
            shop.namespace
        );
        shop.policy("shift", &shift)
    };
    yaml::apply(&world.management, &shift("")).await.unwrap();
    let services = yaml::api(&world.clusters[1], "v1", "Service", &shop.namespace);
    services
        .delete("reviews", &DeleteParams::default())
        .await
        .unwrap();
    let policies = world.own("TrafficPolicy");
    let is_invalid =
        |object: &kube::api::DynamicObject| object.data["status"]["state"] == "INVALID";
    world
        .until(&policies, &shop.name("shift"), is_invalid)
        .await;
    yaml::apply(&world.management, &shift("requestTimeout: 3s,"))
        .await
        .unwrap();
    let labels = Patch::Merge(json!({ "metadata": { "labels": { "team": "reviews" } } }));
    let labelled = policies
        .patch(&shop.name("shift"), &PatchParams::default(), &labels)
        .await;
    labelled.unwrap();
}

pub(crate) async fn an_edited_registration_is_put_right(world: &World) {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(world.management.clone());
    let bundles = |configuration: ValidatingWebhookConfiguration| -> Vec<Option<ByteString>> {
        let webhooks = configuration.webhooks.unwrap_or_default();
        webhooks
            .into_iter()
            .map(|webhook| webhook.client_config.ca_bundle)
            .collect()
    };
    let before = bundles(api.get("ferromesh").await.unwrap());
    let patch = Patch::Json::<()>(
        serde_json::from_value(json!([
            { "op": "remove", "path": "/webhooks/0/clientConfig/caBundle" },
        ]))
        .unwrap(),
    );
    let edited = api
        .patch("ferromesh", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_ne!(bundles(edited), before);
    eventually("the registration is as it was", async || {
        let now = bundles(api.get("ferromesh").await.ok()?);
        (now == before).then_some(())
    })
    .await;
}
