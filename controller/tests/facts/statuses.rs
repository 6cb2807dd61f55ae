//! What is said of objects, and how often.

use ferromesh_core::Kind;
use serde_json::{Value, json};

use super::estate::{SHOP, many};
use super::world::{NAMESPACE, WHO, World, found, input, meta, put};

/// The most bytes of a status, as JSON.
const LIMIT: usize = 8 * 1024;

/// The kinds that have a status which we write.
const KINDS: [Kind; 8] = [
    Kind::KubernetesCluster,
    Kind::AccessPolicy,
    Kind::Destination,
    Kind::Mesh,
    Kind::Settings,
    Kind::TrafficPolicy,
    Kind::VirtualMesh,
    Kind::Workload,
];

impl World {
    /// The size of the largest status of a kind.
    fn largest(&self, kind: Kind) -> usize {
        let objects = self.management.list(&input(kind)).into_iter();
        let sizes = objects.map(|object| object["status"].to_string().len());
        sizes.max().unwrap_or(0)
    }
}

#[tokio::test(start_paused = true)]
async fn every_object_has_a_status_of_its_own_generation() {
    let world = World::with(&["east"]).await;
    world.unite(&["east"]);
    world.time_out("timeout", &[], "2s");
    world.guard();
    let settings = json!({ "metadata": meta(NAMESPACE, "settings"), "spec": {} });
    put(&world.management, &input(Kind::Settings), &settings);
    world.quiet().await;
    world.time_out("timeout", &[], "3s");
    world.quiet().await;
    for kind in KINDS {
        let objects = world.management.list(&input(kind));
        assert!(!objects.is_empty(), "{}", kind.name());
        for object in objects.iter().filter(|_| kind != Kind::KubernetesCluster) {
            let status = &object["status"];
            assert_eq!(
                status["observedGeneration"], object["metadata"]["generation"],
                "{object:#}"
            );
        }
    }
    let policy = world.own(Kind::TrafficPolicy, "timeout").unwrap();
    assert_eq!(policy["metadata"]["generation"], 2);
    for condition in ["Accepted", "ResolvedRefs", "Programmed"] {
        let condition = found(&policy, condition);
        assert_eq!(condition["status"], "True", "{condition}");
        assert_eq!(condition["observedGeneration"], 2, "{condition}");
        assert_ne!(condition["message"], "", "{condition}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_management_cluster_that_has_gone_back_in_time_is_told_again_what_it_has_forgotten() {
    let world = World::with(&["east"]).await;
    world.time_out("timeout", &[], "2s");
    let backup = world.management.snapshot();
    let policy = (Kind::TrafficPolicy, "timeout");
    let programmed = ("True", "Programmed");
    world
        .told(policy.0, policy.1, "Programmed", programmed)
        .await;
    world.quiet().await;
    world.management.restore(&backup);
    assert!(world.own(policy.0, policy.1).unwrap()["status"].is_null());
    world
        .told(policy.0, policy.1, "Programmed", programmed)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_status_that_says_the_same_is_not_written_again() {
    let world = World::with(&["east"]).await;
    world.unite(&["east"]);
    world.time_out("timeout", &[], "2s");
    world.quiet().await;
    world.forget_writes();
    // What does not concern statuses.
    for kind in KINDS {
        for object in world.management.list(&input(kind)) {
            let name = object["metadata"]["name"].as_str().unwrap();
            let kind = input(kind);
            world.management.edit(WHO, &kind, NAMESPACE, name, |it| {
                it["metadata"]["annotations"]["note"] = json!("seen");
            });
        }
    }
    world.management.end_watches();
    world.management.compact();
    world.cluster("east").compact();
    world.quiet().await;
    assert!(world.writes().is_empty(), "{:#?}", world.writes());
}

#[tokio::test(start_paused = true)]
async fn what_somebody_makes_of_a_status_is_put_right_and_what_others_add_is_left_alone() {
    let world = World::with(&["east"]).await;
    world.unite(&["east"]);
    world.time_out("timeout", &[], "2s");
    world.quiet().await;
    let kind = input(Kind::TrafficPolicy);
    let before = world.own(Kind::TrafficPolicy, "timeout").unwrap()["status"].clone();
    let others = json!({
        "type": "Synced", "status": "True", "reason": "Synced", "message": "",
        "lastTransitionTime": "2026-11-21T10:00:00Z",
    });
    world
        .management
        .edit(WHO, &kind, NAMESPACE, "timeout", |it| {
            let status = &mut it["status"];
            status["state"] = json!("FAILED");
            status["destinations"]["nobody"] = json!({ "state": "ACCEPTED" });
            status["workloads"] = json!(["nobody"]);
            let conditions = status["conditions"].as_array_mut().unwrap();
            conditions[0]["status"] = json!("False");
            conditions.push(others.clone());
        });
    world.quiet().await;
    let mut after = world.own(Kind::TrafficPolicy, "timeout").unwrap()["status"].clone();
    let conditions = after["conditions"].as_array_mut().unwrap();
    let left = conditions.iter().position(|it| it["type"] == "Synced");
    assert_eq!(conditions.remove(left.unwrap()), others);
    // When it became so is another matter.
    for status in [&mut after, &mut before.clone()] {
        for condition in status["conditions"].as_array_mut().unwrap() {
            condition["lastTransitionTime"] = Value::Null;
        }
    }
    let mut wanted = before;
    for condition in wanted["conditions"].as_array_mut().unwrap() {
        condition["lastTransitionTime"] = Value::Null;
    }
    assert_eq!(after, wanted);
}

#[tokio::test(start_paused = true)]
async fn no_status_is_too_large_however_much_there_is_to_say() {
    let mut world = World::new(&["east", "west"]);
    let long = "x".repeat(40);
    let services: Vec<_> = many(400)
        .iter()
        .map(|name| format!("{name}-{long}"))
        .collect();
    world.add("east", &services);
    world.unite(&["east", "west"]);
    world.time_out("timeout", &[], "2s");
    // It loses on every destination, and names many that do not exist.
    let shift: Vec<_> = many(200)
        .iter()
        .map(|name| {
            let to = json!({ "name": format!("{name}\"\\\u{1}{long}"), "namespace": SHOP, "clusterName": "east" });
            json!({ "weight": 1, "kubeService": to })
        })
        .collect();
    let loser = json!({
        "metadata": meta(NAMESPACE, "z-loses"),
        "spec": { "policy": { "requestTimeout": "9s", "trafficShift": { "destinations": shift } } },
    });
    put(&world.management, &input(Kind::TrafficPolicy), &loser);
    world.guard();
    // Nothing of it can be written, for a reason that is long.
    let reason = "\"\\\u{1}ü".repeat(5_000);
    let refusal = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "message": reason,
        "reason": "Forbidden",
    });
    world.cluster("east").fail(
        ferromesh_testkit::fakeapi::Fault::Status(refusal),
        |request| request.verb.is_write(),
    );
    world.start();
    let failed = ("False", "ApplyFailed");
    world
        .told(Kind::TrafficPolicy, "timeout", "Programmed", failed)
        .await;
    world
        .told(Kind::VirtualMesh, "all", "Programmed", failed)
        .await;
    for kind in KINDS {
        let largest = world.largest(kind);
        assert!(largest <= LIMIT, "{}: {largest}", kind.name());
    }
    for kind in [Kind::AccessPolicy, Kind::TrafficPolicy, Kind::VirtualMesh] {
        let largest = world.largest(kind);
        assert!(largest > LIMIT / 2, "{}: {largest}", kind.name());
    }
    let losing = world.own(Kind::TrafficPolicy, "z-loses").unwrap();
    assert!(losing["status"]["omitted"].as_i64() > Some(100));
    let programmed = found(&losing, "Programmed");
    assert_eq!(programmed["message"], "what is accepted of it is written");
}
