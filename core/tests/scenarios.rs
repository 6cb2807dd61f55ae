//! Every scenario of the corpus: what goes in, what is to come out.
//!
//! `scenarios/<area>/<name>/input` holds objects of the management cluster, and a directory
//! `clusters/<cluster>` beside it those of a managed one. `expect/*.yaml` is what comes of them;
//! `FERROMESH_BLESS=1` writes it anew, for the diff to be read.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "what a test cannot read, or does not expect, fails it"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ferromesh_core::explain::Question;
use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::report::Report;
use ferromesh_core::{Change, Kind, Scope, State};
use serde::Serialize;
use serde_json::Value;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")
}

fn directories(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(path)
        .map(|entries| {
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.is_dir())
        })
        .map(Iterator::collect)
        .unwrap_or_default();
    found.sort();
    found
}

fn scenarios() -> Vec<PathBuf> {
    directories(&corpus())
        .iter()
        .flat_map(|area| directories(area))
        .collect()
}

/// Objects of a directory; a scenario holds nothing that cannot be read.
fn objects(directory: &Path, cluster: &str) -> Vec<Change> {
    let Ok(files) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
        .iter()
        .flat_map(|file| manifest::read(&fs::read_to_string(file).unwrap(), cluster))
        .map(|entry| match entry {
            Entry::Object(object) => Change::Upsert(object),
            other => panic!("{}: {other:?}", directory.display()),
        })
        .collect()
}

/// Everything that happens in a scenario, clusters listed to their end.
fn changes(scenario: &Path) -> Vec<Change> {
    let mut changes = objects(&scenario.join("input"), "");
    for directory in directories(&scenario.join("clusters")) {
        let cluster = directory.file_name().unwrap().to_str().unwrap();
        changes.extend(objects(&directory, cluster));
        changes.extend(
            Kind::ALL
                .iter()
                .filter(|kind| matches!(kind.scope(), Scope::Managed | Scope::Everywhere))
                .map(|kind| Change::Synced {
                    cluster: cluster.into(),
                    kind: *kind,
                }),
        );
    }
    changes
}

