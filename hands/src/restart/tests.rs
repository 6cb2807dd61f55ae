use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};

use super::*;

const SINCE: i64 = 100;

fn second(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
}

fn pod(name: &str, created: i64, is_ready: bool) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            uid: Some(format!("uid-{name}")),
            creation_timestamp: Some(Time(second(created))),
            owner_references: Some(vec![OwnerReference {
                kind: "ReplicaSet".to_owned(),
                controller: Some(true),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        status: Some(PodStatus {
            phase: Some("Running".to_owned()),
            conditions: Some(vec![PodCondition {
                type_: "Ready".to_owned(),
                status: if is_ready { "True" } else { "False" }.to_owned(),
                ..PodCondition::default()
            }]),
            ..PodStatus::default()
        }),
        ..Pod::default()
    }
}

fn terminating(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(Time(second(SINCE + 1)));
    pod
}

fn entry(wait_for_replicas: i64) -> PodSelector {
    PodSelector {
        namespace: "istio-system".to_owned(),
        wait_for_replicas,
        ..PodSelector::default()
    }
}

fn next(wait_for_replicas: i64, pods: &[Pod]) -> Step {
    let selector = entry(wait_for_replicas);
    step(&selector, pods, &RootSync::Reached, second(SINCE))
}

fn evicted(step: Step) -> Vec<String> {
    match step {
        Step::Evict(victims) => victims.into_iter().map(|victim| victim.name).collect(),
        other => panic!("{other:?}"),
    }
}

const DONE: Step = Step::Done { left: Vec::new() };

#[test]
fn pods_created_after_the_root_was_stored_are_left_alone() {
    assert_eq!(next(0, &[pod("new", SINCE + 1, true)]), DONE);
    assert_eq!(next(0, &[]), DONE);
}

#[test]
fn a_pod_of_the_same_second_is_restarted() {
    assert_eq!(evicted(next(0, &[pod("old", SINCE, true)])), ["old"]);
}

#[test]
fn a_single_replica_is_restarted_all_the_same() {
    assert_eq!(evicted(next(1, &[pod("istiod", 1, true)])), ["istiod"]);
}

#[test]
fn a_quarter_of_the_pods_is_away_at_a_time() {
    let pods: Vec<Pod> = (0..8).map(|n| pod(&n.to_string(), 1, true)).collect();
    assert_eq!(evicted(next(0, &pods)).len(), 2);
    let mut pods = pods;
    pods[0] = terminating(pods[0].clone());
    pods.push(pod("new", SINCE + 1, false));
    assert_eq!(
        next(0, &pods),
        Step::Wait(Waiting::Rollout {
            namespace: "istio-system".to_owned(),
            unavailable: 2,
            old: 7
        })
    );
}

#[test]
fn pods_that_serve_nobody_are_restarted_at_once() {
    let pods: Vec<Pod> = (0..8).map(|n| pod(&n.to_string(), 1, false)).collect();
    assert_eq!(evicted(next(0, &pods)).len(), 8);
}

#[test]
fn a_pod_that_is_on_its_way_out_is_not_evicted_again() {
    assert_eq!(next(0, &[terminating(pod("old", 1, true))]), DONE);
}

#[test]
fn the_next_entry_waits_for_as_many_ready_new_pods_as_asked() {
    let waiting = |ready| {
        Step::Wait(Waiting::Replicas {
            namespace: "istio-system".to_owned(),
            ready,
            wanted: 1,
        })
    };
    let old = terminating(pod("old", 1, true));
    assert_eq!(next(1, std::slice::from_ref(&old)), waiting(0));
    let pods = [old.clone(), pod("new", SINCE + 1, false)];
    assert_eq!(next(1, &pods), waiting(0));
    assert_eq!(next(1, &[old, pod("new", SINCE + 1, true)]), DONE);
}

#[test]
fn pods_wait_until_the_new_root_is_in_their_namespace() {
    let missing = RootSync::Missing {
        config_map: "a/b".to_owned(),
    };
    let old = [pod("old", 1, true)];
    let waits = step(&entry(0), &old, &missing, second(SINCE));
    let config_map = "a/b".to_owned();
    assert_eq!(waits, Step::Wait(Waiting::Root { config_map }));
    // There is nothing to wait for where no pod needs a restart.
    let new = [pod("new", SINCE + 1, true)];
    assert_eq!(step(&entry(0), &new, &missing, second(SINCE)), DONE);
}

#[test]
fn pods_that_nobody_would_start_again_are_named_and_left() {
    let mut bare = pod("bare", 1, true);
    bare.metadata.owner_references = None;
    let mut mirror = pod("mirror", 1, true);
    for owner in mirror.metadata.owner_references.iter_mut().flatten() {
        owner.kind = "Node".to_owned();
    }
    let left = vec!["bare".to_owned(), "mirror".to_owned()];
    assert_eq!(next(0, &[bare, mirror]), Step::Done { left });
}

#[test]
fn pods_that_are_over_count_for_nothing() {
    let mut over = pod("job", 1, false);
    over.status.as_mut().unwrap().phase = Some("Succeeded".to_owned());
    assert_eq!(next(0, &[over]), DONE);
}

#[test]
fn a_config_map_without_the_root_has_not_reached_it() {
    assert!(!is_root_reached(b"root", None));
    assert!(!is_root_reached(b"root", Some("other")));
    assert!(is_root_reached(b"root", Some("root")));
}
