//! Server-side apply.

use ferromesh_testkit::fakeapi::{FakeApi, Kind};
use kube::{
    Api, Error,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
};
use serde_json::{Value, json};

struct Bench {
    api: FakeApi,
    kind: Kind,
    objects: Api<DynamicObject>,
}

impl Bench {
    fn new() -> Self {
        let kind = Kind::new("g.io", "Thing", "things").with_list("spec.ports", "name");
        let api = FakeApi::new();
        api.serve(&kind);
        let resource = ApiResource {
            group: "g.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "g.io/v1".to_owned(),
            kind: "Thing".to_owned(),
            plural: "things".to_owned(),
        };
        let objects = Api::namespaced_with(api.client(), "n", &resource);
        Self { api, kind, objects }
    }

    async fn apply(&self, by: &str, meta: Value, spec: Value) -> Result<Value, u16> {
        let mut body =
            json!({ "apiVersion": "g.io/v1", "kind": "Thing", "metadata": meta, "spec": spec });
        body["metadata"]["name"] = json!("a");
        let params = PatchParams::apply(by);
        let params = if by == "us" { params.force() } else { params };
        match self.objects.patch("a", &params, &Patch::Apply(body)).await {
            Ok(object) => Ok(serde_json::to_value(object).unwrap()),
            Err(Error::Api(status)) => Err(status.code),
            Err(error) => panic!("{error}"),
        }
    }

    async fn spec(&self, spec: Value) -> Value {
        self.apply("us", json!({}), spec).await.unwrap()
    }

    fn edit(&self, edit: impl FnOnce(&mut Value)) -> Value {
        self.api.edit("user", &self.kind, "n", "a", edit);
        self.stored()
    }

    fn stored(&self) -> Value {
        self.api.get(&self.kind, "n", "a").unwrap()
    }
}

/// The fields of a manager in an object.
fn fields<'a>(object: &'a Value, manager: &str) -> &'a Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["manager"] == manager);
    entry.map_or(&Value::Null, |entry| &entry["fieldsV1"])
}

#[tokio::test]
async fn maps_are_granular_and_lists_are_atomic() {
    let bench = Bench::new();
    let object = bench
        .spec(json!({ "hosts": ["a"], "tls": { "mode": "X" }, "empty": {} }))
        .await;
    let set = json!({ "f:spec": { "f:hosts": {}, "f:tls": { "f:mode": {} }, "f:empty": {} } });
    assert_eq!(*fields(&object, "us"), set);
}

#[tokio::test]
async fn applying_the_same_again_changes_nothing() {
    let bench = Bench::new();
    let first = bench.spec(json!({ "a": 1 })).await;
    assert_eq!(bench.spec(json!({ "a": 1 })).await, first);
}

#[tokio::test]
async fn a_field_that_is_no_longer_applied_goes_unless_somebody_else_has_set_it() {
    let bench = Bench::new();
    bench
        .spec(json!({ "a": 1, "b": { "c": 1 }, "shared": 1 }))
        .await;
    bench
        .apply("other", json!({}), json!({ "shared": 1 }))
        .await
        .unwrap();
    let object = bench.spec(json!({ "a": 1 })).await;
    assert_eq!(object["spec"], json!({ "a": 1, "shared": 1 }));
}

#[tokio::test]
async fn a_field_of_another_manager_is_a_conflict_unless_it_is_taken_by_force() {
    let bench = Bench::new();
    bench
        .apply("other", json!({}), json!({ "a": 1 }))
        .await
        .unwrap();
    assert_eq!(
        bench.apply("third", json!({}), json!({ "a": 2 })).await,
        Err(409)
    );
    let object = bench.spec(json!({ "a": 2 })).await;
    assert_eq!(*fields(&object, "other"), Value::Null);
}

#[tokio::test]
async fn an_update_takes_what_it_changes_and_leaves_the_rest() {
    let bench = Bench::new();
    bench.spec(json!({ "a": 1, "b": 1, "empty": {} })).await;
    let object = bench.edit(|object| {
        object["spec"]["a"] = json!(2);
        object["spec"]["c"] = json!(3);
        object["spec"]["empty"]["more"] = json!(4);
    });
    let ours = json!({ "f:spec": { "f:b": {}, "f:empty": {} } });
    assert_eq!(*fields(&object, "us"), ours);
    let theirs = json!({ "f:spec": { "f:a": {}, "f:c": {}, "f:empty": { "f:more": {} } } });
    assert_eq!(*fields(&object, "user"), theirs);
}

