//! Statuses in the management cluster: written when they differ from what stands there, and only then.
//!
//! What stands is watched and kept as a fingerprint with its conditions, so that a restart writes nothing
//! and a status that somebody edits is put right.
//!
//! In reading order:
//!
//! - `compose`: what a status is to say.
//! - `conditions`: its conditions, with their times, and its size.
//! - `stored`: what stands.
//! - `write`: one write.

mod compose;
mod conditions;
mod stored;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ferromesh_apply::Error;
use ferromesh_apply::ssa::Writer;
use ferromesh_core::StatusKey;
use ferromesh_crds::meta;
use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use ferromesh_runtime::telemetry::Chain;
use jiff::Timestamp;
use kube::Client;
use kube::api::DynamicObject;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::conditions::MAX_STATUS;
use self::stored::{Stored, Watched};
use self::write::StatusWriter;
pub(crate) use self::{
    compose::View,
    stored::{Sighting, Subject, SubjectKind},
};

/// How long a status that may differ waits, so that what follows at once is written with it.
const QUIET: Duration = Duration::from_millis(100);
/// So many statuses are worked out before others have a chance to run.
const BATCH: usize = 64;
/// How many statuses are written at the same time.
const IN_FLIGHT: usize = 8;
/// How long a write may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// What stands, what may differ, and what is being written.
pub(crate) struct Statuses {
    writer: Writer,
    client: Client,
    stored: BTreeMap<Subject, Stored>,
    watched: BTreeMap<SubjectKind, Watched>,
    dirty: BTreeSet<Subject>,
    /// When those that are dirty are looked at.
    due: Option<Instant>,
    writes: JoinSet<Written>,
    busy: BTreeSet<Subject>,
    /// Those that could not be written, and when they are tried again.
    failing: BTreeMap<Subject, (ExponentialBackoff, Instant)>,
    jitter: Jitter,
}

/// What has come of a write.
pub(crate) struct Written {
    subject: Subject,
    result: Result<DynamicObject, Error>,
}

impl Statuses {
    /// Begins to watch what stands. `namespace` is our own.
    pub(crate) fn start(
        client: &Client,
        namespace: &str,
        mut jitter: Jitter,
        tasks: &TaskTracker,
        cancel: &CancellationToken,
    ) -> (Self, mpsc::Receiver<Sighting>) {
        let sightings = stored::watch(client, namespace, &mut jitter, tasks, cancel);
        let statuses = Self {
            writer: Writer::new(client.clone(), meta::FIELD_MANAGER, REQUEST_TIMEOUT),
            client: client.clone(),
            stored: BTreeMap::new(),
            watched: BTreeMap::new(),
            dirty: BTreeSet::new(),
            due: None,
            writes: JoinSet::new(),
            busy: BTreeSet::new(),
            failing: BTreeMap::new(),
            jitter,
        };
        (statuses, sightings)
    }

    /// The writer, for what else is written to the objects that have a status.
    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Takes in what was seen; returns what it was about, if that is there.
    pub(crate) fn see(&mut self, sighting: Sighting) -> Option<Subject> {
        if sighting.begins_relist() {
            // What is listed counts: the API server may have gone back in time.
            let stored = self.stored.iter_mut();
            let stored = stored.filter(|(subject, _)| subject.kind() == sighting.kind);
            stored.for_each(|(_, stored)| stored.forget_version());
        }
        let watched = self.watched.entry(sighting.kind).or_default();
        let (seen, gone) = watched.take(sighting);
        for subject in gone {
            self.stored.remove(&subject);
            self.failing.remove(&subject);
        }
        let (subject, stored) = seen?;
        self.store(&subject, stored);
        Some(subject)
    }

    fn store(&mut self, subject: &Subject, stored: Stored) {
        let before = self.stored.get(subject);
        if before.is_some_and(|before| before.is_newer_than(&stored)) {
            return;
        }
        let differs = before.is_none_or(|before| before.status != stored.status);
        self.stored.insert(subject.clone(), stored);
        if differs {
            self.touch(subject.clone());
        }
    }

    /// The annotation of an object by which a person lets a mass delete go ahead.
    pub(crate) fn release(&self, subject: &Subject) -> Option<&str> {
        self.stored.get(subject)?.release.as_deref()
    }

