//! List and watch one kind of one API server, for ever, as a sequence of [`Observed`].
//!
//! kube's own `watcher` is not used: it says nothing when a quiet watch has come back after a failure,
//! starts a watch again without a pause when the server ends it at once, and copies every object once
//! more to isolate bad ones. Here a bad object is isolated by its own bytes, and sizes are bounded.
//!
//! # What a consumer may rely on
//!
//! - A relist is `Started`, then one `Present` or `Invalid` per object, then `Synced`. It may break off at
//!   any point and begin anew with another `Started`. Objects of a relist may be taken in one by one.
//! - What was known and came up neither as `Present` nor as `Invalid` between the last `Started` and
//!   `Synced` has vanished. [`Relist`] computes that. Nothing has vanished before `Synced`.
//! - Between `Synced` and the next `Started`, `Applied`, `Invalid` and `Deleted` are in the order of the
//!   API server.
//! - An API server that is restored from a backup goes back in time: versions that were seen come a second
//!   time, for something else, and a watch from one of them is silent until then. A relist begins at once
//!   where its versions are behind what was seen, and otherwise when a watch's timeout has passed since
//!   watches began to break. What it shows may have a lower version than what was known.
//! - `Failed` comes at once and again on each further attempt, until `Recovered`. Neither changes what is
//!   known: an API server that does not answer has deleted nothing.

mod error;
mod relist;
mod wire;

use std::{fmt, num::NonZeroU32, time::Duration};

use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use self::wire::{Event, Parsed, Source};
pub use self::{
    error::{Class, Error},
    relist::Relist,
};
use crate::backoff::ExponentialBackoff;

/// Something that was seen, or the reason why nothing can be seen.
#[derive(Debug)]
pub enum Observed<K> {
    /// A relist begins; what an unfinished one has shown is void.
    Started,
    /// An object of the relist.
    Present(K),
    /// The relist is complete.
    Synced,
    /// An object was created or changed.
    Applied(K),
    /// An object is gone, or no longer matches the selectors.
    Deleted(NamespacedName),
    /// An object that exists, in a relist or after it, and that is not what its kind should be.
    Invalid(InvalidObject),
    /// The API server cannot be asked; another attempt follows.
    Failed(Failure),
    /// The API server answers again.
    Recovered,
}

/// Which object, within one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedName {
    /// Its namespace; none if its kind is cluster-scoped.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl NamespacedName {
    /// The one of `object`.
    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.clone(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// An object that could not be read as its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidObject {
    /// Which one.
    pub key: NamespacedName,
    /// Its `metadata.generation`, to tell an operator which edit is meant.
    pub generation: Option<i64>,
    /// What is wrong, at most 512 bytes. It may quote a value of the object.
    pub error: String,
}

/// A failure that goes on.
#[derive(Debug)]
pub struct Failure {
    /// The error of the last attempt.
    pub error: Error,
    /// When the first attempt failed that no successful one has followed.
    pub since: Instant,
}

/// What is watched, and how.
#[derive(Clone, Debug)]
pub struct Config<K> {
    /// Only objects with these labels, as in `kubectl -l`.
    pub labels: Option<String>,
    /// Only objects with these fields, as in `kubectl --field-selector`.
    pub fields: Option<String>,
    /// Objects per page of a list.
    pub page_size: NonZeroU32,
    /// After how long the API server ends a watch, at least one second. A link that has died in silence
    /// is noticed five seconds later.
    pub watch_timeout: Duration,
    /// How long a page of a list, or the beginning of a watch, may take.
    pub request_timeout: Duration,
    /// Takes away from each object what nobody needs, before it is kept anywhere.
    pub prune: fn(&mut K),
}

/// Everything; 500 a page, as client-go; watches of 290 s; 60 s for a request; nothing pruned.
impl<K> Default for Config<K> {
    fn default() -> Self {
        Self {
            labels: None,
            fields: None,
            page_size: NonZeroU32::new(500).expect("500 is not zero"),
            watch_timeout: Duration::from_secs(290),
            request_timeout: Duration::from_mins(1),
            prune: |_| {},
        }
    }
}

