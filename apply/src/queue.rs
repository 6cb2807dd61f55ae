//! Whose turn it is.
//!
//! An object has one slot: wanting it again while it waits changes at most its turn, and while it is
//! being written it gets its next turn afterwards. What came earlier goes first. Of what came together,
//! lower stages go first, and none begins while a lower one is still being written. What waits after a
//! failure holds up nobody.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use crate::object::ObjectId;

/// A turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    /// What came together has the same number.
    pub(crate) epoch: u64,
    pub(crate) stage: Stage,
}

/// What must come before what: objects before those that refer to them, and when they are deleted the
/// other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stage(u32);

/// What is done when it is an object's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// See whether it is wanted, and make it stand if so.
    Decide,
    /// It is not wanted: delete it.
    Delete,
}

/// Objects and their turns.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    slots: BTreeMap<ObjectId, Slot>,
    ready: BTreeMap<Turn, BTreeSet<ObjectId>>,
    waiting: BTreeSet<(Instant, ObjectId)>,
    /// The turns of first attempts that are being made.
    running: BTreeMap<Turn, usize>,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Ready(Turn, Attempt),
    Waiting(Turn, Instant),
    /// It runs; then it is its turn again if it has been wanted meanwhile.
    Running(Turn, Attempt, Option<Turn>),
    /// It cannot go on before its kind does.
    Parked(Turn),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    First,
    Further,
}

// === impl Stage ===

impl Stage {
    /// The stage of an object whose kind is number `kind` of `kinds`, and which has this rank in it.
    pub(crate) fn of(act: Act, kind: usize, kinds: usize, rank: u8) -> Self {
        let (number, rank) = match act {
            Act::Decide => (kind, rank),
            Act::Delete => ((2 * kinds).saturating_sub(1 + kind), u8::MAX - rank),
        };
        let number = u32::try_from(number).unwrap_or(u32::MAX >> 8);
        Self((number << 8) | u32::from(rank))
    }

    /// What is done in this stage, among `kinds`.
    pub(crate) fn act(self, kinds: usize) -> Act {
        let number = usize::try_from(self.0 >> 8).unwrap_or(usize::MAX);
        if number < kinds {
            Act::Decide
        } else {
            Act::Delete
        }
    }
}

// === impl Queue ===

impl Queue {
    /// It is this object's turn as soon as may be. Waiting ends; an earlier turn of the same stage stays.
    pub(crate) fn push(&mut self, id: &ObjectId, turn: Turn) {
        let slot = match self.slots.get(id).copied() {
            Some(Slot::Running(running, attempt, again)) => {
                let again = again.map_or(turn, |again| again.min(turn));
                Slot::Running(running, attempt, Some(again))
            }
            Some(Slot::Ready(ready, attempt)) if ready.stage == turn.stage => {
                Slot::Ready(ready.min(turn), attempt)
            }
            _ => Slot::Ready(turn, Attempt::First),
        };
        self.place(id, slot);
    }

    /// It is this object's turn then, unless it is sooner or waits for something else.
    pub(crate) fn push_later(&mut self, id: &ObjectId, turn: Turn, until: Instant) {
        match self.slots.get(id) {
            Some(Slot::Running(_, _, None)) => self.push(id, turn),
            Some(Slot::Waiting(..)) | None => self.place(id, Slot::Waiting(turn, until)),
            Some(Slot::Ready(..) | Slot::Parked(_) | Slot::Running(_, _, Some(_))) => {}
        }
    }

