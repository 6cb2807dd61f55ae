use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferromesh_runtime::tls::ServedCredential;
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Verb};
use ferromesh_webhook::Metrics;
use ferromesh_webhook::certificate::{Bundle, Error, Keeper, Options, ROTATE_CA_ANNOTATION};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::secrets;

/// A clock that a test sets.
#[derive(Clone)]
struct Clock(Arc<Mutex<Timestamp>>);

impl Clock {
    fn new() -> Self {
        let begin = "2026-11-21T00:00:00Z".parse().unwrap();
        Self(Arc::new(Mutex::new(begin)))
    }

    fn pass(&self, time: SignedDuration) {
        let mut now = self.0.lock().unwrap();
        *now += time;
    }

    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// One replica.
struct Replica {
    keeper: Keeper<Box<dyn Fn() -> Timestamp + Send>>,
    served: ServedCredential,
    bundle: watch::Receiver<Option<Bundle>>,
    in_use: watch::Sender<Option<String>>,
}

impl Replica {
    fn new(api: &FakeApi, clock: &Clock) -> Self {
        let served = ServedCredential::new();
        let (in_use, seen) = watch::channel(None);
        let names = vec!["ferromesh.gloo-mesh.svc".parse().unwrap()];
        let clock = clock.clone();
        let now: Box<dyn Fn() -> Timestamp + Send> = Box::new(move || clock.now());
        let keeper = Keeper::new(
            api.client(),
            Options::new("gloo-mesh", names),
            served.clone(),
            seen,
            Metrics::default(),
            now,
        );
        Self {
            bundle: keeper.bundle(),
            keeper,
            served,
            in_use,
        }
    }

    async fn round(&mut self) {
        self.keeper.round().await.unwrap();
    }

    fn bundle(&self) -> Bundle {
        self.bundle.borrow().clone().unwrap()
    }

    fn cas(&self) -> usize {
        self.bundle().pem.matches("BEGIN CERTIFICATE").count()
    }

    /// The leaf that is served, as DER.
    fn leaf(&self) -> Vec<u8> {
        self.served.current().unwrap().chain()[0].to_vec()
    }

