//! What a step has changed so far.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::State;
use crate::delta::{Delta, Moved, StatusKey, StatusKind};
use crate::key::Key;
use crate::output::OutputKind;
use crate::record::Record;

/// A [`Delta`] that is being written.
///
/// A step comes by in the order of keys, so moves are put one after the other, and are put into order once. A
/// policy is touched by each destination that it selects: that it was is noted once.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// The state before.
    pub(super) before: State,
    /// Meshes whose outputs may differ.
    pub(super) meshes: BTreeSet<Key>,
    /// What was found, where that may differ.
    pub(super) found: BTreeSet<(OutputKind, Key)>,
    /// Whether an object of the management cluster has gone that nobody was seen to delete.
    pub(super) has_vanished: bool,
    moves: Vec<(Key, Moved)>,
    statuses: BTreeMap<StatusKind, BTreeSet<Key>>,
}

impl Draft {
    /// Nothing has changed yet.
    pub(super) fn new(before: State) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// The status of an object may differ.
    pub(super) fn touch_status(&mut self, kind: StatusKind, key: &Key) {
        let touched = self.statuses.entry(kind).or_default();
        if touched.last() != Some(key) {
            touched.insert(key.clone());
        }
    }

    /// Notes what a destination's record has become.
    pub(super) fn move_record(
        &mut self,
        key: &Key,
        before: Option<Arc<Record>>,
        after: Option<Arc<Record>>,
    ) {
        self.moves.push((key.clone(), Moved { before, after }));
    }

    /// What has changed, now that this is the state.
    pub(super) fn finish(self, after: State) -> Delta {
        let Self {
            before,
            meshes,
            found,
            has_vanished,
            mut moves,
            statuses,
        } = self;
        // One that was moved twice was at first what it was before the first time, and is what it is after the
        // second.
        moves.sort_by(|(key, _), (other, _)| key.cmp(other));
        moves.dedup_by(|(key, later), (first, moved)| {
            let is_same = key == first;
            if is_same {
                moved.after = later.after.take();
            }
            is_same
        });
        let statuses = statuses.into_iter().flat_map(|(kind, touched)| {
            touched.into_iter().map(move |key| StatusKey { kind, key })
        });
        Delta {
            before,
            after,
            destinations: moves.into_iter().collect(),
            meshes,
            found,
            statuses: statuses.collect(),
            has_vanished,
        }
    }
}
