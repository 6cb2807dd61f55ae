//! What every watch is made of.

use std::{sync::Arc, time::Duration};

use ferromesh_core::Key;
use ferromesh_runtime::{
    backoff::{ExponentialBackoff, Jitter, Schedule},
    shutdown::Shutdown,
};
use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Event, Origin, inquiry, probe};
use crate::{
    handle::Shared,
    pumps::{self, Feed, Line, Watch},
    tracker::Tracker,
    writer::Seen,
};

/// Starts watches.
pub(super) struct Spawner {
    pub(super) namespace: Arc<str>,
    pub(super) shared: Arc<Shared>,
    pub(super) changes: mpsc::Sender<Seen>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) shutdown: Shutdown,
    pub(super) jitter: Jitter,
    pub(super) watch_timeout: Duration,
}

impl Spawner {
    /// Ends with everything else.
    pub(super) fn token(&self) -> CancellationToken {
        self.shutdown.token().child_token()
    }

    pub(super) fn spawn(
        &mut self,
        origin: &Origin,
        watch: Watch,
        client: watch::Receiver<Option<Client>>,
        cancel: CancellationToken,
    ) -> JoinHandle<Vec<Key>> {
        let counters = self.shared.metrics.counters(watch.kind);
        let namespace = Arc::clone(&self.namespace);
        let feed = Feed {
            tracker: Tracker::new(origin.clone(), watch.clone(), namespace, counters),
            changes: self.changes.clone(),
            events: self.events.clone(),
        };
        let line = Line {
            client,
            watch_timeout: self.watch_timeout,
            backoff: ExponentialBackoff::new(Schedule::default(), self.jitter.fork()),
            cancel,
        };
        pumps::spawn(feed, watch, line, &self.shutdown)
    }

    /// Asks the API server of a cluster whether it is there, until the guard is dropped.
    pub(super) fn probe(
        &self,
        origin: &Origin,
        client: watch::Receiver<Option<Client>>,
    ) -> DropGuard {
        let cancel = self.token();
        let events = self.events.clone();
        let asking = probe::run(origin.clone(), client, events, cancel.clone());
        drop(self.shutdown.spawn(asking));
        cancel.drop_guard()
    }

    /// Asks whether anything registers a cluster, until the guard is dropped.
    pub(super) fn inquire(&mut self, name: &str, management: Client) -> DropGuard {
        let cancel = self.token();
        let asking = inquiry::run(
            name.to_owned(),
            self.namespace.to_string(),
            management,
            self.events.clone(),
            ExponentialBackoff::new(Schedule::default(), self.jitter.fork()),
            cancel.clone(),
        );
        drop(self.shutdown.spawn(asking));
        cancel.drop_guard()
    }
}
