//! Instructions of single changes, which do not depend on how busy a machine is. `hack/bench --check` compares them
//! with `bench/baseline.json`.

#![expect(missing_docs, reason = "what the macros make has none")]

use std::hint::black_box;

use ferromesh_bench::edit;
use ferromesh_bench::world::{self, object, stepped};
use ferromesh_core::review::{self, Candidate, Intent, Outcome, Review};
use ferromesh_core::{Change, Delta, Kind, State};
use ferromesh_testkit::fleet::Fleet;
use gungraun::prelude::*;
use serde_json::Value;

// What the server uses. Others look longer for a piece the more there are, and a change would seem to cost more in a
// larger fleet.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Trial = (State, Change);

fn fleet(services: u32) -> Fleet {
    Fleet::new(10, services, 1)
}

fn discovered(fleet: &Fleet) -> State {
    stepped(
        State::default(),
        world::discovered(fleet).expect("fleets can be read"),
    )
}

fn upsert(value: &Value, cluster: &str) -> Change {
    Change::Upsert(object(value, cluster).expect("fleets can be read"))
}

/// A state in which a policy stands, and the same policy with another header.
fn edit_of_policy(services: u32) -> Trial {
    let fleet = fleet(services);
    let state = discovered(&fleet);
    let state = stepped(state, vec![upsert(&edit::policy(&fleet, 0), "")]);
    (state, upsert(&edit::policy(&fleet, edit::POLICIES), ""))
}

fn edit_of_broad_policy(services: u32) -> Trial {
    let state = discovered(&fleet(services));
    let state = stepped(state, vec![upsert(&edit::broad_policy(0), "")]);
    (state, upsert(&edit::broad_policy(1), ""))
}

fn move_of_pod(services: u32) -> Trial {
    let fleet = fleet(services);
    let changes = world::kubernetes(&fleet).expect("fleets can be read");
    let state = stepped(State::default(), changes);
    let service = fleet.service(0);
    (
        state,
        upsert(&edit::pod_moves(&service, 3), &service.cluster),
    )
}

fn change_of_endpoints(services: u32) -> Trial {
    let fleet = fleet(services);
    let changes = world::kubernetes(&fleet).expect("fleets can be read");
    let state = stepped(State::default(), changes);
    let service = fleet.service(0);
    (
        state,
        upsert(&edit::endpoint_goes(&service, 0), &service.cluster),
    )
}

/// A policy that somebody wants to create.
fn candidate(services: u32, policy: fn(&Fleet) -> Value) -> (State, Candidate) {
    review::prepare();
    let fleet = fleet(services);
    let candidate = Candidate::new(Kind::TrafficPolicy, Intent::Create(policy(&fleet)));
    (discovered(&fleet), candidate.expect("policies are judged"))
}

fn candidate_for_one(services: u32) -> (State, Candidate) {
    candidate(services, |fleet| {
        fleet.service(0).traffic_policy("under-review", 5)
    })
}

fn candidate_for_all(services: u32) -> (State, Candidate) {
    candidate(services, |_| edit::broad_policy(0))
}

fn to_delta((state, change): Trial) -> (usize, State, Delta) {
    let (state, delta) = state.step([change]);
    let outputs = delta.outputs().count();
    (outputs, state, delta)
}

fn to_outcome((state, candidate): (State, Candidate)) -> (Outcome, State) {
    let mut review = Review::new(&state, candidate);
    while !review.advance(usize::MAX) {}
    (review.finish(), state)
}

#[library_benchmark(setup = edit_of_policy)]
#[bench::of_1000(1_000)]
#[bench::of_10000(10_000)]
fn policy_edit(trial: Trial) -> (usize, State, Delta) {
    black_box(to_delta(trial))
}

#[library_benchmark(setup = edit_of_broad_policy)]
#[bench::of_1000(1_000)]
#[bench::of_10000(10_000)]
fn broad_edit(trial: Trial) -> (usize, State, Delta) {
    black_box(to_delta(trial))
}

#[library_benchmark(setup = move_of_pod)]
#[bench::of_1000(1_000)]
#[bench::of_3000(3_000)]
fn pod_moves(trial: Trial) -> (usize, State, Delta) {
    black_box(to_delta(trial))
}

#[library_benchmark(setup = change_of_endpoints)]
#[bench::of_1000(1_000)]
#[bench::of_3000(3_000)]
fn endpoint_goes(trial: Trial) -> (usize, State, Delta) {
    black_box(to_delta(trial))
}

#[library_benchmark(setup = candidate_for_one)]
#[bench::of_1000(1_000)]
#[bench::of_10000(10_000)]
fn review_of_one((state, candidate): (State, Candidate)) -> (Outcome, State) {
    black_box(to_outcome((state, candidate)))
}

#[library_benchmark(setup = candidate_for_all)]
#[bench::of_1000(1_000)]
#[bench::of_10000(10_000)]
fn review_of_all((state, candidate): (State, Candidate)) -> (Outcome, State) {
    black_box(to_outcome((state, candidate)))
}

library_benchmark_group!(
    name = changes;
    benchmarks = policy_edit, broad_edit, pod_moves, endpoint_goes, review_of_one, review_of_all
);

main!(library_benchmark_groups = changes);