    /// The status of an object may differ.
    pub(crate) fn touch(&mut self, subject: Subject) {
        self.dirty.insert(subject);
        self.due.get_or_insert_with(|| Instant::now() + QUIET);
    }

    /// The statuses of objects may differ.
    pub(crate) fn touch_all<'a>(&mut self, subjects: impl IntoIterator<Item = &'a StatusKey>) {
        for subject in subjects {
            self.touch(Subject::Object(subject.clone()));
        }
    }

    /// When there is something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        let again = self.failing.values().map(|(_, due)| *due).min();
        let due = self.due.filter(|_| self.busy.len() < IN_FLIGHT);
        due.into_iter().chain(again).min()
    }

    /// Looks at some of those that may differ, and begins to write those that do.
    pub(crate) fn work(&mut self, view: &View<'_>, now: Timestamp) {
        let instant = Instant::now();
        let again = self.failing.iter().filter(|(_, (_, due))| *due <= instant);
        let again: Vec<_> = again.map(|(subject, _)| subject.clone()).collect();
        for subject in again {
            if let Some((_, due)) = self.failing.get_mut(&subject) {
                // Until then its write has ended, one way or the other.
                *due = instant + 2 * REQUEST_TIMEOUT;
            }
            self.dirty.insert(subject);
        }
        let mut waiting = BTreeSet::new();
        for _ in 0..BATCH {
            if self.busy.len() >= IN_FLIGHT {
                break;
            }
            let Some(subject) = self.dirty.pop_first() else {
                break;
            };
            if self.busy.contains(&subject) {
                waiting.insert(subject);
            } else {
                self.look_at(subject, view, now);
            }
        }
        self.due = (!self.dirty.is_empty()).then_some(instant);
        // They are looked at again once their writes have ended.
        self.dirty.append(&mut waiting);
    }

    fn look_at(&mut self, subject: Subject, view: &View<'_>, now: Timestamp) {
        // What is not seen is looked at again once it is.
        let stored = self.stored.get(&subject);
        let status = stored.and_then(|stored| Some((stored, view.status(&subject)?)));
        let status = status.map(|(stored, composed)| composed.over(&stored.conditions, now));
        let differs = |status: &Value| {
            let stored = stored.map(|stored| stored.status);
            stored != Some(stored::fingerprint(subject.kind(), status))
        };
        let Some(status) = status.filter(differs) else {
            self.failing.remove(&subject);
            return;
        };
        let size = status.to_string().len();
        if size > MAX_STATUS {
            tracing::error!(kind = subject.kind().name(), key = %subject.key(), size, "a status is too large");
        }
        self.busy.insert(subject.clone());
        let writer = StatusWriter {
            writer: self.writer.clone(),
            client: self.client.clone(),
        };
        self.writes.spawn(async move {
            let result = writer.write(&subject, status).await;
            Written { subject, result }
        });
    }

    /// Ends what is being written.
    pub(crate) async fn end(mut self) {
        self.writes.shutdown().await;
    }

    /// The next write that ends; never returns while nothing is written.
    pub(crate) async fn ended(&mut self) -> Option<Written> {
        match self.writes.join_next().await {
            Some(Ok(written)) => Some(written),
            Some(Err(_)) => None,
            None => std::future::pending().await,
        }
    }

    /// Takes in what has come of a write.
    pub(crate) fn take(&mut self, written: Written) {
        let Written { subject, result } = written;
        self.busy.remove(&subject);
        if self.dirty.contains(&subject) {
            self.due.get_or_insert_with(Instant::now);
        }
        match result {
            Ok(object) => {
                self.failing.remove(&subject);
                let stored = Stored::of(subject.kind(), &object);
                let before = self.stored.get(&subject);
                if before.is_some_and(|before| !before.is_newer_than(&stored)) {
                    self.stored.insert(subject, stored);
                }
            }
            Err(Error::NotFound { .. }) => {
                self.failing.remove(&subject);
            }
            Err(error) => {
                let (kind, key) = (subject.kind().name(), subject.key().clone());
                tracing::warn!(kind, %key, error = %Chain(&error), "a status could not be written");
                let jitter = &mut self.jitter;
                let (backoff, due) = self.failing.entry(subject).or_insert_with(|| {
                    let backoff = ExponentialBackoff::new(Schedule::default(), jitter.fork());
                    (backoff, Instant::now())
                });
                *due = Instant::now() + backoff.delay();
            }
        }
    }
}