#[tokio::test]
async fn what_an_update_adds_outlives_an_apply_and_not_a_merge_patch() {
    let bench = Bench::new();
    bench.spec(json!({ "a": 1 })).await;
    bench.edit(|object| object["spec"]["added"] = json!(1));
    let object = bench.spec(json!({ "a": 1 })).await;
    assert_eq!(object["spec"], json!({ "a": 1, "added": 1 }));
    let patch = json!({ "spec": { "added": null } });
    bench
        .objects
        .patch("a", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    assert_eq!(bench.stored()["spec"], json!({ "a": 1 }));
    assert_eq!(*fields(&bench.stored(), "user"), Value::Null);
}

#[tokio::test]
async fn items_of_associative_lists_are_told_apart_by_their_key() {
    let bench = Bench::new();
    let object = bench
        .spec(json!({ "ports": [{ "name": "x", "n": 1 }] }))
        .await;
    let set = json!({ "f:spec": { "f:ports": { r#"k:{"name":"x"}"#: { ".": {}, "f:name": {}, "f:n": {} } } } });
    assert_eq!(*fields(&object, "us"), set);
    bench.edit(|object| {
        object["spec"]["ports"]
            .as_array_mut()
            .unwrap()
            .push(json!({ "name": "y" }));
    });
    let object = bench
        .spec(json!({ "ports": [{ "name": "x", "n": 2 }] }))
        .await;
    assert_eq!(
        object["spec"]["ports"],
        json!([{ "name": "x", "n": 2 }, { "name": "y" }])
    );
    let object = bench.spec(json!({})).await;
    assert_eq!(object["spec"]["ports"], json!([{ "name": "y" }]));
}

#[tokio::test]
async fn forgotten_managers_come_back_as_one_with_the_first_apply() {
    let bench = Bench::new();
    bench.spec(json!({ "a": 1 })).await;
    bench.api.forget_managers(&bench.kind, "n", "a");
    let edited = bench.edit(|object| object["spec"]["b"] = json!(2));
    assert_eq!(edited["metadata"]["managedFields"], json!([]));
    let object = bench.spec(json!({ "a": 1 })).await;
    let before = json!({ "f:spec": { "f:a": {}, "f:b": {} } });
    assert_eq!(*fields(&object, "before-first-apply"), before);
}

#[tokio::test]
async fn an_apply_with_a_version_creates_what_is_not_there_and_conflicts_with_what_is() {
    let bench = Bench::new();
    let meta = json!({ "resourceVersion": "1" });
    let created = bench
        .apply("us", meta.clone(), json!({ "a": 1 }))
        .await
        .unwrap();
    assert_ne!(created["metadata"]["resourceVersion"], "1");
    assert_eq!(bench.apply("us", meta, json!({ "a": 2 })).await, Err(409));
    let current = json!({ "resourceVersion": created["metadata"]["resourceVersion"] });
    assert!(bench.apply("us", current, json!({ "a": 2 })).await.is_ok());
}

#[tokio::test]
async fn an_apply_with_an_identity_does_not_create() {
    let bench = Bench::new();
    assert_eq!(
        bench.apply("us", json!({ "uid": "u" }), json!({})).await,
        Err(409)
    );
    bench.spec(json!({})).await;
    assert_eq!(
        bench.apply("us", json!({ "uid": "u" }), json!({})).await,
        Err(422)
    );
}

#[tokio::test]
async fn the_status_is_written_through_its_subresource_alone() {
    let bench = Bench::new();
    let body =
        |status: u8| json!({ "apiVersion": "g.io/v1", "kind": "Thing", "status": { "n": status } });
    let params = PatchParams::apply("us").force();
    let patched = bench
        .objects
        .patch_status("a", &params, &Patch::Apply(body(1)))
        .await;
    assert!(matches!(patched, Err(Error::Api(status)) if status.code == 404));
    bench.spec(json!({ "a": 1 })).await;
    bench
        .objects
        .patch_status("a", &params, &Patch::Apply(body(1)))
        .await
        .unwrap();
    let mut more = body(2);
    more["spec"] = json!({ "a": 1 });
    bench
        .objects
        .patch("a", &params, &Patch::Apply(more))
        .await
        .unwrap();
    assert_eq!(bench.stored()["status"], json!({ "n": 1 }));
    assert_eq!(bench.stored()["spec"], json!({ "a": 1 }));
    assert_eq!(bench.stored()["metadata"]["generation"], 1);
}

#[tokio::test]
async fn a_deletion_heeds_preconditions_and_waits_for_finalizers() {
    let bench = Bench::new();
    bench.spec(json!({})).await;
    bench.edit(|object| object["metadata"]["finalizers"] = json!(["them/wait"]));
    let wrong = DeleteParams::default().preconditions(Preconditions {
        uid: Some("wrong".to_owned()),
        resource_version: None,
    });
    let deleted = bench.objects.delete("a", &wrong).await;
    assert!(matches!(deleted, Err(Error::Api(status)) if status.code == 409));
    bench
        .objects
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    assert!(bench.stored()["metadata"]["deletionTimestamp"].is_string());
    bench.api.edit("user", &bench.kind, "n", "a", |object| {
        object["metadata"]["finalizers"] = json!([]);
    });
    assert_eq!(bench.api.get(&bench.kind, "n", "a"), None);
}
