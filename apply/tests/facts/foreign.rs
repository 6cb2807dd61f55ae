//! What is not ours is neither changed nor deleted, whatever happens in between.

use std::time::Duration;

use ferromesh_apply::Outcome;
use ferromesh_testkit::fakeapi::{FakeApi, Verb};
use serde_json::{Value, json};

use super::bench::{
    Bench, NS, OWNER, PLACE, Wanted, cluster, hosts, labelled, route, routes, scope, served,
};

fn users() -> Value {
    json!({ "metadata": { "name": "a", "namespace": NS }, "spec": { "hosts": ["user's"] } })
}

fn put(api: &FakeApi, object: &Value) {
    api.put("user", &served(&routes()), object);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_somebody_else_is_left_alone_and_reported_with_the_remedy() {
    let api = cluster();
    put(&api, &users());
    let before = api.get(&served(&routes()), NS, "a");
    let mut bench = Bench::on(api, Wanted::default());
    bench.want(&route("a"), hosts("ours"));
    let outcome = bench.outcome(&route("a")).await;
    let remedy = "label it owner.networking.mesh.gloo.solo.io=gloo-mesh to hand it over";
    assert!(outcome.to_string().contains(remedy), "{outcome}");
    bench.handle.complete();
    bench.unwant(&route("a"));
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(bench.stored(&route("a")), before);
}

#[tokio::test(start_paused = true)]
async fn it_is_written_once_the_other_is_gone() {
    let api = cluster();
    put(&api, &users());
    let mut bench = Bench::on(api, Wanted::default());
    bench.want(&route("a"), hosts("ours"));
    assert!(matches!(
        bench.outcome(&route("a")).await,
        Outcome::Foreign { .. }
    ));
    bench.pass(Duration::from_hours(1)).await;
    bench.api.remove(&served(&routes()), NS, "a");
    bench.until("it is written", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_written_once_the_other_is_handed_over() {
    let api = cluster();
    put(&api, &users());
    let mut bench = Bench::on(api, Wanted::default());
    bench.want(&route("a"), hosts("ours"));
    bench.outcome(&route("a")).await;
    bench
        .api
        .edit("user", &served(&routes()), NS, "a", |object| {
            object["metadata"]["labels"] = json!({ OWNER.0: OWNER.1 });
        });
    bench.until("it is written", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_loses_our_label_is_ours_no_more() {
    let mut bench = Bench::new();
    bench.wanted.set(&route("a"), hosts("ours"));
    bench.complete().await;
    bench
        .api
        .edit("user", &served(&routes()), NS, "a", |object| {
            object["metadata"]["labels"] = Value::Null;
            object["spec"]["hosts"] = json!(["user's"]);
        });
    let disowned = bench.stored(&route("a"));
    let is_foreign = |outcome: &Outcome| matches!(outcome, Outcome::Foreign { .. });
    bench.becomes(&route("a"), is_foreign).await;
    bench.unwant(&route("a"));
    bench.pass(Duration::from_hours(1)).await;
    assert_eq!(bench.stored(&route("a")), disowned);
}

/// The watch is silent, so that what it has shown is no longer true when we write.
async fn with_silent_watch(wanted: bool) -> Bench {
    let mut bench = Bench::new();
    if wanted {
        bench.wanted.set(&route("a"), hosts("ours"));
    }
    bench.complete().await;
    bench.blind().await;
    bench
}

#[tokio::test(start_paused = true)]
async fn an_object_that_somebody_creates_just_before_we_do_is_left_alone() {
    let mut bench = with_silent_watch(false).await;
    put(&bench.api, &users());
    bench.want(&route("a"), hosts("ours"));
    assert!(matches!(
        bench.outcome(&route("a")).await,
        Outcome::Foreign { .. }
    ));
    assert_eq!(bench.spec(&route("a")), users()["spec"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_disowned_just_before_we_change_it_is_left_alone() {
    let mut bench = with_silent_watch(true).await;
    bench
        .api
        .edit("user", &served(&routes()), NS, "a", |object| {
            object["metadata"]["labels"] = Value::Null;
        });
    bench.want(&route("a"), hosts("ours, changed"));
    assert!(matches!(
        bench.outcome(&route("a")).await,
        Outcome::Foreign { .. }
    ));
    assert_eq!(bench.spec(&route("a")), json!({ "hosts": ["ours"] }));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_disowned_just_before_we_delete_it_is_left_alone() {
    let mut bench = with_silent_watch(true).await;
    bench
        .api
        .edit("user", &served(&routes()), NS, "a", |object| {
            object["metadata"]["labels"] = Value::Null;
        });
    bench.unwant(&route("a"));
    bench.outcome(&route("a")).await;
    assert!(bench.stored(&route("a")).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_created_anew_just_before_we_delete_it_is_left_alone() {
    let mut bench = with_silent_watch(true).await;
    bench.api.remove(&served(&routes()), NS, "a");
    let anew = labelled("a", &json!({ "hosts": ["another"] }));
    put(&bench.api, &anew);
    bench.unwant(&route("a"));
    bench.outcome(&route("a")).await;
    assert_eq!(bench.spec(&route("a")), anew["spec"]);
    let writes = bench.api.writes();
    let delete = writes
        .iter()
        .find(|write| write.verb == Verb::Delete)
        .unwrap();
    assert!(delete.body["preconditions"]["uid"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_change_of_ours_that_the_watch_has_not_shown_is_built_upon() {
    let mut bench = with_silent_watch(true).await;
    bench
        .api
        .edit("user", &served(&routes()), NS, "a", |object| {
            object["status"] = json!({ "seen": true });
        });
    bench.want(&route("a"), hosts("ours, changed"));
    assert!(matches!(bench.outcome(&route("a")).await, Outcome::Applied));
    assert_eq!(
        bench.stored(&route("a")).unwrap()["status"],
        json!({ "seen": true })
    );
}

#[tokio::test(start_paused = true)]
async fn another_scope_in_the_same_cluster_is_left_alone() {
    let api = cluster();
    let mut other = labelled("b", &json!({ "hosts": ["other cluster's"] }));
    other["metadata"]["labels"][PLACE.0] = json!("c2");
    put(&api, &other);
    let mut bench = Bench::on(api.clone(), Wanted::default());
    bench.wanted.set(&route("a"), hosts("a"));
    bench.complete().await;

    let wanted = Wanted::default();
    wanted.set(&route("b"), hosts("other cluster's"));
    let mut second = scope();
    second.place.value = "c2".to_owned();
    let mut second = Bench::with(api, wanted, second);
    second.handle.want([route("b")]);
    second.handle.complete();
    second.outcome(&route("b")).await;
    bench.pass(Duration::from_mins(10)).await;
    assert!(bench.stored(&route("a")).is_some() && bench.stored(&route("b")).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_object_of_ours_from_another_place_is_taken_over() {
    let api = cluster();
    let mut other = labelled(
        "a",
        &json!({ "hosts": ["from before the cluster was renamed"] }),
    );
    other["metadata"]["labels"][PLACE.0] = json!("old-name");
    put(&api, &other);
    let mut bench = Bench::on(api, Wanted::default());
    bench.wanted.set(&route("a"), hosts("a"));
    bench.complete().await;
}
