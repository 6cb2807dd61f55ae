//! Objects that nobody means well by: through the door, through admission and into the state.
//!
//! `FERROMESH_HOSTILE` sets how many. They come in rounds, each with a seed of its own and from the same
//! beginning; a failure tells the seed, and `FERROMESH_HOSTILE_SEED` repeats that round alone. What kills the
//! process outright is told by the file `hostile-round` below the directory for temporary files of tests.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

mod bomb;
mod dice;
mod drawn;
mod meter;
mod value;
mod world;
mod written;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::review::{Candidate, Intent, Review, canonical};
use ferromesh_core::{Change, Kind, Object, OutputChange, State};
use serde_json::Value;

use crate::bomb::BOMBS;
use crate::dice::Dice;
use crate::meter::{Cost, measured};

/// Objects that follow each other into one state.
const ROUND: usize = 24;
/// How long one may take at each of the three, unoptimised; they are a few megabytes at the most.
const MAX_TIME: Duration = Duration::from_secs(10);
/// How much memory one may take at each of the three, in bytes.
const MAX_MEMORY: u64 = 1 << 30;
/// Bytes of a status at the most: etcd takes them with the object.
const MAX_STATUS: usize = 12 << 10;
/// Bytes of the warnings of one answer at the most.
const MAX_WARNINGS: usize = 4 << 10;

/// An object, and what it is called where something goes wrong.
struct Hostile {
    sort: &'static str,
    object: Value,
    cluster: &'static str,
    text: String,
}

/// What was dearest so far.
#[derive(Default)]
struct Worst([(Cost, Cost, String, String); 3]);

const STAGES: [&str; 3] = ["door", "admission", "step"];

fn drawn(dice: &mut Dice, bomb: Option<usize>) -> Hostile {
    let bomb = bomb.or_else(|| dice.one_in(60).then(|| dice.below(BOMBS.len())));
    let (sort, object) = match dice.below(60) {
        _ if let Some(bomb) = bomb => {
            let (sort, make) = BOMBS[bomb];
            (sort, make(dice))
        }
        0..26 => ("mutated", drawn::mutated(dice)),
        26..58 => ("by schema", drawn::by_schema(dice)),
        _ => ("anything", value::anything(dice, 6)),
    };
    let kind = kind_of(&object);
    Hostile {
        sort,
        cluster: dice.pick::<&str>(world::clusters(kind)),
        text: written::text(dice, &object),
        object,
    }
}

fn kind_of(object: &Value) -> Option<Kind> {
    let name = object.get("kind")?.as_str()?;
    Kind::ALL.iter().copied().find(|kind| kind.name() == name)
}

/// Everything that is read of an object, in the form in which it came and as text.
fn read(hostile: &Hostile) -> Vec<Object> {
    let mut entries = manifest::read(&hostile.text, hostile.cluster);
    entries.push(manifest::read_object(&hostile.object, hostile.cluster));
    let read = entries.into_iter().filter_map(|entry| match entry {
        Entry::Object(object) => Some(object),
        Entry::Ignored { .. } => None,
        Entry::Unreadable { rejection, .. } => {
            assert!(!rejection.message.is_empty());
            None
        }
    });
    read.collect()
}

/// The answers to its creation, to a change of another into it, and to its deletion.
fn review(state: &State, object: &Value, old: &Value) {
    let Some(kind) = kind_of(object) else {
        return;
    };
    canonical(kind, object);
    let update = Intent::Update {
        old: old.clone(),
        new: object.clone(),
    };
    for intent in [
        Intent::Create(object.clone()),
        update,
        Intent::Delete(object.clone()),
    ] {
        let Some(candidate) = Candidate::new(kind, intent) else {
            return;
        };
        let mut review = Review::new(state, candidate);
        while !review.advance(64) {}
        let outcome = review.finish();
        assert!(outcome.is_complete);
        let warnings: usize = outcome.warnings().iter().map(String::len).sum();
        assert!(warnings <= MAX_WARNINGS, "{warnings} bytes of warnings");
        for denial in &outcome.denials {
            assert!(!denial.message.is_empty());
        }
    }
}

/// Takes objects in, and writes what becomes of everything.
fn step(state: State, objects: Vec<Object>) -> State {
    let (state, delta) = state.step(objects.into_iter().map(Change::Upsert));
    for change in delta.outputs() {
        if let OutputChange::Upsert(output) = change {
            let found = state.output(&output.key);
            assert_eq!(found.as_ref(), Some(&*output), "{}", output.key);
        }
    }
    for key in delta.statuses() {
        if let Some(status) = state.status(key) {
            let size = status.to_json().to_string().len();
            assert!(size <= MAX_STATUS, "{size} bytes of status of {key:?}");
        }
    }
    state
}

fn round(seed: u64, worst: &mut Worst) {
    let mut dice = Dice::new(seed);
    let mut state = world::state();
    let mut old = Value::Null;
    for turn in 0..ROUND {
        // The first rounds begin with each of the dearest, so that none is left out.
        let bomb = usize::try_from(seed).unwrap();
        let bomb = Some(bomb).filter(|bomb| turn < 3 && *bomb < BOMBS.len());
        let hostile = drawn(&mut dice, bomb);
        let told = || {
            let mut text = hostile.object.to_string();
            text.truncate(text.floor_char_boundary(2_000));
            format!(
                "FERROMESH_HOSTILE_SEED={seed}, object {turn} ({}): {text}",
                hostile.sort
            )
        };
        let mut costs = [Cost::default(); 3];
        let done = catch_unwind(AssertUnwindSafe(|| {
            let (objects, cost) = measured(|| read(&hostile));
            costs[0] = cost;
            let ((), cost) = measured(|| review(&state, &hostile.object, &old));
            costs[1] = cost;
            let (after, cost) = measured(|| step(state.clone(), objects));
            costs[2] = cost;
            after
        }));
        let Ok(after) = done else {
            panic!("{}", told());
        };
        state = after;
        for (stage, cost) in costs.into_iter().enumerate() {
            let name = STAGES[stage];
            assert!(cost.time <= MAX_TIME, "{name}: {:?}: {}", cost.time, told());
            assert!(
                cost.memory <= MAX_MEMORY,
                "{name}: {} bytes: {}",
                cost.memory,
                told()
            );
            let id = format!("{} (seed {seed})", hostile.sort);
            let (slowest, largest, slow, large) = &mut worst.0[stage];
            if cost.time > slowest.time {
                (*slowest, *slow) = (cost, id.clone());
            }
            if cost.memory > largest.memory {
                (*largest, *large) = (cost, id);
            }
        }
        old = hostile.object;
    }
}

fn wanted(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn hostile_objects_cost_little_and_break_nothing() {
    let mut worst = Worst::default();
    let rounds = wanted("FERROMESH_HOSTILE")
        .unwrap_or(1_000)
        .div_ceil(ROUND.try_into().unwrap());
    let seeds = match wanted("FERROMESH_HOSTILE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..rounds,
    };
    let marker = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-round");
    let count = (seeds.end - seeds.start) * 24;
    let ((), cost) = measured(|| {
        for seed in seeds {
            std::fs::write(&marker, seed.to_string()).unwrap();
            round(seed, &mut worst);
        }
    });
    println!("{count} objects in {:?}", cost.time);
    for (stage, (slowest, largest, slow, large)) in STAGES.iter().zip(&worst.0) {
        println!("{stage}: at most {:?}: {slow}", slowest.time);
        println!("{stage}: at most {} MiB: {large}", largest.memory >> 20);
    }
}
