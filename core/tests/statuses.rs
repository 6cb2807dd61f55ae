//! A status fits into what is stored beside it, however much there is to say.

#![allow(
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "what a test cannot read, or does not expect, fails it"
)]

use std::fmt::Write as _;

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::{Change, State, StatusKey, StatusKind};
use serde_json::{Value, json};

/// Most bytes of a status as it is stored, times of its two conditions included.
const LIMIT: usize = 8 << 10;
const TIMES: usize = 2 * r#","lastTransitionTime":"2026-01-01T00:00:00Z""#.len();

fn state(text: &str) -> State {
    let changes = manifest::read(text, "")
        .into_iter()
        .map(|entry| match entry {
            Entry::Object(object) => Change::Upsert(object),
            other => panic!("{other:?}"),
        });
    State::default().step(changes).0
}

fn statuses(state: &State) -> Vec<(StatusKey, Value)> {
    let statuses: Vec<_> = state
        .statuses()
        .filter_map(|key| Some((key.clone(), state.status(&key)?.to_json())))
        .collect();
    for (key, status) in &statuses {
        let size = status.to_string().len() + TIMES;
        assert!(size <= LIMIT, "{key:?} has {size} bytes");
    }
    statuses
}

fn status(state: &State, kind: StatusKind) -> Value {
    let mut found = statuses(state)
        .into_iter()
        .filter(|(key, _)| key.kind == kind);
    let (_, status) = found.next().unwrap_or_else(|| panic!("no status"));
    status
}

/// A mesh, and this many Services in it.
fn mesh_of(services: usize) -> String {
    let mut text = "
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Mesh
metadata: {name: istiod-istio-system-cluster-1, namespace: gloo-mesh}
spec: {istio: {installation: {cluster: cluster-1, namespace: istio-system}, trustDomain: cluster.local}}
"
    .to_owned();
    for service in 0..services {
        write!(
            text,
            "---
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Destination
metadata: {{name: service-{service:04}-books-cluster-1, namespace: gloo-mesh}}
spec:
  mesh: {{name: istiod-istio-system-cluster-1, namespace: gloo-mesh}}
  kubeService:
    ref: {{name: service-{service:04}, namespace: books, clusterName: cluster-1}}
    workloadSelectorLabels: {{app: service-{service:04}}}
    ports: [{{name: http, port: 80, protocol: TCP}}]
---
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Workload
metadata: {{name: service-{service:04}-books-cluster-1-deployment, namespace: gloo-mesh}}
spec:
  mesh: {{name: istiod-istio-system-cluster-1, namespace: gloo-mesh}}
  kubernetes:
    controller: {{name: service-{service:04}, namespace: books, clusterName: cluster-1}}
    podLabels: {{app: service-{service:04}}}
"
        )
        .expect("writing to a String does not fail");
    }
    text
}

fn policy(kind: &str, name: &str, spec: &Value) -> String {
    let object = json!({
        "apiVersion": "networking.mesh.gloo.solo.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "gloo-mesh"},
        "spec": spec,
    });
    format!("---\n{object}\n")
}

#[test]
fn a_broad_policy_lists_destinations_and_callers_as_far_as_there_is_room() {
    let text = mesh_of(1_000)
        + &policy(
            "TrafficPolicy",
            "everywhere",
            &json!({"policy": {"requestTimeout": "5s"}}),
        );
    let status = status(&state(&text), StatusKind::TrafficPolicy);
    let count = |field: &str| match &status[field] {
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        other => panic!("{field}: {other}"),
    };
    let (destinations, workloads) = (count("destinations"), count("workloads"));
    assert!(destinations > 20 && workloads > 20, "{status}");
    assert_eq!(status["omitted"], json!(2_000 - destinations - workloads));
    assert_eq!(status["state"], "ACCEPTED");
    assert!(
        status["destinations"]
            .get("service-0000-books-cluster-1.gloo-mesh.")
            .is_some()
    );
}

#[test]
fn destinations_with_errors_come_before_all_others() {
    let shift = |service: &str| {
        json!({
            "destinationSelector": [{"kubeServiceRefs": {"services": [{"name": service, "namespace": "books", "clusterName": "cluster-1"}]}}],
            "policy": {"requestTimeout": "1s"},
        })
    };
    let text = mesh_of(1_000)
        + &policy("TrafficPolicy", "a-first", &shift("service-0999"))
        + &policy(
            "TrafficPolicy",
            "b-everywhere",
            &json!({"policy": {"requestTimeout": "5s"}}),
        );
    let state = state(&text);
    let (_, status) = statuses(&state)
        .into_iter()
        .find(|(key, _)| key.key.name() == "b-everywhere")
        .unwrap_or_else(|| panic!("no status"));
    let last = &status["destinations"]["service-0999-books-cluster-1.gloo-mesh."];
    assert_eq!(last["state"], "INVALID", "{status}");
    assert_eq!(status["state"], "INVALID");
}

#[test]
fn of_too_many_errors_on_one_destination_the_first_are_said() {
    let targets: Vec<_> = (0..200)
        .map(|nth| json!({"weight": 1, "kubeService": {"name": format!("gone-{nth}"), "namespace": "books", "clusterName": "cluster-1"}}))
        .collect();
    let text = mesh_of(1)
        + &policy(
            "TrafficPolicy",
            "nowhere",
            &json!({"policy": {"trafficShift": {"destinations": targets}}}),
        );
    let status = status(&state(&text), StatusKind::TrafficPolicy);
    let errors = &status["destinations"]["service-0000-books-cluster-1.gloo-mesh."]["errors"];
    let said = errors.as_array().map_or(0, Vec::len);
    assert!(said > 10, "{status}");
    assert_eq!(status["omitted"], json!(200 - said));
    assert_eq!(status["workloads"].as_array().map(Vec::len), Some(1));
}

#[test]
fn hostile_text_does_not_swell_a_status() {
    for letter in ["\u{1}", "\"", "\\", "é", "a"] {
        let pattern = format!("[{}", letter.repeat(5_000));
        let matchers: Vec<_> = (0..50)
            .map(|_| json!({"uri": {"regex": pattern}}))
            .collect();
        let spec = json!({"httpRequestMatchers": matchers, "policy": {"requestTimeout": letter.repeat(5_000)}});
        let text = mesh_of(1) + &policy("TrafficPolicy", "hostile", &spec);
        let status = status(&state(&text), StatusKind::TrafficPolicy);
        assert_eq!(status["state"], "INVALID");
        assert!(status["errors"].as_array().is_some_and(|it| !it.is_empty()));
    }
}

#[test]
fn a_mesh_of_a_large_virtual_mesh_says_which_it_is_in_and_leaves_out_what_that_asks_for() {
    let mut meshes: Vec<_> = (0..500)
        .map(|nth| json!({"name": format!("mesh-{nth}"), "namespace": "gloo-mesh"}))
        .collect();
    meshes.push(json!({"name": "istiod-istio-system-cluster-1", "namespace": "gloo-mesh"}));
    let text = mesh_of(1) + &policy("VirtualMesh", "large", &json!({ "meshes": meshes }));
    let state = state(&text);
    let mesh = status(&state, StatusKind::Mesh);
    assert_eq!(mesh["appliedVirtualMesh"]["ref"]["name"], "large");
    assert!(mesh["appliedVirtualMesh"].get("spec").is_none());
    assert!(status(&state, StatusKind::VirtualMesh)["omitted"].as_i64() > Some(400));
}
