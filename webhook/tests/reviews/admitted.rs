//! What was let through is as good as it was said to be.

use std::collections::{BTreeMap, BTreeSet};

use ferromesh_core::{Change, Code, Object, StatusKey, StatusKind};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{Answer, World, object, read};

fn selector() -> impl Strategy<Value = Value> {
    let service = (
        prop::sample::select(vec!["reviews", "petstore", "gone"]),
        prop::sample::select(vec!["bookinfo", "default"]),
        prop::sample::select(vec!["cluster-1", "cluster-2", ""]),
    )
        .prop_map(|(name, namespace, cluster)| {
            json!({"kubeServiceRefs": {"services": [{"name": name, "namespace": namespace, "clusterName": cluster}]}})
        });
    let matcher = prop::sample::select(vec![
        json!({}),
        json!({"kubeServiceMatcher": {}}),
        json!({"kubeServiceMatcher": {"labels": {"app": "reviews"}}}),
        json!({"kubeServiceMatcher": {"namespaces": ["default"], "clusters": ["cluster-1"]}}),
    ]);
    prop::collection::vec(prop_oneof![service, matcher], 0..3).prop_map(Value::from)
}

fn traffic() -> impl Strategy<Value = Value> {
    let action = prop_oneof![
        prop::sample::select(vec!["1s", "2s", "0s", "1us", "soon"])
            .prop_map(|timeout| json!({"requestTimeout": timeout})),
        (-1..3).prop_map(|attempts| json!({"retries": {"attempts": attempts}})),
        (100..700).prop_map(|code| json!({"faultInjection": {"abort": {"httpStatus": code}}})),
        (0..3, prop::sample::select(vec!["reviews", "gone"]), prop::sample::select(vec![0, 9080, 9999])).prop_map(
            |(weight, name, port)| json!({"trafficShift": {"destinations": [{
                "weight": weight,
                "kubeService": {"name": name, "namespace": "bookinfo", "clusterName": "cluster-2", "port": port},
            }]}})
        ),
        Just(json!({"csrf": {"enabled": true}})),
    ];
    let matchers = prop::sample::select(vec![
        json!([]),
        json!([{"uri": {"prefix": "/a"}}]),
        json!([{"uri": {"regex": "("}}]),
    ]);
    (selector(), matchers, action).prop_map(|(selector, matchers, action)| {
        json!({"destinationSelector": selector, "httpRequestMatchers": matchers, "policy": action})
    })
}

fn access() -> impl Strategy<Value = Value> {
    let sources = prop::sample::select(vec![
        json!([]),
        json!([{"kubeIdentityMatcher": {"clusters": ["cluster-1"]}}]),
        json!([{"kubeIdentityMatcher": {"clusters": ["cluster-9"]}}]),
    ]);
    let ports = prop::collection::vec(-1..3, 0..2);
    (selector(), sources, ports).prop_map(|(selector, sources, ports)| {
        json!({"destinationSelector": selector, "sourceSelector": sources, "allowedPorts": ports})
    })
}

fn virtual_mesh() -> impl Strategy<Value = Value> {
    let mesh = prop::sample::select(vec!["istiod-1", "istiod-2", "istiod-3"]);
    let federation = prop::sample::select(vec![
        json!({}),
        json!({"selectors": [{}]}),
        json!({"selectors": [{}], "hostnameSuffix": "mesh.internal"}),
    ]);
    (prop::collection::vec(mesh, 0..3), federation).prop_map(|(meshes, federation)| {
        let meshes: Vec<_> = meshes
            .into_iter()
            .map(|name| json!({"name": name, "namespace": "gloo-mesh"}))
            .collect();
        json!({"meshes": meshes, "federation": federation})
    })
}

fn candidate() -> impl Strategy<Value = Value> {
    let name = || prop::sample::select(vec!["a", "m", "z"]);
    prop_oneof![
        4 => (name(), traffic()).prop_map(|(name, spec)| written("TrafficPolicy", name, spec)),
        2 => (name(), access()).prop_map(|(name, spec)| written("AccessPolicy", name, spec)),
        2 => (name(), virtual_mesh()).prop_map(|(name, spec)| written("VirtualMesh", name, spec)),
    ]
}

