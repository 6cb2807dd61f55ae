//! Which objects do not stand yet as they should, and whose they are.
//!
//! The condition `Programmed` of a policy or virtual mesh is worked out from this. Only what is unfinished
//! is kept.

mod subject;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferromesh_apply::{Error, Outcome};
use ferromesh_core::{OutputKey, OutputKind, StatusKey};
use ferromesh_crds::condition::{Finding, Reason, Status, Type};
use ferromesh_mirror::{Clusters, Condition};
use ferromesh_runtime::telemetry::Chain;

use self::subject::Subject;
use crate::message::bounded;

/// The most bytes of a message.
const MAX_MESSAGE: usize = 600;
/// The most bytes that is told of one object.
const MAX_TROUBLE: usize = 240;

/// What does not stand as it should.
#[derive(Debug, Default)]
pub(crate) struct Programmed {
    objects: BTreeMap<OutputKey, Unfinished>,
    subjects: BTreeMap<StatusKey, Subject>,
    /// Kinds of a cluster that cannot be listed: their objects wait.
    blind: BTreeMap<Place, Trouble>,
}

/// A cluster and a kind in it.
type Place = (Arc<str>, OutputKind);

/// One object.
#[derive(Debug)]
struct Unfinished {
    parents: Arc<[StatusKey]>,
    /// Whether it is to look otherwise than before; if not, nobody has looked yet how it stands.
    is_changed: bool,
    /// It was told again before anything was heard of it: what is heard next may be about what it was
    /// told before.
    is_told_again: bool,
    trouble: Option<Trouble>,
}

/// Why an object does not stand as it should.
#[derive(Debug)]
pub(crate) struct Trouble {
    reason: Reason,
    /// For a person.
    pub(crate) text: String,
}

/// Why objects are unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// They are to look otherwise, or to be there no longer.
    Changed,
    /// Whoever writes them has just begun and knows nothing.
    Begun,
}

/// What follows from what has become of an object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// For whom it makes a difference.
    pub(crate) concerned: Vec<StatusKey>,
    /// What was heard may be outdated: the object is to be told once more.
    pub(crate) is_outdated: bool,
    /// There is trouble, and there was none.
    pub(crate) is_bad_news: bool,
}

