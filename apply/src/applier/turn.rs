//! An object's turn: what is decided, what is sent, what comes of it.

use std::{sync::Arc, time::Duration};

use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use tokio::time::Instant;
use tracing::Instrument;

use super::{Applier, BATCH, State};
use crate::{
    drift::{self, Standing},
    error::{Error, Remedy},
    gate::Pass,
    object::{Answer, ObjectId, Source},
    prune::Verdict,
    queue::{Act, Stage, Turn},
    report::Outcome,
    write::{Applied, Deleted, Task},
};

/// What came of a write.
pub(super) struct Finished {
    id: ObjectId,
    pass: Pass,
    result: Written,
}

enum Written {
    Apply(Result<Applied, Error>),
    Delete(Result<Deleted, Error>),
}

/// Why an object waits for another attempt.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) kind: TroubleKind,
    backoff: ExponentialBackoff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TroubleKind {
    /// It may be over in a moment.
    Moment,
    /// Somebody has to do something.
    Somebody,
    /// An object of somebody else is in the way.
    Foreign,
}

const MOMENT: Schedule = Schedule {
    first: Duration::from_millis(500),
    longest: Duration::from_secs(30),
    quiet: Duration::from_mins(10),
};

const SOMEBODY: Schedule = Schedule {
    first: Duration::from_secs(5),
    longest: Duration::from_mins(5),
    quiet: Duration::from_mins(30),
};

/// Nobody tells us that an object that is not ours is gone: we have to look.
const FOREIGN: Schedule = Schedule {
    first: Duration::from_secs(5),
    longest: Duration::from_mins(1),
    quiet: Duration::from_mins(10),
};

impl<S: Source> Applier<S> {
    /// Gives objects their turn as long as requests may be sent. Tells whether more are due at once.
    pub(super) fn take_turns(&mut self, now: Instant) -> bool {
        for _ in 0..BATCH {
            let most = self.options.in_flight.get();
            if !self.gate.is_open(now, self.writes.len(), most) {
                return false;
            }
            let Some((id, turn)) = self.queue.pop(now) else {
                return false;
            };
            match turn.stage.act(self.kinds.len()) {
                Act::Decide => self.decide(&id, turn, now),
                Act::Delete => self.delete(&id, turn, now),
            }
        }
        true
    }

    fn decide(&mut self, id: &ObjectId, turn: Turn, now: Instant) {
        let Some(number) = self.scope.position(id) else {
            let action = format!("writing {id}, a kind that this applier does not write");
            self.outcome(id, Outcome::Failed(Error::NotServed { action }));
            return self.queue.done(id);
        };
        if matches!(self.kinds[number].state, State::Unknown | State::Listing) {
            return self.queue.park(id);
        }
        let mut desired = match self.source.ask(id) {
            Answer::Wanted(desired) => desired,
            Answer::Unwanted => return self.decide_unwanted(id, number, turn),
            Answer::Forsaken => {
                self.prune.exempt(id);
                return self.decide_unwanted(id, number, turn);
            }
            Answer::Unknown => return self.leave(id),
        };
        self.prune.spare(id);
        let stage = Stage::of(Act::Decide, number, self.kinds.len(), desired.rank);
        if stage > turn.stage {
            return self.queue.turn(id, Turn { stage, ..turn });
        }
        self.scope.stamp(&mut desired);
        let is_as_wanted = self
            .inventory
            .want(id, drift::wanted(&desired), desired.rank);
        let Some(version) = self.version(number) else {
            let action = format!("writing {id}");
            self.outcome(id, Outcome::Failed(Error::NotServed { action }));
            return self.queue.park(id);
        };
        if self.is_terminating(id) {
            return self.await_end(id);
        }
        if is_as_wanted {
            return self.settled(id, turn, now);
        }
        let task = self.task(id, number, &version);
        let body = desired.body(&self.scope.kinds[number], &version, id);
        let (id, pass) = (id.clone(), self.gate.pass());
        let span = self.causes.write(&self.scope.cluster, &id, "apply");
        let written = async move {
            let result = Written::Apply(task.apply(desired, body).await);
            Finished { id, pass, result }
        };
        self.writes
            .spawn(written.instrument(span).in_current_span());
    }

