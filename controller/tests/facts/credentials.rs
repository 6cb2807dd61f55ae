//! Credentials that expire.

use std::time::Duration;

use ferromesh_core::Kind;
use ferromesh_testkit::fakeapi::{FakeApi, Fault};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::estate::SHOP;
use super::world::{NAMESPACE, WHO, World, found, input, put, stored, until, virtual_services};

const ISSUED: &str = "registration.mesh.gloo.solo.io/credential-issued";
const EXPIRES: &str = "registration.mesh.gloo.solo.io/credential-expires";
/// Of an hour that begins when half of the first one is over.
const GRANTED: &str = r#"{
    "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
    "spec": { "audiences": [], "expirationSeconds": 3600 },
    "status": { "token": "second", "expirationTimestamp": "2026-11-21T11:30:00Z" }
}"#;

/// From now on the account of a cluster gets another token.
fn grant(cluster: &FakeApi) {
    cluster.fail(Fault::Answer(GRANTED), |request| {
        request.uri.contains("/serviceaccounts/east/token")
    });
}

/// Says when the credential of east expires, as registering it does.
fn annotate(world: &World) {
    let secret = input(Kind::Secret);
    world
        .management
        .edit(WHO, &secret, NAMESPACE, "east", |it| {
            it["metadata"]["annotations"] =
                json!({ ISSUED: "2026-11-21T10:00:00Z", EXPIRES: "2026-11-21T11:00:00Z" });
        });
}

fn expires(secret: &Value) -> &str {
    secret["metadata"]["annotations"][EXPIRES].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_credential_is_renewed_after_half_of_its_life_and_nothing_else_changes() {
    let mut world = World::new(&["east"]);
    annotate(&world);
    let east = world.cluster("east");
    grant(&east);
    world.start();
    world.time_out("timeout", &[], "2s");
    world.quiet().await;
    let before = stored(&east);
    assert!(!before.is_empty());
    sleep(Duration::from_mins(20)).await;
    assert_eq!(world.kubeconfigs("east").len(), 1, "it is young");
    assert_eq!(
        expires(&world.own(Kind::Secret, "east").unwrap()),
        "2026-11-21T11:00:00Z"
    );

    // Looks are spread by some minutes.
    sleep(Duration::from_mins(20)).await;
    let secret = world.own(Kind::Secret, "east").unwrap();
    assert_eq!(expires(&secret), "2026-11-21T11:30:00Z");
    let used = world.kubeconfigs("east");
    assert_eq!(used.len(), 2, "it is used at once");
    assert!(used[0].contains("first") && used[1].contains("second"));
    world.quiet().await;
    assert_eq!(stored(&east), before);
    let registered = world.own(Kind::KubernetesCluster, "east").unwrap();
    assert_eq!(found(&registered, "Ready")["status"], "True");
    // With the new one, too, what follows from policies is written.
    world.time_out("timeout", &[], "3s");
    until(&east, &virtual_services(), SHOP, "reviews", |object| {
        object["spec"]["http"][0]["timeout"] == "3s"
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_is_tried_until_it_succeeds() {
    let mut world = World::new(&["east"]);
    annotate(&world);
    let east = world.cluster("east");
    let is_asked = |uri: &str| uri.contains("/token");
    east.fail(Fault::refuse(500), move |request| is_asked(&request.uri));
    world.start();
    sleep(Duration::from_mins(80)).await;
    let attempts = east.requests().into_iter();
    let attempts = attempts.filter(|request| is_asked(&request.uri)).count();
    // In most of an hour, where attempts come to be five minutes apart.
    assert!((8..40).contains(&attempts), "{attempts}");
    assert_eq!(world.kubeconfigs("east").len(), 1);
    let registered = world.own(Kind::KubernetesCluster, "east").unwrap();
    assert_eq!(found(&registered, "Ready")["status"], "True");

    east.heal();
    grant(&east);
    sleep(Duration::from_mins(6)).await;
    assert!(world.kubeconfigs("east").len() > 1);
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_is_due_again_as_soon_as_it_is_granted_is_renewed_with_pauses() {
    let mut world = World::new(&["east"]);
    annotate(&world);
    let east = world.cluster("east");
    grant(&east);
    sleep(Duration::from_hours(1)).await;
    world.start();
    sleep(Duration::from_mins(30)).await;
    let asked = east.requests().into_iter();
    let asked = asked.filter(|it| it.uri.contains("/token")).count();
    assert!((10..40).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_does_not_say_when_it_expires_is_left_alone() {
    let world = World::with(&["east"]).await;
    let secret = world.own(Kind::Secret, "east").unwrap();
    sleep(Duration::from_hours(3)).await;
    assert_eq!(world.own(Kind::Secret, "east").unwrap(), secret);
    put(&world.management, &input(Kind::Secret), &secret);
    assert_eq!(world.kubeconfigs("east").len(), 1);
}
