//! The one property that the engine rests on: whatever happened, and in whatever order, what
//! comes out is what a fresh start on the same objects would give.
//!
//! Sequences are drawn over a small universe whose objects refer to each other in every way there
//! is; each object has forms to change between. `FERROMESH_SEQUENCES` sets how many are drawn.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "what a test cannot read, or does not expect, fails it"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::{Change, Delta, Key, Kind, Object, OutputChange, Scope, State};
use proptest::prelude::*;
use proptest::test_runner::Config;

/// Every object of the universe, each with the forms that it can take.
static UNIVERSE: LazyLock<Vec<Vec<Object>>> = LazyLock::new(|| {
    let mut objects: BTreeMap<(Kind, Key), Vec<Object>> = BTreeMap::new();
    let cluster = include_str!("universe/cluster.yaml");
    let management = include_str!("universe/management.yaml");
    let one = include_str!("universe/one.yaml");
    for (text, name) in [
        (management, ""),
        (cluster, "c1"),
        (one, "c1"),
        (cluster, "c2"),
    ] {
        for entry in manifest::read(text, name) {
            let Entry::Object(object) = entry else {
                panic!("{entry:?}")
            };
            objects
                .entry((object.kind(), object.key().clone()))
                .or_default()
                .push(object);
        }
    }
    objects.into_values().collect()
});

/// Something that happens.
#[derive(Clone)]
enum Event {
    /// An object takes the form of this number, or goes where it has not so many.
    Object(usize, usize),
    /// Everything of a cluster is listed.
    Synced(&'static str),
    /// A cluster is registered no more.
    Forget(&'static str),
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object, form) => {
                let (object, has_form) = (&UNIVERSE[*object][0], UNIVERSE[*object].len() > *form);
                let form = if has_form {
                    form.to_string()
                } else {
                    "gone".to_owned()
                };
                write!(f, "{} {} {form}", object.kind().name(), object.key())
            }
            Self::Synced(cluster) => write!(f, "synced {cluster:?}"),
            Self::Forget(cluster) => write!(f, "forget {cluster:?}"),
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let cluster = || prop_oneof![Just("c1"), Just("c2"), Just("")];
    prop_oneof![
        40 => (0..UNIVERSE.len(), any::<prop::sample::Index>())
            .prop_map(|(object, form)| Event::Object(object, form.index(UNIVERSE[object].len() + 1))),
        3 => cluster().prop_map(Event::Synced),
        1 => prop_oneof![Just("c1"), Just("c2")].prop_map(Event::Forget),
    ]
}

/// A way for the world to be: most objects in their first form, most clusters listed to their end;
/// and then some things happen.
fn history() -> impl Strategy<Value = (Vec<Event>, Vec<Vec<Event>>)> {
    let there = prop::collection::vec(prop::bool::weighted(0.7), UNIVERSE.len());
    let synced = prop::sample::subsequence(&["c1", "c2"][..], 0..=2);
    let beginning = (there, synced).prop_map(|(there, synced)| {
        let there = there.into_iter().enumerate();
        let objects = there.filter_map(|(object, is_there)| is_there.then_some(object));
        objects
            .map(|object| Event::Object(object, 0))
            .chain(synced.into_iter().map(Event::Synced))
            .collect()
    });
    (
        beginning,
        prop::collection::vec(prop::collection::vec(event(), 1..4), 1..12),
    )
}

/// What has happened, as a fresh start would be told.
#[derive(Default)]
struct World {
    objects: BTreeMap<(Kind, Key), Object>,
    clusters: BTreeMap<&'static str, bool>,
}

fn synced(cluster: &str) -> Vec<Change> {
    Kind::ALL
        .iter()
        .filter(|kind| match kind.scope() {
            Scope::Management => cluster.is_empty(),
            Scope::Managed => !cluster.is_empty(),
            Scope::Everywhere => true,
            Scope::Files => false,
        })
        .map(|kind| Change::Synced {
            cluster: cluster.into(),
            kind: *kind,
        })
        .collect()
}

impl World {
    fn change(&mut self, event: &Event) -> Vec<Change> {
        match event {
            Event::Object(object, form) => {
                let forms = &UNIVERSE[*object];
                let id = (forms[0].kind(), forms[0].key().clone());
                if let Some(object) = forms.get(*form) {
                    self.objects.insert(id, object.clone());
                    vec![Change::Upsert(object.clone())]
                } else {
                    self.objects.remove(&id);
                    vec![Change::Remove(id.0, id.1)]
                }
            }
            Event::Synced(cluster) => {
                self.clusters.insert(cluster, true);
                synced(cluster)
            }
            Event::Forget(cluster) => {
                self.clusters.insert(cluster, false);
                self.objects.retain(|(_, key), _| key.cluster() != *cluster);
                vec![Change::Forget {
                    cluster: (*cluster).into(),
                    has_vanished: false,
                }]
            }
        }
    }