    /// Nobody can tell whether it is wanted. The sweep, or being wanted, comes back to it.
    fn leave(&mut self, id: &ObjectId) {
        self.contests.remove(id);
        self.troubles.remove(id);
        self.prune.defer(id);
        self.inventory.unwant(id);
        self.queue.done(id);
    }

    /// It is being deleted. The watch tells when it is gone, and then it is created anew.
    fn await_end(&mut self, id: &ObjectId) {
        self.troubles.remove(id);
        if let Some(contest) = self.contests.get_mut(id) {
            contest.settled();
        }
        self.queue.done(id);
    }

    fn decide_unwanted(&mut self, id: &ObjectId, number: usize, turn: Turn) {
        self.contests.remove(id);
        if !self.inventory.unwant(id) {
            self.prune.spare(id);
            if self.troubles.remove(id).is_some() | self.asked.contains(id) {
                self.outcome(id, Outcome::Deleted);
            }
            return self.queue.done(id);
        }
        if !self.may_prune() || self.is_terminating(id) {
            // The sweep comes back to it.
            return self.queue.done(id);
        }
        self.prune.doom(id);
        let rank = self.inventory.rank(id);
        let stage = Stage::of(Act::Delete, number, self.kinds.len(), rank);
        self.queue.turn(id, Turn { stage, ..turn });
    }

    fn delete(&mut self, id: &ObjectId, turn: Turn, now: Instant) {
        let Some(number) = self.scope.position(id) else {
            return self.decide(id, turn, now);
        };
        let stands = self.inventory.standing(id).is_some();
        let version = self
            .version(number)
            .filter(|_| stands && !self.is_terminating(id));
        let answer = self.source.ask(id);
        let is_unwanted = matches!(answer, Answer::Unwanted | Answer::Forsaken);
        let Some(version) = version.filter(|_| is_unwanted) else {
            // Much may have happened since it was doomed.
            let stage = Stage::of(
                Act::Decide,
                number,
                self.kinds.len(),
                self.inventory.rank(id),
            );
            return self.queue.turn(id, Turn { stage, ..turn });
        };
        if self.prune.judge(id, self.inventory.owned(), now) == Verdict::Hold {
            return self.queue.done(id);
        }
        let task = self.task(id, number, &version);
        let (id, pass) = (id.clone(), self.gate.pass());
        let span = self.causes.write(&self.scope.cluster, &id, "delete");
        let written = async move {
            let result = Written::Delete(task.delete().await);
            Finished { id, pass, result }
        };
        self.writes
            .spawn(written.instrument(span).in_current_span());
    }

    /// Takes in what came of a write.
    pub(super) fn finish(&mut self, finished: Finished) {
        let Finished { id, pass, result } = finished;
        match result {
            Written::Apply(Ok(applied)) => {
                self.gate.answered();
                self.applied(&id, applied);
            }
            Written::Delete(Ok(deleted)) => {
                self.gate.answered();
                self.deleted(&id, &deleted);
            }
            Written::Apply(Err(error)) | Written::Delete(Err(error)) => {
                self.failed(&id, pass, error);
            }
        }
    }

    fn applied(&mut self, id: &ObjectId, applied: Applied) {
        match applied {
            Applied::Written { standing, altered } => {
                self.store(id, standing);
                self.troubles.remove(id);
                let now = Instant::now();
                let mut outcome = Outcome::Applied;
                self.queue.done(id);
                if let Some(contest) = self.contests.get_mut(id) {
                    contest.repaired(now);
                    if let Some(contested) = contest.outcome() {
                        outcome = contested;
                    }
                    let until = contest.until();
                    let turn = self.turn(id);
                    self.queue.rest(id, turn, until);
                }
                if altered.is_some() {
                    outcome = Outcome::Contested {
                        by: None,
                        field: altered,
                    };
                }
                tracing::debug!(%id, outcome = outcome.as_str(), "written");
                self.outcome(id, outcome);
            }
            Applied::Unchanged(standing) => {
                self.store(id, standing);
                let turn = self.turn(id);
                self.settled(id, turn, Instant::now());
            }
            Applied::Terminating(standing) => {
                self.show(id, standing);
                self.await_end(id);
            }
            Applied::Foreign => {
                let is_news = self
                    .troubles
                    .get(id)
                    .is_none_or(|trouble| trouble.kind != TroubleKind::Foreign);
                self.wait(id, TroubleKind::Foreign, Instant::now());
                if is_news || self.asked.contains(id) {
                    tracing::warn!(%id, "an object of this name is not ours and is left alone");
                    let owner = self.scope.owner.clone();
                    self.outcome(id, Outcome::Foreign { owner });
                }
            }
        }
    }