    /// The object whose turn it is. It runs until [`done`](Self::done) or one of its kin is called.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(ObjectId, Turn)> {
        while let Some((_, id)) = self.waiting.first().filter(|(until, _)| *until <= now) {
            let id = id.clone();
            let Some(Slot::Waiting(turn, _)) = self.slots.get(&id).copied() else {
                unreachable!("what is in the set of the waiting waits");
            };
            self.place(&id, Slot::Ready(turn, Attempt::Further));
        }
        let is_free = |turn: &Turn| {
            let before = self
                .running
                .keys()
                .take_while(|running| running.epoch <= turn.epoch);
            { before }.all(|running| running.stage >= turn.stage)
        };
        let (turn, ids) = self.ready.iter().find(|(turn, _)| is_free(turn))?;
        let turn = *turn;
        let id = ids.first()?.clone();
        let Some(Slot::Ready(_, attempt)) = self.slots.get(&id).copied() else {
            unreachable!("what is in the set of the ready is ready");
        };
        self.place(&id, Slot::Running(turn, attempt, None));
        Some((id, turn))
    }

    /// What ran is over.
    pub(crate) fn done(&mut self, id: &ObjectId) {
        match self.slots.get(id) {
            Some(Slot::Running(_, _, Some(again))) => {
                self.place(id, Slot::Ready(*again, Attempt::First));
            }
            _ => drop(self.take(id)),
        }
    }

    /// What ran has failed and is tried again then, or at once if it has been wanted meanwhile.
    pub(crate) fn retry(&mut self, id: &ObjectId, until: Instant) {
        match self.slots.get(id).copied() {
            Some(Slot::Running(turn, _, None)) => self.place(id, Slot::Waiting(turn, until)),
            _ => self.done(id),
        }
    }

    /// What ran has another turn than it had.
    pub(crate) fn turn(&mut self, id: &ObjectId, turn: Turn) {
        match self.slots.get(id).copied() {
            Some(Slot::Running(_, attempt, None)) => self.place(id, Slot::Ready(turn, attempt)),
            _ => self.done(id),
        }
    }

    /// What ran has to wait until [`unpark`](Self::unpark).
    pub(crate) fn park(&mut self, id: &ObjectId) {
        if let Some(Slot::Running(turn, _, again)) = self.slots.get(id).copied() {
            self.place(id, Slot::Parked(again.unwrap_or(turn)));
        }
    }

    /// Those that are parked and of which `is_free` is true have their turn.
    pub(crate) fn unpark(&mut self, is_free: impl Fn(&ObjectId) -> bool) {
        let parked = self.slots.iter().filter_map(|(id, slot)| match slot {
            Slot::Parked(turn) if is_free(id) => Some((id.clone(), *turn)),
            _ => None,
        });
        for (id, turn) in parked.collect::<Vec<_>>() {
            self.place(&id, Slot::Ready(turn, Attempt::First));
        }
    }

    /// Whether it is being written.
    pub(crate) fn is_running(&self, id: &ObjectId) -> bool {
        matches!(self.slots.get(id), Some(Slot::Running(..)))
    }

    /// When the next one has waited long enough.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waiting.first().map(|(until, _)| *until)
    }

    /// How many objects have a turn, or run.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    fn place(&mut self, id: &ObjectId, slot: Slot) {
        self.take(id);
        match slot {
            Slot::Ready(turn, _) => drop(self.ready.entry(turn).or_default().insert(id.clone())),
            Slot::Waiting(_, until) => drop(self.waiting.insert((until, id.clone()))),
            Slot::Running(turn, Attempt::First, _) => *self.running.entry(turn).or_default() += 1,
            Slot::Running(..) | Slot::Parked(_) => {}
        }
        self.slots.insert(id.clone(), slot);
    }

    fn take(&mut self, id: &ObjectId) -> Option<Slot> {
        let slot = self.slots.remove(id)?;
        match slot {
            Slot::Ready(turn, _) => {
                if let Some(ids) = self.ready.get_mut(&turn) {
                    ids.remove(id);
                    if ids.is_empty() {
                        self.ready.remove(&turn);
                    }
                }
            }
            Slot::Waiting(_, until) => drop(self.waiting.remove(&(until, id.clone()))),
            Slot::Running(turn, Attempt::First, _) => {
                if let Some(count) = self.running.get_mut(&turn) {
                    *count -= 1;
                    if *count == 0 {
                        self.running.remove(&turn);
                    }
                }
            }
            Slot::Running(..) | Slot::Parked(_) => {}
        }
        Some(slot)
    }
}
