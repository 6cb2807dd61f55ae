//! What the watches show.

use tokio::time::Instant;

use super::{Applier, State, turn::TroubleKind};
use crate::{
    contest::Contest,
    drift::Standing,
    inventory::Change,
    object::{ObjectId, Source},
    report::{Report, Sight},
    watch::{Seen, Sighting},
};

impl<S: Source> Applier<S> {
    /// Takes in what was seen.
    pub(super) fn see(&mut self, sighting: Sighting) {
        let Sighting { kind: number, seen } = sighting;
        match seen {
            Seen::Served(version) => {
                tracing::info!(kind = %self.scope.kinds[number], version = &*version, "served");
                let kind = &mut self.kinds[number];
                kind.version = Some(version);
                if kind.state != State::Synced {
                    kind.state = State::Listing;
                }
            }
            Seen::NotServed => self.see_not_served(number),
            Seen::Started => self.kinds[number].relist += 1,
            Seen::Stands(id, standing, by) => self.see_standing(&id, standing, by),
            Seen::Exists(id) => {
                let relist = self.kinds[number].relist;
                self.inventory.touch(&id, relist);
            }
            Seen::Gone(id) => self.see_gone(&id),
            Seen::Synced => self.see_synced(number),
            Seen::Failed(error) => {
                tracing::debug!(kind = %self.scope.kinds[number], error = &error as &dyn std::error::Error, "not seen");
                self.tell_sight(number, Sight::Failing(error));
            }
            Seen::Recovered if self.kinds[number].state == State::Synced => {
                self.tell_sight(number, Sight::Watched);
            }
            Seen::Recovered => {}
        }
    }

    fn see_synced(&mut self, number: usize) {
        let relist = self.kinds[number].relist;
        let kind = &self.scope.kinds[number];
        for id in self.inventory.not_seen_in(relist, |id| kind.is_of(id)) {
            self.see_gone(&id);
        }
        self.kinds[number].state = State::Synced;
        self.tell_sight(number, Sight::Watched);
        self.advance(number);
    }

    fn see_not_served(&mut self, number: usize) {
        let kind = &mut self.kinds[number];
        if kind.state == State::NotServed {
            return;
        }
        tracing::info!(kind = %self.scope.kinds[number], "not served");
        kind.state = State::NotServed;
        kind.version = None;
        kind.relist += 1;
        // Its objects have gone with it.
        let relist = kind.relist;
        let kind = &self.scope.kinds[number];
        for id in self.inventory.not_seen_in(relist, |id| kind.is_of(id)) {
            self.see_gone(&id);
        }
        self.tell_sight(number, Sight::NotServed);
        self.advance(number);
    }

    /// More is known of a kind.
    fn advance(&mut self, number: usize) {
        let kind = &self.scope.kinds[number];
        self.queue.unpark(|id| kind.is_of(id));
        if self.is_synced() && !self.has_told_synced {
            self.has_told_synced = true;
            tracing::info!(owned = self.inventory.owned(), "synced");
            self.report(Report::Synced);
        }
        self.epoch += 1;
        self.sweep();
    }

    fn see_standing(&mut self, id: &ObjectId, standing: Standing, by: Option<String>) {
        let change = self.show(id, standing);
        let was_foreign = self
            .troubles
            .get(id)
            .is_some_and(|trouble| trouble.kind == TroubleKind::Foreign);
        match change {
            // It is ours now.
            _ if was_foreign => self.decide_again(id),
            Change::Drift => self.see_drift(id, by),
            Change::Unknown if self.may_prune() => self.decide_again(id),
            Change::None | Change::Unknown => {}
        }
    }

    fn see_gone(&mut self, id: &ObjectId) {
        let change = self.inventory.vanish(id);
        if change == Change::Drift {
            return self.see_drift(id, None);
        }
        self.prune.spare(id);
        if self.asked.contains(id) {
            self.decide_again(id);
        }
    }

    fn see_drift(&mut self, id: &ObjectId, by: Option<String>) {
        if self.queue.is_running(id) {
            // Our own write may be what is seen.
            return self.decide_again(id);
        }
        if self.troubles.contains_key(id) {
            // It is going to be tried again anyway.
            return;
        }
        let now = Instant::now();
        let jitter = &mut self.jitter;
        let contest = self.contests.entry(id.clone());
        let contest = contest.or_insert_with(|| Contest::new(jitter.fork(), now));
        let Some(repair) = contest.drifted(by, now) else {
            return;
        };
        if let Some(contested) = contest.outcome() {
            tracing::warn!(%id, %contested, "does not stand as it is wanted");
            self.outcome(id, contested);
        } else {
            tracing::debug!(%id, "does not stand as it is wanted");
        }
        let turn = self.turn(id);
        if repair <= now {
            self.queue.push(id, turn);
        } else {
            self.queue.push_later(id, turn, repair);
        }
    }

    pub(super) fn show(&mut self, id: &ObjectId, standing: Standing) -> Change {
        let relist = self.relist(id);
        self.inventory.show(id, standing, relist)
    }

    pub(super) fn relist(&self, id: &ObjectId) -> u64 {
        let number = self.scope.position(id);
        number.map_or(0, |number| self.kinds[number].relist)
    }

    fn tell_sight(&mut self, number: usize, sight: Sight) {
        let kind = self.scope.kinds[number].clone();
        self.report(Report::Kind { kind, sight });
    }
}
