//! The reconciler: makes clusters equal to what the engine says, and tells people how far that has come.
//!
//! It is run by whoever holds the lease, over the mirror of its process. What may not enter: working out
//! an output, a second opinion on what a status says of an object.
//!
//! In reading order:
//!
//! - `reconcile`: the one task that hears of changes and tells everybody else.
//! - `outputs`: from what a step has changed to the appliers of the clusters.
//! - `holds`: mass deletes that wait for a person.
//! - `message`: messages of conditions.
//! - `programmed`: which objects do not stand yet as they should, and whose they are.
//! - `trust`: which certificates are wanted, and what became of them.
//! - `status`: what is written into the statuses of the management cluster.
//! - `credentials`: renews those by which clusters are reached.
//! - `metrics`: what is counted.
//! - [`certs`]: certificates, from the root of a virtual mesh to the Secret of a control plane.

pub mod certs;
mod credentials;
mod holds;
mod message;
mod metrics;
mod outputs;
mod programmed;
mod reconcile;
mod status;
mod trust;

use ferromesh_mirror::{Deltas, Handle};
use ferromesh_runtime::backoff::Jitter;
use ferromesh_runtime::lease::Fence;
use kube::Client;
use tokio_util::sync::CancellationToken;

use self::certs::Sources;
pub use self::metrics::{Metrics, Standing};
use self::reconcile::Reconciler;
pub use ferromesh_apply::Standing as Applied;

/// Everything that the lease holder writes. See [`run`](Self::run).
pub struct Controller {
    /// The client of the management cluster.
    pub management: Client,
    /// What is known.
    pub mirror: Handle,
    /// What is counted.
    pub metrics: Metrics,
    /// Time, keys and serial numbers.
    pub sources: Sources,
    /// Spreads attempts in time.
    pub jitter: Jitter,
}

impl Controller {
    /// Waits until the lease is held, and works from then on, as [`run`](Self::run) does, while it is held.
    /// What changes before that is nobody's work here.
    ///
    /// The clients of registered clusters are the mirror's, and must be behind the same fence from where they are
    /// made.
    pub async fn lead(mut self, mut deltas: Deltas, fence: Fence, cancel: CancellationToken) {
        let mut claim = fence.claim();
        let acquired = async {
            while !claim.borrow_and_update().is_held() {
                tokio::select! {
                    changed = claim.changed() => changed.ok()?,
                    delta = deltas.next() => drop(delta?),
                }
            }
            Some(())
        };
        if let Some(Some(())) = cancel.run_until_cancelled(acquired).await {
            self.management = fence.around(&self.management);
            self.run(&mut deltas, cancel).await;
        }
    }

    /// Works until `cancel` is cancelled, or the mirror has ended; returns once nothing writes any more.
    ///
    /// Of `deltas` only what comes from now on is needed: work begins with the state as it is.
    pub async fn run(self, deltas: &mut Deltas, cancel: CancellationToken) {
        let mut reconciler = Reconciler::start(self, &cancel);
        cancel.run_until_cancelled(reconciler.work(deltas)).await;
        // Whoever gave up the lease must not write any more.
        cancel.cancel();
        reconciler.end().await;
    }
}