fn written(kind: &str, name: &str, spec: Value) -> Value {
    let mut object = object(kind, name, "{}");
    object["spec"] = spec;
    object
}

fn key_of(object: &Object) -> StatusKey {
    StatusKey {
        kind: match object {
            Object::TrafficPolicy(_) => StatusKind::TrafficPolicy,
            Object::AccessPolicy(_) => StatusKind::AccessPolicy,
            Object::VirtualMesh(_) => StatusKind::VirtualMesh,
            other => panic!("{}", other.kind().name()),
        },
        key: object.key().clone(),
    }
}

/// What is wrong with an object, each with the number of times that it is said.
fn findings(world: &World, of: &StatusKey) -> BTreeSet<(Code, String, usize)> {
    let mut counted: BTreeMap<(Code, String), usize> = BTreeMap::new();
    for finding in world.state().findings(of) {
        *counted.entry((finding.code, finding.text())).or_default() += 1;
    }
    counted
        .into_iter()
        .flat_map(|((code, text), count)| (0..count).map(move |nth| (code, text.clone(), nth)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A sequence of changes, each asked for first: what is let through leaves its object without
    /// an error that it had not before; what is refused would have had one.
    #[test]
    fn admitted_means_no_new_error_on_the_subject(
        candidates in prop::collection::vec(candidate(), 1..8)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut world = World::new();
        let mut stored: Vec<Value> = Vec::new();
        for candidate in candidates {
            let same = |it: &&Value| it["kind"] == candidate["kind"] && it["metadata"] == candidate["metadata"];
            let old = stored.iter().find(same).cloned();
            let answer: Answer = runtime.block_on(async {
                match &old {
                    Some(old) => world.update(old, &candidate).await,
                    None => world.create(&candidate).await,
                }
            });
            let subject = key_of(&read(&candidate.to_string())[0]);
            let before = findings(&world, &subject);
            let others: Vec<(StatusKey, bool)> = claims(&world, &subject);
            let after = world.clone().with(&candidate);
            let now = findings(&after, &subject);
            let new: Vec<_> = now.difference(&before).collect();
            let stolen = others != claims(&after, &subject);
            if answer.allowed {
                prop_assert!(new.is_empty(), "{candidate} was let through with {new:?}");
                prop_assert!(!stolen, "{candidate} was let through and takes a mesh");
                stored.retain(|it| !same(&it));
                stored.push(candidate.clone());
                world = after;
            } else {
                let astray = names_a_stranger(&candidate) && !old.as_ref().is_some_and(names_a_stranger);
                prop_assert!(
                    !new.is_empty() || stolen || astray,
                    "{candidate} was refused: {}",
                    answer.message
                );
            }
        }
    }
}

/// Whether an object names a cluster that nobody has registered.
fn names_a_stranger(object: &Value) -> bool {
    object.to_string().contains("cluster-9")
}

/// Which other virtual meshes hold their meshes.
fn claims(world: &World, subject: &StatusKey) -> Vec<(StatusKey, bool)> {
    if subject.kind != StatusKind::VirtualMesh {
        return Vec::new();
    }
    let standings = &world.state().estate().virtual_meshes;
    standings
        .iter()
        .filter(|(key, standing)| **key != subject.key && standing.is_applied)
        .map(|(key, standing)| {
            let key = StatusKey {
                kind: StatusKind::VirtualMesh,
                key: key.clone(),
            };
            (key, standing.is_applied)
        })
        .collect()
}

#[test]
fn the_universe_has_what_it_takes() {
    // So that the property above is not about nothing.
    let world = World::new();
    let changes = read(&written("TrafficPolicy", "a", json!({})).to_string());
    let (_, delta) = world
        .state()
        .clone()
        .step(changes.into_iter().map(Change::Upsert));
    assert_eq!(delta.after().destinations().len(), 5);
}
