//! What is no longer wanted is deleted, and not before that is certain.

use std::time::Duration;

use ferromesh_apply::{ObjectId, Outcome, Report};
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Request, Verb};
use serde_json::json;

use super::bench::{
    Bench, NS, Wanted, cluster, entry, gauge, hosts, labelled, route, routes, served,
};

fn put_orphan(api: &FakeApi, name: &str) {
    api.put(
        "us, before",
        &served(&routes()),
        &labelled(name, &json!({ "hosts": [name] })),
    );
}

fn count(bench: &Bench) -> usize {
    bench.api.list(&served(&routes())).len()
}

/// A cluster with so many routes, all of them wanted.
async fn bench_with(count: usize) -> (Bench, Vec<ObjectId>) {
    let mut bench = Bench::new();
    let ids: Vec<_> = (0..count).map(|at| route(&format!("r{at:03}"))).collect();
    for id in &ids {
        bench.wanted.set(id, hosts("a"));
    }
    bench.complete().await;
    (bench, ids)
}

fn unwant_all(bench: &Bench, ids: &[ObjectId]) {
    for id in ids {
        bench.wanted.unset(id);
    }
    bench.handle.want(ids.to_vec());
}

async fn held(bench: &mut Bench) -> (usize, usize) {
    bench
        .hears(|report| match report {
            Report::Held {
                would_delete,
                owned,
            } => Some((*would_delete, *owned)),
            _ => None,
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_before_the_set_is_complete() {
    let api = cluster();
    put_orphan(&api, "orphan");
    let mut bench = Bench::on(api, Wanted::default());
    bench.want(&route("a"), hosts("a"));
    bench.unwant(&route("orphan"));
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(count(&bench), 2);
    bench.handle.complete();
    bench.until("the orphan is deleted", Bench::is_equal).await;
    assert!(matches!(
        bench.last(&route("orphan")),
        Some(Outcome::Deleted)
    ));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_before_every_kind_has_been_listed() {
    let api = cluster();
    put_orphan(&api, "orphan");
    api.fail(Fault::refuse(503), |request| {
        request.plural == "serviceentries"
    });
    let mut bench = Bench::on(api, Wanted::default());
    bench.handle.complete();
    bench.want(&route("a"), hosts("a"));
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(count(&bench), 2, "the other kind is written all the same");
    bench.api.heal();
    bench.until("the orphan is deleted", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn what_appears_later_with_our_labels_and_is_not_wanted_is_deleted() {
    let (mut bench, _) = bench_with(1).await;
    put_orphan(&bench.api, "late");
    bench.until("it is deleted", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_removed_and_wanted_again_at_once_is_not_deleted() {
    let (mut bench, ids) = bench_with(1).await;
    bench.api.forget_requests();
    bench.unwant(&ids[0]);
    bench.want(&ids[0], hosts("a"));
    bench.pass(Duration::from_mins(1)).await;
    assert!(bench.api.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_mass_delete_is_held_while_writing_goes_on_and_done_when_it_is_released() {
    let (mut bench, ids) = bench_with(100).await;
    unwant_all(&bench, &ids[..60]);
    assert_eq!(held(&mut bench).await, (60, 100));
    bench.want(&route("new"), hosts("new"));
    bench.want(&ids[99], hosts("changed"));
    bench.pass(Duration::from_hours(24)).await;
    assert_eq!(count(&bench), 101);
    assert_eq!(bench.spec(&ids[99]), hosts("changed").spec);

    bench.handle.release();
    bench.until("they are deleted", Bench::is_equal).await;
    assert_eq!(count(&bench), 41);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_hold_is_told() {
    let (mut bench, ids) = bench_with(100).await;
    unwant_all(&bench, &ids[..60]);
    held(&mut bench).await;
    bench.handle.release();
    bench
        .hears(|report| matches!(report, Report::Released).then_some(()))
        .await;
}

#[tokio::test(start_paused = true)]
async fn orphans_in_mass_at_a_start_are_held_too() {
    let (bench, ids) = bench_with(100).await;
    for id in &ids[..60] {
        bench.wanted.unset(id);
    }
    let mut bench = bench.restarted();
    bench.handle.want(bench.wanted.ids());
    bench.handle.complete();
    assert_eq!(held(&mut bench).await, (60, 100));
    assert!(bench.api.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn deletions_that_a_person_asked_for_are_not_held() {
    let (mut bench, ids) = bench_with(100).await;
    for id in &ids {
        bench.wanted.unset(id);
    }
    bench.handle.explicit(ids);
    bench.until("they are deleted", Bench::is_equal).await;
    assert_eq!(count(&bench), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hold_ends_when_enough_of_it_turns_out_to_be_explicit() {
    let (mut bench, ids) = bench_with(100).await;
    unwant_all(&bench, &ids[..60]);
    held(&mut bench).await;
    bench.handle.explicit(ids[..9].to_vec());
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(
        count(&bench),
        91,
        "the explicit ones are deleted, 51 are still too many"
    );
    bench.handle.explicit(ids[9..10].to_vec());
    bench.until("the rest is deleted", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_ends_when_what_would_be_deleted_is_wanted_again() {
    let (mut bench, ids) = bench_with(100).await;
    unwant_all(&bench, &ids[..60]);
    held(&mut bench).await;
    for id in &ids[..60] {
        bench.want(id, hosts("a"));
    }
    bench
        .hears(|report| matches!(report, Report::Released).then_some(()))
        .await;
    bench.pass(Duration::from_mins(10)).await;
    assert_eq!(count(&bench), 100);
}

#[tokio::test(start_paused = true)]
async fn a_mass_delete_in_pieces_is_one() {
    let (mut bench, ids) = bench_with(100).await;
    for piece in ids.chunks(10) {
        unwant_all(&bench, piece);
        bench.pass(Duration::from_secs(1)).await;
    }
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(count(&bench), 50);
}

#[tokio::test(start_paused = true)]
async fn a_tenth_of_many_objects_is_no_mass_delete() {
    let (mut bench, ids) = bench_with(600).await;
    unwant_all(&bench, &ids[..60]);
    bench.until("they are deleted", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn deletions_that_fail_again_and_again_count_once() {
    let (mut bench, ids) = bench_with(60).await;
    let deletes = |request: &Request| request.verb == Verb::Delete;
    bench.api.fail_times(200, Fault::refuse(500), deletes);
    unwant_all(&bench, &ids[..40]);
    bench.until("they are deleted", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_finalizers_and_is_asked_for_once() {
    let (mut bench, ids) = bench_with(1).await;
    bench
        .api
        .edit("user", &served(&routes()), NS, &ids[0].name, |object| {
            object["metadata"]["finalizers"] = json!(["them/wait"]);
        });
    bench.unwant(&ids[0]);
    bench
        .becomes(&ids[0], |outcome| matches!(outcome, Outcome::Deleted))
        .await;
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(bench.count(Verb::Delete), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_never_stood_is_told_to_be_deleted() {
    let (mut bench, _) = bench_with(1).await;
    bench.unwant(&entry("never"));
    assert!(matches!(
        bench.outcome(&entry("never")).await,
        Outcome::Deleted
    ));
}

/// From now on nobody can tell of these.
fn make_unknown(bench: &Bench, ids: &[ObjectId]) {
    for id in ids {
        bench.wanted.set_unknown(id, true);
    }
    bench.handle.want(ids.to_vec());
}

/// Somebody can tell again, and says so as a source does that has heard of more.
fn make_known(bench: &Bench, ids: &[ObjectId]) {
    for id in ids {
        bench.wanted.set_unknown(id, false);
    }
    bench.handle.complete();
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_tell_of_is_left_as_it_is() {
    let (mut bench, ids) = bench_with(2).await;
    make_unknown(&bench, &ids);
    bench.pass(Duration::from_mins(1)).await;
    bench.api.forget_requests();
    let edited = json!(["user's"]);
    bench
        .api
        .edit("user", &served(&routes()), NS, &ids[0].name, |object| {
            object["spec"]["hosts"] = edited.clone();
        });
    bench.handle.complete();
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(bench.spec(&ids[0]), json!({ "hosts": edited }));

    let mut bench = bench.restarted();
    bench.handle.want(ids.clone());
    bench.handle.complete();
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(count(&bench), 2);
    assert!(bench.api.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_could_tell_of_is_judged_once_somebody_can() {
    let (mut bench, ids) = bench_with(3).await;
    make_unknown(&bench, &ids);
    bench.pass(Duration::from_mins(1)).await;
    bench.wanted.unset(&ids[0]);
    bench.wanted.set(&ids[1], hosts("changed"));
    make_known(&bench, &ids);
    bench
        .until("one is deleted, one is written", Bench::is_equal)
        .await;
    assert_eq!(count(&bench), 2);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_tell_of_counts_for_no_mass_delete() {
    let (mut bench, ids) = bench_with(100).await;
    unwant_all(&bench, &ids[..60]);
    held(&mut bench).await;
    make_unknown(&bench, &ids[..10]);
    bench
        .until("the rest is deleted", |bench| count(bench) == 50)
        .await;
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(count(&bench), 50);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_a_person_asked_for_is_not_held_because_nobody_could_tell_for_a_while() {
    let (mut bench, ids) = bench_with(100).await;
    for id in &ids {
        bench.wanted.unset(id);
        bench.wanted.set_unknown(id, true);
    }
    bench.handle.explicit(ids.clone());
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(count(&bench), 100);
    make_known(&bench, &ids);
    bench.until("they are deleted", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_failed_and_that_somebody_else_does_is_told() {
    let (mut bench, ids) = bench_with(1).await;
    let deletes = |request: &Request| request.verb == Verb::Delete;
    bench.api.fail(Fault::refuse(403), deletes);
    bench.unwant(&ids[0]);
    bench
        .becomes(&ids[0], |outcome| matches!(outcome, Outcome::Failed(_)))
        .await;
    bench.api.remove(&served(&routes()), NS, &ids[0].name);
    bench
        .becomes(&ids[0], |outcome| matches!(outcome, Outcome::Deleted))
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_ours_what_waits_and_what_is_held_is_counted() {
    let (mut bench, ids) = bench_with(100).await;
    unwant_all(&bench, &ids[..60]);
    held(&mut bench).await;
    bench
        .api
        .fail(Fault::refuse(422), |request| request.verb == Verb::Apply);
    bench.want(&route("bad"), hosts("a"));
    bench.pass(Duration::from_mins(1)).await;
    let text = bench.metrics();
    for line in [
        gauge("owned_objects", 100),
        gauge("held_deletions", 60),
        gauge("pending_objects", 1),
        "apply_outcomes_total{cluster=\"c1\",outcome=\"applied\"} 100\n".to_owned(),
        "apply_outcomes_total{cluster=\"c1\",outcome=\"invalid\"} ".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_counted_of_the_present_goes_with_the_applier() {
    let (mut bench, _) = bench_with(1).await;
    assert!(bench.metrics().contains(&gauge("owned_objects", 1)));
    bench.stop();
    bench.pass(Duration::from_secs(1)).await;
    let text = bench.metrics();
    assert!(!text.contains("apply_owned_objects{"), "{text}");
    assert!(text.contains("apply_outcomes_total{"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_only_a_proxy_has_answered_is_tried_again() {
    let (mut bench, ids) = bench_with(1).await;
    let deletes = |request: &Request| request.verb == Verb::Delete;
    bench.api.fail_times(1, Fault::Answer("<html>"), deletes);
    bench.unwant(&ids[0]);
    bench.until("it is deleted", Bench::is_equal).await;
    assert_eq!(count(&bench), 0);
}