impl Programmed {
    /// Objects are to be written, or deleted; returns those for whom that makes a difference. Only
    /// `parents` that exist count.
    pub(crate) fn expect<'a>(
        &mut self,
        keys: impl IntoIterator<Item = &'a OutputKey>,
        parents: &Arc<[StatusKey]>,
        cause: Cause,
        clusters: &Clusters,
    ) -> BTreeSet<StatusKey> {
        let mut concerned = BTreeSet::new();
        for key in keys {
            let gone = self.remove(key);
            let mut unfinished = Unfinished {
                parents: Arc::clone(parents),
                is_changed: cause == Cause::Changed,
                is_told_again: false,
                trouble: None,
            };
            if let Some(gone) = gone {
                let is_silent = gone.trouble.is_none();
                unfinished.is_changed |= gone.is_changed || !is_silent;
                unfinished.is_told_again = is_silent && cause == Cause::Changed;
                let others = gone.parents.iter();
                let others = others.filter(|parent| !is_silent || !parents.contains(parent));
                concerned.extend(others.cloned());
            }
            if parents.is_empty() {
                continue;
            }
            let place = place(key);
            if self.blind.contains_key(&place) || is_unreached(clusters, &key.cluster) {
                // Nothing will be heard of it soon.
                let subject = |parent: &&StatusKey| self.subjects.get(*parent);
                let first = parents
                    .iter()
                    .filter(|parent| subject(parent).is_none_or(|it| !it.is_changed_in(&place)));
                concerned.extend(first.cloned());
            }
            self.insert(key, unfinished);
        }
        concerned
    }

    /// Takes in what has become of an object. `parents` tells whose it is, where that is not known here.
    pub(crate) fn take(
        &mut self,
        key: &OutputKey,
        outcome: &Outcome,
        parents: impl FnOnce() -> Arc<[StatusKey]>,
    ) -> Taken {
        let Some(trouble) = Trouble::of(outcome) else {
            return self.finish(key);
        };
        let before = self.remove(key);
        let is_bad_news = before.as_ref().is_none_or(|it| it.trouble.is_none());
        let parents = match before {
            Some(Unfinished { parents, .. }) => parents,
            None => parents(),
        };
        let concerned = parents.to_vec();
        if !concerned.is_empty() {
            let unfinished = Unfinished {
                parents,
                is_changed: true,
                is_told_again: false,
                trouble: Some(trouble),
            };
            self.insert(key, unfinished);
        }
        Taken {
            concerned,
            is_outdated: false,
            is_bad_news,
        }
    }

    /// An object stands as it should.
    fn finish(&mut self, key: &OutputKey) -> Taken {
        if let Some(unfinished) = self.objects.get_mut(key)
            && unfinished.is_told_again
        {
            unfinished.is_told_again = false;
            return Taken {
                is_outdated: true,
                ..Taken::default()
            };
        }
        let Some(gone) = self.remove(key) else {
            return Taken::default();
        };
        let mut concerned = gone.parents.to_vec();
        if gone.trouble.is_none() {
            // While more is pending it makes none.
            concerned.retain(|subject| !self.subjects.contains_key(subject));
        }
        Taken {
            concerned,
            ..Taken::default()
        }
    }

    /// Whether a kind can be listed in a cluster; returns those for whom that makes a difference.
    pub(crate) fn sight(
        &mut self,
        cluster: &Arc<str>,
        kind: OutputKind,
        failure: Option<&Error>,
    ) -> Vec<StatusKey> {
        let place = (Arc::clone(cluster), kind);
        match failure {
            Some(error) => drop(self.blind.insert(place.clone(), Trouble::from(error))),
            None if self.blind.remove(&place).is_some() => {}
            None => return Vec::new(),
        }
        let subjects = self.subjects.iter();
        let waiting = subjects.filter(|(_, subject)| subject.waits_in(&place));
        waiting.map(|(key, _)| key.clone()).collect()
    }

    /// Forgets the objects of a cluster that nothing is written to any more; returns whose they were.
    pub(crate) fn forget(&mut self, cluster: &str) -> BTreeSet<StatusKey> {
        self.blind
            .retain(|(in_cluster, _), _| **in_cluster != *cluster);
        let keys = self.unfinished(cluster);
        let gone = keys.iter().filter_map(|key| self.remove(key));
        gone.flat_map(|gone| gone.parents.to_vec()).collect()
    }

    /// Another begins to write to a cluster, who has been told nothing yet. Returns the objects that do not
    /// stand there as they should.
    pub(crate) fn begin(&mut self, cluster: &str) -> Vec<OutputKey> {
        self.blind
            .retain(|(in_cluster, _), _| **in_cluster != *cluster);
        let keys = self.unfinished(cluster);
        for key in &keys {
            if let Some(unfinished) = self.objects.get_mut(key) {
                unfinished.is_told_again = false;
            }
        }
        keys
    }

    /// The objects of a cluster that do not stand yet as they should.
    pub(crate) fn unfinished(&self, cluster: &str) -> Vec<OutputKey> {
        let keys = self.objects.keys();
        keys.filter(|key| *key.cluster == *cluster)
            .cloned()
            .collect()
    }

    /// Those that wait for something in a cluster.
    pub(crate) fn waiting(&self, cluster: &str) -> impl Iterator<Item = &StatusKey> {
        let subjects = self.subjects.iter();
        let waiting = subjects.filter(move |(_, subject)| subject.waits_for(cluster));
        waiting.map(|(key, _)| key)
    }

    /// The condition `Programmed`.
    pub(crate) fn finding(
        &self,
        of: &StatusKey,
        generation: Option<i64>,
        clusters: &Clusters,
    ) -> Finding {
        let (status, reason, message) = match self.subjects.get(of) {
            Some(subject) => self.say(subject, clusters),
            None => (
                Status::True,
                Reason::Programmed,
                "everything that follows from it is written".to_owned(),
            ),
        };
        Finding {
            kind: Type::Programmed,
            status,
            reason,
            message: bounded(message, MAX_MESSAGE),
            observed_generation: generation,
        }
    }

    fn say(&self, subject: &Subject, clusters: &Clusters) -> (Status, Reason, String) {
        if let Some((reason, told)) = subject.troubles(|key| self.trouble(key)) {
            return (Status::False, reason, told);
        }
        let unreached = subject.clusters(|cluster| is_unreached(clusters, cluster));
        if !unreached.names.is_empty() {
            let names = unreached.names.join(", ");
            let (status, what) = if unreached.are_changed {
                (Status::False, "not everything is written")
            } else {
                (Status::Unknown, "nobody can tell what stands")
            };
            let message = format!("{what}: no connection to {names}");
            return (status, Reason::ClusterUnreachable, message);
        }
        if let Some((trouble, is_changed)) = subject.blind(|place| self.blind.get(place)) {
            // After a restart, an API server that has no time says nothing of what it holds.
            let is_open = trouble.reason == Reason::ClusterUnreachable && !is_changed;
            let status = if is_open {
                Status::Unknown
            } else {
                Status::False
            };
            return (status, trouble.reason, trouble.text.clone());
        }
        let pending = format!("objects not written yet: {}", subject.pending());
        (Status::Unknown, Reason::Pending, pending)
    }

    fn trouble(&self, key: &OutputKey) -> Option<&Trouble> {
        self.objects.get(key)?.trouble.as_ref()
    }

    fn insert(&mut self, key: &OutputKey, unfinished: Unfinished) {
        for parent in &*unfinished.parents {
            let subject = self.subjects.entry(parent.clone()).or_default();
            subject.insert(key, &unfinished);
        }
        self.objects.insert(key.clone(), unfinished);
    }

    fn remove(&mut self, key: &OutputKey) -> Option<Unfinished> {
        let gone = self.objects.remove(key)?;
        for parent in &*gone.parents {
            if let Some(subject) = self.subjects.get_mut(parent) {
                subject.remove(key, &gone);
                if subject.is_empty() {
                    self.subjects.remove(parent);
                }
            }
        }
        Some(gone)
    }
}

