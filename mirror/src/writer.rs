//! The one task that steps the state.
//!
//! It takes what has come until nothing has come for a while, makes one batch of it, steps the state on a
//! thread that may block, and publishes the result.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    mem, panic,
    sync::Arc,
    time::Duration,
};

use ferromesh_core::{Change, Key, Kind, State};
use ferromesh_runtime::{beside, telemetry::SPANS};
use tokio::{
    sync::mpsc,
    task::JoinError,
    time::{Instant, timeout_at},
};
use tracing::Span;

use crate::handle::{Offers, Shared};

/// A batch is complete when nothing has come for this long.
const QUIET: Duration = Duration::from_millis(20);
/// A batch is complete this long after it has begun, whatever still comes.
const CAP: Duration = Duration::from_millis(200);
/// The most that a step is told to follow from.
const MAX_CAUSES: usize = 32;

/// What was seen.
pub(crate) struct Seen {
    pub(crate) changes: Vec<Change>,
    /// Goes on until all that follows from it has been done.
    pub(crate) cause: Span,
}

/// Owns the state.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    changes: mpsc::Receiver<Seen>,
    offers: Offers,
}

/// Changes in order, of which those that a later one makes void have been taken out.
#[derive(Default)]
struct Batch {
    changes: Vec<Change>,
    /// The spans of what was seen, where somebody listens, and what each is about.
    causes: Vec<(Span, Vec<(Kind, Key)>)>,
    /// Where the change of an object stands.
    places: HashMap<(Kind, Key), usize>,
    forgets: bool,
}

// === impl Writer ===

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, changes: mpsc::Receiver<Seen>, offers: Offers) -> Self {
        Self {
            shared,
            changes,
            offers,
        }
    }

    /// Runs until nobody can send changes any more.
    pub(crate) async fn run(mut self) {
        let mut state = State::clone(&self.shared.state());
        while let Some(first) = self.changes.recv().await {
            let mut batch = self.gather(first).await;
            let causes = mem::take(&mut batch.causes);
            let changes = batch.news(&state);
            if changes.is_empty() {
                continue;
            }
            let mut causes = causes_of(causes, &changes).into_iter();
            let cause = causes.next().unwrap_or_else(Span::none);
            let span = tracing::trace_span!(
                target: SPANS, parent: &cause, "step", changes = changes.len()
            );
            causes.for_each(|other| {
                span.follows_from(&other);
            });
            let began = Instant::now();
            let stepped = beside::run(move || span.in_scope(|| state.step(changes))).await;
            let delta;
            (state, delta) = match stepped.map_err(JoinError::try_into_panic) {
                Ok(stepped) => stepped,
                Err(Ok(reason)) => panic::resume_unwind(reason),
                // The runtime ends before the step has begun.
                Err(Err(_)) => return,
            };
            self.shared.metrics.stepped(began.elapsed());
            self.shared.publish(state.clone());
            self.offers.offer(delta, cause);
        }
    }

    async fn gather(&mut self, first: Seen) -> Batch {
        let cap = Instant::now() + CAP;
        let mut batch = Batch::default();
        batch.take(first);
        loop {
            let until = cap.min(Instant::now() + QUIET);
            match timeout_at(until, self.changes.recv()).await {
                Ok(Some(more)) => batch.take(more),
                Ok(None) | Err(_) => return batch,
            }
        }
    }
}

// === impl Batch ===

impl Batch {
    fn take(&mut self, seen: Seen) {
        let Seen { changes, cause } = seen;
        if !cause.is_disabled() && self.causes.len() < MAX_CAUSES {
            let about = changes.iter().filter_map(object).collect();
            self.causes.push((cause, about));
        }
        self.extend(changes);
    }

    fn extend(&mut self, changes: Vec<Change>) {
        for change in changes {
            self.push(change);
        }
    }

