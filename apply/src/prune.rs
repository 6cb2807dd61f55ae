//! Which objects are to be deleted, and when that is more than a person would expect.
//!
//! A mass delete is one of more than [`LEAST`] objects and of more than a tenth of what is ours. What
//! goes within one [`WINDOW`] is counted together, since one mistake may arrive in several pieces. Of a
//! mass delete nothing more is deleted until it is released, or until so much of it has become explicit
//! or is wanted again that it is none.

use std::{
    collections::{BTreeSet, VecDeque},
    mem,
    time::Duration,
};

use tokio::time::Instant;

use crate::object::ObjectId;

/// So many may go whatever share they are.
const LEAST: usize = 50;

/// One in so many may go.
const SHARE: usize = 10;

/// For how long a deletion counts.
const WINDOW: Duration = Duration::from_mins(1);

/// What is to be deleted.
#[derive(Debug, Default)]
pub(crate) struct Prune {
    /// What nobody wants, but for what is exempt.
    doomed: BTreeSet<ObjectId>,
    /// Deletions that a person has asked for or has released, should they come to pass.
    exempt: BTreeSet<ObjectId>,
    /// Deletions that nobody has asked for, and when they began. Stands still during a hold.
    recent: VecDeque<(Instant, ObjectId)>,
    is_held: bool,
}

/// What may happen to an object that nobody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Delete it.
    Delete,
    /// It is part of a mass delete.
    Hold,
}

impl Prune {
    /// Nobody wants it, and it stands.
    pub(crate) fn doom(&mut self, id: &ObjectId) {
        if !self.exempt.contains(id) {
            self.doomed.insert(id.clone());
        }
    }

    /// It is wanted again, or gone.
    pub(crate) fn spare(&mut self, id: &ObjectId) {
        self.doomed.remove(id);
        self.exempt.remove(id);
    }

    /// Nobody can tell whether it is wanted. If a person has asked for its deletion, that still holds.
    pub(crate) fn defer(&mut self, id: &ObjectId) {
        self.doomed.remove(id);
    }

    /// A person has asked for its deletion, should it be deleted. It may have begun: that nobody wants it can
    /// be seen before it is told why.
    pub(crate) fn exempt(&mut self, id: &ObjectId) {
        self.recent.retain(|(_, begun)| begun != id);
        self.let_go(id);
    }

    fn let_go(&mut self, id: &ObjectId) {
        self.doomed.remove(id);
        self.exempt.insert(id.clone());
    }

    /// What is held may be deleted. Returns it.
    pub(crate) fn release(&mut self) -> Vec<ObjectId> {
        if !self.is_held {
            return Vec::new();
        }
        let released = mem::take(&mut self.doomed);
        self.exempt.extend(released.iter().cloned());
        released.into_iter().collect()
    }

    /// Whether this one may be deleted now, where `owned` objects are ours.
    pub(crate) fn judge(&mut self, id: &ObjectId, owned: usize, now: Instant) -> Verdict {
        if self.exempt.contains(id) {
            return Verdict::Delete;
        }
        if !self.is_held {
            while self
                .recent
                .front()
                .is_some_and(|(begun, _)| *begun + WINDOW <= now)
            {
                self.recent.pop_front();
            }
            self.is_held = self.is_mass_delete(owned);
        }
        if self.is_held {
            return Verdict::Hold;
        }
        // It counts once, however often it has to be tried.
        self.recent.push_back((now, id.clone()));
        self.let_go(id);
        Verdict::Delete
    }

    /// How many deletions are held, if there is a hold.
    pub(crate) fn held(&self) -> Option<usize> {
        self.is_held.then_some(self.doomed.len())
    }

    /// Ends the hold if there is no reason for it any more, and returns what then may be deleted.
    pub(crate) fn reconsider(&mut self, owned: usize) -> Vec<ObjectId> {
        if !self.is_held || self.is_mass_delete(owned) {
            return Vec::new();
        }
        self.is_held = false;
        self.recent.clear();
        self.doomed.iter().cloned().collect()
    }

    fn is_mass_delete(&self, owned: usize) -> bool {
        let count = self.doomed.len() + self.recent.len();
        !self.doomed.is_empty() && count > LEAST && count * SHARE > owned + self.recent.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Kind;

    fn ids(count: usize) -> Vec<ObjectId> {
        let kind = Kind::new("g", "K", "ks", &["v1"]);
        (0..count)
            .map(|at| kind.id("n", &format!("o{at:04}")))
            .collect()
    }

    fn doomed(ids: &[ObjectId]) -> Prune {
        let mut prune = Prune::default();
        for id in ids {
            prune.doom(id);
        }
        prune
    }

    #[tokio::test(start_paused = true)]
    async fn fifty_may_go_and_a_tenth_may_go() {
        let now = Instant::now();
        let verdict = |count, owned| doomed(&ids(count)).judge(&ids(1)[0], owned, now);
        assert_eq!(verdict(50, 50), Verdict::Delete);
        assert_eq!(verdict(51, 51), Verdict::Hold);
        assert_eq!(verdict(51, 510), Verdict::Delete);
        assert_eq!(verdict(51, 509), Verdict::Hold);
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_within_a_minute_count_together() {
        let ids = ids(60);
        let delete = async |pause: Duration| {
            let mut prune = Prune::default();
            for id in &ids {
                prune.doom(id);
                if prune.judge(id, 60, Instant::now()) == Verdict::Hold {
                    return prune.held();
                }
                tokio::time::advance(pause).await;
            }
            prune.held()
        };
        assert_eq!(delete(Duration::from_millis(10)).await, Some(1));
        assert_eq!(delete(Duration::from_secs(2)).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_for_does_not_count_though_it_was_told_too_late() {
        let ids = ids(120);
        let mut prune = Prune::default();
        for id in &ids {
            prune.doom(id);
            assert_eq!(prune.judge(id, 120, Instant::now()), Verdict::Delete);
            prune.exempt(id);
            prune.spare(id);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_does_not_end_by_waiting() {
        let ids = ids(60);
        let mut prune = doomed(&ids);
        assert_eq!(prune.judge(&ids[0], 60, Instant::now()), Verdict::Hold);
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(prune.judge(&ids[0], 60, Instant::now()), Verdict::Hold);
        assert!(prune.reconsider(60).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_ends_when_enough_has_become_explicit() {
        let ids = ids(60);
        let mut prune = doomed(&ids);
        assert_eq!(prune.judge(&ids[0], 60, Instant::now()), Verdict::Hold);
        for id in &ids[..9] {
            prune.exempt(id);
        }
        assert!(prune.reconsider(60).is_empty());
        prune.exempt(&ids[9]);
        assert_eq!(prune.reconsider(60), ids[10..]);
        assert_eq!(prune.held(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_release_covers_what_was_held_and_nothing_that_comes_later() {
        let ids = ids(200);
        let mut prune = doomed(&ids[..60]);
        assert_eq!(prune.judge(&ids[0], 200, Instant::now()), Verdict::Hold);
        assert_eq!(prune.release(), ids[..60]);
        assert!(prune.reconsider(200).is_empty());
        assert_eq!(prune.held(), None);
        assert_eq!(prune.judge(&ids[0], 200, Instant::now()), Verdict::Delete);
        for id in &ids[60..] {
            prune.doom(id);
        }
        assert_eq!(prune.judge(&ids[60], 140, Instant::now()), Verdict::Hold);
    }
}
