//! Which objects do not stand yet as they should, and whose they are.
//!
//! The condition `Programmed` of a policy or virtual mesh is worked out from this. Only what is unfinished
//! is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use ferromesh_apply::{Error, Outcome};
use ferromesh_core::{OutputKey, StatusKey};
use ferromesh_crds::condition::{Finding, Reason, Status, Type};
use ferromesh_mirror::Clusters;
use ferromesh_runtime::telemetry::Chain;

/// The most bytes of a message.
const MAX_MESSAGE: usize = 600;
/// The most bytes that is told of one object.
const MAX_TROUBLE: usize = 240;
/// Of so many objects it is told what is wrong.
const MAX_TOLD: usize = 2;

/// What does not stand as it should.
#[derive(Debug, Default)]
pub(crate) struct Programmed {
    objects: BTreeMap<OutputKey, Unfinished>,
    subjects: BTreeMap<StatusKey, Subject>,
}

/// One object.
#[derive(Debug)]
struct Unfinished {
    parents: Arc<[StatusKey]>,
    trouble: Option<Trouble>,
}

/// Why an object does not stand as it should.
#[derive(Debug)]
pub(crate) struct Trouble {
    reason: Reason,
    /// For a person.
    pub(crate) text: String,
}

/// What one policy or virtual mesh waits for.
#[derive(Debug, Default)]
struct Subject {
    /// Objects that nothing is wrong with, by cluster.
    pending: BTreeMap<Arc<str>, usize>,
    troubled: BTreeSet<OutputKey>,
}

