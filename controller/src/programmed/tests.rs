use ferromesh_apply::Label;
use ferromesh_core::{Key, StatusKind};

use super::*;

fn key(name: &str) -> OutputKey {
    OutputKey {
        cluster: "east".into(),
        kind: OutputKind::Istio(ferromesh_istio::Kind::VirtualService),
        namespace: "shop".into(),
        name: name.into(),
    }
}

fn policy(name: &str) -> StatusKey {
    StatusKey {
        kind: StatusKind::TrafficPolicy,
        key: Key::local(name, "shop"),
    }
}

fn parents(names: &[&str]) -> Arc<[StatusKey]> {
    names.iter().map(|name| policy(name)).collect()
}

fn expect(programmed: &mut Programmed, keys: &[OutputKey], of: &[&str]) -> BTreeSet<StatusKey> {
    let clusters = Clusters::default();
    programmed.expect(keys, &parents(of), Cause::Changed, &clusters)
}

fn done(programmed: &mut Programmed, key: &OutputKey) -> Taken {
    programmed.take(key, &Outcome::Applied, Arc::default)
}

fn concerned(names: &[&str]) -> Taken {
    Taken {
        concerned: names.iter().map(|name| policy(name)).collect(),
        ..Taken::default()
    }
}

/// There are no clusters here, so nobody waits for one in silence.
fn finding(programmed: &Programmed, of: &str) -> (Status, Reason) {
    let finding = programmed.finding(&policy(of), Some(3), &Clusters::default());
    assert_eq!(finding.observed_generation, Some(3));
    assert!(!finding.message.is_empty());
    (finding.status, finding.reason)
}

const UNREACHED: (Status, Reason) = (Status::False, Reason::ClusterUnreachable);
const WRITTEN: (Status, Reason) = (Status::True, Reason::Programmed);

#[test]
fn a_policy_of_which_nothing_is_unfinished_is_programmed() {
    assert_eq!(finding(&Programmed::default(), "timeout"), WRITTEN);
}

#[test]
fn the_last_object_written_is_what_makes_the_difference() {
    let mut programmed = Programmed::default();
    let both = [key("a"), key("b")];
    expect(&mut programmed, &both, &["timeout"]);
    assert_eq!(finding(&programmed, "timeout"), UNREACHED);
    assert_eq!(done(&mut programmed, &both[0]), Taken::default());
    assert_eq!(done(&mut programmed, &both[1]), concerned(&["timeout"]));
    assert_eq!(finding(&programmed, "timeout"), WRITTEN);
    assert!(programmed.subjects.is_empty() && programmed.objects.is_empty());
}

#[test]
fn what_is_heard_after_a_second_change_may_be_about_the_first() {
    let mut programmed = Programmed::default();
    expect(&mut programmed, &[key("a")], &["timeout"]);
    expect(&mut programmed, &[key("a")], &["timeout"]);
    assert!(done(&mut programmed, &key("a")).is_outdated);
    assert_eq!(finding(&programmed, "timeout"), UNREACHED);
    assert_eq!(done(&mut programmed, &key("a")), concerned(&["timeout"]));
}

#[test]
fn whoever_begins_to_write_has_nothing_outdated_to_tell() {
    let mut programmed = Programmed::default();
    expect(&mut programmed, &[key("a")], &["timeout"]);
    expect(&mut programmed, &[key("a")], &["timeout"]);
    assert_eq!(programmed.begin("east"), [key("a")]);
    let clusters = Clusters::default();
    programmed.expect([&key("a")], &parents(&["timeout"]), Cause::Begun, &clusters);
    assert_eq!(
        finding(&programmed, "timeout"),
        UNREACHED,
        "it is known to have changed"
    );
    assert_eq!(done(&mut programmed, &key("a")), concerned(&["timeout"]));
}

