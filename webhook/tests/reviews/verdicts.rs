//! What is let through, what is not, and what is said about it.

use std::time::Duration;

use ferromesh_webhook::Limits;
use serde_json::{Value, json};

use crate::world::{REVIEWS, REVIEWS_1, World, object, review, timeout, traffic_policy};

/// The first Service that a policy lists by name.
const GONE: &str = "spec.destinationSelector[0].kubeServiceRefs.services[0]";

#[tokio::test]
async fn a_good_policy_is_let_through_with_what_it_will_do() {
    World::new()
        .create(&timeout("a", REVIEWS, "1s"))
        .await
        .accepts()
        .warns("selects 2 of 5 destinations on 2 clusters")
        .warns("adds 2 objects: VirtualService bookinfo/reviews on cluster-1");
}

#[tokio::test]
async fn a_field_that_cannot_be_right_is_refused_with_its_path() {
    World::new()
        .create(&traffic_policy("a", "{policy: {retries: {attempts: -1}}}"))
        .await
        .rejects("spec.policy.retries.attempts", "is negative");
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_refused_with_its_path() {
    World::new()
        .create(&traffic_policy(
            "a",
            "{policy: {retries: {attempts: many}}}",
        ))
        .await
        .rejects("spec.policy.retries.attempts", "invalid type");
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once() {
    let spec = "{destinationSelector: [{kubeServiceRefs: {services: [{name: gone, namespace: a, clusterName: cluster-1}]}}], policy: {corsPolicy: {}, retries: {attempts: -1}}}";
    World::new()
        .create(&traffic_policy("a", spec))
        .await
        .rejects("spec.policy.retries.attempts", "is negative")
        .rejects("spec.policy.corsPolicy", "not supported yet")
        .rejects(GONE, "Destination gone.a.cluster-1 not found");
}

#[tokio::test]
async fn a_reference_to_nothing_is_refused_or_warned_about_as_settings_say() {
    let spec = "{destinationSelector: [{kubeServiceRefs: {services: [{name: gone, namespace: a, clusterName: cluster-1}]}}], policy: {requestTimeout: 1s}}";
    let candidate = traffic_policy("a", spec);
    World::new()
        .create(&candidate)
        .await
        .rejects(GONE, "Destination gone.a.cluster-1 not found")
        .rejects(
            GONE,
            "set spec.admission.unresolvedReferences of the Settings to Warn",
        );
    let settings = object(
        "Settings",
        "settings",
        "{admission: {unresolvedReferences: Warn}}",
    );
    World::new()
        .with(&settings)
        .create(&candidate)
        .await
        .accepts()
        .warns("Destination gone.a.cluster-1 not found; takes effect once that is there");
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "gloo-mesh",
            "labels": {"admission.mesh.gloo.solo.io/unresolved-references": "warn"},
        },
    });
    World::new()
        .with(&namespace)
        .create(&candidate)
        .await
        .accepts()
        .warns("takes effect once that is there");
}

#[tokio::test]
async fn a_cluster_that_is_not_registered_is_refused_with_its_path() {
    let spec = "{destinationSelector: [{kubeServiceMatcher: {clusters: [cluster-1, cluster-9]}}], policy: {requestTimeout: 1s}}";
    let answer = World::new().create(&traffic_policy("a", spec)).await;
    let path = "spec.destinationSelector[0].kubeServiceMatcher.clusters[1]";
    let answer = answer.rejects(path, "cluster cluster-9 is not registered");
    // Each cause and each advice stands with its field: nothing is said of the whole.
    assert!(answer.causes.iter().all(|(field, _)| field == path));
}

#[tokio::test]
async fn a_policy_that_loses_is_refused_and_one_that_wins_is_told_so() {
    let world = World::new().with(&timeout("m", REVIEWS_1, "1s"));
    world.create(&timeout("z", REVIEWS_1, "2s")).await.rejects(
        "spec.policy.requestTimeout",
        "timeout: already owned by TrafficPolicy m.gloo-mesh,",
    );
    world
        .create(&timeout("a", REVIEWS_1, "2s"))
        .await
        .accepts()
        .warns("wins over TrafficPolicy gloo-mesh/m");
}

#[tokio::test]
async fn a_mesh_of_another_virtual_mesh_is_refused_whatever_the_key() {
    let claim = |name| {
        object(
            "VirtualMesh",
            name,
            "{meshes: [{name: istiod-1, namespace: gloo-mesh}]}",
        )
    };
    let world = World::new().with(&claim("m"));
    for name in ["a", "z"] {
        world.create(&claim(name)).await.rejects(
            "spec.meshes[0]",
            "already is grouped in a VirtualMesh (m.gloo-mesh)",
        );
    }
}

