//! What is written, and what is not.

use std::{collections::BTreeMap, time::Duration};

use ferromesh_apply::{Desired, Outcome, Sight};
use ferromesh_testkit::fakeapi::{Fault, Verb};
use serde_json::json;

use super::bench::{Bench, NS, OWNER, PLACE, US, cluster, entry, hosts, route, routes, served};

#[tokio::test(start_paused = true)]
async fn what_is_wanted_is_applied_with_our_labels_and_our_field_manager() {
    let mut bench = Bench::new();
    let desired = Desired {
        labels: BTreeMap::from([("app".to_owned(), "reviews".to_owned())]),
        annotations: BTreeMap::from([("parents".to_owned(), "{}".to_owned())]),
        ..hosts("reviews")
    };
    bench.want(&route("reviews"), desired);
    assert!(matches!(
        bench.outcome(&route("reviews")).await,
        Outcome::Applied
    ));

    let object = bench.stored(&route("reviews")).unwrap();
    assert_eq!(object["apiVersion"], "networking.istio.io/v1");
    assert_eq!(object["spec"], json!({ "hosts": ["reviews"] }));
    let meta = &object["metadata"];
    assert_eq!(
        meta["labels"],
        json!({ "app": "reviews", OWNER.0: OWNER.1, PLACE.0: PLACE.1 })
    );
    assert_eq!(meta["annotations"], json!({ "parents": "{}" }));
    let managed = meta["managedFields"].as_array().unwrap();
    assert_eq!(managed.len(), 1);
    assert_eq!(
        (&managed[0]["manager"], &managed[0]["operation"]),
        (&json!(US), &json!("Apply"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_no_longer_wanted_is_removed() {
    let mut bench = Bench::new();
    let mut desired = hosts("a");
    desired.spec["exportTo"] = json!(["."]);
    bench.want(&route("a"), desired);
    bench.outcome(&route("a")).await;
    bench.want(&route("a"), hosts("a"));
    bench.outcome(&route("a")).await;
    assert_eq!(bench.spec(&route("a")), json!({ "hosts": ["a"] }));
}

#[tokio::test(start_paused = true)]
async fn a_restart_on_a_cluster_that_is_as_wanted_writes_nothing() {
    let mut bench = Bench::new();
    for at in 0..30 {
        bench.wanted.set(&route(&format!("r{at}")), hosts("a"));
        bench.wanted.set(&entry(&format!("e{at}")), hosts("b"));
    }
    bench.complete().await;

    let mut bench = bench.restarted();
    bench.complete().await;
    for id in bench.wanted.ids() {
        bench
            .until("it is told", |bench| bench.last(&id).is_some())
            .await;
        assert!(matches!(bench.last(&id), Some(Outcome::Unchanged)));
    }
    bench.pass(Duration::from_mins(30)).await;
    assert_eq!((bench.api.writes().len(), bench.count(Verb::Get)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn one_change_among_many_objects_is_one_write_and_no_read() {
    let mut bench = Bench::new();
    for at in 0..1000 {
        bench.wanted.set(&route(&format!("r{at}")), hosts("a"));
    }
    bench.complete().await;
    bench.pass(Duration::from_mins(1)).await;
    bench.api.forget_requests();
    bench.wanted.set(&route("r7"), hosts("b"));
    bench.handle.want(bench.wanted.ids());
    bench.until("it stands", Bench::is_equal).await;
    bench.pass(Duration::from_mins(1)).await;
    let asked: Vec<_> = bench
        .api
        .requests()
        .into_iter()
        .map(|request| (request.verb, request.name))
        .collect();
    assert_eq!(asked, [(Verb::Apply, "r7".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_finds_what_was_changed_while_nobody_looked() {
    let mut bench = Bench::new();
    for name in ["kept", "edited", "deleted"] {
        bench.wanted.set(&route(name), hosts("a"));
    }
    bench.complete().await;
    let mut stopped = bench.restarted();
    stopped
        .api
        .edit("user", &served(&routes()), NS, "edited", |object| {
            object["spec"]["hosts"] = json!(["b"]);
        });
    stopped.api.remove(&served(&routes()), NS, "deleted");
    stopped.api.forget_requests();
    stopped.complete().await;
    let mut names: Vec<_> = stopped
        .api
        .writes()
        .into_iter()
        .map(|write| write.name)
        .collect();
    names.sort();
    assert_eq!(names, ["deleted", "edited"]);
}

#[tokio::test(start_paused = true)]
async fn of_what_is_wanted_while_it_is_being_written_the_newest_counts() {
    let mut bench = Bench::new();
    bench.synced().await;
    // The first write takes until its time is up; meanwhile the object changes often.
    bench
        .api
        .fail_times(1, Fault::Hang, |request| request.verb == Verb::Apply);
    bench.want(&route("a"), hosts("0"));
    bench
        .until("it is under way", |bench| bench.api.writes().len() == 1)
        .await;
    for at in 1..=50 {
        bench.want(&route("a"), hosts(&at.to_string()));
    }
    bench.until("it stands", Bench::is_equal).await;
    assert_eq!(bench.spec(&route("a")), json!({ "hosts": ["50"] }));
    assert_eq!(
        bench.api.writes().len(),
        2,
        "one that hung and one for the rest"
    );
}

#[tokio::test(start_paused = true)]
async fn the_best_version_that_the_cluster_serves_is_written() {
    let api = cluster();
    api.serve(&served(&routes()).with_versions(&["v1beta1", "v1alpha3"]));
    let mut bench = Bench::on(api, super::bench::Wanted::default());
    bench.want(&route("a"), hosts("a"));
    bench.outcome(&route("a")).await;
    assert_eq!(
        bench.stored(&route("a")).unwrap()["apiVersion"],
        "networking.istio.io/v1beta1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_better_version_is_used_once_it_is_served() {
    let api = cluster();
    api.serve(&served(&routes()).with_versions(&["v1beta1"]));
    let mut bench = Bench::on(api, super::bench::Wanted::default());
    bench.want(&route("a"), hosts("a"));
    bench.outcome(&route("a")).await;

    bench
        .api
        .serve(&served(&routes()).with_versions(&["v1", "v1beta1"]));
    bench.pass(Duration::from_mins(15)).await;
    bench.api.forget_requests();
    bench.want(&route("a"), hosts("b"));
    bench.outcome(&route("a")).await;
    assert!(
        bench.api.writes()[0]
            .uri
            .contains("/networking.istio.io/v1/")
    );
    assert_eq!(bench.spec(&route("a")), json!({ "hosts": ["b"] }));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_written_once_it_is() {
    let api = cluster();
    api.stop_serving(&served(&routes()));
    let mut bench = Bench::on(api, super::bench::Wanted::default());
    bench.want(&route("a"), hosts("a"));
    bench.want(&entry("a"), hosts("a"));
    bench
        .sees(&routes(), |sight| matches!(sight, Sight::NotServed))
        .await;
    bench
        .until("the other kind is written", |bench| {
            bench.stored(&entry("a")).is_some()
        })
        .await;
    bench
        .until("it is told", |bench| bench.last(&route("a")).is_some())
        .await;
    assert!(
        matches!(bench.last(&route("a")), Some(Outcome::Failed(error)) if error.as_str() == "not_served")
    );

    bench.api.serve(&served(&routes()));
    bench.until("it stands", Bench::is_equal).await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_whose_definition_is_deleted_and_installed_again_is_written_anew() {
    let mut bench = Bench::new();
    bench.wanted.set(&route("a"), hosts("a"));
    bench.wanted.set(&entry("a"), hosts("a"));
    bench.complete().await;
    bench.api.stop_serving(&served(&routes()));
    bench
        .sees(&routes(), |sight| matches!(sight, Sight::NotServed))
        .await;
    bench.api.serve(&served(&routes()));
    bench.until("it stands again", Bench::is_equal).await;
}
