//! What stands in the cluster and is ours, and what was wanted when it was last asked for.
//!
//! Per object two digests and what preconditions need; neither specs nor objects.

use std::collections::BTreeMap;

use ferromesh_runtime::fingerprint::Fingerprint;

use crate::{drift::Standing, object::ObjectId};

/// Objects that stand or are wanted.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    entries: BTreeMap<ObjectId, Entry>,
    /// How many stand.
    owned: usize,
}

#[derive(Debug, Default)]
struct Entry {
    standing: Option<Standing>,
    /// The relist in which it was seen last.
    seen_in: u64,
    wanted: Option<Wanted>,
    rank: u8,
}

/// What was wanted when it was last asked for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    digest: Fingerprint,
    /// What our own write of it came back as.
    stored: Option<Fingerprint>,
}

/// What a change of what stands means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is as it should be, or was known.
    None,
    /// It was wanted, and does not stand as it should.
    Drift,
    /// It is not known to be wanted, and stands.
    Unknown,
}

impl Inventory {
    /// How many objects of ours stand.
    pub(crate) fn owned(&self) -> usize {
        self.owned
    }

    /// What stands under this name.
    pub(crate) fn standing(&self, id: &ObjectId) -> Option<&Standing> {
        self.entries.get(id)?.standing.as_ref()
    }

    /// The rank that it had when it was last wanted.
    pub(crate) fn rank(&self, id: &ObjectId) -> u8 {
        self.entries.get(id).map_or(0, |entry| entry.rank)
    }

    /// Objects that stand and are not known to be wanted.
    pub(crate) fn unwanted(&self) -> impl Iterator<Item = &ObjectId> {
        let unwanted = |entry: &Entry| entry.standing.is_some() && entry.wanted.is_none();
        let entries = self
            .entries
            .iter()
            .filter(move |(_, entry)| unwanted(entry));
        entries.map(|(id, _)| id)
    }

    /// It is wanted. Tells whether it stands so.
    pub(crate) fn want(&mut self, id: &ObjectId, digest: Fingerprint, rank: u8) -> bool {
        let entry = self.entries.entry(id.clone()).or_default();
        entry.rank = rank;
        if entry.wanted.is_none_or(|wanted| wanted.digest != digest) {
            entry.wanted = Some(Wanted {
                digest,
                stored: None,
            });
        }
        entry.is_as_wanted()
    }

    /// It is not wanted, or nobody can tell. Tells whether it stands.
    pub(crate) fn unwant(&mut self, id: &ObjectId) -> bool {
        let Some(entry) = self.entries.get_mut(id) else {
            return false;
        };
        entry.wanted = None;
        if entry.standing.is_none() {
            self.entries.remove(id);
            return false;
        }
        true
    }

    /// The watch has shown it, in or after relist number `relist`.
    pub(crate) fn show(&mut self, id: &ObjectId, standing: Standing, relist: u64) -> Change {
        let entry = self.entries.entry(id.clone()).or_default();
        let is_first_of_relist = entry.seen_in != relist;
        entry.seen_in = relist;
        // Our own writes come back faster than the watch tells of what was before them. Of a relist that has
        // begun since then what it shows counts: the API server may have gone back in time.
        if !is_first_of_relist
            && entry
                .standing
                .as_ref()
                .is_some_and(|known| standing.is_before(known))
        {
            return Change::None;
        }
        self.owned += usize::from(entry.standing.is_none());
        entry.standing = Some(standing);
        match entry.wanted {
            None => Change::Unknown,
            Some(_) if entry.is_as_wanted() => Change::None,
            Some(_) => Change::Drift,
        }
    }

    /// The watch has shown that it exists, and no more.
    pub(crate) fn touch(&mut self, id: &ObjectId, relist: u64) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.seen_in = relist;
        }
    }

    /// Our own write of what is wanted came back, after relist number `relist` has begun.
    pub(crate) fn store(&mut self, id: &ObjectId, standing: Standing, relist: u64) {
        let entry = self.entries.entry(id.clone()).or_default();
        entry.seen_in = relist;
        if let Some(wanted) = &mut entry.wanted {
            wanted.stored = Some(standing.digest);
        }
        // What the watch has shown meanwhile may be newer.
        if entry
            .standing
            .as_ref()
            .is_some_and(|known| standing.is_before(known))
        {
            return;
        }
        self.owned += usize::from(entry.standing.is_none());
        entry.standing = Some(standing);
    }

    /// It has been deleted; that it is gone is for the watch to say.
    pub(crate) fn terminate(&mut self, id: &ObjectId) {
        let standing = self
            .entries
            .get_mut(id)
            .and_then(|entry| entry.standing.as_mut());
        if let Some(standing) = standing {
            standing.is_terminating = true;
        }
    }

    /// It does not stand, or is not ours, any more.
    pub(crate) fn vanish(&mut self, id: &ObjectId) -> Change {
        let Some(entry) = self.entries.get_mut(id) else {
            return Change::None;
        };
        self.owned -= usize::from(entry.standing.take().is_some());
        if entry.wanted.is_some() {
            return Change::Drift;
        }
        self.entries.remove(id);
        Change::None
    }

    /// Those of which `is_of` is true and that did not come up in relist number `relist`.
    pub(crate) fn not_seen_in(
        &self,
        relist: u64,
        is_of: impl Fn(&ObjectId) -> bool,
    ) -> Vec<ObjectId> {
        let gone = self
            .entries
            .iter()
            .filter(|(id, entry)| entry.standing.is_some() && entry.seen_in < relist && is_of(id));
        gone.map(|(id, _)| id.clone()).collect()
    }
}

impl Entry {
    fn is_as_wanted(&self) -> bool {
        let (Some(standing), Some(wanted)) = (&self.standing, &self.wanted) else {
            return false;
        };
        standing.digest == wanted.digest || Some(standing.digest) == wanted.stored
    }
}
