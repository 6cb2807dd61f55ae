//! What readers hold. Reading never waits for the writer, and the writer never for a reader.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use ferromesh_core::{Delta, State};
use prometheus_client::registry::Registry;
use tokio::sync::{mpsc::WeakSender, watch};
use tracing::Span;

use crate::{
    metrics::{Metrics, Standing},
    registry::{ClusterView, Clusters},
    writer::Seen,
};

/// What is published.
pub(crate) struct Shared {
    state: ArcSwap<State>,
    revision: watch::Sender<u64>,
    clusters: ArcSwap<Clusters>,
    clusters_revision: watch::Sender<u64>,
    pub(crate) metrics: Metrics,
}

/// The state as it was published last, and the clusters that it is read from. Clones share it.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    /// What the writer is told by.
    changes: WeakSender<Seen>,
}

/// What steps have changed, for one consumer.
///
/// At most one delta waits: what comes before it is taken is merged into it, so that none is lost however
/// slow the consumer. Nothing is kept for a consumer that has been dropped.
pub struct Deltas {
    slot: Arc<watch::Sender<Slot>>,
    changed: watch::Receiver<Slot>,
    cause: Span,
}

/// The writer's end of [`Deltas`]; dropping it ends them.
pub(crate) struct Offers {
    slot: Arc<watch::Sender<Slot>>,
}

#[derive(Default)]
struct Slot {
    pending: Option<Delta>,
    /// What the last of it follows from.
    cause: Option<Span>,
    is_closed: bool,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state: ArcSwap::from_pointee(state),
            revision: watch::Sender::new(0),
            clusters: ArcSwap::default(),
            clusters_revision: watch::Sender::new(0),
            metrics: Metrics::default(),
        }
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    pub(crate) fn clusters(&self) -> Arc<Clusters> {
        self.clusters.load_full()
    }

    pub(crate) fn revision(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    pub(crate) fn publish(&self, state: State) {
        self.state.store(Arc::new(state));
        self.revision.send_modify(|revision| {
            *revision += 1;
            self.metrics.revised(*revision);
        });
    }

    pub(crate) fn publish_clusters(&self, clusters: Clusters) {
        self.clusters.store(Arc::new(clusters));
        self.clusters_revision
            .send_modify(|revision| *revision += 1);
    }
}

// === impl Handle ===

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>, changes: WeakSender<Seen>) -> Self {
        Self { shared, changes }
    }

    /// The state that was published last.
    pub fn state(&self) -> Arc<State> {
        self.shared.state()
    }

    /// A number that grows with each state that is published. The state is there before the number.
    pub fn revision(&self) -> watch::Receiver<u64> {
        self.shared.revision()
    }

    /// The clusters, and how they fare. Of what has been listed in them, the state tells
    /// ([`State::unsynced`]).
    pub fn clusters(&self) -> Arc<Clusters> {
        self.shared.clusters()
    }

    /// A number that grows whenever [`Self::clusters`] differs.
    pub fn clusters_revision(&self) -> watch::Receiver<u64> {
        self.shared.clusters_revision.subscribe()
    }

    /// What has not been listed yet, by name: `cluster-1: Pod not listed`.
    ///
    /// Everything in the management cluster counts, and everything in the registered clusters but for
    /// those that are marked as failing. A cluster that is registered later appears here again: whoever
    /// serves latches its readiness.
    pub fn readiness(&self) -> Vec<String> {
        let (state, clusters) = (self.state(), self.clusters());
        let blockers = |told: String, name: &str, view: &ClusterView| -> Vec<String> {
            state
                .unsynced(name)
                .map(|kind| match view.failing.get(&kind) {
                    Some(failing) => {
                        format!("{told}: {} not listed: {}", kind.name(), failing.reason)
                    }
                    None => format!("{told}: {} not listed", kind.name()),
                })
                .collect()
        };
        let mut all = blockers("management".to_owned(), "", clusters.management());
        for (name, view) in clusters.iter() {
            if !view.condition.is_failing() {
                all.extend(blockers(name.to_owned(), name, view));
            }
        }
        all
    }

    /// How many sets of changes wait to be worked out. When there is no room for more, watches slow down.
    pub fn pending(&self) -> usize {
        let changes = self.changes.upgrade();
        changes.map_or(0, |changes| changes.max_capacity() - changes.capacity())
    }

    /// Shows the metrics of this mirror in a registry.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("mirror");
        self.shared.metrics.register(registry);
        registry.register_collector(Box::new(Standing::new(self.clone())));
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("revision", &*self.shared.revision.borrow())
            .finish_non_exhaustive()
    }
}

