use std::time::Duration;

use ferromesh_runtime::backoff::Jitter;
use ferromesh_runtime::lease::Claim;
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Kind, Request, Verb};
use ferromesh_webhook::Metrics;
use ferromesh_webhook::certificate::Bundle;
use ferromesh_webhook::register::{BREAK_GLASS_ANNOTATION, Endpoint, Keeper, Options, Standing};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::eventually;

const GROUP: &str = "admissionregistration.k8s.io";

pub(super) fn validating() -> Kind {
    Kind::new(
        GROUP,
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    )
    .with_list("webhooks", "name")
}

pub(super) fn mutating() -> Kind {
    Kind::new(
        GROUP,
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    )
    .with_list("webhooks", "name")
}

/// One replica, with everything that it is told.
struct Replica {
    api: FakeApi,
    bundle: watch::Sender<Option<Bundle>>,
    claim: watch::Sender<Claim>,
    in_use: watch::Receiver<Option<String>>,
    standing: watch::Receiver<Standing>,
    _task: AbortOnDropHandle<()>,
}

fn api() -> FakeApi {
    let api = FakeApi::new();
    api.serve(&validating());
    api.serve(&mutating());
    api
}

fn bundle(pem: &str) -> Bundle {
    Bundle::new(pem.to_owned())
}

fn held() -> Claim {
    Claim::Held {
        until: Instant::now() + Duration::from_hours(24),
    }
}

impl Replica {
    fn new(api: &FakeApi, claim: Claim) -> Self {
        let (bundle, bundles) = watch::channel(Some(bundle("first")));
        let (claim, claims) = watch::channel(claim);
        let (sender, in_use) = watch::channel(None);
        let endpoint = Endpoint::Url("https://10.0.0.1:9443".parse().unwrap());
        let keeper = Keeper::new(
            api.client(),
            Options::new("gloo-mesh", endpoint),
            bundles,
            claims,
            sender,
            Metrics::default(),
        );
        let standing = keeper.standing();
        let run = keeper.run(Jitter::seeded(7), CancellationToken::new());
        Self {
            api: api.clone(),
            bundle,
            claim,
            in_use,
            standing,
            _task: AbortOnDropHandle::new(tokio::spawn(run)),
        }
    }

    fn stored(&self, kind: &Kind) -> Option<Value> {
        self.api.get(kind, "", "ferromesh")
    }

