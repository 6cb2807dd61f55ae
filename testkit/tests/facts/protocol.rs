//! Lists, watches, faults, sockets.

use std::time::Duration;

use ferromesh_testkit::fakeapi::{FakeApi, Fault, Kind, Verb};
use futures_util::{AsyncBufReadExt, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, Error,
    api::{ListParams, PostParams},
    core::params::WatchParams,
    core::request::Request,
};
use serde_json::{Value, json};

fn maps() -> Kind {
    Kind::new("", "ConfigMap", "configmaps")
}

fn server() -> FakeApi {
    let api = FakeApi::new();
    api.serve(&maps());
    api
}

fn put(api: &FakeApi, name: &str, label: &str) -> Value {
    let meta = json!({ "name": name, "namespace": "n", "labels": { "app": label } });
    api.put("user", &maps(), &json!({ "metadata": meta }))
}

/// The verbs and names of the first `count` events after version `from`.
async fn events(
    client: &Client,
    from: &str,
    selector: &str,
    count: usize,
) -> Vec<(String, String)> {
    let params = WatchParams {
        label_selector: Some(selector.to_owned()),
        ..WatchParams::default()
    };
    let request = Request::new("/api/v1/configmaps")
        .watch(&params, from)
        .unwrap();
    let lines = client.request_stream(request).await.unwrap().lines();
    let events = lines.take(count).map(|line| {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
        )
    });
    events.collect().await
}

fn event(verb: &str, name: &str) -> (String, String) {
    (verb.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_watch_tells_what_enters_changes_and_leaves_its_selection() {
    let api = server();
    put(&api, "a", "x");
    put(&api, "b", "y");
    put(&api, "b", "x");
    put(&api, "b", "y");
    api.bookmark(&maps());
    put(&api, "a", "x");
    api.edit("user", &maps(), "n", "a", |object| {
        object["data"] = json!({ "k": "v" });
    });
    api.remove(&maps(), "n", "a");
    let seen = events(&api.client(), "1", "app=x", 6).await;
    let expected = [
        event("ADDED", "a"),
        event("ADDED", "b"),
        event("DELETED", "b"),
        event("BOOKMARK", ""),
        event("MODIFIED", "a"),
        event("DELETED", "a"),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_is_told_so() {
    let api = server();
    put(&api, "a", "x");
    api.compact();
    assert_eq!(
        events(&api.client(), "1", "", 1).await,
        [event("ERROR", "")]
    );
}

#[tokio::test]
async fn a_list_comes_in_pages() {
    let api = server();
    for name in ["a", "b", "c"] {
        put(&api, name, "x");
    }
    let maps: Api<ConfigMap> = Api::all(api.client());
    let first = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.items.len(), 2);
    let token = first.metadata.continue_.unwrap();
    let rest = maps
        .list(&ListParams::default().limit(2).continue_token(&token))
        .await
        .unwrap();
    assert_eq!(rest.items[0].metadata.name.as_deref(), Some("c"));
    assert_eq!(rest.metadata.continue_.unwrap_or_default(), "");
}

#[tokio::test]
async fn a_replacement_of_another_version_is_a_conflict() {
    let api = server();
    let maps: Api<ConfigMap> = Api::namespaced(api.client(), "n");
    let new = ConfigMap::default();
    let mut new = ConfigMap {
        metadata: kube::core::ObjectMeta {
            name: Some("a".to_owned()),
            ..new.metadata
        },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &new).await.unwrap();
    assert!(maps.create(&PostParams::default(), &new).await.is_err());
    new.metadata.resource_version = Some("1".to_owned());
    let replaced = maps.replace("a", &PostParams::default(), &new).await;
    assert!(matches!(replaced, Err(Error::Api(status)) if status.code == 409));
}

#[tokio::test]
async fn what_is_not_served_is_not_found() {
    let api = server();
    api.stop_serving(&maps());
    let maps: Api<ConfigMap> = Api::all(api.client());
    let listed = maps.list(&ListParams::default()).await;
    assert!(matches!(listed, Err(Error::Api(status)) if status.code == 404));
}

#[tokio::test]
async fn faults_meet_the_requests_they_are_meant_for() {
    let api = server();
    put(&api, "a", "x");
    let after = Fault::Refuse {
        code: 429,
        retry_after: Some(Duration::from_secs(1)),
    };
    api.fail_times(1, after, |request| request.verb == Verb::Get);
    api.fail_times(1, Fault::LoseAnswer, |request| request.verb == Verb::Delete);
    let maps: Api<ConfigMap> = Api::namespaced(api.client(), "n");
    assert!(matches!(maps.get("a").await, Err(Error::Api(status)) if status.code == 429));
    assert!(maps.get("a").await.is_ok());
    assert!(
        maps.delete("a", &kube::api::DeleteParams::default())
            .await
            .is_err()
    );
    assert!(
        maps.get_opt("a").await.unwrap().is_none(),
        "it was done all the same"
    );
    let asked: Vec<_> = api
        .requests()
        .into_iter()
        .map(|request| request.verb)
        .collect();
    assert_eq!(asked, [Verb::Get, Verb::Get, Verb::Delete, Verb::Get]);
    assert_eq!(api.writes().len(), 1);
}

#[tokio::test]
async fn it_answers_on_a_socket_as_well() {
    let api = server();
    put(&api, "a", "x");
    let address = api.listen().await.unwrap();
    let config = Config::new(format!("http://{address}").parse().unwrap());
    let client = Client::try_from(config).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "n");
    assert!(maps.get("a").await.is_ok());
    api.fail_times(1, Fault::Break, |_| true);
    assert!(maps.get("a").await.is_err());
}