impl Programmed {
    /// Objects are to be written, or deleted.
    pub(crate) fn expect<'a>(
        &mut self,
        keys: impl IntoIterator<Item = &'a OutputKey>,
        parents: &Arc<[StatusKey]>,
    ) {
        if parents.is_empty() {
            return;
        }
        for key in keys {
            self.insert(
                key,
                Unfinished {
                    parents: Arc::clone(parents),
                    trouble: None,
                },
            );
        }
    }

    /// Takes in what has become of an object; returns those for whom that makes a difference. `parents`
    /// tells whose the object is, where that is not known here.
    pub(crate) fn take(
        &mut self,
        key: &OutputKey,
        outcome: &Outcome,
        parents: impl FnOnce() -> Arc<[StatusKey]>,
    ) -> Vec<StatusKey> {
        let Some(trouble) = Trouble::of(outcome) else {
            let Some(gone) = self.remove(key) else {
                return Vec::new();
            };
            let mut concerned = gone.parents.to_vec();
            if gone.trouble.is_none() {
                // While more is pending it makes none.
                concerned.retain(|subject| !self.subjects.contains_key(subject));
            }
            return concerned;
        };
        let parents = match self.objects.get(key) {
            Some(Unfinished { parents, .. }) => Arc::clone(parents),
            None => parents(),
        };
        if parents.is_empty() {
            return Vec::new();
        }
        let unfinished = Unfinished {
            parents: Arc::clone(&parents),
            trouble: Some(trouble),
        };
        self.insert(key, unfinished);
        parents.to_vec()
    }

    /// Forgets the objects of a cluster that nothing is written to any more; returns whose they were.
    pub(crate) fn forget(&mut self, cluster: &str) -> BTreeSet<StatusKey> {
        let keys = self.unfinished(cluster);
        let gone = keys.iter().filter_map(|key| self.remove(key));
        gone.flat_map(|gone| gone.parents.to_vec()).collect()
    }

    /// The objects of a cluster that do not stand yet as they should.
    pub(crate) fn unfinished(&self, cluster: &str) -> Vec<OutputKey> {
        let keys = self.objects.keys();
        keys.filter(|key| *key.cluster == *cluster)
            .cloned()
            .collect()
    }

    /// Those whose objects in a cluster are unfinished.
    pub(crate) fn concerned(&self, cluster: &str) -> impl Iterator<Item = &StatusKey> {
        let subjects = self.subjects.iter();
        subjects
            .filter(move |(_, subject)| {
                subject.pending.contains_key(cluster)
                    || subject.troubled.iter().any(|key| *key.cluster == *cluster)
            })
            .map(|(key, _)| key)
    }

    /// The condition `Programmed`.
    pub(crate) fn finding(
        &self,
        of: &StatusKey,
        generation: Option<i64>,
        clusters: &Clusters,
    ) -> Finding {
        let told = |status, reason, mut message: String| {
            message.truncate(message.floor_char_boundary(MAX_MESSAGE));
            Finding {
                kind: Type::Programmed,
                status,
                reason,
                message,
                observed_generation: generation,
            }
        };
        let Some(subject) = self.subjects.get(of) else {
            return told(Status::True, Reason::Programmed, String::new());
        };
        let unreached: Vec<&str> = subject
            .pending
            .keys()
            .filter(|cluster| is_unreached(clusters, cluster))
            .map(AsRef::as_ref)
            .collect();
        let first = subject.troubled.first().and_then(|key| self.trouble(key));
        match (first, unreached.is_empty()) {
            (Some(first), _) => told(Status::False, first.reason, self.troubles(subject)),
            (None, false) => told(
                Status::False,
                Reason::ClusterUnreachable,
                format!(
                    "not everything is written: no connection to {}",
                    unreached.join(", ")
                ),
            ),
            (None, true) => {
                let pending: Vec<_> = subject
                    .pending
                    .iter()
                    .map(|(cluster, count)| format!("{count} in {cluster}"))
                    .collect();
                told(
                    Status::Unknown,
                    Reason::Pending,
                    format!("objects not written yet: {}", pending.join(", ")),
                )
            }
        }
    }

    fn trouble(&self, key: &OutputKey) -> Option<&Trouble> {
        self.objects.get(key)?.trouble.as_ref()
    }

    fn troubles(&self, subject: &Subject) -> String {
        let told: Vec<_> = subject
            .troubled
            .iter()
            .filter_map(|key| Some(format!("{key}: {}", self.trouble(key)?.text)))
            .take(MAX_TOLD)
            .collect();
        let mut message = told.join("; ");
        if let Some(more @ 1..) = subject.troubled.len().checked_sub(told.len()) {
            write!(message, "; and {more} more").expect("writing to a String does not fail");
        }
        message
    }

    fn insert(&mut self, key: &OutputKey, unfinished: Unfinished) {
        self.remove(key);
        for parent in &*unfinished.parents {
            let subject = self.subjects.entry(parent.clone()).or_default();
            if unfinished.trouble.is_some() {
                subject.troubled.insert(key.clone());
            } else {
                *subject.pending.entry(Arc::clone(&key.cluster)).or_default() += 1;
            }
        }
        self.objects.insert(key.clone(), unfinished);
    }

    fn remove(&mut self, key: &OutputKey) -> Option<Unfinished> {
        let gone = self.objects.remove(key)?;
        for parent in &*gone.parents {
            let Some(subject) = self.subjects.get_mut(parent) else {
                continue;
            };
            if gone.trouble.is_some() {
                subject.troubled.remove(key);
            } else if let Some(count) = subject.pending.get_mut(&key.cluster) {
                *count -= 1;
                if *count == 0 {
                    subject.pending.remove(&key.cluster);
                }
            }
            if subject.pending.is_empty() && subject.troubled.is_empty() {
                self.subjects.remove(parent);
            }
        }
        Some(gone)
    }
}

impl Trouble {
    /// None where the object stands as it should.
    pub(crate) fn of(outcome: &Outcome) -> Option<Self> {
        let (reason, mut text) = match outcome {
            Outcome::Applied | Outcome::Unchanged | Outcome::Deleted => return None,
            Outcome::Foreign { .. } => (Reason::ForeignObject, outcome.to_string()),
            Outcome::Contested { .. } => (Reason::ApplyFailed, outcome.to_string()),
            Outcome::Failed(error) => {
                let reason = match error {
                    Error::Unreachable { .. } | Error::Timeout { .. } => Reason::ClusterUnreachable,
                    _ => Reason::ApplyFailed,
                };
                (reason, Chain(error).to_string())
            }
        };
        text.truncate(text.floor_char_boundary(MAX_TROUBLE));
        Some(Self { reason, text })
    }
}

