//! What one policy or virtual mesh waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use ferromesh_core::OutputKey;
use ferromesh_crds::condition::Reason;

use super::{Place, Trouble, Unfinished, place};

/// Of so many objects it is told what is wrong.
const MAX_TOLD: usize = 2;

/// What one policy or virtual mesh waits for.
#[derive(Debug, Default)]
pub(super) struct Subject {
    /// Objects that nothing is wrong with.
    pending: BTreeMap<Place, Count>,
    troubled: BTreeSet<OutputKey>,
}

#[derive(Debug, Default)]
struct Count {
    all: usize,
    /// Those that are to look otherwise than before.
    changed: usize,
}

/// Clusters that something waits for.
#[derive(Debug)]
pub(super) struct Awaited<'a> {
    pub(super) names: Vec<&'a str>,
    /// Whether something there is to look otherwise than before.
    pub(super) are_changed: bool,
}

impl Subject {
    pub(super) fn insert(&mut self, key: &OutputKey, unfinished: &Unfinished) {
        if unfinished.trouble.is_some() {
            self.troubled.insert(key.clone());
        } else {
            let count = self.pending.entry(place(key)).or_default();
            count.all += 1;
            count.changed += usize::from(unfinished.is_changed);
        }
    }

    pub(super) fn remove(&mut self, key: &OutputKey, unfinished: &Unfinished) {
        let place = place(key);
        if unfinished.trouble.is_some() {
            self.troubled.remove(key);
        } else if let Some(count) = self.pending.get_mut(&place) {
            count.all -= 1;
            count.changed -= usize::from(unfinished.is_changed);
            if count.all == 0 {
                self.pending.remove(&place);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.troubled.is_empty()
    }

    pub(super) fn waits_in(&self, place: &Place) -> bool {
        self.pending.contains_key(place)
    }

    /// Whether something is to look otherwise there.
    pub(super) fn is_changed_in(&self, place: &Place) -> bool {
        let count = self.pending.get(place);
        count.is_some_and(|count| count.changed > 0)
    }

    pub(super) fn waits_for(&self, cluster: &str) -> bool {
        let mut places = self.pending.keys();
        places.any(|(in_cluster, _)| **in_cluster == *cluster)
    }

    /// The clusters of which `is_so` that it waits for.
    pub(super) fn clusters(&self, is_so: impl Fn(&str) -> bool) -> Awaited<'_> {
        let mut awaited = Awaited {
            names: Vec::new(),
            are_changed: false,
        };
        for ((cluster, _), count) in &self.pending {
            let is_listed = awaited.names.last() == Some(&&**cluster);
            if is_listed || is_so(cluster) {
                awaited.are_changed |= count.changed > 0;
                if !is_listed {
                    awaited.names.push(cluster);
                }
            }
        }
        awaited
    }

    /// The first trouble of a kind that something waits for, and whether that is to look otherwise.
    pub(super) fn blind<'a>(
        &self,
        trouble: impl Fn(&Place) -> Option<&'a Trouble>,
    ) -> Option<(&'a Trouble, bool)> {
        let mut pending = self.pending.iter();
        pending.find_map(|(place, count)| Some((trouble(place)?, count.changed > 0)))
    }

    /// What is wrong, and why above all; none where nothing is.
    pub(super) fn troubles<'a>(
        &self,
        trouble: impl Fn(&OutputKey) -> Option<&'a Trouble>,
    ) -> Option<(Reason, String)> {
        let mut worst: Vec<(&OutputKey, &Trouble)> = Vec::new();
        for key in &self.troubled {
            let Some(trouble) = trouble(key) else {
                continue;
            };
            let at = worst.partition_point(|(_, it)| it.rank() <= trouble.rank());
            if at < MAX_TOLD {
                worst.insert(at, (key, trouble));
                worst.truncate(MAX_TOLD);
            }
        }
        let (_, first) = worst.first()?;
        let told = worst.iter().map(|(key, it)| format!("{key}: {}", it.text));
        let mut message = told.collect::<Vec<_>>().join("; ");
        if let Some(more @ 1..) = self.troubled.len().checked_sub(worst.len()) {
            write!(message, "; and {more} more").expect("writing to a String does not fail");
        }
        Some((first.reason, message))
    }

    /// How much is pending, by cluster.
    pub(super) fn pending(&self) -> String {
        let mut counts: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for ((cluster, _), count) in &self.pending {
            *counts.entry(cluster).or_default() += count.all;
        }
        let counts = counts.iter();
        let told = counts.map(|(cluster, count)| format!("{count} in {cluster}"));
        told.collect::<Vec<_>>().join(", ")
    }
}