// === impl Deltas ===

/// Both ends of a sequence of deltas.
pub(crate) fn deltas() -> (Deltas, Offers) {
    let slot = Arc::new(watch::Sender::new(Slot::default()));
    let changed = slot.subscribe();
    let cause = Span::none();
    let offers = Offers {
        slot: Arc::clone(&slot),
    };
    let deltas = Deltas {
        slot,
        changed,
        cause,
    };
    (deltas, offers)
}

impl Deltas {
    /// What has changed since the last call; waits until something has. None once the mirror has ended.
    ///
    /// Nothing is lost if the returned future is dropped.
    pub async fn next(&mut self) -> Option<Delta> {
        loop {
            let mut taken = None;
            let mut cause = None;
            let mut is_closed = false;
            self.slot.send_if_modified(|slot| {
                taken = slot.pending.take();
                cause = slot.cause.take();
                is_closed = slot.is_closed;
                false
            });
            if let Some(cause) = cause {
                self.cause = cause;
            }
            if taken.is_some() || is_closed {
                return taken;
            }
            self.changed
                .changed()
                .await
                .expect("this end holds the sender too");
        }
    }
}

impl Deltas {
    /// The span of what was seen and led to the last delta, until it is taken. It ends when nobody keeps it.
    pub fn cause(&mut self) -> Span {
        std::mem::replace(&mut self.cause, Span::none())
    }
}

impl fmt::Debug for Deltas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deltas").finish_non_exhaustive()
    }
}

// === impl Offers ===

impl Offers {
    /// Adds what a step has changed to what waits.
    pub(crate) fn offer(&self, delta: Delta, cause: Span) {
        if self.slot.receiver_count() == 0 {
            return;
        }
        self.slot.send_modify(|slot| {
            slot.pending = Some(match slot.pending.take() {
                Some(pending) => pending.merge(delta),
                None => delta,
            });
            if slot.cause.is_none() || !cause.is_disabled() {
                slot.cause = Some(cause);
            }
        });
    }
}

impl Drop for Offers {
    fn drop(&mut self) {
        self.slot.send_modify(|slot| slot.is_closed = true);
    }
}

#[cfg(test)]
mod tests {
    use ferromesh_core::{Change, Kind};

    use super::*;

    /// The steps that list three kinds.
    fn steps() -> Vec<Delta> {
        let mut state = State::default();
        let mut steps = Vec::new();
        for kind in [Kind::Secret, Kind::Mesh, Kind::Settings] {
            let cluster = "".into();
            let (next, delta) = state.step([Change::Synced { cluster, kind }]);
            steps.push(delta);
            state = next;
        }
        steps
    }

    #[tokio::test]
    async fn what_nobody_has_taken_is_merged() {
        let (mut deltas, offers) = deltas();
        for delta in steps() {
            offers.offer(delta, Span::none());
        }
        let merged = deltas.next().await.unwrap();
        assert_eq!(
            merged.before().unsynced("").count(),
            State::default().unsynced("").count()
        );
        assert!(merged.after().is_synced("", Kind::Settings));
    }

    #[tokio::test]
    async fn what_waits_at_the_end_is_taken_before_the_end() {
        let (mut deltas, offers) = deltas();
        offers.offer(steps().remove(0), Span::none());
        drop(offers);
        assert!(deltas.next().await.is_some());
        assert!(deltas.next().await.is_none());
        assert!(deltas.next().await.is_none());
    }

    #[tokio::test]
    async fn nothing_is_kept_for_a_consumer_that_is_gone() {
        let (deltas, offers) = deltas();
        drop(deltas);
        for delta in steps() {
            offers.offer(delta, Span::none());
        }
        assert!(offers.slot.borrow().pending.is_none());
    }
}