    fn bundles(&self) -> Vec<String> {
        [validating(), mutating()]
            .iter()
            .filter_map(|kind| self.stored(kind))
            .flat_map(|stored| stored["webhooks"].as_array().cloned().unwrap_or_default())
            .map(|webhook| {
                webhook["clientConfig"]["caBundle"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    }

    async fn reaches(&self, standing: Standing) {
        let now = self.standing.clone();
        let what = format!("{standing:?}");
        eventually(&what, || *now.borrow() == standing).await;
    }
}

fn is_test(request: &Request) -> bool {
    request.verb == Verb::Create && request.plural == "trafficpolicies"
}

/// The API server asks the webhook by the form of the registration that `mark` names.
fn asks_by(api: &FakeApi, mark: &str) {
    let message = format!(
        "admission webhook \"changes.admission.mesh.gloo.solo.io\" denied the request: this object tests whether the webhook is called, and it is [registration {mark}]"
    );
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden", "message": message});
    api.heal();
    api.fail(Fault::Status(status), is_test);
}

/// base64 of the bundles' text.
const FIRST: &str = "Zmlyc3Q=";
const SECOND: &str = "c2Vjb25k";

#[tokio::test(start_paused = true)]
async fn the_registration_is_written_and_tested() {
    let api = api();
    asks_by(&api, &bundle("first").mark);
    let replica = Replica::new(&api, held());
    replica.reaches(Standing::InUse).await;
    assert_eq!(replica.bundles(), [FIRST, FIRST, FIRST]);
    assert_eq!(*replica.in_use.borrow(), Some(bundle("first").mark));
    let webhooks = replica.stored(&validating()).unwrap()["webhooks"].clone();
    let url = webhooks[0]["clientConfig"]["url"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        url,
        format!("https://10.0.0.1:9443/validate/{}", bundle("first").mark)
    );
    let tests = api
        .requests()
        .into_iter()
        .filter(is_test)
        .collect::<Vec<_>>();
    assert!(
        tests.iter().all(|test| test.uri.contains("dryRun=All")),
        "{tests:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_ca_bundle_that_was_edited_is_put_right() {
    let api = api();
    asks_by(&api, &bundle("first").mark);
    let replica = Replica::new(&api, held());
    replica.reaches(Standing::InUse).await;
    api.edit("somebody", &validating(), "", "ferromesh", |stored| {
        stored["webhooks"][0]["clientConfig"]["caBundle"] = json!(SECOND);
        stored["webhooks"][0]["failurePolicy"] = json!("Ignore");
    });
    eventually("the bundle is put right", || {
        let webhooks = replica.stored(&validating()).unwrap()["webhooks"].clone();
        webhooks[0]["clientConfig"]["caBundle"] == FIRST && webhooks[0]["failurePolicy"] == "Fail"
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_was_deleted_is_restored() {
    let api = api();
    asks_by(&api, &bundle("first").mark);
    let replica = Replica::new(&api, held());
    replica.reaches(Standing::InUse).await;
    for kind in [validating(), mutating()] {
        api.remove(&kind, "", "ferromesh");
        eventually("it is restored", || replica.stored(&kind).is_some()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_again_and_again() {
    let api = api();
    asks_by(&api, &bundle("first").mark);
    let replica = Replica::new(&api, held());
    replica.reaches(Standing::InUse).await;
    let version = |kind| replica.stored(&kind).unwrap()["metadata"]["resourceVersion"].clone();
    let before = (version(validating()), version(mutating()));
    api.forget_requests();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!((version(validating()), version(mutating())), before);
    let tests = api.requests().into_iter().filter(is_test).count();
    assert!((8..=12).contains(&tests), "{tests} tests in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn break_glass_switches_it_off_until_the_annotation_is_gone() {
    let api = api();
    asks_by(&api, &bundle("first").mark);
    let replica = Replica::new(&api, held());
    replica.reaches(Standing::InUse).await;
    // The documented command.
    api.edit("kubectl", &validating(), "", "ferromesh", |stored| {
        stored["metadata"]["annotations"] = json!({BREAK_GLASS_ANNOTATION: "the fleet is down"});
        stored["webhooks"] = json!([]);
    });
    let reason = "the fleet is down".to_owned();
    replica.reaches(Standing::BrokenGlass { reason }).await;
    eventually("the other half is silent too", || {
        replica.bundles().is_empty()
    })
    .await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(replica.bundles(), [""; 0], "it stays off");

    api.edit("kubectl", &validating(), "", "ferromesh", |stored| {
        stored["metadata"]["annotations"] = json!({});
    });
    replica.reaches(Standing::InUse).await;
    assert_eq!(replica.bundles(), [FIRST, FIRST, FIRST]);
}

#[tokio::test(start_paused = true)]
async fn break_glass_outlasts_a_restart() {
    let api = api();
    asks_by(&api, &bundle("first").mark);
    let replica = Replica::new(&api, held());
    replica.reaches(Standing::InUse).await;
    drop(replica);
    api.edit("kubectl", &validating(), "", "ferromesh", |stored| {
        stored["metadata"]["annotations"] = json!({BREAK_GLASS_ANNOTATION: "why"});
    });
    let restarted = Replica::new(&api, held());
    let reason = "why".to_owned();
    restarted.reaches(Standing::BrokenGlass { reason }).await;
    // Whoever only annotates leaves the rest to us.
    eventually("it is silent", || restarted.bundles().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_holder_of_the_lease_writes() {
    let api = api();
    asks_by(&api, &bundle("first").mark);
    let replica = Replica::new(&api, Claim::Unknown);
    replica.reaches(Standing::Following).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(api.writes().len(), 0);
    replica.claim.send_replace(held());
    replica.reaches(Standing::InUse).await;
}

#[tokio::test(start_paused = true)]
async fn the_registration_of_another_management_plane_is_left_alone() {
    let api = api();
    asks_by(&api, &bundle("first").mark);
    let foreign = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {
            "name": "ferromesh",
            "labels": {"owner.networking.mesh.gloo.solo.io": "another-namespace"},
        },
        "webhooks": [],
    });
    api.put("somebody", &validating(), &foreign);
    let replica = Replica::new(&api, held());
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(api.writes().len(), 0);
    assert_eq!(*replica.standing.borrow(), Standing::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_new_bundle_counts_only_once_an_api_server_asks_by_it() {
    let api = api();
    let (first, second) = (bundle("first"), bundle("second"));
    asks_by(&api, &first.mark);
    let replica = Replica::new(&api, held());
    replica.reaches(Standing::InUse).await;

    replica.bundle.send_replace(Some(second.clone()));
    replica.reaches(Standing::Written).await;
    assert_eq!(replica.bundles(), [SECOND, SECOND, SECOND]);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(*replica.in_use.borrow(), Some(first.mark));

    asks_by(&api, &second.mark);
    replica.reaches(Standing::InUse).await;
    assert_eq!(*replica.in_use.borrow(), Some(second.mark));
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_ask_is_noticed() {
    let api = api();
    api.serve(&Kind::new(
        "networking.mesh.gloo.solo.io",
        "TrafficPolicy",
        "trafficpolicies",
    ));
    let replica = Replica::new(&api, held());
    replica.reaches(Standing::Written).await;
    assert_eq!(*replica.in_use.borrow(), None);
}
