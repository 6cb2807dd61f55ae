//! What the writers of objects rely on: that an API server does what is asked of it only in the state that
//! the request names. The API server in memory, which they are tested with, answers like a real one.

use std::collections::BTreeMap;

use ferromesh_e2e::{MANAGEMENT, client, namespace, yaml};
use ferromesh_testkit::fakeapi::{FakeApi, Kind};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Client, Error};
use serde_json::{Value, json};

/// A version that no object has.
const NONE: &str = "1";

struct Story {
    api: Api<DynamicObject>,
    told: Vec<(&'static str, String)>,
}

impl Story {
    /// Applies `data` as `manager`, if the object has this identity.
    async fn apply(
        &mut self,
        what: &'static str,
        manager: &str,
        data: &str,
        identity: Value,
    ) -> Option<DynamicObject> {
        let mut metadata = identity;
        metadata["name"] = json!("subject");
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { data: "x" },
        });
        let manner = PatchParams::apply(manager).force();
        let answer = self
            .api
            .patch("subject", &manner, &Patch::Apply(&body))
            .await;
        let told = match &answer {
            Ok(object) => {
                let data: BTreeMap<String, String> =
                    serde_json::from_value(object.data["data"].clone()).unwrap_or_default();
                format!("{:?}", data.keys().collect::<Vec<_>>())
            }
            Err(error) => code(error),
        };
        self.told.push((what, told));
        answer.ok()
    }

    async fn delete(&mut self, what: &'static str, object: &DynamicObject) {
        let manner = DeleteParams::background().preconditions(Preconditions {
            uid: object.metadata.uid.clone(),
            resource_version: object.metadata.resource_version.clone(),
        });
        let answer = self.api.delete("subject", &manner).await;
        let told = answer.map_or_else(|error| code(&error), |_| "deleted".to_owned());
        self.told.push((what, told));
    }
}

fn code(error: &Error) -> String {
    match error {
        Error::Api(status) => format!("{} {}", status.code, status.reason),
        error => panic!("no answer: {error}"),
    }
}

fn as_seen(object: &DynamicObject) -> Value {
    json!({ "uid": object.metadata.uid, "resourceVersion": object.metadata.resource_version })
}

async fn story(client: &Client, namespace: &str) -> Vec<(&'static str, String)> {
    let mut story = Story {
        api: yaml::api(client, "v1", "ConfigMap", namespace),
        told: Vec::new(),
    };
    let nothing = json!({ "resourceVersion": NONE });
    let first = story.apply("nothing there", "us", "a", nothing.clone());
    let first = first.await.unwrap();
    story
        .apply("something there", "us", "b", nothing.clone())
        .await;
    let second = story.apply("as seen", "us", "b", as_seen(&first));
    let second = second.await.unwrap();
    story
        .apply("as seen before", "us", "c", as_seen(&first))
        .await;
    let same = story.apply("nothing new", "us", "b", as_seen(&second));
    let same = same.await.unwrap();
    assert_eq!(
        same.metadata.resource_version,
        second.metadata.resource_version
    );
    story.apply("somebody else", "them", "d", json!({})).await;
    story.delete("as it was before they came", &second).await;
    let now = story.api.get("subject").await.unwrap();
    story.delete("as it is", &now).await;
    story.apply("gone", "us", "a", as_seen(&now)).await;
    story.delete("gone already", &now).await;
    let again = story.apply("nothing there again", "us", "a", nothing);
    let again = again.await.unwrap();
    story.delete("another of that name", &now).await;
    story.delete("the end", &again).await;
    story.told
}

#[tokio::test]
async fn an_object_in_another_state_than_the_request_names_is_not_touched() {
    let client = client(MANAGEMENT).await;
    let namespace = namespace(&client, "preconditions").await;
    let real = story(&client, &namespace).await;
    let expected = [
        ("nothing there", "[\"a\"]"),
        ("something there", "409 Conflict"),
        ("as seen", "[\"b\"]"),
        ("as seen before", "409 Conflict"),
        ("nothing new", "[\"b\"]"),
        ("somebody else", "[\"b\", \"d\"]"),
        ("as it was before they came", "409 Conflict"),
        ("as it is", "deleted"),
        ("gone", "409 Conflict"),
        ("gone already", "404 NotFound"),
        ("nothing there again", "[\"a\"]"),
        ("another of that name", "409 Conflict"),
        ("the end", "deleted"),
    ];
    assert_eq!(real, expected.map(|(what, told)| (what, told.to_owned())));

    let memory = FakeApi::new();
    memory.serve(&Kind::new("", "ConfigMap", "configmaps"));
    assert_eq!(story(&memory.client(), "default").await, real);
}
