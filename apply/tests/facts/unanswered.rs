//! What was asked for may have been done although no answer came. Then it is done once and no more.

use std::time::Duration;

use ferromesh_apply::Outcome;
use ferromesh_testkit::fakeapi::{Fault, Verb};
use serde_json::json;

use super::bench::{Bench, NS, hosts, route, routes, served};

const FAULTS: [Fault; 2] = [Fault::LoseAnswer, Fault::WithholdAnswer];

/// A cluster in which `a` stands, if it `is_there`, and in which the next such request goes unanswered.
async fn bench_with(is_there: bool, fault: Fault, verb: Verb) -> Bench {
    let mut bench = Bench::new();
    if is_there {
        bench.wanted.set(&route("a"), hosts("a"));
    }
    bench.complete().await;
    bench.pass(Duration::from_secs(5)).await;
    bench.api.forget_requests();
    bench
        .api
        .fail_times(1, fault, move |request| request.verb == verb);
    bench
}

async fn fails(bench: &mut Bench) {
    bench
        .becomes(&route("a"), |outcome| matches!(outcome, Outcome::Failed(_)))
        .await;
}

fn version(bench: &Bench) -> serde_json::Value {
    bench.stored(&route("a")).unwrap()["metadata"]["resourceVersion"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_watch_has_shown_is_not_asked_for_again() {
    for fault in FAULTS {
        for is_there in [false, true] {
            let mut bench = bench_with(is_there, fault.clone(), Verb::Apply).await;
            bench.want(&route("a"), hosts("new"));
            fails(&mut bench).await;
            bench
                .becomes(&route("a"), |outcome| matches!(outcome, Outcome::Unchanged))
                .await;
            bench.pass(Duration::from_mins(10)).await;
            assert_eq!(bench.api.writes().len(), 1);
            assert_eq!(bench.count(Verb::Get), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_nothing_has_shown_is_found_by_reading() {
    for fault in FAULTS {
        for is_there in [false, true] {
            let mut bench = bench_with(is_there, fault.clone(), Verb::Apply).await;
            bench.blind().await;
            bench.want(&route("a"), hosts("new"));
            fails(&mut bench).await;
            let written = version(&bench);
            let outcome = bench.outcome(&route("a")).await;
            assert!(matches!(outcome, Outcome::Unchanged), "{outcome:?}");
            assert_eq!(version(&bench), written);
            assert_eq!(bench.count(Verb::Get), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_nothing_has_shown_is_found_to_be_done() {
    for fault in FAULTS {
        let mut bench = bench_with(true, fault, Verb::Delete).await;
        bench.blind().await;
        bench.unwant(&route("a"));
        fails(&mut bench).await;
        let outcome = bench.outcome(&route("a")).await;
        assert!(matches!(outcome, Outcome::Deleted), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_was_done_is_not_done_to_what_has_been_created_since() {
    for fault in FAULTS {
        let mut bench = bench_with(true, fault, Verb::Delete).await;
        bench.blind().await;
        bench.unwant(&route("a"));
        fails(&mut bench).await;
        let meta = json!({ "name": "a", "namespace": NS });
        let users = bench
            .api
            .put("user", &served(&routes()), &json!({ "metadata": meta }));
        bench.outcome(&route("a")).await;
        assert_eq!(bench.stored(&route("a")), Some(users));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_created_and_is_not_wanted_any_more_is_deleted_once_it_is_seen() {
    for fault in FAULTS {
        let mut bench = bench_with(false, fault, Verb::Apply).await;
        bench.want(&route("a"), hosts("a"));
        bench
            .until("it is written", |bench| bench.stored(&route("a")).is_some())
            .await;
        bench.unwant(&route("a"));
        bench.until("it is deleted", Bench::is_equal).await;
    }
}
