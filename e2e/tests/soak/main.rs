//! Faults on real API servers, many times: a management cluster and two clusters with Istio, the servers
//! killed, stopped, restarted, the clusters taken away and back in time.
//!
//! `hack/soak` runs all of it, `hack/test` a tenth of that which is done many times: `FERROMESH_SOAK` is the
//! share of the whole counts. Facts take turns, for each disturbs all the others. They are ignored unless
//! asked for: they need clusters that nobody else uses, and minutes.

#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it; figures are told"
)]

mod audit;
mod back;
mod days;
mod outages;
mod replicas;
mod reviews;

use std::sync::Arc;

use ferromesh_e2e::facts;
use ferromesh_e2e::world::{Fact, World};
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// The share of the whole counts, in percent.
fn percent() -> usize {
    let share = std::env::var("FERROMESH_SOAK").unwrap_or_else(|_| "0.1".to_owned());
    let share: f64 = share.parse().expect("FERROMESH_SOAK is a share, as 0.1");
    let percent = (1..=100_u8).rfind(|percent| f64::from(*percent) <= share * 100.0);
    percent.map_or(1, usize::from)
}

/// So many of what is done `whole` times when all of it is done, and at least one.
pub(crate) fn share(whole: usize) -> usize {
    (whole * percent()).div_ceil(100)
}

fn main() {
    let mut arguments = Arguments::from_args();
    // They would disturb each other.
    arguments.test_threads = Some(1);
    let runtime = Arc::new(Runtime::new().unwrap());
    let world: Arc<OnceCell<World>> = Arc::default();
    let trial = |name: &str, fact: Fact| {
        let (runtime, world) = (Arc::clone(&runtime), Arc::clone(&world));
        Trial::test(name, move || {
            runtime.block_on(async {
                let world = world.get_or_init(World::start).await;
                // Each fact has servers of its own, whatever became of those before.
                world.stop().await;
                fact(world).await;
            });
            Ok(())
        })
        .with_ignored_flag(true)
    };
    let mut trials = Vec::from(facts! { trial:
        back::a_management_cluster_goes_back_under_a_running_server_and_only_what_it_does_not_know_is_deleted,
        back::a_mass_delete_that_follows_from_the_past_waits_for_a_person_under_a_running_server,
        days::a_day_on_which_the_server_is_killed_again_and_again_ends_like_any_other,
        replicas::of_two_replicas_only_the_holder_of_the_lease_writes_whatever_becomes_of_it,
        reviews::no_review_fails_while_replicas_restart_and_their_certificates_rotate,
    });
    // What is done once takes as long in a part as in the whole.
    if percent() == 100 {
        trials.extend(facts! { trial:
            back::a_management_cluster_goes_back_and_what_is_put_back_before_the_server_starts_stays,
            back::a_management_cluster_goes_back_and_only_what_it_does_not_know_is_deleted,
            back::a_mass_delete_that_follows_from_the_past_waits_for_a_person,
            back::a_root_that_is_younger_than_the_snapshot_is_put_back_and_no_other_is_made,
            back::a_managed_cluster_goes_back_and_is_made_as_it_should_be,
            replicas::of_three_replicas_only_the_holder_of_the_lease_writes_whatever_becomes_of_it,
            outages::an_api_server_that_is_away_delays_nobody_and_is_made_as_it_should_be_when_it_returns,
            outages::a_management_cluster_that_is_away_costs_the_lease_and_nothing_else,
            outages::credentials_are_revoked_and_rotated_under_load,
            outages::a_cluster_that_is_deregistered_while_it_is_away_keeps_what_it_has,
            outages::a_cluster_that_is_registered_twice_keeps_what_it_has_and_says_so,
        });
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(world) = world.get() {
        runtime.block_on(world.end());
    }
    conclusion.exit();
}