#[tokio::test]
async fn settings_and_access_policies_are_judged_too() {
    let world = World::new();
    world
        .create(&object(
            "Settings",
            "settings",
            "{networkingExtensionServers: [{address: a}]}",
        ))
        .await
        .rejects(
            "spec.networkingExtensionServers",
            "external translators are not called",
        );
    let spec = format!("{{destinationSelector: {REVIEWS}}}");
    world
        .create(&object("AccessPolicy", "a", &spec))
        .await
        .accepts()
        .warns("spec.sourceSelector is empty: anybody may call, authenticated or not")
        .warns("destinations that refuse every call that no AccessPolicy allows, from now on: 2");
}

#[tokio::test]
async fn dropped_fields_are_named_and_so_is_what_comes_of_it() {
    let applied = json!({"spec": {
        "destinationSelectors": [{}],
        "policy": {"requestTimeout": "1s"},
    }});
    let mut stored = traffic_policy("a", "{policy: {requestTimeout: 1s}}");
    stored["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": applied.to_string()});
    let answer = World::new().create(&stored).await.accepts();
    assert!(answer.warnings[0].starts_with(
        "spec.destinationSelectors is no field of TrafficPolicy and is dropped; did you mean"
    ));
    answer.warns("spec.destinationSelector is empty: selects 5 of 5 destinations");
}

#[tokio::test]
async fn a_deletion_is_let_through_and_says_what_is_lost() {
    let policy = timeout("a", REVIEWS, "1s");
    World::new()
        .with(&policy)
        .delete(&policy)
        .await
        .accepts()
        .warns("removes 2 objects: VirtualService bookinfo/reviews on cluster-1");
    let meshes = object(
        "VirtualMesh",
        "vm",
        "{meshes: [{name: istiod-1, namespace: gloo-mesh}, {name: istiod-2, namespace: gloo-mesh}], federation: {selectors: [{}]}}",
    );
    World::new()
        .with(&meshes)
        .delete(&meshes)
        .await
        .accepts()
        .warns("leaves 2 meshes without each other: 5 destinations are federated no more");
}

#[tokio::test]
async fn a_deletion_is_let_through_whatever_is_wrong() {
    let mut broken = traffic_policy("a", "{policy: {retries: {attempts: many}}}");
    World::new().delete(&broken).await.accepts();
    broken["spec"] = Value::Null;
    World::new().delete(&broken).await.accepts();
}

#[tokio::test]
async fn a_request_for_trial_gets_the_same_answer() {
    let world = World::new().with(&timeout("m", REVIEWS_1, "1s"));
    for candidate in [
        timeout("a", REVIEWS, "2s"),
        timeout("z", REVIEWS, "2s"),
        traffic_policy("b", "{policy: {}}"),
    ] {
        let earnest = review("CREATE", Some(&candidate), None);
        let mut trial = earnest.clone();
        trial["request"]["dryRun"] = json!(true);
        for path in ["/validate", "/mutate"] {
            assert_eq!(
                world.answer(path, &trial).await,
                world.answer(path, &earnest).await
            );
        }
    }
}

#[tokio::test]
async fn the_state_is_as_it_was_after_a_review() {
    let world = World::new();
    let before = format!("{:?}", world.state());
    world.create(&timeout("a", REVIEWS, "2s")).await.accepts();
    assert_eq!(format!("{:?}", world.state()), before);
}

#[tokio::test]
async fn kinds_and_subresources_that_are_not_judged_are_let_through() {
    let pod = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {"nonsense": true},
    });
    let answer = World::new().create(&pod).await.accepts();
    assert_eq!(answer.warnings, [""; 0]);
    let broken = traffic_policy("a", "{policy: {retries: {attempts: -1}}}");
    let mut status = review("UPDATE", Some(&broken), Some(&broken));
    status["request"]["subResource"] = json!("status");
    World::new().ask(&status).await.accepts();
}

#[tokio::test]
async fn a_generated_name_and_a_missing_namespace_are_filled_in() {
    let mut candidate = timeout("a", REVIEWS_1, "2s");
    candidate["metadata"] = json!({"generateName": "z-"});
    let mut ask = review("CREATE", Some(&candidate), None);
    ask["request"]["name"] = json!("");
    ask["request"]["namespace"] = json!("gloo-mesh");
    let world = World::new().with(&timeout("m", REVIEWS_1, "1s"));
    world.ask(&ask).await.rejects(
        "spec.policy.requestTimeout",
        "already owned by TrafficPolicy m.gloo-mesh,",
    );
}

// When there is no time.

fn hurried() -> World {
    World::new().limits(Limits {
        deadline: Duration::ZERO,
        ..Limits::default()
    })
}