    /// The later change of an object replaces the earlier one. A cluster that is forgotten comes between:
    /// what comes after it is another registration.
    fn push(&mut self, change: Change) {
        if let Change::Forget { .. } = change {
            self.forgets = true;
            self.places.clear();
        }
        if let Some(object) = object(&change) {
            match self.places.entry(object) {
                Entry::Occupied(place) => {
                    self.changes[*place.get()] = change;
                    return;
                }
                Entry::Vacant(place) => {
                    place.insert(self.changes.len());
                }
            }
        }
        self.changes.push(change);
    }

    /// The changes that change anything. Most events of a cluster do not: what they change is not kept.
    fn news(self, state: &State) -> Vec<Change> {
        let mut changes = self.changes;
        // What is forgotten compares with nothing that follows.
        if !self.forgets {
            changes.retain(|change| is_news(state, change));
        }
        changes
    }
}

/// The object that a change is about.
fn object(change: &Change) -> Option<(Kind, Key)> {
    match change {
        Change::Upsert(object) => Some((object.kind(), object.key().clone())),
        Change::Remove(kind, key) | Change::Vanish(kind, key) => Some((*kind, key.clone())),
        Change::Synced { .. } | Change::Forget { .. } => None,
    }
}

/// Those of the causes that are about one of the changes, in the order in which they were seen.
fn causes_of(causes: Vec<(Span, Vec<(Kind, Key)>)>, changes: &[Change]) -> Vec<Span> {
    if causes.is_empty() {
        return Vec::new();
    }
    let objects: HashSet<_> = changes.iter().filter_map(object).collect();
    let causes = causes.into_iter();
    let causes = causes.filter(|(_, about)| about.iter().any(|it| objects.contains(it)));
    causes.map(|(cause, _)| cause).collect()
}

fn is_news(state: &State, change: &Change) -> bool {
    match change {
        Change::Upsert(object) => {
            state.snapshot().get(object.kind(), object.key()).as_ref() != Some(object)
        }
        Change::Remove(kind, key) | Change::Vanish(kind, key) => {
            state.snapshot().get(*kind, key).is_some()
        }
        Change::Synced { cluster, kind } => !state.is_synced(cluster, *kind),
        Change::Forget { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use ferromesh_core::Input;
    use k8s_openapi::api::core::v1::Service;
    use proptest::prelude::*;

    use super::*;

    fn service(name: &str, cluster: &str, version: u8) -> ferromesh_core::Object {
        let mut service = Service::default();
        service.metadata.name = Some(name.into());
        service.metadata.labels = Some([("version".to_owned(), version.to_string())].into());
        service.parse(cluster)
    }

    fn change() -> impl Strategy<Value = Change> {
        let name = || prop::sample::select(vec!["a", "b"]);
        let cluster = || prop::sample::select(vec!["east", "west"]);
        let kind = prop::sample::select(vec![Kind::Service, Kind::Pod]);
        prop_oneof![
            8 => (name(), cluster(), 0..3_u8)
                .prop_map(|(name, cluster, version)| service(name, cluster, version).into()),
            4 => (name(), cluster())
                .prop_map(|(name, cluster)| Change::Remove(Kind::Service, Key::new(name, "", cluster))),
            2 => (cluster(), kind)
                .prop_map(|(cluster, kind)| Change::Synced { cluster: cluster.into(), kind }),
            1 => cluster().prop_map(|cluster| Change::Forget { cluster: cluster.into(), has_vanished: false }),
        ]
    }

    proptest! {
        /// Taking out what is void or changes nothing makes no difference.
        #[test]
        fn a_batch_comes_to_what_its_changes_come_to_one_by_one(
            batches in prop::collection::vec(prop::collection::vec(change(), 1..8), 1..8)
        ) {
            let (mut batched, mut single) = (State::default(), State::default());
            for changes in batches {
                let mut batch = Batch::default();
                batch.extend(changes.clone());
                let news = batch.news(&batched);
                batched = batched.step(news).0;
                for change in changes {
                    single = single.step([change]).0;
                }
                prop_assert_eq!(batched.snapshot(), single.snapshot());
                for cluster in ["east", "west"] {
                    let left = |state: &State| state.unsynced(cluster).collect::<Vec<_>>();
                    prop_assert_eq!(left(&batched), left(&single));
                }
            }
        }
    }
}
