//! The delta rule, case by case: only what a change makes wrong with the object itself is refused.

use serde_json::{Value, json};

use crate::world::{REVIEWS, REVIEWS_1, World, object, timeout, traffic_policy};

/// Wrong by itself, stored before anybody was there to refuse it.
fn broken() -> Value {
    traffic_policy("a", "{policy: {retries: {attempts: -1}}}")
}

fn edited(object: &Value, pointer: &str, value: Value) -> Value {
    let mut object = object.clone();
    *object.pointer_mut(pointer).unwrap() = value;
    object
}

#[tokio::test]
async fn an_update_of_metadata_alone_is_let_through_and_says_nothing() {
    for metadata in [
        json!({"name": "a", "namespace": "gloo-mesh", "labels": {"a": "b"}}),
        json!({"name": "a", "namespace": "gloo-mesh", "finalizers": ["a/b"]}),
        json!({"name": "a", "namespace": "gloo-mesh", "resourceVersion": "7", "managedFields": [{"manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]}),
    ] {
        let new = edited(&broken(), "/metadata", metadata);
        let answer = World::new()
            .with(&broken())
            .update(&broken(), &new)
            .await
            .accepts();
        assert_eq!(answer.warnings, [""; 0]);
    }
}

#[tokio::test]
async fn an_update_of_the_status_alone_is_let_through() {
    let mut new = broken();
    new["status"] = json!({"state": "INVALID", "observedGeneration": "1"});
    World::new()
        .with(&broken())
        .update(&broken(), &new)
        .await
        .accepts();
}

#[tokio::test]
async fn an_update_without_change_is_let_through_when_there_is_no_time() {
    let world = World::new().limits(ferromesh_webhook::Limits {
        trials: 0,
        ..ferromesh_webhook::Limits::default()
    });
    world.update(&broken(), &broken()).await.accepts();
}

#[tokio::test]
async fn an_object_that_is_being_deleted_may_lose_its_finalizers() {
    let mut old = timeout("a", REVIEWS, "1s");
    old["metadata"]["deletionTimestamp"] = json!("2026-11-21T00:00:00Z");
    old["metadata"]["finalizers"] = json!(["a/b"]);
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    new["spec"] = broken()["spec"].clone();
    World::new().update(&old, &new).await.accepts();
}

#[tokio::test]
async fn an_error_that_was_there_before_does_not_block() {
    let new = traffic_policy(
        "a",
        "{policy: {retries: {attempts: -1}, requestTimeout: 1s}}",
    );
    World::new()
        .with(&broken())
        .update(&broken(), &new)
        .await
        .accepts();
}

#[tokio::test]
async fn an_error_that_was_there_before_does_not_excuse_a_new_one() {
    let new = traffic_policy(
        "a",
        "{policy: {retries: {attempts: -1}, requestTimeout: nonsense}}",
    );
    let answer = World::new().with(&broken()).update(&broken(), &new).await;
    let answer = answer.rejects("spec.policy.requestTimeout", "nonsense");
    assert_eq!(answer.causes.len(), 1);
}

#[tokio::test]
async fn an_old_error_that_moves_in_its_list_is_not_new() {
    let ports = |ports: &str| {
        let spec = format!("{{destinationSelector: {REVIEWS}, allowedPorts: {ports}}}");
        object("AccessPolicy", "a", &spec)
    };
    let old = ports("[70000]");
    let world = World::new().with(&old);
    world.update(&old, &ports("[80, 70000]")).await.accepts();
    world
        .update(&old, &ports("[70000, 70000]"))
        .await
        .rejects("spec.allowedPorts[1]", "70000 is not a port");
}

#[tokio::test]
async fn fixing_one_of_two_conflicts_is_let_through() {
    let winner = timeout("a", REVIEWS, "1s");
    let loser = timeout("b", REVIEWS, "2s");
    let world = World::new().with(&winner).with(&loser);
    let one_left = "[{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-2}]}}]";
    world
        .update(&loser, &timeout("b", one_left, "2s"))
        .await
        .accepts();
}

#[tokio::test]
async fn a_conflict_on_a_further_destination_is_refused() {
    let world = World::new().with(&timeout("a", REVIEWS, "1s"));
    let before = timeout("b", REVIEWS_1, "2s");
    let further = "[{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-2}]}}]";
    world
        .with(&before)
        .update(&before, &timeout("b", further, "2s"))
        .await
        .rejects(
            "spec.policy.requestTimeout",
            "on reviews-2.gloo-mesh: timeout: already owned by",
        );
}

#[tokio::test]
async fn somebody_elses_broken_object_does_not_block() {
    World::new()
        .with(&traffic_policy("z", "{policy: {retries: {attempts: -1}}}"))
        .create(&timeout("a", REVIEWS, "1s"))
        .await
        .accepts();
}

#[tokio::test]
async fn the_object_is_compared_with_what_the_api_server_has_and_not_with_what_was_seen() {
    // The state has not seen the object at all, nor its error.
    let new = traffic_policy(
        "a",
        "{policy: {retries: {attempts: -1}, requestTimeout: 1s}}",
    );
    World::new().update(&broken(), &new).await.accepts();
    // The state has seen an older form, in which the error was.
    let repaired = traffic_policy("a", "{policy: {requestTimeout: 1s}}");
    World::new()
        .with(&broken())
        .update(&repaired, &broken())
        .await
        .rejects("spec.policy.retries.attempts", "is negative");
    // The state still has an object that is gone.
    World::new()
        .with(&broken())
        .create(&broken())
        .await
        .rejects("spec.policy.retries.attempts", "is negative");
}

#[tokio::test]
async fn an_object_that_could_not_be_read_before_may_stay_so_but_not_become_so() {
    let unreadable = traffic_policy("a", "{policy: {retries: {attempts: many}}}");
    let mut same = unreadable.clone();
    same["spec"]["policy"]["requestTimeout"] = json!("1s");
    World::new()
        .update(&unreadable, &same)
        .await
        .accepts()
        .warns("still cannot be read and has no effect");
    World::new()
        .update(&timeout("a", REVIEWS, "1s"), &unreadable)
        .await
        .rejects("spec.policy.retries.attempts", "invalid type");
    World::new()
        .update(&unreadable, &timeout("a", REVIEWS, "1s"))
        .await
        .accepts();
}

#[tokio::test]
async fn a_virtual_mesh_that_already_claims_in_vain_may_be_edited() {
    let claim = |name, extra: &str| {
        object(
            "VirtualMesh",
            name,
            &format!("{{meshes: [{{name: istiod-1, namespace: gloo-mesh}}]{extra}}}"),
        )
    };
    let world = World::new().with(&claim("a", "")).with(&claim("b", ""));
    world
        .update(
            &claim("b", ""),
            &claim("b", ", globalAccessPolicy: ENABLED"),
        )
        .await
        .accepts();
}
