use std::time::Duration;

use ferromesh_runtime::{
    backoff::Jitter,
    lease::{Claim, Config, Ended, Error, Fence, Lease},
};
use k8s_openapi::api::coordination::v1::Lease as Record;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::apiserver::{ApiServer, Fault, Verb};

const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";

struct Candidate {
    claim: watch::Receiver<Claim>,
    fence: Fence,
    task: JoinHandle<Result<Ended, Error>>,
    cancel: CancellationToken,
}

fn candidate(server: &ApiServer, identity: &str, seed: u64) -> Candidate {
    let config = Config::new("home", "leader", identity);
    let lease = Lease::new(server.client(), config, Jitter::seeded(seed)).unwrap();
    let cancel = CancellationToken::new();
    Candidate {
        claim: lease.claim(),
        fence: lease.fence(),
        task: tokio::spawn(lease.run(cancel.clone())),
        cancel,
    }
}

impl Candidate {
    async fn until(&mut self, condition: impl FnMut(&Claim) -> bool) -> Claim {
        let waited = tokio::time::timeout(Duration::from_mins(10), self.claim.wait_for(condition));
        waited
            .await
            .expect("in time")
            .expect("the lease runs")
            .clone()
    }

    async fn held(&mut self) {
        self.until(Claim::is_held).await;
    }

    /// Writes something in the name of the claim. Returns when it has been sent.
    async fn sends(&self, client: &Client) -> JoinHandle<kube::Result<Record>> {
        let leases: Api<Record> = Api::namespaced(self.fence.around(client), "home");
        let other = Record {
            metadata: ObjectMeta {
                name: Some("other".into()),
                ..ObjectMeta::default()
            },
            ..Record::default()
        };
        let sent = tokio::spawn(async move { leases.create(&PostParams::default(), &other).await });
        tokio::time::sleep(Duration::from_millis(1)).await;
        sent
    }
}

/// A way to an API server on which everything takes so long.
fn slow(server: &ApiServer, delay: Duration) -> Client {
    let client = server.client();
    let send = move |request| {
        let client = client.clone();
        async move {
            tokio::time::sleep(delay).await;
            client.send(request).await
        }
    };
    Client::new(tower::service_fn(send), "default")
}

fn record(holder: &str, renewed: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "namespace": "home", "name": "leader" },
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed, "leaseTransitions": 3 },
    })
}

fn stored(server: &ApiServer) -> Value {
    server.get(LEASES, "home/leader").expect("the lease exists")["spec"].take()
}

#[tokio::test(start_paused = true)]
async fn the_first_candidate_holds_and_the_second_sees_who() {
    let server = ApiServer::new();
    let mut first = candidate(&server, "first", 1);
    first.held().await;
    let mut second = candidate(&server, "second", 2);
    let claim = second.until(|claim| *claim != Claim::Unknown).await;
    assert_eq!(
        claim,
        Claim::Foreign {
            holder: "first".into()
        }
    );
    assert_eq!(stored(&server)["leaseDurationSeconds"], 15);
}

