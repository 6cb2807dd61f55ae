//! A certificate that nobody disturbs.

use ferromesh_ca::key::KeyKind;
use ferromesh_ca::request::VerifiedRequest;
use ferromesh_crds::cert_options::CommonCertOptions;
use ferromesh_crds::issued_certificate::IssuedCertificateState as State;
use ferromesh_hands::mark::{self, Generation};
use ferromesh_hands::state::{Obstacle, Standing};
use jiff::SignedDuration;

use super::world::{ENTRIES, ISTIO, MESH, NAMESPACE, World, certificate, days, owner};

#[test]
fn a_certificate_goes_through_the_states_of_the_compatible_api() {
    let mut world = World::new();
    assert_eq!(world.decide().standing.state(), Some(State::Pending));
    world.step(9);
    assert_eq!(world.decide().standing.state(), Some(State::Requested));
    world.step(9);
    // Nobody has answered: nothing is issued, and nothing is made anew.
    let waiting = world.decide();
    assert_eq!(waiting.standing.state(), Some(State::Requested));
    assert!(waiting.actions.is_empty());
    assert!(world.answer());
    assert_eq!(world.decide().standing.state(), Some(State::Requested));
    world.step(9);
    let done = world.decide();
    assert_eq!(done.standing.state(), Some(State::Issued));
    assert!(done.actions.is_empty());
    assert_eq!(world.stores, 1);
}

#[test]
fn the_objects_have_the_names_types_and_labels_of_the_compatible_api() {
    let world = World::settled();
    let key = world.key.unwrap();
    assert_eq!(key.metadata.name.as_deref(), Some(MESH));
    assert_eq!(key.metadata.namespace.as_deref(), Some(NAMESPACE));
    assert_eq!(
        key.type_.as_deref(),
        Some("certificates.mesh.gloo.solo.io/generated_private_key")
    );
    assert_eq!(key.immutable, Some(true));
    assert!(key.data.unwrap().contains_key("private-key"));
    let cacerts = world.cacerts.unwrap();
    assert_eq!(cacerts.metadata.namespace.as_deref(), Some(ISTIO));
    assert_eq!(
        cacerts.type_.as_deref(),
        Some("certificates.mesh.gloo.solo.io/issued_certificate")
    );
    assert_eq!(owner(&cacerts).as_deref(), Some(MESH));
    let names: Vec<String> = cacerts.data.unwrap().into_keys().collect();
    let mut wanted = ENTRIES.map(str::to_owned);
    wanted.sort();
    assert_eq!(names, wanted);
    let request = world.request.unwrap();
    assert_eq!(request.metadata.name.as_deref(), Some(MESH));
    for meta in [key.metadata, cacerts.metadata, request.metadata] {
        let labels = meta.labels.unwrap();
        assert_eq!(labels["agent.certificates.mesh.gloo.solo.io"], NAMESPACE);
        assert_eq!(labels["cluster.multicluster.solo.io"], "");
    }
}

#[test]
fn the_private_key_stays_in_its_secrets() {
    let world = World::settled();
    let key = world.key.as_ref().unwrap().data.as_ref().unwrap()["private-key"].clone();
    let key = String::from_utf8(key.0).unwrap();
    let line = key.lines().nth(1).unwrap();
    let request = serde_json::to_string(&world.request).unwrap();
    assert!(!request.contains(line));
    let shown = format!("{:?} {:?}", world.observed(), world.decide());
    assert!(
        !shown.contains(line) && !shown.contains("PRIVATE"),
        "{shown}"
    );
}

#[test]
fn the_key_is_of_the_kind_that_is_asked_for() {
    let mut world = World::new();
    world.change(|spec| {
        spec.cert_options = Some(CommonCertOptions {
            rsa_key_size_bytes: 2048,
            ..CommonCertOptions::default()
        });
    });
    world.step(9);
    world.step(9);
    let request = world.request.unwrap().spec.certificate_signing_request.0;
    let asked = VerifiedRequest::from_pem(&request).unwrap();
    assert_eq!(asked.public_key().kind(), KeyKind::Rsa { bits: 2048 });
}

#[test]
fn other_terms_take_a_key_of_the_next_generation_while_cacerts_stays() {
    let mut world = World::settled();
    let before = world.live_root();
    world.change(|spec| spec.hosts.push("istiod.istio-system.svc".to_owned()));
    let decision = world.decide();
    assert_eq!(decision.standing, Standing::Asked);
    assert!(decision.live.is_some(), "the old one works meanwhile");
    world.step(9);
    world.step(9);
    // The answer to the request before is none to this one.
    assert_eq!(world.decide().standing, Standing::Asked);
    assert_eq!(world.stores, 1);
    assert_eq!(world.live_root(), before);
    assert_eq!(world.settle().standing, Standing::Stored);
    assert_eq!(world.stores, 2);
    assert_eq!(world.annotation(mark::GENERATION).as_deref(), Some("2"));
}

