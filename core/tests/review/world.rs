//! An estate, and what is said of changes to it.

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::review::{Candidate, Intent, Outcome, Remark, Review, judged};
use ferromesh_core::{Change, Kind, Object, Scope, State};
use serde_json::Value;

/// Two Istio meshes and three Services, of which reviews is in both.
const ESTATE: &str = include_str!("estate.yaml");

fn objects(text: &str) -> Vec<Object> {
    manifest::read(text, "")
        .into_iter()
        .map(|entry| match entry {
            Entry::Object(object) => object,
            other => panic!("{other:?}"),
        })
        .collect()
}

/// The estate, with the management cluster listed.
pub(crate) fn estate() -> State {
    let management = [Scope::Management, Scope::Everywhere];
    synced(with(State::default(), ESTATE), "", &management)
}

pub(crate) fn synced(state: State, cluster: &str, scopes: &[Scope]) -> State {
    let kinds = Kind::ALL
        .iter()
        .filter(|kind| scopes.contains(&kind.scope()));
    let listed = kinds.map(|kind| Change::Synced {
        cluster: cluster.into(),
        kind: *kind,
    });
    state.step(listed).0
}

pub(crate) fn with(state: State, text: &str) -> State {
    state.step(objects(text).into_iter().map(Change::Upsert)).0
}

pub(crate) fn policy(kind: &str, name: &str, spec: &str) -> String {
    let group = if kind == "Settings" {
        "settings"
    } else {
        "networking"
    };
    format!(
        "{{apiVersion: {group}.mesh.gloo.solo.io/v1, kind: {kind}, metadata: {{name: {name}, namespace: gloo-mesh}}, spec: {spec}}}"
    )
}

pub(crate) fn traffic_policy(name: &str, spec: &str) -> String {
    policy("TrafficPolicy", name, spec)
}

/// An object of a kind that is judged.
pub(crate) fn read(text: &str) -> (Kind, Value) {
    let object: Value = serde_saphyr::from_str(text).unwrap();
    let word = |field: &str| object[field].as_str().unwrap();
    let (group, _) = word("apiVersion").split_once('/').unwrap();
    (judged(group, word("kind")).unwrap(), object)
}

pub(crate) fn review(state: &State, kind: Kind, intent: Intent) -> Outcome {
    let mut review = Review::new(state, Candidate::new(kind, intent).unwrap());
    while !review.advance(7) {}
    let outcome = review.finish();
    assert!(outcome.is_complete);
    outcome
}

pub(crate) fn creation(state: &State, object: &str) -> Outcome {
    let (kind, object) = read(object);
    review(state, kind, Intent::Create(object))
}

/// An object takes another form.
pub(crate) fn update(state: &State, old: &str, new: &str) -> Outcome {
    let ((kind, old), (_, new)) = (read(old), read(new));
    review(state, kind, Intent::Update { old, new })
}

pub(crate) fn removal(state: &State, object: &str) -> Vec<String> {
    let (kind, object) = read(object);
    texts(&review(state, kind, Intent::Delete(object)).remarks)
}

pub(crate) fn texts(remarks: &[Remark]) -> Vec<String> {
    remarks.iter().map(|remark| remark.text.clone()).collect()
}

/// What is said about an object that may be created.
pub(crate) fn said(state: &State, object: &str) -> Vec<String> {
    let outcome = creation(state, object);
    assert_eq!(outcome.denials, [], "is refused");
    texts(&outcome.remarks)
}

/// Why an object may not be created.
pub(crate) fn refused(state: &State, object: &str) -> Vec<String> {
    let denials = creation(state, object).denials;
    denials.iter().map(ToString::to_string).collect()
}

#[track_caller]
pub(crate) fn assert_says(said: &[String], expected: &str) {
    assert!(
        said.iter().any(|text| text == expected),
        "{expected:?} is not among {said:#?}"
    );
}

#[track_caller]
pub(crate) fn assert_silent_on(said: &[String], part: &str) {
    assert!(
        !said.iter().any(|text| text.contains(part)),
        "{part:?} is in {said:#?}"
    );
}

pub(crate) const REVIEWS_1: &str = "[{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}]}}]";
pub(crate) const REVIEWS_2: &str = "[{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-2}]}}]";
pub(crate) const REVIEWS: &str = "[{kubeServiceMatcher: {labels: {app: reviews}}}]";
pub(crate) const VIRTUAL_MESH: &str = "{meshes: [{name: istiod-1, namespace: gloo-mesh}, {name: istiod-2, namespace: gloo-mesh}], federation: {selectors: [{}]}, mtlsConfig: {autoRestartPods: true, shared: {rootCertificateAuthority: {generated: {}}}}}";

/// A policy for a Service that does not exist.
pub(crate) const MISSING: &str = "{destinationSelector: [{kubeServiceRefs: {services: [{name: gone, namespace: bookinfo, clusterName: cluster-2}]}}], policy: {requestTimeout: 1s}}";