    /// The same world, told at once.
    fn fresh(&self) -> State {
        let mut changes: Vec<_> = self.objects.values().cloned().map(Change::Upsert).collect();
        for (cluster, is_synced) in &self.clusters {
            if *is_synced {
                changes.extend(synced(cluster));
            } else {
                let objects = self
                    .objects
                    .values()
                    .filter(|it| it.key().cluster() == *cluster);
                changes.insert(
                    0,
                    Change::Forget {
                        cluster: (*cluster).into(),
                        has_vanished: false,
                    },
                );
                changes.extend(objects.cloned().map(Change::Upsert));
            }
        }
        State::default().step(changes).0
    }
}

fn sequences() -> u32 {
    let wanted = std::env::var("FERROMESH_SEQUENCES").ok();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(1_000)
}

type Outputs = BTreeMap<ferromesh_core::OutputKey, ferromesh_core::Output>;

/// Whether both hold the same objects; says which one differs first.
fn same(left: &Outputs, right: &Outputs) -> Result<(), TestCaseError> {
    for key in left.keys().chain(right.keys()) {
        prop_assert_eq!(left.get(key), right.get(key), "{}", key);
    }
    Ok(())
}

/// Outputs as a delta leaves them. Whoever goes by names alone misses nothing.
fn patched(mut outputs: Outputs, delta: &Delta) -> Result<Outputs, TestCaseError> {
    let sets = delta.output_sets();
    let named: BTreeSet<_> = sets.into_iter().flat_map(|set| set.keys).collect();
    for change in delta.outputs() {
        prop_assert!(
            named.contains(change.key()),
            "{} is not named",
            change.key()
        );
        match change {
            OutputChange::Upsert(output) => {
                outputs.insert(output.key.clone(), *output);
            }
            OutputChange::Delete(key) => prop_assert!(outputs.remove(&key).is_some()),
        }
    }
    Ok(outputs)
}

fn sorted(state: &State) -> Outputs {
    state
        .outputs()
        .map(|output| (output.key.clone(), output))
        .collect()
}

proptest! {
    #![proptest_config(Config { cases: sequences(), failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_history_comes_out_as_a_fresh_start_on_its_end((beginning, steps) in history()) {
        let mut world = World::default();
        let changes: Vec<_> = beginning.iter().flat_map(|event| world.change(event)).collect();
        let (mut state, _) = State::default().step(changes);
        let at_first = sorted(&state);
        let mut merged: Option<Delta> = None;
        for events in &steps {
            let changes: Vec<_> = events.iter().flat_map(|event| world.change(event)).collect();
            let before = state.clone();
            let (after, delta) = state.step(changes);
            merged = Some(match merged {
                Some(merged) => merged.merge(delta.clone()),
                None => delta.clone(),
            });
            // The delta says all that differs, and takes nothing away that was not there.
            same(&patched(sorted(&before), &delta)?, &sorted(&after))?;
            state = after;
        }
        if let Some(merged) = merged {
            same(&patched(at_first.clone(), &merged)?, &sorted(&state))?;
        }
        let fresh = world.fresh();
        let outputs = sorted(&state);
        same(&outputs, &sorted(&fresh))?;
        for (key, output) in &outputs {
            let looked_up = state.output(key);
            prop_assert_eq!(looked_up.as_ref(), Some(output), "{}", key);
        }
        for key in at_first.keys().filter(|key| !outputs.contains_key(key)) {
            prop_assert_eq!(state.output(key), None, "{}", key);
        }
        let keys: BTreeSet<_> = state.output_sets().flat_map(|set| set.keys).collect();
        prop_assert_eq!(keys, outputs.into_keys().collect::<BTreeSet<_>>());
        for key in state.statuses().chain(fresh.statuses()) {
            prop_assert_eq!(state.status(&key), fresh.status(&key), "{:?}", key);
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: sequences() / 4, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_status_that_differs_is_said_to((beginning, steps) in history()) {
        let mut world = World::default();
        let changes: Vec<_> = beginning.iter().flat_map(|event| world.change(event)).collect();
        let (mut state, _) = State::default().step(changes);
        for events in &steps {
            let changes: Vec<_> = events.iter().flat_map(|event| world.change(event)).collect();
            let (after, delta) = state.clone().step(changes);
            let touched: Vec<_> = delta.statuses().cloned().collect();
            for key in state.statuses().chain(after.statuses()) {
                if state.status(&key) != after.status(&key) {
                    prop_assert!(touched.contains(&key), "{:?}", key);
                }
            }
            state = after;
        }
    }
}