#[tokio::test(start_paused = true)]
async fn a_silent_holder_is_replaced_only_after_its_time_by_our_clock() {
    // One record was renewed, as it says, long ago; the other will be in the future.
    for renewed in ["2001-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"] {
        let server = ApiServer::new();
        server.apply(LEASES, record("silent", renewed));
        let began = Instant::now();
        let mut candidate = candidate(&server, "next", 1);
        candidate.held().await;
        let waited = began.elapsed();
        assert!(
            waited >= Duration::from_secs(15) && waited < Duration::from_secs(18),
            "{waited:?}"
        );
        assert_eq!(stored(&server)["holderIdentity"], "next");
        assert_eq!(stored(&server)["leaseTransitions"], 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_whose_clock_is_wrong_is_left_alone_while_it_renews() {
    let server = ApiServer::new();
    server.apply(LEASES, record("slow clock", "2001-01-01T00:00:00.000000Z"));
    let candidate = candidate(&server, "next", 1);
    for second in 1..60 {
        tokio::time::sleep(Duration::from_secs(14)).await;
        server.apply(
            LEASES,
            record(
                "slow clock",
                &format!("2001-01-01T00:00:{second:02}.000000Z"),
            ),
        );
        assert!(!candidate.claim.borrow().is_held());
    }
    assert_eq!(stored(&server)["holderIdentity"], "slow clock");
}

#[tokio::test(start_paused = true)]
async fn the_time_that_the_holder_promised_counts_and_not_ours() {
    let server = ApiServer::new();
    let mut record = record("patient", "2001-01-01T00:00:00.000000Z");
    record["spec"]["leaseDurationSeconds"] = json!(60);
    server.apply(LEASES, record);
    let began = Instant::now();
    candidate(&server, "next", 1).held().await;
    assert!(
        began.elapsed() >= Duration::from_mins(1),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn is_released_on_exit_and_taken_at_the_next_attempt() {
    let server = ApiServer::new();
    let mut first = candidate(&server, "first", 1);
    first.held().await;
    let mut second = candidate(&server, "second", 2);
    second.until(|claim| *claim != Claim::Unknown).await;

    first.cancel.cancel();
    assert_eq!(first.task.await.unwrap().unwrap(), Ended::Released);
    assert_eq!(stored(&server)["holderIdentity"], Value::Null);
    assert!(!first.claim.borrow().is_held());
    let released = Instant::now();
    second.held().await;
    assert!(
        released.elapsed() < Duration::from_secs(3),
        "{:?}",
        released.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_never_held_ends_without_a_word() {
    let server = ApiServer::new();
    server.apply(LEASES, record("other", "2001-01-01T00:00:00.000000Z"));
    let mut candidate = candidate(&server, "next", 1);
    candidate.until(|claim| *claim != Claim::Unknown).await;
    candidate.cancel.cancel();
    assert_eq!(candidate.task.await.unwrap().unwrap(), Ended::NeverHeld);
    assert_eq!(stored(&server)["holderIdentity"], "other");
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_renew_gives_up_before_others_may_take_over() {
    for fault in [Fault::Refuse(503), Fault::Hang] {
        let server = ApiServer::new();
        let mut holder = candidate(&server, "holder", 1);
        holder.held().await;
        let cut = Instant::now();
        server.fail_all(&fault);
        let error = holder.task.await.unwrap().unwrap_err();
        let lasted = cut.elapsed();
        assert!(matches!(error, Error::Expired { .. }), "{error}");
        assert!(lasted <= Duration::from_secs(10), "{lasted:?}");
        assert!(!holder.claim.borrow().is_held());
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_does_not_end_a_claim() {
    let server = ApiServer::new();
    let mut holder = candidate(&server, "holder", 1);
    holder.held().await;
    for _ in 0..10 {
        server.fail(Verb::Replace, Fault::Refuse(500));
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert!(holder.claim.borrow().is_held());
        server.heal();
        tokio::time::sleep(Duration::from_secs(4)).await;
    }
    assert!(!holder.task.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_took_by_force_is_lost_at_once() {
    let server = ApiServer::new();
    let mut holder = candidate(&server, "holder", 1);
    holder.held().await;
    server.apply(LEASES, record("usurper", "2001-01-01T00:00:00.000000Z"));
    let taken = Instant::now();
    let error = holder.task.await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"the lease home/leader was taken by "usurper""#
    );
    assert!(
        taken.elapsed() < Duration::from_secs(3),
        "{:?}",
        taken.elapsed()
    );
    assert_eq!(stored(&server)["holderIdentity"], "usurper");
}

#[tokio::test(start_paused = true)]
async fn a_claim_expires_by_itself_though_nobody_says_so() {
    let server = ApiServer::new();
    let mut holder = candidate(&server, "holder", 1);
    let claim = holder.until(Claim::is_held).await;
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(!claim.is_held());
}

#[tokio::test(start_paused = true)]
async fn renewals_wake_nobody_and_move_the_end_of_the_claim() {
    let server = ApiServer::new();
    let mut holder = candidate(&server, "holder", 1);
    holder.held().await;
    holder.claim.mark_unchanged();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!holder.claim.has_changed().unwrap());
    assert!(holder.claim.borrow().is_held());
    assert!(server.requests(Verb::Replace).len() > 20);
}

/// Three candidates, each with a way to the API server that fails at random: at no moment do two hold.
#[tokio::test(start_paused = true)]
async fn two_candidates_never_hold_at_the_same_time() {
    let mut terms = 0;
    for seed in 0..6 {
        let server = ApiServer::new();
        let mut chance = Jitter::seeded(seed);
        let ways: Vec<_> = (0..3).map(|_| server.another_way()).collect();
        let stand =
            |n: usize, term: u64| candidate(&ways[n], &format!("{n} in term {term}"), seed + term);
        let mut candidates = [stand(0, 0), stand(1, 0), stand(2, 0)];
        for step in 1..1000_u64 {
            let way = &ways[usize::try_from(step % 3).unwrap()];
            match chance.fraction() {
                0.0..0.2 => way.fail_all(&Fault::Hang),
                0.2..0.4 => way.fail_all(&Fault::Refuse(500)),
                0.4..0.5 => way.fail(Verb::Replace, Fault::Refuse(409)),
                _ => way.heal(),
            }
            tokio::time::sleep(Duration::from_millis(700)).await;
            let held = candidates
                .iter()
                .filter(|candidate| candidate.claim.borrow().is_held());
            assert!(held.count() <= 1, "seed {seed}, step {step}");
            for (n, candidate) in candidates.iter_mut().enumerate() {
                if candidate.task.is_finished() {
                    terms += 1;
                    *candidate = stand(n, step);
                }
            }
        }
    }
    assert!(
        terms > 20,
        "the lease was lost {terms} times only: too little was tried"
    );
}

#[tokio::test]
async fn a_rhythm_that_cannot_work_is_refused() {
    let server = ApiServer::new();
    let good = Config::new("home", "leader", "me");
    let second = Duration::from_secs(1);
    let bad = [
        Config {
            duration: good.renew_deadline,
            ..good.clone()
        },
        Config {
            retry: good.renew_deadline,
            ..good.clone()
        },
        Config {
            retry: Duration::ZERO,
            ..good.clone()
        },
        Config {
            duration: good.duration + second / 2,
            ..good.clone()
        },
    ];
    for config in bad {
        let refused = Lease::new(server.client(), config.clone(), Jitter::seeded(1));
        assert!(matches!(refused, Err(Error::Rhythm { .. })), "{config:?}");
    }
    assert!(Lease::new(server.client(), good, Jitter::seeded(1)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_given_up_when_what_was_sent_is_answered_though_its_caller_has_gone() {
    let server = ApiServer::new();
    let mut holder = candidate(&server, "holder", 1);
    holder.held().await;
    let sent = holder.sends(&slow(&server, Duration::from_secs(3))).await;
    sent.abort();
    holder.cancel.cancel();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stored(&server)["holderIdentity"], "holder");
    assert_eq!(holder.task.await.unwrap().unwrap(), Ended::Released);
    assert!(server.get(LEASES, "home/other").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_left_to_expire_while_what_was_sent_is_not_answered() {
    let server = ApiServer::new();
    let mut holder = candidate(&server, "holder", 1);
    holder.held().await;
    let way = server.another_way();
    way.fail_all(&Fault::Hang);
    let sent = holder.sends(&way.client()).await;
    holder.cancel.cancel();
    assert_eq!(holder.task.await.unwrap().unwrap(), Ended::Abandoned);
    assert_eq!(stored(&server)["holderIdentity"], "holder");
    let error = sent.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("lease is not held"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_is_given_up_when_the_lease_is_lost() {
    let server = ApiServer::new();
    let mut holder = candidate(&server, "holder", 1);
    holder.held().await;
    let way = server.another_way();
    let sent = holder.sends(&slow(&way, Duration::from_secs(30))).await;
    server.fail_all(&Fault::Hang);
    assert!(sent.await.unwrap().is_err());
    assert!(!holder.claim.borrow().is_held());
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(server.get(LEASES, "home/other").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_fenced_client_reads_always_and_writes_only_while_the_lease_is_held() {
    let server = ApiServer::new();
    server.apply(LEASES, record("somebody", "2026-01-01T00:00:00.000000Z"));
    let (claim, seen) = watch::channel(Claim::Unknown);
    let api: Api<Record> = Api::namespaced(Fence::new(seen).around(&server.client()), "home");
    let write = async || {
        let record = api.get("leader").await.expect("it may be read");
        let written = api.replace("leader", &PostParams::default(), &record).await;
        written.map(drop).map_err(|error| error.to_string())
    };
    let refused = write().await.unwrap_err();
    assert!(refused.contains("lease is not held"), "{refused}");

    let until = Instant::now() + Duration::from_secs(10);
    claim.send_replace(Claim::Held { until });
    write().await.unwrap();
    // Nobody has told that it is over.
    tokio::time::sleep(Duration::from_secs(10)).await;
    write().await.unwrap_err();
    assert_eq!(server.requests(Verb::Replace).len(), 1);
}
