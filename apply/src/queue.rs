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
    /// How many only rest.
    resting: usize,
    /// The turns of first attempts that are being made.
    running: BTreeMap<Turn, usize>,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Ready(Turn, Attempt),
    Waiting(Turn, Instant),
    /// There is nothing to do about it, but to look at it again then.
    Resting(Turn, Instant),
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
            Some(Slot::Waiting(..) | Slot::Resting(..)) | None => {
                self.place(id, Slot::Waiting(turn, until));
            }
            Some(Slot::Ready(..) | Slot::Parked(_) | Slot::Running(_, _, Some(_))) => {}
        }
    }

    /// It is looked at again then, unless it has a turn before. Nobody waits for that.
    pub(crate) fn rest(&mut self, id: &ObjectId, turn: Turn, until: Instant) {
        if let None | Some(Slot::Resting(..)) = self.slots.get(id) {
            self.place(id, Slot::Resting(turn, until));
        }
    }

    /// The object whose turn it is. It runs until [`done`](Self::done) or one of its kin is called.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(ObjectId, Turn)> {
        while let Some((_, id)) = self.waiting.first().filter(|(until, _)| *until <= now) {
            let id = id.clone();
            let Some(Slot::Waiting(turn, _) | Slot::Resting(turn, _)) =
                self.slots.get(&id).copied()
            else {
                unreachable!("what is in the set of the waiting waits or rests");
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

    /// How many objects wait for a turn, or run.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.resting
    }

    fn place(&mut self, id: &ObjectId, slot: Slot) {
        self.take(id);
        match slot {
            Slot::Ready(turn, _) => drop(self.ready.entry(turn).or_default().insert(id.clone())),
            Slot::Waiting(_, until) => drop(self.waiting.insert((until, id.clone()))),
            Slot::Resting(_, until) => {
                self.waiting.insert((until, id.clone()));
                self.resting += 1;
            }
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
            Slot::Resting(_, until) => {
                self.waiting.remove(&(until, id.clone()));
                self.resting -= 1;
            }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::object::Kind;

    const KINDS: usize = 2;

    fn id(name: &str) -> ObjectId {
        Kind::new("g", "K", "ks", &["v1"]).id("n", name)
    }

    fn turn(epoch: u64, kind: usize) -> Turn {
        Turn {
            epoch,
            stage: Stage::of(Act::Decide, kind, KINDS, 0),
        }
    }

    fn pop(queue: &mut Queue) -> Option<String> {
        queue.pop(Instant::now()).map(|(id, _)| id.name.to_string())
    }

    #[test]
    fn stages_run_from_the_first_kind_to_the_last_and_back_for_deletions() {
        let stages = [
            Stage::of(Act::Decide, 0, KINDS, 0),
            Stage::of(Act::Decide, 0, KINDS, 1),
            Stage::of(Act::Decide, 1, KINDS, 0),
            Stage::of(Act::Decide, 1, KINDS, u8::MAX),
            Stage::of(Act::Delete, 1, KINDS, u8::MAX),
            Stage::of(Act::Delete, 1, KINDS, 0),
            Stage::of(Act::Delete, 0, KINDS, 1),
            Stage::of(Act::Delete, 0, KINDS, 0),
        ];
        assert!(stages.is_sorted());
        let acts = stages.map(|stage| stage.act(KINDS));
        assert_eq!(acts[..4], [Act::Decide; 4]);
        assert_eq!(acts[4..], [Act::Delete; 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stage_waits_for_the_one_before_it_and_for_no_other() {
        let mut queue = Queue::default();
        queue.push(&id("refers"), turn(1, 1));
        queue.push(&id("referred"), turn(1, 0));
        queue.push(&id("later"), turn(2, 0));
        assert_eq!(pop(&mut queue).as_deref(), Some("referred"));
        assert_eq!(
            pop(&mut queue).as_deref(),
            Some("later"),
            "it refers to nothing that runs"
        );
        assert_eq!(pop(&mut queue), None);
        queue.done(&id("referred"));
        assert_eq!(
            pop(&mut queue).as_deref(),
            Some("refers"),
            "it came before what still runs"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_tried_again_holds_up_nobody() {
        let mut queue = Queue::default();
        queue.push(&id("referred"), turn(1, 0));
        pop(&mut queue);
        queue.retry(&id("referred"), Instant::now() + Duration::from_secs(1));
        queue.push(&id("refers"), turn(1, 1));
        assert_eq!(pop(&mut queue).as_deref(), Some("refers"));
        queue.done(&id("refers"));

        tokio::time::advance(Duration::from_secs(1)).await;
        queue.push(&id("refers"), turn(1, 1));
        assert_eq!(pop(&mut queue).as_deref(), Some("referred"));
        assert_eq!(pop(&mut queue).as_deref(), Some("refers"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_has_one_slot_and_runs_once_at_a_time() {
        let mut queue = Queue::default();
        queue.push(&id("a"), turn(1, 0));
        queue.push(&id("a"), turn(2, 0));
        assert_eq!(pop(&mut queue).as_deref(), Some("a"));
        queue.push(&id("a"), turn(3, 0));
        queue.push(&id("a"), turn(4, 0));
        assert_eq!(pop(&mut queue), None);
        queue.done(&id("a"));
        assert_eq!(pop(&mut queue).as_deref(), Some("a"));
        queue.done(&id("a"));
        assert_eq!(pop(&mut queue), None);
        assert_eq!(queue.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn being_wanted_ends_the_wait() {
        let mut queue = Queue::default();
        queue.push(&id("a"), turn(1, 0));
        pop(&mut queue);
        queue.retry(&id("a"), Instant::now() + Duration::from_hours(1));
        assert_eq!(pop(&mut queue), None);
        queue.push(&id("a"), turn(2, 0));
        assert_eq!(pop(&mut queue).as_deref(), Some("a"));
        assert_eq!(queue.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_rests_is_not_counted_and_gives_way_to_everything_else() {
        let mut queue = Queue::default();
        let hour = Duration::from_hours(1);
        queue.rest(&id("a"), turn(1, 0), Instant::now() + hour);
        assert_eq!(queue.len(), 0);
        queue.push_later(&id("a"), turn(1, 0), Instant::now() + hour);
        assert_eq!(queue.len(), 1);
        queue.rest(&id("a"), turn(1, 0), Instant::now());
        assert_eq!(pop(&mut queue), None, "it waits");

        queue.rest(&id("b"), turn(1, 0), Instant::now() + hour);
        tokio::time::advance(hour).await;
        assert_eq!(pop(&mut queue).as_deref(), Some("a"));
        assert_eq!(pop(&mut queue).as_deref(), Some("b"));
        assert_eq!(queue.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_parked_waits_until_it_is_freed() {
        let mut queue = Queue::default();
        queue.push(&id("a"), turn(1, 0));
        pop(&mut queue);
        queue.park(&id("a"));
        queue.unpark(|id| &*id.name != "a");
        assert_eq!(pop(&mut queue), None);
        queue.unpark(|id| &*id.name == "a");
        assert_eq!(pop(&mut queue).as_deref(), Some("a"));
    }
}
