use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use ferromesh_runtime::{
    backoff::{ExponentialBackoff, Jitter, Schedule},
    pump::{Class, Config, Ended, NamespacedName, Observed, Relist, pump},
    telemetry::Chain,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Resource, core::PartialObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::apiserver::{ApiServer, Fault, Verb};

const MAPS: &str = "/api/v1/configmaps";

fn map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "shop", "name": name, "annotations": { "noise": "x" } },
        "data": { "key": "value" },
    })
}

fn broken_map(name: &str) -> Value {
    let mut map = map(name);
    map["data"] = json!("not a map");
    map["metadata"]["generation"] = json!(7);
    map
}

struct Pumped<K> {
    seen: mpsc::Receiver<Observed<K>>,
    task: JoinHandle<Ended>,
    cancel: CancellationToken,
}

fn pumped<K>(server: &ApiServer, config: Config<K>, capacity: usize) -> Pumped<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
{
    let api = Api::<K>::all_with(server.client(), &());
    let backoff = ExponentialBackoff::new(Schedule::default(), Jitter::seeded(1));
    let (sink, seen) = mpsc::channel(capacity);
    let cancel = CancellationToken::new();
    let task = tokio::spawn(pump(api, config, sink, backoff, cancel.clone()));
    Pumped { seen, task, cancel }
}

fn pump_maps(server: &ApiServer) -> Pumped<ConfigMap> {
    pumped(server, Config::default(), 64)
}

/// Returns, at the same moment of paused time, when so many requests have come.
async fn asked(server: &ApiServer, verb: Verb, times: usize) {
    while server.requests(verb).len() < times {
        tokio::task::yield_now().await;
    }
}