#[tokio::test]
async fn at_the_deadline_what_is_not_known_is_no_error_and_is_said() {
    let spec = "{destinationSelector: [{kubeServiceRefs: {services: [{name: gone, namespace: a, clusterName: cluster-1}]}}], policy: {requestTimeout: 1s}}";
    hurried()
        .create(&traffic_policy("a", spec))
        .await
        .accepts()
        .warns("there was no time to work out");
}

#[tokio::test]
async fn at_the_deadline_what_is_proven_is_refused_all_the_same() {
    hurried()
        .create(&traffic_policy("a", "{policy: {retries: {attempts: -1}}}"))
        .await
        .rejects("spec.policy.retries.attempts", "is negative");
}

#[tokio::test]
async fn at_the_deadline_a_deletion_is_let_through() {
    hurried()
        .delete(&timeout("a", REVIEWS, "1s"))
        .await
        .accepts()
        .warns("there was no time to work out");
}

#[tokio::test]
async fn without_a_turn_a_change_is_to_come_back_and_a_deletion_is_let_through() {
    let world = World::new().limits(Limits {
        trials: 0,
        wait: Duration::ZERO,
        ..Limits::default()
    });
    let policy = timeout("a", REVIEWS, "1s");
    let ask = review("CREATE", Some(&policy), None);
    let answer = world.answer("/validate", &ask).await;
    let status = &answer["response"]["status"];
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(status["code"], 429);
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
    world
        .delete(&policy)
        .await
        .accepts()
        .warns("too many reviews");
    world.update(&policy, &policy).await.accepts();
}

// What the management cluster has not told yet.

#[tokio::test]
async fn before_the_management_cluster_is_listed_nothing_is_missing_for_certain() {
    let spec = "{meshes: [{name: istiod-9, namespace: gloo-mesh}]}";
    World::unlisted()
        .create(&object("VirtualMesh", "vm", spec))
        .await
        .accepts()
        .warns("the management cluster has not been listed yet, so this is not certain");
}

#[tokio::test]
async fn a_self_test_is_refused_by_the_registration_that_it_came_by() {
    let mut test = traffic_policy("a", "{}");
    test["metadata"]["annotations"] = json!({"admission.mesh.gloo.solo.io/self-test": ""});
    let ask = review("CREATE", Some(&test), None);
    let answer = World::new().answer("/validate/0123abcd", &ask).await;
    assert_eq!(answer["response"]["allowed"], false);
    let message = answer["response"]["status"]["message"].as_str().unwrap();
    assert!(message.contains("[registration 0123abcd]"), "{message}");
}

#[tokio::test]
async fn an_author_is_recorded_when_the_settings_ask_for_it() {
    let settings = object("Settings", "settings", "{admission: {recordAuthors: true}}");
    let world = World::new().with(&settings);
    let created = traffic_policy("p", "{policy: {requestTimeout: 1s}}");
    let asked = review("CREATE", Some(&created), None);
    let answer = world.answer("/mutate", &asked).await;
    let patch: Vec<u8> = serde_json::from_value(answer["response"]["patch"].clone()).unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    let mut patched = created.clone();
    json_patch::patch(&mut patched, &patch).unwrap();
    assert_eq!(
        patched["metadata"]["annotations"],
        json!({ "networking.mesh.gloo.solo.io/last-author": asked["request"]["userInfo"]["username"] })
    );

    let again = review("UPDATE", Some(&patched), Some(&patched));
    let answer = world.answer("/mutate", &again).await;
    assert_eq!(answer["response"].get("patch"), None);
    let answer = World::new().answer("/mutate", &asked).await;
    assert_eq!(answer["response"].get("patch"), None);
}

#[tokio::test]
async fn lenient_forms_are_patched_and_others_are_not() {
    let lenient = object("Settings", "settings", "{mtls: {istio: {tlsMode: simple}}}");
    let answer = World::new()
        .answer("/mutate", &review("CREATE", Some(&lenient), None))
        .await;
    let response = &answer["response"];
    assert_eq!(response["allowed"], true);
    assert_eq!(response["patchType"], "JSONPatch");
    let patch: Vec<u8> = serde_json::from_value(response["patch"].clone()).unwrap_or_default();
    let patch: Value = if patch.is_empty() {
        panic!("{response}")
    } else {
        serde_json::from_slice(&patch).unwrap()
    };
    assert_eq!(
        patch,
        json!([{"op": "replace", "path": "/spec/mtls/istio/tlsMode", "value": "SIMPLE"}])
    );
    let plain = object("Settings", "settings", "{mtls: {istio: {tlsMode: SIMPLE}}}");
    let answer = World::new()
        .answer("/mutate", &review("CREATE", Some(&plain), None))
        .await;
    assert_eq!(answer["response"].get("patch"), None);
}
