//! The step: all at once, and one change at a time.

use std::ops::RangeFrom;
use std::time::{Duration, Instant};

use ferromesh_bench::edit;
use ferromesh_bench::world::{self, object, stepped};
use ferromesh_core::{Change, Object, State};
use ferromesh_testkit::fleet::{Fleet, Service};
use serde_json::Value;

use crate::figures::{Figures, memory, timed};

/// How many changes of one sort are measured.
const CHANGES: usize = 2_000;
/// How many changes that concern everything.
const BROAD: u32 = 20;
/// How many objects the server takes in at once, about, when it lists them (`ferromesh-mirror`).
const BATCH: usize = 1_000;
/// How long small changes go on before memory is measured: the allocator gives back what is free after a while.
const REST: Duration = Duration::from_secs(3);

/// From what has been discovered to all outputs, then edits of policies.
pub(crate) fn translation(fleet: &Fleet, figures: &mut Figures) -> anyhow::Result<()> {
    let (before, _) = memory()?;
    let changes = world::discovered(fleet)?;
    figures.number("objects", changes.len().try_into()?);
    let (time, state) = timed(|| stepped(State::default(), changes));
    figures.time("cold_step", time);
    let (stepped_to, _) = memory()?;
    figures.number("cold_memory", stepped_to.saturating_sub(before).into());

    let (time, count) = timed(|| state.outputs().count());
    figures.time("render_all", time);
    figures.number("outputs", count.try_into()?);
    figures.number("peak_memory", memory()?.1.into());
    let (time, bytes) = timed(|| one_cluster(&state));
    figures.time("render_cluster", time);
    figures.number("cluster_bytes", bytes?.try_into()?);

    let mut current = state.clone();
    let mut times = Vec::new();
    for turn in (0..).take(CHANGES) {
        let edited = object(&edit::policy(fleet, turn), "")?;
        let (time, next) = changed(&current, edited);
        times.push(time);
        current = next;
    }
    figures.times("policy_edit", times);

    let mut times = Vec::new();
    for turn in 0..BROAD {
        let edited = object(&edit::broad_policy(turn), "")?;
        let (time, next) = changed(&current, edited);
        times.push(time);
        current = next;
    }
    figures.times("broad_edit", times);
    Ok(())
}

/// How long one change takes to what is written because of it, and the state after it.
fn changed(state: &State, object: Object) -> (Duration, State) {
    let (time, (next, _)) = timed(|| {
        let (next, delta) = state.clone().step([Change::Upsert(object)]);
        (next, delta.outputs().count())
    });
    (time, next)
}

/// Everything that one cluster is given, as it goes over the wire.
fn one_cluster(state: &State) -> serde_json::Result<usize> {
    let mut bytes = 0;
    for set in state.output_sets() {
        for key in set.keys.iter().filter(|key| &*key.cluster == "cluster-0") {
            if let Some(output) = state.output(key) {
                bytes += serde_json::to_vec(&output.spec)?.len();
            }
        }
    }
    Ok(bytes)
}

/// From Kubernetes objects to all outputs, then changes of pods and endpoints.
pub(crate) fn discovery(fleet: &Fleet, figures: &mut Figures) -> anyhow::Result<()> {
    let (before, _) = memory()?;
    let changes = world::kubernetes(fleet)?;
    figures.number("objects", changes.len().try_into()?);
    let (time, state) = timed(|| stepped(State::default(), changes));
    figures.time("cold_step", time);
    let each = |now: u64| now.saturating_sub(before) / u64::from(fleet.services.max(1));
    figures.number("memory_at_once", each(memory()?.0).into());
    let mut turns = 0..;
    let (state, _) = moving(state, fleet, edit::pod_moves, &mut turns, REST)?;
    figures.number("memory_per_destination", each(memory()?.0).into());

    let mut written = world::stored(&state)?.into_iter();
    let (time, state) = timed(|| {
        let mut state = state;
        while written.len() > 0 {
            state = stepped(state, written.by_ref().take(BATCH));
        }
        state
    });
    figures.time("stored_step", time);
    let (state, times) = moving(state, fleet, edit::pod_moves, &mut turns, Duration::ZERO)?;
    figures.times("pod_moves", times);
    let (state, times) = moving(state, fleet, edit::endpoint_goes, &mut turns, REST)?;
    figures.times("endpoint_goes", times);
    figures.number("memory_with_stored", each(memory()?.0).into());
    figures.number(
        "destinations",
        state.destinations().iter().count().try_into()?,
    );
    Ok(())
}

/// Changes of one sort, one at a time: [`CHANGES`] of them, and more until `least` is over.
fn moving(
    mut state: State,
    fleet: &Fleet,
    change: fn(&Service, u32) -> Value,
    turns: &mut RangeFrom<u32>,
    least: Duration,
) -> anyhow::Result<(State, Vec<Duration>)> {
    let since = Instant::now();
    let mut times = Vec::new();
    for turn in turns {
        let service = fleet.service(turn.wrapping_mul(7) % fleet.services);
        // When it is its turn again, it is another change.
        let nth = turn + turn / fleet.services;
        let seen = object(&change(&service, nth), &service.cluster)?;
        let (time, next) = changed(&state, seen);
        times.push(time);
        state = next;
        if times.len() >= CHANGES && since.elapsed() >= least {
            break;
        }
    }
    Ok((state, times))
}