/// Where a pump puts what it sees. It waits for [`send`](Sink::send), so that a slow consumer slows the
/// watch down instead of filling memory.
pub trait Sink<K>: Send {
    /// Takes one observation.
    fn send(&mut self, observed: Observed<K>) -> impl Future<Output = Result<(), Closed>> + Send;
}

/// Nobody wants observations any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody takes what the watch sees")]
pub struct Closed;

impl<K: Send> Sink<K> for mpsc::Sender<Observed<K>> {
    async fn send(&mut self, observed: Observed<K>) -> Result<(), Closed> {
        mpsc::Sender::send(self, observed).await.map_err(|_| Closed)
    }
}

/// Why a pump has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Cancelled,
    /// Its sink was closed.
    Closed,
}

/// Lists and watches what `api` addresses until `cancel` is cancelled or the sink is closed.
///
/// An `Api<PartialObjectMeta<_>>` asks for metadata only.
pub async fn pump<K>(
    api: Api<K>,
    config: Config<K>,
    sink: impl Sink<K>,
    backoff: ExponentialBackoff,
    cancel: CancellationToken,
) -> Ended
where
    K: Resource + DeserializeOwned + Send + 'static,
{
    let pump = Pump {
        prune: config.prune,
        watch_timeout: config.watch_timeout.max(Duration::from_secs(1)),
        source: Source::new(api, &config),
        sink,
        backoff,
        failing_since: None,
        doubted_since: None,
    };
    match cancel.run_until_cancelled(pump.run()).await {
        None => Ended::Cancelled,
        Some(Closed) => Ended::Closed,
    }
}

/// How long after the end of a watch, by its timeout, we wait for the API server to end it.
const IDLE_MARGIN: Duration = Duration::from_secs(5);

/// A watch that ends without a word within this time was not one.
const SHORT_WATCH: Duration = Duration::from_secs(1);

struct Pump<K, S> {
    source: Source<K>,
    sink: S,
    prune: fn(&mut K),
    watch_timeout: Duration,
    backoff: ExponentialBackoff,
    failing_since: Option<Instant>,
    /// Since when what has been listed may be of another time than what is watched: a watch has broken, as
    /// when an API server is restored.
    doubted_since: Option<Instant>,
}

/// What to do next.
enum State {
    Relist,
    /// Watch from this resource version on.
    Watch(String),
    /// The same after a watch that has broken, unless the API server may have gone back in time.
    Resume(String),
}

// === impl Pump ===

