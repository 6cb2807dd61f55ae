//! The task that makes one cluster equal to what is wanted there.
//!
//! It alone holds what is known of the cluster. It never waits for a request: requests run beside it,
//! and it takes in what they, the watches and the [`Handle`] bring. Nothing in it is shared with the
//! appliers of other clusters.

mod handle;
mod sight;
mod turn;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    sync::Arc,
    time::Duration,
};

use ferromesh_crds::meta;
use ferromesh_runtime::backoff::Jitter;
use kube::Client;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub use self::handle::Handle;
use self::{
    handle::{Command, Told},
    turn::{Finished, Trouble},
};
use crate::{
    cause::Causes,
    contest::Contest,
    gate::Gate,
    inventory::Inventory,
    metrics::{Meter, Metrics, Standing},
    object::{ObjectId, Scope, Source},
    prune::Prune,
    queue::{Act, Queue, Stage, Turn},
    report::{Outbox, Outcome, Report},
    ssa::Writer,
    watch::Eye,
};

/// How an applier works.
#[derive(Clone, Debug)]
pub struct Options {
    /// The field manager in whose name it writes.
    pub manager: Cow<'static, str>,
    /// How many objects are written at the same time.
    pub in_flight: NonZeroUsize,
    /// How long a request may take.
    pub request_timeout: Duration,
    /// How many reports wait for the listener in the channel. More wait outside, one per object.
    pub reports: NonZeroUsize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            manager: Cow::Borrowed(meta::FIELD_MANAGER),
            in_flight: NonZeroUsize::new(16).expect("16 is not zero"),
            request_timeout: Duration::from_secs(15),
            reports: NonZeroUsize::new(256).expect("256 is not zero"),
        }
    }
}

/// Makes one cluster equal to what a [`Source`] wants there. See [`run`](Self::run).
pub struct Applier<S> {
    scope: Arc<Scope>,
    source: S,
    options: Options,
    client: Client,
    writer: Writer,
    jitter: Jitter,
    meter: Meter,
    commands: mpsc::UnboundedReceiver<Told>,
    reports: Option<mpsc::Sender<Report>>,
    kinds: Vec<Watched>,
    queue: Queue,
    inventory: Inventory,
    prune: Prune,
    gate: Gate,
    outbox: Outbox,
    /// Who has been asked for and whose outcome has not been told.
    asked: BTreeSet<ObjectId>,
    /// Who could not be written or deleted.
    troubles: BTreeMap<ObjectId, Trouble>,
    /// Whom somebody else has changed of late.
    contests: BTreeMap<ObjectId, Contest>,
    causes: Causes,
    writes: JoinSet<Finished>,
    epoch: u64,
    is_complete: bool,
    has_told_synced: bool,
    /// The hold as it was told last: how many would be deleted.
    told_held: Option<usize>,
}

/// What is known of a kind.
#[derive(Debug, Default)]
struct Watched {
    state: State,
    /// The version in which it is served.
    version: Option<Arc<str>>,
    /// How many relists have begun.
    relist: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing is known of it.
    #[default]
    Unknown,
    NotServed,
    /// It is served, and has not been listed completely yet.
    Listing,
    /// What stands of it is known.
    Synced,
}

/// So many decisions are taken before others have a chance to run.
const BATCH: usize = 128;

/// How many sightings wait to be taken in.
const SIGHTINGS: usize = 256;

// === impl Applier ===

impl<S: Source> Applier<S> {
    /// An applier for the cluster that `client` reaches, the handle to it, and what it tells.
    pub fn new(
        client: Client,
        scope: Scope,
        source: S,
        options: Options,
        mut jitter: Jitter,
        metrics: &Metrics,
    ) -> (Self, Handle, mpsc::Receiver<Report>) {
        let (handle, commands) = Handle::new();
        let (reporter, reports) = mpsc::channel(options.reports.get());
        let applier = Self {
            writer: Writer::new(
                client.clone(),
                options.manager.clone(),
                options.request_timeout,
            ),
            client,
            meter: metrics.meter(&scope.cluster, &scope.owner.key),
            kinds: scope.kinds.iter().map(|_| Watched::default()).collect(),
            scope: Arc::new(scope),
            source,
            options,
            commands,
            reports: Some(reporter),
            queue: Queue::default(),
            inventory: Inventory::default(),
            prune: Prune::default(),
            gate: Gate::new(jitter.fork()),
            jitter,
            outbox: Outbox::default(),
            asked: BTreeSet::new(),
            troubles: BTreeMap::new(),
            contests: BTreeMap::new(),
            causes: Causes::default(),
            writes: JoinSet::new(),
            epoch: 0,
            is_complete: false,
            has_told_synced: false,
            told_held: None,
        };
        (applier, handle, reports)
    }

    /// Works until `cancel` is cancelled. What is being written then is given up: it may or may not have
    /// been written, and the next applier of the cluster will see which.
    pub async fn run(self, cancel: CancellationToken) {
        let span = tracing::info_span!("apply", cluster = %self.scope.cluster);
        self.work(cancel).instrument(span).await;
    }

