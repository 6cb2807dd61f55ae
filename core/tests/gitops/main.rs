//! A repository of policies, applied in any order by a tool that asks again for what was refused.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

use std::fs;
use std::path::Path;

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::report::Report;
use ferromesh_core::review::{Candidate, Intent, Review, judged};
use ferromesh_core::{Change, Kind, Object, Scope, State};
use serde_json::Value;

/// Two meshes with their gateways.
const ESTATE: &str = include_str!("estate.yaml");
const ORDERS: u64 = 200;

/// One file of the repository.
struct File {
    name: String,
    text: String,
}

fn repository() -> Vec<File> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/gitops");
    let files = fs::read_dir(directory).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .map(|path| File {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect();
    files.sort_by(|left, right| left.name.cmp(&right.name));
    files
}

fn objects(text: &str) -> Vec<Object> {
    let entries = manifest::read(text, "").into_iter();
    let object = |entry| match entry {
        Entry::Object(object) => object,
        other @ (Entry::Ignored { .. } | Entry::Unreadable { .. }) => panic!("{other:?}"),
    };
    entries.map(object).collect()
}

/// What is there before anybody applies anything.
fn estate() -> State {
    let services = [
        ("details", "cluster-1"),
        ("productpage", "cluster-1"),
        ("ratings", "cluster-1"),
        ("ratings", "cluster-2"),
        ("reviews", "cluster-1"),
        ("reviews", "cluster-2"),
    ];
    let destinations = services.map(|(name, cluster)| {
        format!(
            "
---
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Destination
metadata: {{name: {name}-bookinfo-{cluster}, namespace: gloo-mesh}}
spec:
  mesh: {{name: istiod-istio-system-{cluster}, namespace: gloo-mesh}}
  kubeService:
    ref: {{name: {name}, namespace: bookinfo, clusterName: {cluster}}}
    labels: {{app: {name}}}
    workloadSelectorLabels: {{app: {name}}}
    ports: [{{name: http, port: 9080, protocol: TCP}}]"
        )
    });
    let all = objects(&format!("{ESTATE}{}", destinations.concat()));
    let listed = Kind::ALL
        .iter()
        .filter(|kind| matches!(kind.scope(), Scope::Management | Scope::Everywhere));
    let listed = listed.map(|kind| Change::Synced {
        cluster: "".into(),
        kind: *kind,
    });
    let changes = all.into_iter().map(Change::Upsert).chain(listed);
    State::default().step(changes).0
}

/// Why the webhook would not let an object be created, if it would not.
fn refusal(state: &State, text: &str) -> Option<String> {
    let object: Value = serde_saphyr::from_str(text).unwrap();
    let word = |field: &str| object[field].as_str().unwrap();
    let (group, _) = word("apiVersion").split_once('/').unwrap();
    let kind = judged(group, word("kind"))?;
    let mut review = Review::new(state, Candidate::new(kind, Intent::Create(object.clone()))?);
    while !review.advance(64) {}
    let denials = review.finish().denials;
    let denials: Vec<_> = denials.iter().map(ToString::to_string).collect();
    (!denials.is_empty()).then(|| denials.join("; "))
}

/// Applies files in this order, and those that were refused again and again; returns what comes of it, and how
/// often something was refused.
fn apply(mut files: Vec<&File>) -> (Report, usize) {
    let mut state = estate();
    let mut refused = 0;
    while !files.is_empty() {
        let mut left = Vec::new();
        let before = files.len();
        let mut reasons = Vec::new();
        for file in files {
            if let Some(reason) = refusal(&state, &file.text) {
                reasons.push(format!("{}: {reason}", file.name));
                left.push(file);
            } else {
                let changes = objects(&file.text).into_iter().map(Change::Upsert);
                state = state.step(changes).0;
            }
        }
        refused += left.len();
        assert!(left.len() < before, "never accepted: {reasons:#?}");
        files = left;
    }
    (Report::translation(&state), refused)
}

#[test]
fn a_repository_ends_the_same_in_whatever_order_it_is_applied() {
    let files = repository();
    assert!(files.len() >= 15, "{} files", files.len());
    let (expected, _) = apply(files.iter().collect());
    for status in &expected.statuses {
        let state = &status.status["state"];
        assert!(
            state.is_null() || state == "ACCEPTED",
            "{} {}: {}",
            status.kind,
            status.name,
            status.status
        );
    }
    assert!(expected.outputs.len() > 20, "{}", expected.outputs.len());
    let mut refused = 0;
    for seed in 1..=ORDERS {
        let mut order: Vec<_> = files.iter().collect();
        shuffle(&mut order, seed);
        let (report, often) = apply(order);
        refused += often;
        assert_eq!(report, expected, "with seed {seed}");
    }
    // Otherwise the files do not depend on one another.
    assert!(refused > 100, "{refused} refusals");
}

/// A fixed shuffle of this seed.
fn shuffle<T>(list: &mut [T], seed: u64) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for at in (1..list.len()).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let bound = u64::try_from(at).unwrap() + 1;
        list.swap(at, usize::try_from(random % bound).unwrap());
    }
}
