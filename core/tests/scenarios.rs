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

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::report::Report;
use ferromesh_core::{Change, Kind, Scope, State};
use serde::Serialize;

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