    async fn work(mut self, cancel: CancellationToken) {
        let (sender, mut sightings) = mpsc::channel(SIGHTINGS);
        let mut eyes = JoinSet::new();
        for number in 0..self.kinds.len() {
            let eye = Eye {
                client: self.client.clone(),
                writer: self.writer.clone(),
                scope: Arc::clone(&self.scope),
                number,
                sightings: sender.clone(),
                jitter: self.jitter.fork(),
            };
            eyes.spawn(eye.run(cancel.clone()).in_current_span());
        }
        drop(sender);
        loop {
            // One moment for both: what becomes due in between would be noticed by neither.
            let now = Instant::now();
            let has_more = self.take_turns(now) | self.look_at_hold();
            self.tell();
            self.measure();
            let due = self.next_due(now);
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                Some(ended) = eyes.join_next() => joined(ended),
                Some(finished) = self.writes.join_next() => {
                    let finished = joined(finished);
                    self.finish(finished);
                }
                Some(sighting) = sightings.recv() => {
                    self.see(sighting);
                    for _ in 0..BATCH {
                        let Ok(sighting) = sightings.try_recv() else { break };
                        self.see(sighting);
                    }
                }
                Some(told) = self.commands.recv() => self.obey(told),
                has_room = has_room(self.reports.as_ref()), if !self.outbox.is_empty() => {
                    if !has_room {
                        self.reports = None;
                        self.outbox = Outbox::default();
                    }
                }
                () = tokio::task::yield_now(), if has_more => {}
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }

    fn obey(&mut self, (command, cause): Told) {
        self.epoch += 1;
        if let Command::Want(ids) | Command::Explicit(ids) = &command {
            self.causes.note(ids, &cause);
        }
        match command {
            Command::Want(ids) => ids.iter().for_each(|id| self.want(id)),
            Command::Explicit(ids) => {
                for id in ids {
                    self.prune.exempt(&id);
                    self.want(&id);
                }
            }
            Command::Complete => {
                self.is_complete = true;
                self.sweep();
            }
            Command::Release => {
                for id in self.prune.release() {
                    self.decide_again(&id);
                }
            }
        }
    }

    fn want(&mut self, id: &ObjectId) {
        self.asked.insert(id.clone());
        self.decide_again(id);
    }

    /// Gives an object a turn.
    fn decide_again(&mut self, id: &ObjectId) {
        let turn = self.turn(id);
        self.queue.push(id, turn);
    }

    fn turn(&self, id: &ObjectId) -> Turn {
        let number = self.scope.position(id).unwrap_or_default();
        let rank = self.inventory.rank(id);
        Turn {
            epoch: self.epoch,
            stage: Stage::of(Act::Decide, number, self.kinds.len(), rank),
        }
    }

    /// Whether absence means anything: the set of what is wanted and that of what stands are complete.
    fn may_prune(&self) -> bool {
        self.is_complete && self.is_synced()
    }

    fn is_synced(&self) -> bool {
        let is_known = |kind: &Watched| matches!(kind.state, State::NotServed | State::Synced);
        self.kinds.iter().all(is_known)
    }

    /// Gives a turn to everything that stands and that nobody is known to want.
    fn sweep(&mut self) {
        if self.may_prune() {
            let unwanted: Vec<_> = self.inventory.unwanted().cloned().collect();
            for id in unwanted {
                self.decide_again(&id);
            }
        }
    }

    /// Notices when a hold ends, and tells of it when it does and when its numbers change. Tells whether
    /// objects have a turn because it has ended.
    fn look_at_hold(&mut self) -> bool {
        let owned = self.inventory.owned();
        let free = self.prune.reconsider(owned);
        for id in &free {
            self.decide_again(id);
        }
        let told = std::mem::replace(&mut self.told_held, self.prune.held());
        match self.told_held {
            held if held == told => {}
            Some(would_delete) => {
                if told.is_none() {
                    tracing::warn!(would_delete, owned, "a mass delete is held");
                }
                self.report(Report::Held {
                    would_delete,
                    owned,
                });
            }
            None => {
                tracing::info!("no mass delete is held any more");
                self.report(Report::Released);
            }
        }
        !free.is_empty()
    }

    fn outcome(&mut self, id: &ObjectId, outcome: Outcome) {
        self.meter.outcome(outcome.as_str());
        self.asked.remove(id);
        self.causes.forget(id);
        self.report(Report::Object {
            id: id.clone(),
            outcome,
        });
    }

    fn report(&mut self, report: Report) {
        if self.reports.is_some() {
            self.outbox.push(report);
        }
    }

    /// Tells as much as the listener has room for.
    fn tell(&mut self) {
        let Some(reports) = &self.reports else {
            return;
        };
        while !self.outbox.is_empty()
            && let Ok(permit) = reports.try_reserve()
            && let Some(report) = self.outbox.pop()
        {
            permit.send(report);
        }
    }

    fn measure(&self) {
        self.meter.present(Standing {
            owned: self.inventory.owned(),
            pending: self.queue.len(),
            held: self.prune.held().unwrap_or_default(),
        });
    }

    /// When there is something to do if nothing happens until then.
    fn next_due(&self, now: Instant) -> Option<Instant> {
        let gate = self.gate.next_due().filter(|due| *due > now);
        let queue = self.queue.next_due().filter(|due| *due > now);
        match (gate, queue) {
            (Some(gate), Some(queue)) => Some(gate.min(queue)),
            (gate, queue) => gate.or(queue),
        }
    }
}

/// What a task returned. If it panicked, so do we.
fn joined<T>(result: Result<T, tokio::task::JoinError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Waits until the listener has room for a report; false if there is no listener.
async fn has_room(reports: Option<&mpsc::Sender<Report>>) -> bool {
    match reports {
        Some(reports) => reports.reserve().await.is_ok(),
        None => false,
    }
}