impl<K, S> Pump<K, S>
where
    K: Resource + DeserializeOwned + Send + 'static,
    S: Sink<K>,
{
    async fn run(mut self) -> Closed {
        let mut state = State::Relist;
        loop {
            let next = match state {
                State::Relist => self.relist().await,
                State::Watch(version) => self.watch(version).await,
                State::Resume(version) => self.resume(version).await,
            };
            state = match next {
                Ok(next) => next,
                Err(Closed) => return Closed,
            };
        }
    }

    async fn relist(&mut self) -> Result<State, Closed> {
        let mut token = None;
        let mut has_started = false;
        loop {
            let mut page = match self.source.page(token).await {
                Ok(page) => page,
                Err(error) => return self.stumble(error, State::Relist).await,
            };
            self.recover().await?;
            if !has_started {
                self.sink.send(Observed::Started).await?;
                has_started = true;
            }
            for object in page.objects() {
                self.hand_over(object, Observed::Present).await?;
            }
            token = page.next_page();
            if token.is_none() {
                let Some(version) = page.version() else {
                    let error = self.source.no_resource_version();
                    return self.stumble(error, State::Relist).await;
                };
                self.doubted_since = None;
                self.sink.send(Observed::Synced).await?;
                return Ok(State::Watch(version));
            }
        }
    }

    /// To restore an API server is to stop it, and that breaks watches: it is asked for its version only then.
    /// It may have passed by the version that was seen, and nobody can tell. Watches may break for long and
    /// all day, so that what was listed is doubted for a while before it is listed anew.
    async fn resume(&mut self, version: String) -> Result<State, Closed> {
        let since = *self.doubted_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.watch_timeout {
            return Ok(State::Relist);
        }
        match self.source.newest().await {
            Ok(newest) if is_before(newest.as_deref(), &version) => {
                tracing::warn!(
                    seen = version,
                    newest,
                    "the API server has gone back in time, as if restored from a backup: listing anew"
                );
                Ok(State::Relist)
            }
            Ok(_) => Ok(State::Watch(version)),
            Err(error) => self.stumble(error, State::Resume(version)).await,
        }
    }

    async fn watch(&mut self, mut version: String) -> Result<State, Closed> {
        let mut events = match self.source.watch(&version).await {
            Ok(events) => events,
            Err(error) => return self.stumble(error, State::Resume(version)).await,
        };
        self.recover().await?;
        let began = Instant::now();
        let mut has_spoken = false;
        loop {
            let event =
                match tokio::time::timeout(self.watch_timeout + IDLE_MARGIN, events.next()).await {
                    Ok(Ok(Some(event))) => event,
                    // The link is dead.
                    Err(_) => return Ok(State::Resume(version)),
                    Ok(Ok(None)) if self.is_planned_end(began) && self.doubted_since.is_none() => {
                        return Ok(State::Watch(version));
                    }
                    Ok(Ok(None)) if has_spoken || began.elapsed() >= SHORT_WATCH => {
                        return Ok(State::Resume(version));
                    }
                    Ok(Ok(None)) => {
                        let error = self.source.short_watch();
                        return self.stumble(error, State::Resume(version)).await;
                    }
                    // A watch that has been of use may break; if more is wrong, the next request tells.
                    Ok(Err(error)) if has_spoken && !error.is_expired() => {
                        tracing::debug!(error = &error as &dyn std::error::Error, "watch broke");
                        tokio::time::sleep(self.backoff.delay()).await;
                        return Ok(State::Resume(version));
                    }
                    Ok(Err(error)) => return self.stumble(error, State::Resume(version)).await,
                };
            has_spoken = true;
            if let Some(newer) = event.version {
                version = newer;
            }
            match event.event {
                Event::Bookmark => {}
                Event::Applied(object) => self.hand_over(object, Observed::Applied).await?,
                Event::Deleted(key) => self.sink.send(Observed::Deleted(key)).await?,
            }
        }
    }

    /// Whether a watch that began then has lasted for as long as it was to.
    fn is_planned_end(&self, began: Instant) -> bool {
        self.watch_timeout > SHORT_WATCH && began.elapsed() >= self.watch_timeout
    }

    async fn hand_over(
        &mut self,
        object: Parsed<K>,
        as_event: fn(K) -> Observed<K>,
    ) -> Result<(), Closed> {
        let observed = match object {
            Ok(mut object) => {
                (self.prune)(&mut object);
                as_event(object)
            }
            Err(invalid) => Observed::Invalid(invalid),
        };
        self.sink.send(observed).await
    }

    /// Waits before the next attempt, and says why unless the position has merely become too old.
    async fn stumble(&mut self, error: Error, next: State) -> Result<State, Closed> {
        let next = if error.is_expired() {
            State::Relist
        } else {
            let since = *self.failing_since.get_or_insert_with(Instant::now);
            self.sink
                .send(Observed::Failed(Failure { error, since }))
                .await?;
            next
        };
        tokio::time::sleep(self.backoff.delay()).await;
        Ok(next)
    }

    async fn recover(&mut self) -> Result<(), Closed> {
        match self.failing_since.take() {
            Some(_) => self.sink.send(Observed::Recovered).await,
            None => Ok(()),
        }
    }
}

/// Whether a version is of an earlier time than another. API servers count; of others nobody can tell.
fn is_before(version: Option<&str>, other: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    let pair = version.and_then(number).zip(number(other));
    pair.is_some_and(|(version, other)| version < other)
}
