//! Somebody else writes the same objects.

use std::collections::BTreeMap;

use ferromesh_ca::bundle::RootId;
use ferromesh_hands::mark;
use ferromesh_hands::state::{Obstacle, Standing};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::world::{NAMESPACE, ROOTS, World, content, entries};

fn obstacle(world: &World) -> String {
    match world.decide().standing {
        Standing::Blocked(obstacle) => obstacle.to_string(),
        other => panic!("{other:?}"),
    }
}

fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, ByteString> {
    pairs
        .iter()
        .map(|(name, content)| ((*name).to_owned(), ByteString((*content).into())))
        .collect()
}

#[test]
fn a_ca_that_is_not_ours_is_never_overwritten() {
    let now = World::new().now;
    let mut generated = entries(&ROOTS[2], now);
    generated.insert("istio-generated".to_owned(), ByteString::default());
    for (found, said) in [
        (entries(&ROOTS[2], now), "valid until"),
        (generated, "istiod made"),
        (data(&[("ca-cert.pem", "x")]), "lacks ca-key.pem"),
        (data(&[("other", "x")]), "holds no certificate authority"),
    ] {
        let mut world = World::new();
        world.put_cacerts(found, BTreeMap::new());
        let before = content(world.cacerts.as_ref().unwrap());
        let message = obstacle(&world);
        assert!(message.contains(said), "{message}");
        assert!(
            message.contains("delete it") && message.contains("label it"),
            "{message}"
        );
        assert!(world.settle().actions.is_empty());
        assert_eq!(content(world.cacerts.as_ref().unwrap()), before);
        assert!(
            world.key.is_none(),
            "nothing is asked for that cannot be stored"
        );
        world.cacerts = None;
        assert_eq!(world.settle().standing, Standing::Stored);
    }
}

#[test]
fn a_ca_under_the_same_root_is_taken_over_when_it_is_labelled() {
    let mut world = World::new();
    world.put_cacerts(entries(&ROOTS[0], world.now), mark::labels(NAMESPACE));
    assert_eq!(world.settle().standing, Standing::Stored);
    assert_eq!(world.stores, 1);
    // Its type cannot change.
    let secret = world.cacerts.as_ref().unwrap();
    assert_eq!(secret.type_.as_deref(), Some("Opaque"));
    assert!(world.annotation(mark::ROOT_SINCE).is_none());
}

#[test]
fn a_labelled_ca_under_another_root_stays() {
    let mut world = World::new();
    world.put_cacerts(entries(&ROOTS[2], world.now), mark::labels(NAMESPACE));
    world.settle();
    let message = obstacle(&world);
    let relied = RootId::of(ROOTS[2].certificate()).to_string();
    assert!(message.contains(&relied), "{message}");
    assert_eq!(world.stores, 0);
}

#[test]
fn another_root_is_not_put_under_running_workloads() {
    let mut world = World::settled();
    let before = world.live_root();
    world.use_root(1);
    let decision = world.settle();
    assert!(matches!(
        decision.standing,
        Standing::Blocked(Obstacle::RootChanged { .. })
    ));
    assert!(decision.live.is_some());
    assert_eq!(world.live_root(), before);
    // Back again: nothing has happened to anybody.
    world.use_root(0);
    assert_eq!(world.settle().standing, Standing::Stored);
    // A person may decide otherwise.
    world.use_root(1);
    world.cacerts = None;
    assert_eq!(world.settle().standing, Standing::Stored);
    let root = RootId::of(ROOTS[1].certificate());
    assert_eq!(world.live_root(), Some(root));
}

#[test]
fn edits_are_put_right_without_a_new_key() {
    type Edit = fn(&mut Secret);
    let edits: [Edit; 7] = [
        // Another signer.
        |secret| secret.data = Some(entries(&ROOTS[2], World::new().now)),
        // Another anchor.
        |secret| {
            let roots = secret
                .data
                .as_mut()
                .unwrap()
                .get_mut("root-cert.pem")
                .unwrap();
            let more = ROOTS[2].certificate().to_pem();
            roots.0.extend(more.into_bytes());
        },
        // Half of it.
        |secret| drop(secret.data.as_mut().unwrap().remove("ca-key.pem")),
        // Nothing.
        |secret| secret.data = None,
        // Files that istiod would prefer.
        |secret| {
            let data = secret.data.as_mut().unwrap();
            data.insert("tls.crt".to_owned(), ByteString(b"x".to_vec()));
        },
        // Whose it is.
        |secret| secret.metadata.labels = None,
        // What was written about it.
        |secret| secret.metadata.annotations = None,
    ];
    for (index, edit) in edits.into_iter().enumerate() {
        let mut world = World::settled();
        let before = content(world.cacerts.as_ref().unwrap());
        world.edit(edit);
        assert_ne!(world.decide().standing, Standing::Stored, "{index}");
        assert_eq!(world.settle().standing, Standing::Stored, "{index}");
        assert_eq!(content(world.cacerts.as_ref().unwrap()), before, "{index}");
    }
}