fn is_unreached(clusters: &Clusters, cluster: &str) -> bool {
    clusters
        .get(cluster)
        .is_none_or(|view| view.client.is_none() || view.condition.is_failing())
}

#[cfg(test)]
mod tests {
    use ferromesh_apply::Label;
    use ferromesh_core::{Key, OutputKind, StatusKind};

    use super::*;

    fn key(name: &str) -> OutputKey {
        OutputKey {
            cluster: "east".into(),
            kind: OutputKind::Istio(ferromesh_istio::Kind::VirtualService),
            namespace: "shop".into(),
            name: name.into(),
        }
    }

    fn policy(name: &str) -> StatusKey {
        StatusKey {
            kind: StatusKind::TrafficPolicy,
            key: Key::local(name, "shop"),
        }
    }

    fn parents(names: &[&str]) -> Arc<[StatusKey]> {
        names.iter().map(|name| policy(name)).collect()
    }

    fn finding(programmed: &Programmed, of: &str) -> (Status, Reason) {
        let finding = programmed.finding(&policy(of), Some(3), &Clusters::default());
        assert_eq!(finding.observed_generation, Some(3));
        (finding.status, finding.reason)
    }

    #[test]
    fn a_policy_of_which_nothing_is_unfinished_is_programmed() {
        let programmed = Programmed::default();
        assert_eq!(
            finding(&programmed, "timeout"),
            (Status::True, Reason::Programmed)
        );
    }

    #[test]
    fn the_last_object_written_is_what_makes_the_difference() {
        let mut programmed = Programmed::default();
        let both = [key("a"), key("b")];
        programmed.expect(&both, &parents(&["timeout"]));
        // There is no such cluster here, so nobody waits for it in silence.
        assert_eq!(
            finding(&programmed, "timeout"),
            (Status::False, Reason::ClusterUnreachable)
        );
        let told = programmed.take(&both[0], &Outcome::Applied, Arc::default);
        assert_eq!(told, []);
        let told = programmed.take(&both[1], &Outcome::Unchanged, Arc::default);
        assert_eq!(told, [policy("timeout")]);
        assert_eq!(
            finding(&programmed, "timeout"),
            (Status::True, Reason::Programmed)
        );
        assert!(programmed.subjects.is_empty() && programmed.objects.is_empty());
    }

    #[test]
    fn an_object_of_somebody_else_is_named_with_the_remedy() {
        let mut programmed = Programmed::default();
        let outcome = Outcome::Foreign {
            owner: Label::new("owner", "gloo-mesh"),
        };
        // It was finished before: only who asks knows whose it is.
        let told = programmed.take(&key("a"), &outcome, || parents(&["timeout", "retries"]));
        assert_eq!(told, [policy("timeout"), policy("retries")]);
        let finding = programmed.finding(&policy("retries"), None, &Clusters::default());
        assert_eq!(
            (finding.status, finding.reason),
            (Status::False, Reason::ForeignObject)
        );
        assert!(finding.message.contains("VirtualService shop/a on east"));
        assert!(finding.message.contains("owner=gloo-mesh"));
    }

    #[test]
    fn an_object_that_changes_hands_counts_for_its_new_parents_alone() {
        let mut programmed = Programmed::default();
        programmed.expect([&key("a")], &parents(&["timeout"]));
        programmed.expect([&key("a")], &parents(&["retries"]));
        assert_eq!(finding(&programmed, "timeout").0, Status::True);
        assert_eq!(finding(&programmed, "retries").0, Status::False);
    }

    #[test]
    fn a_deregistered_cluster_is_waited_for_no_longer() {
        let mut programmed = Programmed::default();
        programmed.expect([&key("a"), &key("b")], &parents(&["timeout"]));
        assert_eq!(programmed.concerned("east").count(), 1);
        assert_eq!(programmed.forget("east"), [policy("timeout")].into());
        assert_eq!(finding(&programmed, "timeout").0, Status::True);
    }
}
