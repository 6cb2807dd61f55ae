//! What comes before what.

use std::time::Duration;

use ferromesh_apply::{Desired, ObjectId};
use ferromesh_testkit::fakeapi::{Fault, Verb};

use super::bench::{Bench, entry, hosts, route};

fn ranked(rank: u8) -> Desired {
    Desired { rank, ..hosts("a") }
}

/// Names in the order of their writes.
fn written(bench: &Bench, verb: Verb) -> Vec<String> {
    let writes = bench
        .api
        .writes()
        .into_iter()
        .filter(|write| write.verb == verb);
    writes
        .map(|write| format!("{} {}", write.plural, write.name))
        .collect()
}

fn position(order: &[String], what: &str) -> usize {
    let position = order.iter().position(|written| written == what);
    position.unwrap_or_else(|| panic!("{what} is not in {order:?}"))
}

#[tokio::test(start_paused = true)]
async fn what_is_referred_to_is_written_first_and_deleted_last() {
    let mut bench = Bench::new();
    bench.synced().await;
    let ids: Vec<ObjectId> = (0..40)
        .flat_map(|at| [route(&format!("r{at}")), entry(&format!("e{at}"))])
        .collect();
    for id in &ids {
        bench.wanted.set(id, hosts("a"));
    }
    bench.complete().await;
    let order = written(&bench, Verb::Apply);
    let (first, last) = order.split_at(40);
    assert!(
        first
            .iter()
            .all(|written| written.starts_with("serviceentries")),
        "{order:?}"
    );
    assert!(
        last.iter()
            .all(|written| written.starts_with("virtualservices")),
        "{order:?}"
    );

    for id in &ids {
        bench.wanted.unset(id);
    }
    bench.handle.explicit(ids);
    bench.until("all are deleted", Bench::is_equal).await;
    let order = written(&bench, Verb::Delete);
    let (first, last) = order.split_at(40);
    assert!(
        first
            .iter()
            .all(|written| written.starts_with("virtualservices")),
        "{order:?}"
    );
    assert!(
        last.iter()
            .all(|written| written.starts_with("serviceentries")),
        "{order:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn within_a_kind_the_lower_rank_is_written_first_and_deleted_last() {
    let mut bench = Bench::new();
    bench.synced().await;
    // By name they would come the other way round.
    let allow: Vec<_> = (0..20).map(|at| route(&format!("z-allow-{at}"))).collect();
    let deny = route("a-deny-all");
    for id in &allow {
        bench.wanted.set(id, ranked(0));
    }
    bench.wanted.set(&deny, ranked(1));
    bench.complete().await;
    let order = written(&bench, Verb::Apply);
    assert_eq!(
        position(&order, "virtualservices a-deny-all"),
        20,
        "{order:?}"
    );

    let ids = bench.wanted.ids();
    for id in &ids {
        bench.wanted.unset(id);
    }
    bench.handle.explicit(ids);
    bench.until("all are deleted", Bench::is_equal).await;
    assert_eq!(
        written(&bench, Verb::Delete)[0],
        "virtualservices a-deny-all"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_new_is_written_before_what_is_gone_is_deleted() {
    let mut bench = Bench::new();
    bench.wanted.set(&entry("old"), hosts("a"));
    bench.complete().await;
    bench.wanted.unset(&entry("old"));
    bench.wanted.set(&route("new"), hosts("a"));
    bench.api.forget_requests();
    bench.handle.want([entry("old"), route("new")]);
    bench.until("it is so", Bench::is_equal).await;
    let verbs: Vec<_> = bench
        .api
        .writes()
        .into_iter()
        .map(|write| write.verb)
        .collect();
    assert_eq!(verbs, [Verb::Apply, Verb::Delete]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_does_not_keep_back_what_refers_to_it() {
    let mut bench = Bench::new();
    bench.synced().await;
    bench.api.fail(Fault::refuse(500), |request| {
        request.plural == "serviceentries" && request.verb == Verb::Apply
    });
    bench.wanted.set(&entry("bad"), hosts("a"));
    bench.wanted.set(&route("good"), hosts("a"));
    bench.handle.want(bench.wanted.ids());
    bench
        .until("it stands", |bench| bench.stored(&route("good")).is_some())
        .await;
    bench.pass(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn no_more_than_sixteen_objects_are_written_at_a_time() {
    let mut bench = Bench::new();
    bench.synced().await;
    bench
        .api
        .fail_times(16, Fault::Hang, |request| request.verb == Verb::Apply);
    for at in 0..100 {
        bench.want(&route(&format!("r{at}")), hosts("a"));
    }
    bench.pass(Duration::from_secs(10)).await;
    assert_eq!(bench.api.writes().len(), 16);
}
