//! What others change is put right.

use std::time::Duration;

use ferromesh_apply::{Desired, Outcome};
use ferromesh_testkit::fakeapi::{Fault, Verb};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::bench::{self, Bench, NS, entries, entry, hosts, labelled, route, routes, served};

const SECONDS: Duration = Duration::from_secs(5);

async fn bench_with(name: &str) -> Bench {
    let mut bench = Bench::new();
    bench.wanted.set(&route(name), hosts("a"));
    bench.complete().await;
    bench
}

fn edit(bench: &Bench, edit: impl FnOnce(&mut Value)) {
    bench.api.edit("user", &served(&routes()), NS, "a", edit);
}

async fn is_repaired(bench: &mut Bench) {
    let began = Instant::now();
    assert!(!bench.is_equal(), "there is something to put right");
    bench.until("it is put right", Bench::is_equal).await;
    assert!(began.elapsed() <= SECONDS, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_edited_field_is_put_right_within_seconds() {
    let mut bench = bench_with("a").await;
    edit(&bench, |object| object["spec"]["hosts"] = json!(["evil"]));
    is_repaired(&mut bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_created_anew_within_seconds() {
    let mut bench = bench_with("a").await;
    bench.api.remove(&served(&routes()), NS, "a");
    is_repaired(&mut bench).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_cluster_forgets_by_going_back_in_time_is_written_again() {
    let mut bench = bench_with("a").await;
    let backup = bench.api.snapshot();
    for host in ["b", "c"] {
        bench.want(&route("a"), hosts(host));
        bench.until("it is written", Bench::is_equal).await;
    }
    bench.api.restore(&backup);
    is_repaired(&mut bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_field_that_somebody_adds_to_the_spec_is_taken_away() {
    let mut bench = bench_with("a").await;
    edit(&bench, |object| object["spec"]["exportTo"] = json!(["."]));
    is_repaired(&mut bench).await;
}

#[tokio::test(start_paused = true)]
async fn an_item_that_somebody_adds_to_an_associative_list_is_taken_away() {
    let mut bench = Bench::new();
    let ports = json!({ "ports": [{ "name": "http", "number": 80 }] });
    let desired = Desired {
        spec: ports,
        ..Desired::default()
    };
    bench.wanted.set(&entry("a"), desired);
    bench.complete().await;
    bench
        .api
        .edit("user", &served(&entries()), NS, "a", |object| {
            let ports = object["spec"]["ports"].as_array_mut().unwrap();
            ports.push(json!({ "name": "more", "number": 81 }));
            ports[0]["targetPort"] = json!(8080);
        });
    is_repaired(&mut bench).await;
}

#[tokio::test(start_paused = true)]
async fn labels_and_annotations_of_others_and_the_status_are_left_alone() {
    let mut bench = bench_with("a").await;
    bench.api.forget_requests();
    edit(&bench, |object| {
        object["metadata"]["labels"]["theirs"] = json!("1");
        object["metadata"]["annotations"] = json!({ "theirs": "1" });
        object["status"] = json!({ "conditions": [] });
    });
    bench.pass(Duration::from_mins(5)).await;
    assert!(bench.api.writes().is_empty());
    bench.want(&route("a"), hosts("b"));
    bench.until("it is written", Bench::is_equal).await;
    let object = bench.stored(&route("a")).unwrap();
    assert_eq!(object["metadata"]["labels"]["theirs"], "1");
    assert_eq!(object["metadata"]["annotations"]["theirs"], "1");
}

#[tokio::test(start_paused = true)]
async fn our_own_label_that_somebody_changes_is_put_right() {
    let mut bench = Bench::new();
    let mut desired = hosts("a");
    desired.labels.insert("app".to_owned(), "ours".to_owned());
    bench.wanted.set(&route("a"), desired);
    bench.complete().await;
    edit(&bench, |object| {
        object["metadata"]["labels"]["app"] = json!("theirs");
    });
    bench
        .until("it is put right", |bench| {
            bench.stored(&route("a")).unwrap()["metadata"]["labels"]["app"] == "ours"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_another_manager_wrote_as_ours_is_taken_over_completely() {
    // As an earlier controller without server-side apply has left it.
    let bench = Bench::new();
    let spec = json!({ "hosts": ["a"], "gateways": ["old"], "http": [{ "timeout": "1s" }] });
    bench
        .api
        .put("Go-http-client", &served(&routes()), &labelled("a", &spec));
    bench.wanted.set(&route("a"), hosts("a"));
    let mut bench = bench;
    bench.complete().await;

    // What both had set alike goes too when it is no longer wanted.
    let spec = json!({ "http": [] });
    bench.want(
        &route("a"),
        Desired {
            spec,
            ..Desired::default()
        },
    );
    bench.until("it stands", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_managers_were_forgotten_is_taken_over_again() {
    let mut bench = bench_with("a").await;
    bench.api.forget_managers(&served(&routes()), NS, "a");
    edit(&bench, |object| object["spec"]["gateways"] = json!(["x"]));
    is_repaired(&mut bench).await;
    bench.want(
        &route("a"),
        Desired {
            spec: json!({ "b": 1 }),
            ..Desired::default()
        },
    );
    bench.until("it stands", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn somebody_who_keeps_changing_an_object_is_answered_ever_later_and_reported() {
    let mut bench = bench_with("a").await;
    let mut repairs: Vec<Duration> = Vec::new();
    for at in 0..10 {
        edit(&bench, |object| {
            object["spec"]["hosts"] = json!([format!("evil {at}")]);
        });
        let began = Instant::now();
        bench.until("it is put right", Bench::is_equal).await;
        repairs.push(began.elapsed());
    }
    assert!(repairs[0] < Duration::from_secs(1), "{repairs:?}");
    assert!(repairs[9] > Duration::from_mins(1), "{repairs:?}");
    bench
        .until("it is told", |bench| bench.last(&route("a")).is_some())
        .await;
    let last = bench.last(&route("a"));
    assert!(
        matches!(last, Some(Outcome::Contested { by: Some(by), .. }) if by == "user"),
        "{last:?}"
    );

    // After a long peace it counts as the first time again.
    bench.pass(Duration::from_hours(1)).await;
    let last = bench.last(&route("a"));
    assert!(matches!(last, Some(Outcome::Unchanged)), "{last:?}");
    edit(&bench, |object| {
        object["spec"]["hosts"] = json!(["evil again"]);
    });
    is_repaired(&mut bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_changes_what_we_write_is_reported_and_not_fought() {
    let mut bench = Bench::new();
    bench.synced().await;
    bench
        .api
        .mutate(|object| object["spec"]["timeout"] = json!("5s"));
    let mut desired = hosts("a");
    desired.spec["timeout"] = json!("1s");
    bench.want(&route("a"), desired);
    let outcome = bench.outcome(&route("a")).await;
    assert!(
        matches!(&outcome, Outcome::Contested { field: Some(field), .. } if field == "spec.timeout"),
        "{outcome:?}"
    );
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(bench.api.writes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_adds_to_what_we_write_is_no_drift() {
    let mut bench = Bench::new();
    bench
        .api
        .mutate(|object| object["spec"]["added"] = json!({ "by": "webhook" }));
    bench.want(&route("a"), hosts("a"));
    assert!(matches!(bench.outcome(&route("a")).await, Outcome::Applied));
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(bench.count(Verb::Apply), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_finalizers_keep_is_created_anew_when_it_is_gone() {
    let mut bench = bench_with("a").await;
    edit(&bench, |object| {
        object["metadata"]["finalizers"] = json!(["them/wait"]);
    });
    bench.api.remove(&served(&routes()), NS, "a");
    bench.pass(Duration::from_mins(1)).await;
    let first = bench.stored(&route("a")).unwrap();
    assert!(first["metadata"]["deletionTimestamp"].is_string());
    edit(&bench, |object| {
        object["metadata"]["finalizers"] = json!([]);
    });
    bench
        .until("it is created anew", |bench| {
            let uid = bench
                .stored(&route("a"))
                .map(|object| object["metadata"]["uid"].clone());
            uid.is_some_and(|uid| uid != first["metadata"]["uid"])
        })
        .await;
}

/// Finalizers keep it, it is edited or refused meanwhile, and then they let it go.
async fn terminates(bench: &mut Bench, meanwhile: impl AsyncFnOnce(&mut Bench)) {
    edit(bench, |object| {
        object["metadata"]["finalizers"] = json!(["them/wait"]);
    });
    bench.api.remove(&served(&routes()), NS, "a");
    meanwhile(bench).await;
    bench.pass(Duration::from_mins(1)).await;
    bench.api.heal();
    edit(bench, |object| {
        object["metadata"]["finalizers"] = json!([]);
    });
    assert_eq!(bench.stored(&route("a")), None, "it is gone");
    bench.until("it is created anew", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_somebody_edits_while_finalizers_keep_it_is_created_anew_too() {
    let mut bench = bench_with("a").await;
    terminates(&mut bench, async |bench| {
        bench.pass(Duration::from_secs(1)).await;
        edit(bench, |object| object["spec"]["hosts"] = json!(["evil"]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_could_not_be_written_while_finalizers_keep_it_is_created_anew_too() {
    let mut bench = bench_with("a").await;
    bench
        .api
        .fail_times(1, Fault::refuse(500), |request| request.verb == Verb::Apply);
    bench.want(&route("a"), hosts("b"));
    bench
        .becomes(&route("a"), |outcome| matches!(outcome, Outcome::Failed(_)))
        .await;
    terminates(&mut bench, async |_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_repair_waits_in_the_metrics_and_peace_does_not() {
    let mut bench = bench_with("a").await;
    edit(&bench, |object| object["spec"]["hosts"] = json!(["evil"]));
    is_repaired(&mut bench).await;
    bench.pass(Duration::from_secs(1)).await;
    assert!(
        bench
            .metrics()
            .contains(&bench::gauge("pending_objects", 0))
    );

    bench
        .api
        .fail(Fault::refuse(500), |request| request.verb == Verb::Apply);
    edit(&bench, |object| object["spec"]["hosts"] = json!(["evil"]));
    bench.pass(Duration::from_secs(10)).await;
    assert!(
        bench
            .metrics()
            .contains(&bench::gauge("pending_objects", 1))
    );
}