fn documents(state: &State) -> [(&'static str, String); 3] {
    let Report { outputs, statuses } = Report::translation(state);
    let found = Report::discovery(state).outputs;
    [
        ("outputs", yaml(&outputs)),
        ("statuses", yaml(&statuses)),
        ("discovered", yaml(&found)),
    ]
}

fn yaml<T: Serialize>(list: &[T]) -> String {
    if list.is_empty() {
        String::new()
    } else {
        serde_saphyr::to_string(&list).unwrap()
    }
}

#[test]
fn every_scenario_comes_out_as_expected() {
    let mut wrong = Vec::new();
    let scenarios = scenarios();
    assert!(!scenarios.is_empty(), "the corpus is empty");
    for scenario in scenarios {
        assert!(
            scenario.join("README.md").is_file(),
            "{} says nothing",
            scenario.display()
        );
        let (state, _) = State::default().step(changes(&scenario));
        for (name, text) in documents(&state) {
            let file = scenario.join(format!("expect/{name}.yaml"));
            if std::env::var_os("FERROMESH_BLESS").is_some() {
                if text.is_empty() {
                    fs::remove_file(&file).ok();
                    continue;
                }
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, text).unwrap();
            } else if fs::read_to_string(&file).unwrap_or_default() != text {
                wrong.push(file.display().to_string());
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "differ: {wrong:#?}; see the difference with FERROMESH_BLESS=1"
    );
}

#[test]
fn a_scenario_comes_out_the_same_object_by_object_in_any_order() {
    for scenario in scenarios() {
        let (at_once, _) = State::default().step(changes(&scenario));
        let expected = documents(&at_once);
        for seed in 0..8_usize {
            let mut changes = changes(&scenario);
            shuffle(&mut changes, seed);
            let state = changes
                .into_iter()
                .fold(State::default(), |state, change| state.step([change]).0);
            assert_eq!(
                documents(&state),
                expected,
                "{} with seed {seed}",
                scenario.display()
            );
        }
    }
}

#[test]
fn what_is_deleted_and_created_again_comes_out_as_before() {
    for scenario in scenarios() {
        let (before, _) = State::default().step(changes(&scenario));
        let expected = documents(&before);
        for change in changes(&scenario) {
            let Change::Upsert(object) = &change else {
                continue;
            };
            let gone = Change::Remove(object.kind(), object.key().clone());
            let (without, _) = before.clone().step([gone]);
            let (again, _) = without.step([change]);
            assert_eq!(documents(&again), expected, "{}", scenario.display());
        }
    }
}

#[test]
fn the_delta_is_the_difference_between_what_stands_before_and_after() {
    use ferromesh_core::OutputChange;
    for scenario in scenarios() {
        let (full, _) = State::default().step(changes(&scenario));
        for change in changes(&scenario) {
            let Change::Upsert(object) = &change else {
                continue;
            };
            let gone = Change::Remove(object.kind(), object.key().clone());
            let (without, delta) = full.clone().step([gone]);
            let before: Vec<_> = full.outputs().collect();
            let after: Vec<_> = without.outputs().collect();
            let mut patched = before.clone();
            for change in delta.outputs() {
                match change {
                    OutputChange::Upsert(output) => {
                        patched.retain(|it| it.key != output.key);
                        patched.push(*output);
                    }
                    OutputChange::Delete(key) => patched.retain(|it| it.key != key),
                }
            }
            let sorted = |mut outputs: Vec<ferromesh_core::Output>| {
                outputs.sort_by(|left, right| left.key.cmp(&right.key));
                outputs
            };
            assert_eq!(sorted(patched), sorted(after), "{}", scenario.display());
            let touched: BTreeSet<_> = delta.statuses().cloned().collect();
            for key in full.statuses().chain(without.statuses()) {
                if full.status(&key) != without.status(&key) {
                    assert!(touched.contains(&key), "{key:?} in {}", scenario.display());
                }
            }
        }
    }
}

/// What is said of one object, as JSON.
fn explained(state: &State, kind: &str, namespace: &str, name: &str, cluster: &str) -> Value {
    let question = Question::new(kind, namespace, name, cluster).unwrap();
    serde_json::to_value(state.explain(&question)).unwrap()
}

#[test]
fn a_policy_that_loses_is_told_where_and_to_whom() {
    let scenario = corpus().join("traffic/of-two-policies-that-disagree-the-lower-key-holds");
    let (state, _) = State::default().step(changes(&scenario));
    let loser = explained(&state, "TrafficPolicy", "gloo-mesh", "tp-b", "");
    assert_eq!(loser["isRead"], true);
    let places = loser["destinations"]["first"].as_array().unwrap();
    let lost = places.iter().find(|place| place["isApplied"] == false);
    let lost = lost.unwrap();
    assert_eq!(lost["name"], "reviews-bookinfo-cluster-1");
    assert!(lost["errors"][0].as_str().unwrap().contains("tp-a"));
    let made = loser["outputs"]["first"].as_array().unwrap();
    assert!(made.iter().all(|output| output["name"] == "ratings"));
    assert_eq!(loser["status"]["state"], "INVALID");

    let place = explained(
        &state,
        "Destination",
        "gloo-mesh",
        "reviews-bookinfo-cluster-1",
        "",
    );
    let policies = place["policies"]["first"].as_array().unwrap();
    let names: Vec<_> = policies.iter().map(|it| it["name"].as_str()).collect();
    assert_eq!(names, [Some("tp-a"), Some("tp-b"), Some("tp-c")]);

    let route = explained(&state, "VirtualService", "bookinfo", "reviews", "cluster-1");
    assert_eq!(
        route["desired"]["spec"]["http"][0]["retries"]["attempts"],
        3
    );
    let parents = route["contributors"]["first"].as_array().unwrap();
    let names: Vec<_> = parents.iter().map(|it| it["name"].as_str()).collect();
    assert_eq!(names, [Some("tp-a"), Some("tp-c")]);
    let none = explained(&state, "VirtualService", "bookinfo", "details", "cluster-1");
    assert_eq!(none["desired"], Value::Null);
}

#[test]
fn every_output_is_explained_by_what_has_a_part_in_it_and_the_other_way_round() {
    for scenario in scenarios() {
        let (state, _) = State::default().step(changes(&scenario));
        let counts = state.counts();
        let counted = counts.outputs.values().flat_map(BTreeMap::values);
        assert_eq!(counted.sum::<usize>(), state.outputs().count());
        for output in Report::translation(&state).outputs {
            let told = explained(
                &state,
                output.kind,
                &output.namespace,
                &output.name,
                &output.cluster,
            );
            let what = format!("{}: {}", scenario.display(), told["object"]);
            assert_eq!(told["desired"], serde_json::to_value(&output).unwrap());
            for parent in told["contributors"]["first"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let part = |field: &str| parent[field].as_str().unwrap_or_default();
                let parent = explained(&state, part("kind"), part("namespace"), part("name"), "");
                let made = parent["outputs"]["first"].as_array().unwrap();
                let omitted = parent["outputs"]["omitted"].as_u64();
                assert!(
                    made.contains(&told["object"]) || omitted.is_some(),
                    "{what} is not told of {}",
                    parent["object"]
                );
            }
        }
        for output in Report::discovery(&state).outputs {
            let told = explained(&state, output.kind, &output.namespace, &output.name, "");
            let source = &told["sources"]["first"][0];
            let part = |field: &str| source[field].as_str().unwrap_or_default();
            let source = explained(
                &state,
                part("kind"),
                part("namespace"),
                part("name"),
                part("cluster"),
            );
            let found = source["found"]["first"].as_array().unwrap();
            assert!(found.contains(&told["object"]), "{}", scenario.display());
        }
    }
}

#[test]
fn nothing_of_what_a_secret_holds_is_told() {
    let secret = manifest::read(
        r"
apiVersion: v1
kind: Secret
metadata: { name: root, namespace: gloo-mesh, annotations: { note: hunter2 } }
stringData: { key: hunter2 }
",
        "",
    );
    let changes = secret.into_iter().map(|entry| match entry {
        Entry::Object(object) => Change::Upsert(object),
        other => panic!("{other:?}"),
    });
    let (state, _) = State::default().step(changes);
    let told = explained(&state, "Secret", "gloo-mesh", "root", "");
    assert_eq!(
        told,
        serde_json::json!({
            "object": { "kind": "Secret", "namespace": "gloo-mesh", "name": "root" },
            "isRead": true,
            "isListed": false,
        })
    );
    let error = Question::new("Sekret", "gloo-mesh", "root", "").unwrap_err();
    assert!(error.to_string().contains("Secret"), "{error}");
}

/// A fixed shuffle: the order is arbitrary, and the same in every run.
fn shuffle(changes: &mut [Change], seed: usize) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for at in (1..changes.len()).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        changes.swap(at, random % (at + 1));
    }
}