#[test]
fn what_says_the_same_is_not_written_again() {
    let mut world = World::settled();
    world.edit(|secret| {
        let data = secret.data.as_mut().unwrap();
        let chain = data.get_mut("cert-chain.pem").unwrap();
        chain.0.extend(b"# a comment\n");
        data.insert("notes.txt".to_owned(), ByteString(b"mine".to_vec()));
    });
    assert_eq!(world.settle().standing, Standing::Stored);
    assert_eq!(world.stores, 1);
}

#[test]
fn a_deleted_cacerts_is_restored_from_the_key_and_the_answer() {
    let mut world = World::settled();
    let before = content(world.cacerts.as_ref().unwrap());
    world.cacerts = None;
    assert_eq!(world.settle().standing, Standing::Stored);
    assert_eq!(content(world.cacerts.as_ref().unwrap()), before);
}

#[test]
fn losing_the_key_and_the_request_changes_nothing_that_works() {
    let mut world = World::settled();
    world.key = None;
    world.request = None;
    assert!(world.decide().actions.is_empty());
    // Only when there is something to put right, a new generation follows.
    world.edit(|secret| secret.data = None);
    assert_eq!(world.settle().standing, Standing::Stored);
    assert_eq!(world.annotation(mark::GENERATION).as_deref(), Some("2"));
}

#[test]
fn an_old_backup_of_cacerts_does_not_stay() {
    let mut world = World::settled();
    let backup = world.cacerts.clone();
    world.change(|spec| spec.hosts.clear());
    world.settle();
    let newer = content(world.cacerts.as_ref().unwrap());
    world.edit(|secret| *secret = backup.unwrap());
    assert_eq!(world.settle().standing, Standing::Stored);
    assert_eq!(content(world.cacerts.as_ref().unwrap()), newer);
}

#[test]
fn an_old_backup_of_the_key_is_not_used_again() {
    let mut world = World::settled();
    let backup = world.key.clone();
    let hosts = world.certificate.spec.hosts.clone();
    world.change(|spec| spec.hosts.clear());
    world.settle();
    world.change(|spec| spec.hosts = hosts);
    world.settle();
    world.key = backup;
    world.edit(|secret| secret.data = None);
    assert_eq!(world.settle().standing, Standing::Stored);
    assert_eq!(world.annotation(mark::GENERATION).as_deref(), Some("4"));
}

#[test]
fn a_certificate_repairs_what_is_its_own() {
    let mut world = World::settled();
    world.owner = Some(world.certificate.clone());
    world.edit(|secret| secret.data = None);
    assert_eq!(world.settle().standing, Standing::Stored);
}

#[test]
fn a_secret_or_request_of_somebody_else_is_named_and_left() {
    let mut world = World::new();
    world.key = Some(Secret::default());
    assert!(obstacle(&world).contains("not ours"));
    assert!(world.settle().actions.is_empty());

    let mut world = World::new();
    world.step(9);
    world.request = Some(ferromesh_crds::CertificateRequest::default());
    assert!(obstacle(&world).contains("CertificateRequest"));
    assert!(world.decide().actions.is_empty());
}

#[test]
fn a_key_that_cannot_be_read_is_replaced() {
    let mut world = World::new();
    world.step(9);
    world.key.as_mut().unwrap().data = None;
    assert_eq!(world.settle().standing, Standing::Stored);
    assert_eq!(world.annotation(mark::GENERATION).as_deref(), Some("2"));
}

#[test]
fn an_answer_for_another_key_or_under_another_root_is_not_stored() {
    let mut other = World::new();
    other.step(9);
    other.step(9);
    other.answer();
    let answer = other.request.unwrap().status.unwrap();
    let mut world = World::new();
    world.step(9);
    world.step(9);
    world.request.as_mut().unwrap().status = Some(answer);
    assert!(obstacle(&world).contains("not for the key"));

    world.answer();
    let mut world = World::new();
    world.step(9);
    world.step(9);
    world.answer();
    let status = world.request.as_mut().unwrap().status.as_mut().unwrap();
    status.signing_root_ca = ByteString(ROOTS[1].certificate().to_pem().into_bytes());
    assert!(obstacle(&world).contains("issuer"));
    assert!(world.decide().actions.is_empty());
}