impl Trouble {
    /// None where the object stands as it should.
    pub(crate) fn of(outcome: &Outcome) -> Option<Self> {
        let (reason, text) = match outcome {
            Outcome::Applied | Outcome::Unchanged | Outcome::Deleted => return None,
            Outcome::Foreign { .. } => (Reason::ForeignObject, outcome.to_string()),
            Outcome::Contested { .. } => (Reason::Contested, outcome.to_string()),
            Outcome::Failed(error) => return Some(Self::from(error)),
        };
        Some(Self::new(reason, text))
    }

    fn new(reason: Reason, text: String) -> Self {
        Self {
            reason,
            text: bounded(text, MAX_TROUBLE),
        }
    }

    /// Its place among others: first what only a person can change.
    fn rank(&self) -> u8 {
        match self.reason {
            Reason::ForeignObject | Reason::Contested => 0,
            Reason::ClusterUnreachable => 2,
            _ => 1,
        }
    }
}

impl From<&Error> for Trouble {
    fn from(error: &Error) -> Self {
        let reason = match error {
            Error::Unreachable { .. } | Error::Timeout { .. } | Error::Throttled { .. } => {
                Reason::ClusterUnreachable
            }
            _ => Reason::ApplyFailed,
        };
        Self::new(reason, Chain(error).to_string())
    }
}

fn place(key: &OutputKey) -> Place {
    (Arc::clone(&key.cluster), key.kind)
}

/// Whether nothing can be written to a cluster now.
pub(crate) fn is_unreached(clusters: &Clusters, cluster: &str) -> bool {
    clusters.get(cluster).is_none_or(|view| {
        view.client.is_none()
            || match view.condition {
                Condition::Pending | Condition::Connected | Condition::Refusing(_) => false,
                Condition::CredentialInvalid(_)
                | Condition::CredentialRejected(_)
                | Condition::Unreachable(_) => true,
            }
    })
}

#[cfg(test)]
mod tests;