    fn not_after(&self) -> Timestamp {
        self.served.current().unwrap().not_after()
    }
}

fn api() -> FakeApi {
    let api = FakeApi::new();
    api.serve(&secrets());
    api
}

fn secret(api: &FakeApi) -> Value {
    api.get(&secrets(), "gloo-mesh", "ferromesh-webhook")
        .unwrap()
}

#[tokio::test]
async fn a_certificate_is_made_once_and_served_after_a_restart() {
    let (api, clock) = (api(), Clock::new());
    let mut replica = Replica::new(&api, &clock);
    replica.round().await;
    let stored = secret(&api);
    assert_eq!(stored["type"], "kubernetes.io/tls");
    replica.round().await;
    let mut restarted = Replica::new(&api, &clock);
    restarted.round().await;
    assert_eq!(restarted.leaf(), replica.leaf());
    assert_eq!(restarted.bundle(), replica.bundle());
    assert_eq!(secret(&api), stored);
}

#[tokio::test]
async fn two_replicas_that_begin_at_once_agree() {
    let (api, clock) = (api(), Clock::new());
    let (mut first, mut second) = (Replica::new(&api, &clock), Replica::new(&api, &clock));
    first.round().await;
    // Looked when there was none yet, and comes to write when there is.
    api.fail_times(1, Fault::refuse(404), |request| request.verb == Verb::Get);
    second.round().await;
    assert_eq!(first.leaf(), second.leaf());
    assert_eq!(first.bundle(), second.bundle());
}

#[tokio::test]
async fn a_certificate_is_renewed_by_the_clock_under_the_same_ca() {
    let (api, clock) = (api(), Clock::new());
    let mut replica = Replica::new(&api, &clock);
    replica.round().await;
    let (leaf, bundle) = (replica.leaf(), replica.bundle());
    clock.pass(SignedDuration::from_hours(24 * 61));
    replica.round().await;
    assert_ne!(replica.leaf(), leaf);
    assert_eq!(replica.bundle(), bundle);
    assert!(replica.not_after() > clock.now() + SignedDuration::from_hours(24 * 80));
}

#[tokio::test]
async fn a_ca_is_replaced_only_once_api_servers_believe_the_next() {
    let (api, clock) = (api(), Clock::new());
    let mut replica = Replica::new(&api, &clock);
    replica.round().await;
    let (leaf, old) = (replica.leaf(), replica.bundle());
    replica.in_use.send_replace(Some(old.mark.clone()));

    api.edit(
        "somebody",
        &secrets(),
        "gloo-mesh",
        "ferromesh-webhook",
        |secret| {
            secret["metadata"]["annotations"][ROTATE_CA_ANNOTATION] = json!("");
        },
    );
    replica.round().await;
    let both = replica.bundle();
    assert_eq!(replica.cas(), 2);
    assert!(both.pem.contains(&old.pem));
    for _ in 0..3 {
        clock.pass(SignedDuration::from_hours(2));
        replica.round().await;
        assert_eq!(
            replica.leaf(),
            leaf,
            "nobody has been seen to believe the next CA"
        );
        assert_eq!(replica.bundle(), both);
    }

    replica.in_use.send_replace(Some(both.mark.clone()));
    replica.round().await;
    assert_eq!(
        replica.leaf(),
        leaf,
        "other API servers may not have heard yet"
    );
    // Whoever takes over need not wait anew.
    clock.pass(SignedDuration::from_secs(30));
    let mut replica = Replica::new(&api, &clock);
    replica.round().await;
    assert_ne!(replica.leaf(), leaf);
    assert_eq!(
        replica.bundle(),
        both,
        "the old one is believed during the overlap"
    );
    // Another replica comes late, and shows what the Secret holds.
    let mut other = Replica::new(&api, &clock);
    other.round().await;
    assert_eq!(other.leaf(), replica.leaf());

    clock.pass(SignedDuration::from_mins(61));
    replica.round().await;
    assert_eq!(replica.cas(), 1);
    assert!(!replica.bundle().pem.contains(&old.pem));
}

#[tokio::test]
async fn a_secret_that_is_not_ours_is_left_alone() {
    let (api, clock) = (api(), Clock::new());
    let foreign = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "ferromesh-webhook", "namespace": "gloo-mesh"},
        "data": {"tls.crt": "YQ=="},
    });
    api.put("somebody", &secrets(), &foreign);
    let before = secret(&api);
    let mut replica = Replica::new(&api, &clock);
    let refused = replica.keeper.round().await.unwrap_err();
    assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
    assert_eq!(secret(&api), before);
    assert!(replica.served.current().is_none());
}

#[tokio::test]
async fn a_damaged_secret_begins_anew() {
    let (api, clock) = (api(), Clock::new());
    let mut replica = Replica::new(&api, &clock);
    replica.round().await;
    let (leaf, bundle) = (replica.leaf(), replica.bundle());
    api.edit(
        "somebody",
        &secrets(),
        "gloo-mesh",
        "ferromesh-webhook",
        |secret| {
            secret["data"]["ca.key"] = json!("bm9uc2Vuc2U=");
        },
    );
    replica.round().await;
    assert_ne!(replica.leaf(), leaf);
    assert_ne!(replica.bundle(), bundle);
    replica.round().await;
    assert_eq!(api.writes().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_served_stays_while_the_api_server_is_away() {
    let (api, clock) = (api(), Clock::new());
    let mut replica = Replica::new(&api, &clock);
    replica.round().await;
    let leaf = replica.leaf();
    api.fail(Fault::refuse(500), |_| true);
    assert!(matches!(
        replica.keeper.round().await,
        Err(Error::Read { .. })
    ));
    assert_eq!(replica.leaf(), leaf);
}

#[tokio::test]
async fn a_secret_that_others_write_all_the_time_is_given_up_for_this_round() {
    let (api, clock) = (api(), Clock::new());
    api.fail(Fault::refuse(409), |request| request.verb == Verb::Create);
    let mut replica = Replica::new(&api, &clock);
    let refused = replica.keeper.round().await.unwrap_err();
    assert!(matches!(refused, Error::Contended { .. }), "{refused}");
}

#[tokio::test]
async fn no_key_is_shown_by_an_error_or_a_bundle() {
    let (api, clock) = (api(), Clock::new());
    let mut replica = Replica::new(&api, &clock);
    replica.round().await;
    assert!(!replica.bundle().pem.contains("PRIVATE"));
    assert!(!format!("{:?}", replica.served).contains("PRIVATE"));
    let overlap = Options::new("gloo-mesh", Vec::new()).overlap;
    assert!(
        overlap > Duration::from_mins(10),
        "slower replicas must find the time"
    );
}
