//! The whole system on real API servers: one server, a management cluster and two clusters with Istio.
//!
//! Facts share the clusters and the virtual mesh; each has a namespace of its own and runs beside the
//! others. Those that disturb a cluster or the server have all of it to themselves.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

mod alone;
mod debug;
mod policies;
mod secrets;
mod trust;
mod webhook;
mod world;

use std::sync::Arc;

use ferromesh_e2e::facts;
use ferromesh_e2e::world::Fact;
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::world::World;

fn main() {
    let arguments = Arguments::from_args();
    let runtime = Arc::new(Runtime::new().unwrap());
    let world: Arc<OnceCell<World>> = Arc::default();
    let trial = |name: &str, fact: Fact, is_alone: bool| {
        let (runtime, world) = (Arc::clone(&runtime), Arc::clone(&world));
        Trial::test(name, move || {
            runtime.block_on(async {
                let world = world.get_or_init(World::start).await;
                if is_alone {
                    let _turn = world.turn.write().await;
                    fact(world).await;
                } else {
                    let _turn = world.turn.read().await;
                    fact(world).await;
                }
            });
            Ok(())
        })
    };
    let together = |name: &str, fact: Fact| trial(name, fact, false);
    let alone = |name: &str, fact: Fact| trial(name, fact, true);
    let mut trials = Vec::new();
    trials.extend(facts! { together:
        debug::every_metric_that_is_documented_is_shown_and_no_other,
        debug::whoever_has_the_right_sees_what_a_replica_knows_and_nobody_else,
        policies::a_new_service_is_discovered_and_known_in_both_clusters,
        policies::a_policy_reaches_every_cluster_that_it_concerns_and_says_so,
        policies::deleting_a_policy_takes_away_what_it_made_and_nothing_else,
        policies::an_object_that_somebody_edits_or_deletes_is_as_it_was,
        policies::an_object_of_somebody_else_is_left_alone_and_the_policy_says_so,
        policies::a_policy_breaks_with_a_service_and_heals_with_it,
        policies::a_status_that_somebody_edits_is_put_right,
        trust::the_chains_of_both_clusters_verify_against_one_root,
        trust::a_secret_that_somebody_edits_is_put_right,
        webhook::a_policy_that_would_not_work_is_refused_with_the_reason,
        webhook::a_dry_run_gives_the_same_answer,
        webhook::what_was_wrong_before_does_not_block_another_change,
    });
    trials.extend(facts! { alone:
        alone::a_server_that_is_killed_changes_nothing_when_it_comes_back,
        alone::a_policy_that_is_deleted_while_nobody_looks_takes_its_objects_along,
        alone::a_cluster_that_hangs_delays_nobody_and_keeps_what_it_has,
        alone::a_revoked_credential_degrades_its_cluster_alone,
        alone::a_deregistered_cluster_keeps_what_was_written_and_its_discovery_goes,
        webhook::an_edited_registration_is_put_right,
        secrets::no_private_key_leaves_the_cluster_that_it_was_made_in,
    });
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(world) = world.get() {
        runtime.block_on(world.end());
    }
    conclusion.exit();
}
