//! Refusals, silence, broken connections.

use std::time::Duration;

use ferromesh_apply::{Error, Outcome, Sight};
use ferromesh_testkit::fakeapi::{Fault, Request, Verb};
use serde_json::json;
use tokio::time::Instant;

use super::bench::{Bench, hosts, route, routes};

fn applies(request: &Request) -> bool {
    request.verb == Verb::Apply
}

async fn synced() -> Bench {
    let mut bench = Bench::new();
    bench.synced().await;
    bench
}

/// Wants an object and returns why it is not written at first.
async fn first_error(bench: &mut Bench, fault: Fault) -> Error {
    bench.api.fail(fault, applies);
    bench.want(&route("a"), hosts("a"));
    match bench.outcome(&route("a")).await {
        Outcome::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_told_by_what_they_mean() {
    let status = |code: u16, message: &str, details: serde_json::Value| {
        Fault::Status(json!({
            "kind": "Status", "status": "Failure", "code": code, "message": message, "details": details,
        }))
    };
    let namespace = json!({ "kind": "namespaces", "name": "shop" });
    let terminating = json!({ "causes": [{ "reason": "NamespaceTerminating", "message": "" }] });
    let undeclared =
        "failed to create typed patch object (…): .spec.x: field not declared in schema";
    for (fault, word) in [
        (Fault::refuse(400), "invalid"),
        (Fault::refuse(401), "forbidden"),
        (Fault::refuse(403), "forbidden"),
        (status(403, "", terminating), "not_found"),
        (
            status(404, "namespaces \"shop\" not found", namespace),
            "not_found",
        ),
        (Fault::refuse(404), "not_served"),
        (Fault::refuse(409), "conflict"),
        (Fault::refuse(413), "invalid"),
        (Fault::refuse(422), "invalid"),
        (Fault::refuse(429), "throttled"),
        (status(500, undeclared, json!(null)), "invalid"),
        (Fault::refuse(500), "unreachable"),
        (Fault::refuse(503), "unreachable"),
        (Fault::Break, "unreachable"),
        (Fault::Answer("<html>"), "unreachable"),
        (Fault::Hang, "timeout"),
    ] {
        let mut bench = synced().await;
        let text = format!("{fault:?}");
        let error = first_error(&mut bench, fault).await;
        assert_eq!(error.as_str(), word, "{text}");
        assert!(
            error
                .to_string()
                .contains("virtualservices.networking.istio.io shop/a"),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_failed_is_tried_again_until_it_stands() {
    for fault in [
        Fault::refuse(403),
        Fault::refuse(409),
        Fault::refuse(422),
        Fault::refuse(429),
        Fault::refuse(500),
        Fault::Break,
        Fault::LoseAnswer,
        Fault::Hang,
    ] {
        let mut bench = synced().await;
        bench.api.fail_times(4, fault, applies);
        bench.want(&route("a"), hosts("a"));
        bench.until("it stands", Bench::is_equal).await;
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_at_an_object_become_rarer() {
    let mut bench = synced().await;
    bench.api.fail(Fault::refuse(500), applies);
    bench.want(&route("a"), hosts("a"));
    bench.pass(Duration::from_mins(1)).await;
    let first = bench.api.writes().len();
    bench.pass(Duration::from_mins(9)).await;
    let next = bench.api.writes().len() - first;
    assert!((5..=12).contains(&first), "{first} in the first minute");
    assert!(next <= 9 * 5, "{next} in the next nine");
}

#[tokio::test(start_paused = true)]
async fn a_throttled_cluster_is_left_alone_for_as_long_as_it_asks() {
    let mut bench = synced().await;
    let (nearly, after) = (Duration::from_secs(29), Duration::from_secs(30));
    let fault = Fault::Refuse {
        code: 429,
        retry_after: Some(after),
    };
    bench.api.fail_times(1, fault, applies);
    let began = Instant::now();
    bench.want(&route("a"), hosts("a"));
    bench
        .until("it was refused", |bench| !bench.api.writes().is_empty())
        .await;
    for at in 0..20 {
        bench.want(&route(&format!("b{at}")), hosts("b"));
    }
    bench.pass(nearly).await;
    assert_eq!(bench.api.writes().len(), 1);
    bench.until("all stand", Bench::is_equal).await;
    assert!(
        began.elapsed() < after + Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_cannot_answer_now_is_asked_one_request_at_a_time() {
    for code in [503, 504] {
        let mut bench = synced().await;
        bench.api.fail(Fault::refuse(code), applies);
        for at in 0..500 {
            bench.want(&route(&format!("r{at}")), hosts("a"));
        }
        bench.pass(Duration::from_mins(10)).await;
        let asked = bench.api.writes().len();
        assert!(
            asked <= 16 + 40,
            "it was asked {asked} times in ten minutes"
        );
        bench.api.heal();
        let began = Instant::now();
        bench.until("all stand", Bench::is_equal).await;
        assert!(
            began.elapsed() < Duration::from_mins(1),
            "{:?}",
            began.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn one_object_that_is_refused_does_not_delay_the_others() {
    let mut bench = synced().await;
    bench.api.fail(Fault::refuse(422), |request| {
        applies(request) && request.name == "bad"
    });
    bench.want(&route("bad"), hosts("a"));
    let began = Instant::now();
    for at in 0..100 {
        bench.want(&route(&format!("good{at}")), hosts("a"));
    }
    bench
        .until("the others stand", |bench| bench.api.writes().len() >= 101)
        .await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_is_tried_at_once() {
    let mut bench = synced().await;
    bench.api.fail_times(6, Fault::refuse(422), applies);
    bench.want(&route("a"), hosts("bad"));
    bench
        .until("it was refused often", |bench| {
            bench.api.writes().len() == 6
        })
        .await;
    let began = Instant::now();
    bench.want(&route("a"), hosts("good"));
    bench.until("it stands", Bench::is_equal).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_dead_cluster_blocks_neither_the_handle_nor_another_cluster() {
    let mut dead = synced().await;
    dead.api.fail(Fault::Hang, |_| true);
    let mut alive = synced().await;
    let began = Instant::now();
    for at in 0..2000 {
        dead.want(&route(&format!("r{at}")), hosts("a"));
        alive.want(&route(&format!("r{at}")), hosts("a"));
    }
    assert_eq!(began.elapsed(), Duration::ZERO, "telling takes no time");
    alive.until("it stands", Bench::is_equal).await;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );

    dead.pass(Duration::from_mins(10)).await;
    let asked = dead.api.writes().len();
    assert!(
        asked <= 16 + 40,
        "a dead cluster was asked {asked} times in ten minutes"
    );
    dead.api.heal();
    dead.until("it stands", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_listen_delays_nothing() {
    let mut bench = synced().await;
    for at in 0..1000 {
        bench.want(&route(&format!("r{at}")), hosts("a"));
    }
    let deadline = Instant::now() + Duration::from_mins(1);
    while !bench.is_equal() {
        assert!(Instant::now() < deadline, "writing waits for the listener");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for at in 0..1000 {
        let id = route(&format!("r{at}"));
        bench
            .until("it is told in the end", |bench| bench.last(&id).is_some())
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_watched_is_told_and_comes_back() {
    let mut bench = synced().await;
    bench.api.fail(Fault::refuse(403), |request| {
        request.plural == "virtualservices"
    });
    bench.api.end_watches();
    bench
        .sees(&routes(), |sight| {
            matches!(sight, Sight::Failing(Error::Forbidden { .. }))
        })
        .await;
    bench.api.heal();
    bench
        .sees(&routes(), |sight| matches!(sight, Sight::Watched))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_and_a_forgotten_history_lose_nothing() {
    let mut bench = synced().await;
    bench.wanted.set(&route("a"), hosts("a"));
    bench.complete().await;
    for _ in 0..3 {
        bench.api.fail(Fault::Break, |request| {
            matches!(request.verb, Verb::Watch | Verb::List)
        });
        bench.api.compact();
        bench.pass(Duration::from_mins(2)).await;
        bench
            .api
            .remove(&super::bench::served(&routes()), super::bench::NS, "a");
        bench.api.heal();
        bench.until("it stands again", Bench::is_equal).await;
    }
}