#[test]
fn allowing_restarts_issues_nothing_anew() {
    let mut world = World::settled();
    world.change(|spec| {
        spec.pod_bounce_directive = Some(ferromesh_crds::ObjectRef {
            name: MESH.to_owned(),
            namespace: NAMESPACE.to_owned(),
        });
    });
    let decision = world.decide();
    assert_eq!(decision.standing, Standing::Stored);
}

#[test]
fn a_new_generation_forgets_which_pods_were_restarted_before_it_is_stored() {
    let mut world = World::settled();
    world.put_directive();
    assert_eq!(world.decide().standing, Standing::Stored);
    world.change(|spec| spec.hosts.clear());
    world.step(9);
    world.step(9);
    world.answer();
    assert!(world.directive.as_ref().unwrap().status.is_some());
    // Dead between the two: they are forgotten, and the Secret is stored later.
    assert_eq!(world.step(1), 2);
    assert!(world.directive.as_ref().unwrap().status.is_none());
    assert_eq!(world.stores, 1);
    world.settle();
    assert_eq!(world.stores, 2);
}

#[test]
fn a_certificate_is_renewed_under_the_same_root_when_a_third_of_its_life_is_left() {
    let mut world = World::settled();
    let since = world.decide().live.unwrap().root_since;
    world.now += days(59);
    assert_eq!(world.decide().standing, Standing::Stored);
    world.now += days(2);
    let due = world.decide();
    assert_eq!(due.standing, Standing::Asked);
    assert_eq!(due.live.unwrap().generation, Some(Generation::FIRST));
    world.settle();
    let renewed = world.decide().live.unwrap();
    assert_eq!(renewed.generation.unwrap().get(), 2);
    assert!(renewed.not_after > world.now + days(89));
    // Pods that trust the root need no restart.
    assert_eq!(renewed.root_since, since);
}

#[test]
fn a_certificate_that_was_answered_long_ago_is_asked_for_anew() {
    let mut world = World::new();
    world.step(9);
    world.step(9);
    world.answer();
    world.now += days(80);
    assert_eq!(world.settle().standing, Standing::Stored);
    assert_eq!(world.annotation(mark::GENERATION).as_deref(), Some("2"));
}

#[test]
fn an_answer_that_is_old_at_birth_makes_no_keys_without_end() {
    let mut world = World::new();
    world.now += days(100);
    world.step(9);
    world.step(9);
    // The clock of the one who signs is months behind.
    world.now -= days(80);
    world.answer();
    world.now += days(80);
    let decision = world.decide();
    assert!(matches!(
        decision.standing,
        Standing::Blocked(Obstacle::Unusable(_))
    ));
    assert!(decision.actions.is_empty());
    world.now += SignedDuration::from_hours(1);
    assert!(!world.decide().actions.is_empty());
}

#[test]
fn a_refusal_is_told_and_what_is_in_place_stays() {
    let mut world = World::settled();
    world.now += days(61);
    world.step(9);
    world.step(9);
    world.refuse("no such mesh");
    let decision = world.decide();
    let Standing::Blocked(obstacle) = &decision.standing else {
        panic!("{decision:?}");
    };
    assert!(obstacle.to_string().contains("no such mesh"));
    assert!(decision.actions.is_empty() && decision.live.is_some());
    // Nobody has to do anything here when the issuer changes its mind.
    assert_eq!(world.settle().standing, Standing::Stored);
}

#[test]
fn istiods_of_one_namespace_share_what_one_of_them_has() {
    let mut world = World::settled();
    world.owner = Some(world.certificate.clone());
    world.certificate = certificate("istiod-canary");
    world.key = None;
    world.request = None;
    let decision = world.decide();
    assert_eq!(decision.standing, Standing::Stored);
    // The other one goes.
    world.owner = None;
    world.change(|spec| spec.hosts.clear());
    assert_eq!(world.settle().standing, Standing::Stored);
    let secret = world.cacerts.as_ref().unwrap();
    assert_eq!(owner(secret).as_deref(), Some("istiod-canary"));
    assert_eq!(world.annotation(mark::GENERATION).as_deref(), Some("2"));
}

#[test]
fn what_is_on_its_way_out_is_left_alone() {
    let mut world = World::settled();
    world.certificate.metadata.deletion_timestamp = Some(
        k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now),
    );
    let decision = world.decide();
    assert_eq!(decision.standing, Standing::Ignored);
    assert!(decision.actions.is_empty());
}
