//! What appliers and watches report, and what follows.

use std::sync::Arc;

use ferromesh_apply::{Report, Sight};
use tokio::time::Instant;

use super::{Reconciler, subject};
use crate::holds::Hold;
use crate::outputs::{Target, Told};
use crate::programmed::Trouble;
use crate::status::{Sighting, Subject};

impl Reconciler {
    /// An applier has something to tell.
    pub(super) fn hear(&mut self, told: Told) {
        if !self.outputs.is_current(&told) {
            // It has been replaced, or its cluster is gone.
            return;
        }
        let Told { target, report, .. } = told;
        let cluster = Arc::clone(target.cluster());
        match report {
            Report::Object { id, outcome } => {
                let Some(key) = target.key(&id) else {
                    return;
                };
                let mirror = &self.mirror;
                let parents = || mirror.state().parents(&key);
                let taken = self.programmed.take(&key, &outcome, parents);
                if taken.is_bad_news
                    && let Some(Trouble { text, .. }) = Trouble::of(&outcome)
                {
                    tracing::warn!(cluster = &*cluster, %key, error = text, "an object does not stand as it should");
                }
                self.statuses.touch_all(&taken.concerned);
                if taken.is_outdated {
                    self.outputs.tell_again(&target, id);
                }
            }
            Report::Kind { kind, sight } => {
                tracing::debug!(%target, %kind, ?sight, "kind");
                let failure = match &sight {
                    Sight::Failing(error) => Some(error),
                    Sight::Watched | Sight::NotServed => None,
                };
                if let (Target::Pushed(_), Some(kind)) =
                    (&target, target.kind(&kind.group, &kind.name))
                {
                    let concerned = self.programmed.sight(&cluster, kind, failure);
                    self.statuses.touch_all(&concerned);
                }
            }
            Report::Synced => {
                tracing::debug!(%target, "everything listed");
                self.outputs.synced(&target, Instant::now());
            }
            Report::Held {
                would_delete,
                owned,
            } => {
                let hold = Hold {
                    would_delete,
                    owned,
                };
                self.holds.hold(target, hold);
                self.look_for_release(&cluster);
            }
            Report::Released => {
                self.holds.end(&target);
                self.statuses.touch(subject(&self.state, &cluster));
            }
        }
    }

    /// The status of an object was seen.
    pub(super) fn see(&mut self, sighting: Sighting) {
        if let Some(Subject::Cluster(key)) = self.statuses.see(sighting) {
            self.look_for_release(&key.name().into());
        }
    }

    /// Lets a mass delete go ahead if a person has said so: the annotation names how many objects that
    /// person has been told of.
    pub(super) fn look_for_release(&mut self, cluster: &Arc<str>) {
        let subject = subject(&self.state, cluster);
        let (writer, address) = (self.statuses.writer(), subject.address());
        let annotation = self.statuses.release(&subject);
        self.holds.look(cluster, annotation, writer, &address);
        self.statuses.touch(subject);
    }
}