/// A watch has lasted long enough to be taken for one.
async fn watching(server: &ApiServer) {
    asked(server, Verb::Watch, 1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
}

/// A server with three maps, which have been listed and are being watched.
async fn watching_three() -> (ApiServer, Pumped<ConfigMap>) {
    let server = ApiServer::new();
    for name in ["a", "b", "c"] {
        server.apply(MAPS, map(name));
    }
    let mut pump = pump_maps(&server);
    pump.expect(&["started", "present shop/a", "present shop/b"])
        .await;
    pump.expect(&["present shop/c", "synced"]).await;
    watching(&server).await;
    (server, pump)
}

fn told<K: Resource>(observed: &Observed<K>) -> String {
    match observed {
        Observed::Started => "started".into(),
        Observed::Present(object) => format!("present {}", NamespacedName::of(object)),
        Observed::Synced => "synced".into(),
        Observed::Applied(object) => format!("applied {}", NamespacedName::of(object)),
        Observed::Deleted(key) => format!("deleted {key}"),
        Observed::Invalid(invalid) => format!("invalid {}", invalid.key),
        Observed::Failed(failure) => format!("failed {}", failure.error.class().as_str()),
        Observed::Recovered => "recovered".into(),
    }
}

impl<K: Resource> Pumped<K> {
    /// What is seen next. Waits for ten minutes of Tokio's paused time.
    async fn next(&mut self) -> Observed<K> {
        timeout(Duration::from_mins(10), self.seen.recv())
            .await
            .expect("something is seen")
            .expect("the pump runs")
    }

    async fn expect(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(told(&self.next().await), *expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lists_page_by_page_and_then_follows_changes() {
    let server = ApiServer::new();
    for name in ["a", "b", "c", "d", "e"] {
        server.apply(MAPS, map(name));
    }
    let page_size = NonZeroU32::new(2).unwrap();
    let config = Config {
        page_size,
        ..Config::default()
    };
    let mut pump = pumped::<ConfigMap>(&server, config, 64);
    pump.expect(&[
        "started",
        "present shop/a",
        "present shop/b",
        "present shop/c",
    ])
    .await;
    pump.expect(&["present shop/d", "present shop/e", "synced"])
        .await;
    assert_eq!(server.requests(Verb::List).len(), 3);

    server.apply(MAPS, map("f"));
    server.delete(MAPS, "shop/a");
    pump.expect(&["applied shop/f", "deleted shop/a"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_object_is_isolated_in_a_list_and_in_a_watch() {
    let server = ApiServer::new();
    for object in [map("a"), broken_map("bad"), map("c")] {
        server.apply(MAPS, object);
    }
    let mut pump = pump_maps(&server);
    pump.expect(&["started", "present shop/a"]).await;
    let Observed::Invalid(invalid) = pump.next().await else {
        panic!("the bad object comes second");
    };
    assert_eq!(invalid.key.to_string(), "shop/bad");
    assert_eq!(invalid.generation, Some(7));
    assert!(invalid.error.contains("not a map"), "{}", invalid.error);
    pump.expect(&["present shop/c", "synced"]).await;

    server.apply(MAPS, broken_map("worse"));
    server.apply(MAPS, map("d"));
    server.delete(MAPS, "shop/worse");
    pump.expect(&["invalid shop/worse", "applied shop/d", "deleted shop/worse"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_after_410_shows_what_vanished() {
    let server = ApiServer::new();
    for object in [map("stays"), map("goes"), broken_map("bad")] {
        server.apply(MAPS, object);
    }
    let mut pump = pump_maps(&server);
    let mut relist = Relist::new();
    let mut known_after_sync = Vec::new();
    let mut vanished = BTreeSet::new();
    while known_after_sync.len() < 2 {
        let observed = pump.next().await;
        assert!(
            !matches!(observed, Observed::Failed(_)),
            "an old position is no failure"
        );
        vanished.extend(relist.follow(&observed));
        if matches!(observed, Observed::Synced) {
            known_after_sync.push(relist.known().len());
            if known_after_sync.len() == 1 {
                server.end_watches();
                server.delete(MAPS, "shop/goes");
                server.compact();
            }
        }
    }
    assert_eq!(known_after_sync, [3, 2]);
    let names: Vec<_> = vanished.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["shop/goes"]);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_old_begins_the_relist_anew() {
    let server = ApiServer::new();
    server.apply(MAPS, map("a"));
    server.apply(MAPS, map("b"));
    let page_size = NonZeroU32::new(1).unwrap();
    // One place in the channel: the second page is asked for after `present a` has been taken.
    let mut pump = pumped::<ConfigMap>(
        &server,
        Config {
            page_size,
            ..Config::default()
        },
        1,
    );
    pump.expect(&["started"]).await;
    server.fail(Verb::List, Fault::Refuse(410));
    pump.expect(&["present shop/a"]).await;
    asked(&server, Verb::List, 2).await;
    server.heal();
    pump.expect(&["started", "present shop/a", "present shop/b", "synced"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_classified_and_end_with_recovery() {
    let classes = [
        (401, Class::Unauthorized),
        (403, Class::Forbidden),
        (404, Class::NotServed),
        (405, Class::NotServed),
        (429, Class::Unreachable),
        (503, Class::Unreachable),
        (400, Class::Other),
    ];
    for (code, class) in classes {
        let server = ApiServer::new();
        server.fail(Verb::List, Fault::Refuse(code));
        let mut pump = pump_maps(&server);
        let Observed::Failed(failure) = pump.next().await else {
            panic!("{code} is a failure");
        };
        assert_eq!(failure.error.class(), class, "{code}");
        let told = Chain(&failure.error).to_string();
        assert!(
            told.starts_with("the API server refused /api/v1/configmaps: as the test wants it"),
            "{told}"
        );
        server.heal();
        pump.expect(&["recovered", "started", "synced"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_tells_since_when_on_every_attempt() {
    let server = ApiServer::new();
    server.fail(Verb::List, Fault::Refuse(503));
    let began = Instant::now();
    let mut pump = pump_maps(&server);
    for _ in 0..5 {
        let Observed::Failed(failure) = pump.next().await else {
            panic!("nothing but failures");
        };
        assert_eq!(failure.since, began);
    }
    assert!(
        began.elapsed() > Duration::from_secs(3),
        "attempts are spaced"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_comes_back_recovers_though_nothing_happens() {
    let server = ApiServer::new();
    let mut pump = pump_maps(&server);
    pump.expect(&["started", "synced"]).await;
    watching(&server).await;
    server.fail(Verb::Watch, Fault::Refuse(401));
    server.end_watches();
    pump.expect(&["failed unauthorized"]).await;
    server.heal();
    let healed = Instant::now();
    loop {
        match told(&pump.next().await).as_str() {
            "failed unauthorized" => {}
            other => break assert_eq!(other, "recovered"),
        }
    }
    assert!(
        healed.elapsed() < Duration::from_secs(2),
        "{:?}",
        healed.elapsed()
    );
    let mut lists = server.requests(Verb::List);
    lists.retain(|list| !list.ends_with("limit=1"));
    assert_eq!(lists.len(), 1, "the watch went on where it was");
}

#[tokio::test(start_paused = true)]
async fn what_happened_while_a_watch_was_down_is_not_missed() {
    let server = ApiServer::new();
    let mut pump = pump_maps(&server);
    pump.expect(&["started", "synced"]).await;
    watching(&server).await;
    server.fail(Verb::Watch, Fault::Refuse(503));
    server.end_watches();
    pump.expect(&["failed unreachable"]).await;
    server.apply(MAPS, map("meanwhile"));
    server.heal();
    loop {
        match told(&pump.next().await).as_str() {
            "failed unreachable" | "recovered" => {}
            other => break assert_eq!(other, "applied shop/meanwhile"),
        }
    }
    let mut lists = server.requests(Verb::List);
    lists.retain(|list| !list.ends_with("limit=1"));
    assert_eq!(lists.len(), 1, "{lists:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_gone_back_in_time_is_listed_anew() {
    let (server, mut pump) = watching_three().await;
    server.go_back(1);
    // A watch from version 3 would not see it.
    server.apply(MAPS, map("d"));
    pump.expect(&["started", "present shop/d", "synced"]).await;
    server.apply(MAPS, map("e"));
    pump.expect(&["applied shop/e"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_gone_back_and_caught_up_is_listed_anew_after_a_while() {
    let (server, mut pump) = watching_three().await;
    let began = Instant::now();
    server.go_back(1);
    for name in ["d", "e", "f"] {
        server.apply(MAPS, map(name));
    }
    // The first two have versions that had been seen before.
    pump.expect(&["applied shop/f", "started", "present shop/d"])
        .await;
    pump.expect(&["present shop/e", "present shop/f", "synced"])
        .await;
    assert!(began.elapsed() <= Config::<ConfigMap>::default().watch_timeout);
}

#[tokio::test(start_paused = true)]
async fn watches_that_keep_breaking_are_no_reason_to_list_all_day() {
    let server = ApiServer::new();
    let mut pump = pump_maps(&server);
    pump.expect(&["started", "synced"]).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_hours(1) {
        tokio::time::sleep(Duration::from_secs(30)).await;
        server.end_watches();
    }
    let mut lists = server.requests(Verb::List);
    lists.retain(|list| !list.ends_with("limit=1"));
    assert!((10..=13).contains(&lists.len()), "{}", lists.len());
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_moves_the_position() {
    let server = ApiServer::new();
    let mut pump = pump_maps(&server);
    pump.expect(&["started", "synced"]).await;
    server.bookmark(MAPS);
    server.apply("/api/v1/secrets", map("elsewhere"));
    server.apply(MAPS, map("a"));
    pump.expect(&["applied shop/a"]).await;
    server.bookmark(MAPS);
    while server.requests(Verb::Watch).len() < 2 {
        server.end_watches();
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let second = server.requests(Verb::Watch)[1].clone();
    assert!(second.ends_with("resourceVersion=4"), "{second}");
}

#[tokio::test(start_paused = true)]
async fn a_dead_link_is_noticed_after_the_watch_timeout() {
    let server = ApiServer::new();
    server.fail(Verb::Watch, Fault::Mute);
    let watch_timeout = Duration::from_mins(1);
    let mut pump = pumped::<ConfigMap>(
        &server,
        Config {
            watch_timeout,
            ..Config::default()
        },
        64,
    );
    pump.expect(&["started", "synced"]).await;
    let began = Instant::now();
    asked(&server, Verb::Watch, 1).await;
    server.heal();
    server.apply(MAPS, map("a"));
    pump.expect(&["applied shop/a"]).await;
    assert_eq!(began.elapsed(), Duration::from_secs(65));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_unreachable() {
    let server = ApiServer::new();
    server.fail(Verb::List, Fault::Hang);
    let request_timeout = Duration::from_secs(20);
    let mut pump = pumped::<ConfigMap>(
        &server,
        Config {
            request_timeout,
            ..Config::default()
        },
        64,
    );
    let began = Instant::now();
    pump.expect(&["failed unreachable"]).await;
    assert_eq!(began.elapsed(), request_timeout);
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_not_begun_without_pause() {
    let server = ApiServer::new();
    server.fail(Verb::Watch, Fault::Answer(""));
    let mut pump = pump_maps(&server);
    pump.expect(&["started", "synced", "failed unreachable"])
        .await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let watches = server.requests(Verb::Watch).len();
    assert!(
        (5..30).contains(&watches),
        "{watches} watches in five minutes"
    );
}

#[tokio::test(start_paused = true)]
async fn something_else_than_an_api_server_is_told_so() {
    let server = ApiServer::new();
    server.fail(Verb::List, Fault::Answer("<html>Welcome</html>"));
    let mut pump = pump_maps(&server);
    let Observed::Failed(failure) = pump.next().await else {
        panic!("a page of HTML is a failure");
    };
    assert_eq!(failure.error.class(), Class::Other);
    assert!(
        failure.error.to_string().contains("is the address right?"),
        "{}",
        failure.error
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_stops_the_pump_and_loses_nothing() {
    let server = ApiServer::new();
    for name in 'a'..='z' {
        server.apply(MAPS, map(&name.to_string()));
    }
    let page_size = NonZeroU32::new(5).unwrap();
    let mut pump = pumped::<ConfigMap>(
        &server,
        Config {
            page_size,
            ..Config::default()
        },
        1,
    );
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(
        server.requests(Verb::List).len(),
        1,
        "no page is asked for that nobody takes"
    );

    pump.expect(&["started"]).await;
    for name in 'a'..='z' {
        pump.expect(&[&format!("present shop/{name}")]).await;
    }
    pump.expect(&["synced"]).await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_pruned_before_they_are_handed_over() {
    let server = ApiServer::new();
    server.apply(MAPS, map("a"));
    let prune = |map: &mut ConfigMap| map.metadata.annotations = None;
    let mut pump = pumped(
        &server,
        Config {
            prune,
            ..Config::default()
        },
        64,
    );
    pump.expect(&["started"]).await;
    let Observed::Present(present) = pump.next().await else {
        panic!("the object is present");
    };
    assert_eq!(present.metadata.annotations, None);
    assert_eq!(present.data.unwrap()["key"], "value");
}

#[tokio::test(start_paused = true)]
async fn selectors_and_timeout_are_sent() {
    let server = ApiServer::new();
    let config = Config {
        labels: Some("app=shop".into()),
        fields: Some("metadata.name=a".into()),
        watch_timeout: Duration::from_secs(30),
        ..Config::default()
    };
    let mut pump = pumped::<ConfigMap>(&server, config, 64);
    pump.expect(&["started", "synced"]).await;
    asked(&server, Verb::Watch, 1).await;
    for request in [
        &server.requests(Verb::List)[0],
        &server.requests(Verb::Watch)[0],
    ] {
        assert!(request.contains("labelSelector=app%3Dshop"), "{request}");
        assert!(
            request.contains("fieldSelector=metadata.name%3Da"),
            "{request}"
        );
    }
    assert!(server.requests(Verb::Watch)[0].contains("timeoutSeconds=30"));
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_can_be_pumped() {
    let server = ApiServer::new();
    server.apply(MAPS, broken_map("bad"));
    let mut pump = pumped::<PartialObjectMeta<ConfigMap>>(&server, Config::default(), 64);
    pump.expect(&["started", "present shop/bad", "synced"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn ends_when_cancelled_and_when_nobody_listens() {
    let server = ApiServer::new();
    let mut pump = pump_maps(&server);
    pump.expect(&["started", "synced"]).await;
    pump.cancel.cancel();
    assert_eq!(pump.task.await.unwrap(), Ended::Cancelled);

    let pump = pump_maps(&server);
    drop(pump.seen);
    assert_eq!(pump.task.await.unwrap(), Ended::Closed);
}