    fn deleted(&mut self, id: &ObjectId, deleted: &Deleted) {
        self.prune.spare(id);
        self.troubles.remove(id);
        if *deleted == Deleted::Gone {
            self.inventory.terminate(id);
        }
        tracing::debug!(%id, ?deleted, "deleted");
        self.outcome(id, Outcome::Deleted);
        self.queue.done(id);
    }

    /// It stands as it is wanted.
    fn settled(&mut self, id: &ObjectId, turn: Turn, now: Instant) {
        let mut is_news = self.asked.contains(id) | self.troubles.remove(id).is_some();
        let mut outcome = Outcome::Unchanged;
        self.queue.done(id);
        if let Some(contest) = self.contests.get_mut(id) {
            contest.settled();
            let is_over = contest.is_over(now);
            match contest.outcome() {
                Some(_) if is_over => is_news = true,
                Some(contested) => outcome = contested,
                None => {}
            }
            if is_over {
                self.contests.remove(id);
            } else {
                self.queue.rest(id, turn, contest.until());
            }
        }
        if is_news {
            self.outcome(id, outcome);
        }
    }

    fn failed(&mut self, id: &ObjectId, pass: Pass, error: Error) {
        let now = Instant::now();
        let remedy = error.remedy();
        match remedy {
            Remedy::Cluster(after) => self.gate.failed(pass, now, after),
            Remedy::Moment | Remedy::Somebody | Remedy::Kind => self.gate.answered(),
        }
        match remedy {
            Remedy::Somebody => self.wait(id, TroubleKind::Somebody, now),
            Remedy::Moment | Remedy::Kind | Remedy::Cluster(None) => {
                self.wait(id, TroubleKind::Moment, now);
            }
            Remedy::Cluster(Some(after)) => {
                self.wait(id, TroubleKind::Moment, now + after);
            }
        }
        tracing::debug!(%id, error = &error as &dyn std::error::Error, "not written");
        self.outcome(id, Outcome::Failed(error));
    }

    /// Gives it another turn after `since` and a while.
    fn wait(&mut self, id: &ObjectId, kind: TroubleKind, since: Instant) {
        let jitter = &mut self.jitter;
        let trouble = self.troubles.entry(id.clone());
        let trouble = trouble.or_insert_with(|| Trouble::new(kind, jitter.fork()));
        if trouble.kind != kind {
            *trouble = Trouble::new(kind, self.jitter.fork());
        }
        self.queue.retry(id, since + trouble.backoff.delay());
    }

    fn store(&mut self, id: &ObjectId, standing: Standing) {
        let relist = self.relist(id);
        self.inventory.store(id, standing, relist);
    }

    fn task(&self, id: &ObjectId, number: usize, version: &str) -> Task {
        Task {
            writer: self.writer.clone(),
            owner: self.scope.owner.clone(),
            place: self.scope.place.clone(),
            address: Task::address(&self.scope.kinds[number], version, id),
            seen: self.inventory.standing(id).cloned(),
        }
    }

    fn version(&self, number: usize) -> Option<Arc<str>> {
        let kind = &self.kinds[number];
        kind.version.clone().filter(|_| kind.state == State::Synced)
    }

    fn is_terminating(&self, id: &ObjectId) -> bool {
        let standing = self.inventory.standing(id);
        standing.is_some_and(|standing| standing.is_terminating)
    }
}

// === impl Trouble ===

impl Trouble {
    fn new(kind: TroubleKind, jitter: Jitter) -> Self {
        let schedule = match kind {
            TroubleKind::Moment => MOMENT,
            TroubleKind::Somebody => SOMEBODY,
            TroubleKind::Foreign => FOREIGN,
        };
        Self {
            kind,
            backoff: ExponentialBackoff::new(schedule, jitter),
        }
    }
}