#[test]
fn of_a_cluster_that_was_never_reached_nobody_can_tell_what_stands() {
    let mut programmed = Programmed::default();
    let clusters = Clusters::default();
    programmed.expect([&key("a")], &parents(&["timeout"]), Cause::Begun, &clusters);
    assert_eq!(
        finding(&programmed, "timeout"),
        (Status::Unknown, Reason::ClusterUnreachable)
    );
    let told = expect(&mut programmed, &[key("a")], &["timeout"]);
    assert_eq!(told, [policy("timeout")].into());
    assert_eq!(finding(&programmed, "timeout"), UNREACHED);
    let told = expect(&mut programmed, &[key("b")], &["timeout"]);
    assert!(told.is_empty(), "it is told once: {told:?}");
}

#[test]
fn an_object_of_somebody_else_is_named_with_the_remedy() {
    let mut programmed = Programmed::default();
    let foreign = Outcome::Foreign {
        owner: Label::new("owner", "gloo-mesh"),
    };
    // It was finished before: only who asks knows whose it is.
    let told = programmed.take(&key("a"), &foreign, || parents(&["timeout", "retries"]));
    assert_eq!(
        told,
        Taken {
            is_bad_news: true,
            ..concerned(&["timeout", "retries"])
        }
    );
    let told = programmed.take(&key("a"), &foreign, Arc::default);
    assert!(!told.is_bad_news, "it is known");
    let finding = programmed.finding(&policy("retries"), None, &Clusters::default());
    assert_eq!(
        (finding.status, finding.reason),
        (Status::False, Reason::ForeignObject)
    );
    assert!(finding.message.contains("VirtualService shop/a on east"));
    assert!(finding.message.contains("owner=gloo-mesh"));
}

#[test]
fn what_a_person_must_do_is_told_before_what_may_pass() {
    let mut programmed = Programmed::default();
    let slow = || {
        Outcome::Failed(Error::Timeout {
            action: "applying".to_owned(),
            after: std::time::Duration::from_secs(15),
        })
    };
    for name in ["a", "b", "c"] {
        programmed.take(&key(name), &slow(), || parents(&["timeout"]));
    }
    assert_eq!(finding(&programmed, "timeout"), UNREACHED);
    let foreign = Outcome::Foreign {
        owner: Label::new("owner", "gloo-mesh"),
    };
    programmed.take(&key("z"), &foreign, || parents(&["timeout"]));
    let finding = programmed.finding(&policy("timeout"), None, &Clusters::default());
    assert_eq!(finding.reason, Reason::ForeignObject);
    assert!(finding.message.starts_with("VirtualService shop/z"));
    assert!(finding.message.ends_with("; and 2 more"));
}

#[test]
fn an_object_that_changes_hands_counts_for_its_new_parents_alone() {
    let mut programmed = Programmed::default();
    expect(&mut programmed, &[key("a")], &["timeout"]);
    let told = expect(&mut programmed, &[key("a")], &["retries"]);
    assert!(told.contains(&policy("timeout")), "it waits no longer");
    assert_eq!(finding(&programmed, "timeout"), WRITTEN);
    assert_eq!(finding(&programmed, "retries"), UNREACHED);
    expect(&mut programmed, &[key("a")], &[]);
    assert!(programmed.subjects.is_empty() && programmed.objects.is_empty());
}

#[test]
fn a_deregistered_cluster_is_waited_for_no_longer() {
    let mut programmed = Programmed::default();
    expect(&mut programmed, &[key("a"), key("b")], &["timeout"]);
    assert_eq!(programmed.waiting("east").count(), 1);
    assert_eq!(programmed.forget("east"), [policy("timeout")].into());
    assert_eq!(finding(&programmed, "timeout"), WRITTEN);
}

#[test]
fn a_kind_that_cannot_be_listed_is_why_its_objects_wait() {
    let mut programmed = Programmed::default();
    expect(&mut programmed, &[key("a")], &["timeout"]);
    let error = Error::NotServed {
        action: "watching VirtualServices".to_owned(),
    };
    let (east, kind) = (Arc::from("east"), key("a").kind);
    let told = programmed.sight(&east, kind, Some(&error));
    assert_eq!(told, [policy("timeout")]);
    assert!(programmed.blind.contains_key(&(Arc::clone(&east), kind)));
    assert_eq!(
        programmed.sight(&east, kind, None),
        [policy("timeout")],
        "it is over"
    );
    assert!(programmed.sight(&east, kind, None).is_empty());
}
