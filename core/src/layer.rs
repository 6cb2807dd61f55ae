//! What there is: found in a cluster now, or stored from when it was found last.
//!
//! Discovery speaks for a cluster once everything in it has been listed. Until then, and for
//! clusters that cannot be reached, the stored objects of an earlier discovery stand; what people
//! wrote themselves stands always.

use std::sync::Arc;

use crate::key::Key;
use crate::kinds::Kind;
use crate::model::{Destination, Mesh, Workload};
use crate::table::{Number, Relation, Table, number};

/// The object of a cluster that something was found as.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub key: Key,
}

/// What can be found and stored.
pub trait Found: PartialEq {
    /// Its name in the management cluster.
    fn key(&self) -> &Key;
    /// The cluster it was found in, empty for what people wrote.
    fn discovered_in(&self) -> &str;
    /// Generation of the stored object.
    fn generation(&self) -> i64;
    /// This with the generation of the stored object, which discovery does not know.
    #[must_use]
    fn with_generation(&self, generation: i64) -> Self;

    /// Whether another is the same but for the generation.
    fn is_like(&self, other: &Self) -> bool
    where
        Self: Sized,
    {
        if self.generation() == other.generation() {
            self == other
        } else {
            self.with_generation(other.generation()) == *other
        }
    }
}

macro_rules! found {
    ($($type:ty)*) => {
        $(impl Found for $type {
            fn key(&self) -> &Key {
                &self.key
            }

            fn discovered_in(&self) -> &str {
                &self.discovered_in
            }

            fn generation(&self) -> i64 {
                self.generation
            }

            fn with_generation(&self, generation: i64) -> Self {
                Self { generation, ..self.clone() }
            }
        })*
    };
}

found!(Mesh Workload Destination);

/// Whether the same was found, whatever is stored of it.
pub(crate) fn is_as_found<T: Found>(before: Option<&Arc<T>>, now: Option<&Arc<T>>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => before.is_like(now),
        (before, now) => before.is_none() && now.is_none(),
    }
}

/// One kind of what there is.
#[derive(Clone, Debug)]
pub struct Layer<T> {
    /// What was found, by what it was found as.
    found: Table<Source, Arc<T>>,
    /// What was found under a name. Names are not injective: the first by source has it.
    sources: Relation<Number, Source>,
    /// What there is.
    effective: Table<Key, Arc<T>>,
}

impl<T> Default for Layer<T> {
    fn default() -> Self {
        Self {
            found: Table::new(),
            sources: Relation::default(),
            effective: Table::new(),
        }
    }
}

/// What there was under a name, and what there is.
pub(crate) struct Shift<T> {
    pub(crate) before: Option<Arc<T>>,
    pub(crate) after: Option<Arc<T>>,
}

impl<T: Found> Layer<T> {
    /// What there is, by name.
    pub fn effective(&self) -> &Table<Key, Arc<T>> {
        &self.effective
    }

    /// What was found under a name.
    pub fn found(&self, key: &Key) -> Option<&Arc<T>> {
        self.named(key).map(|(_, found)| found)
    }

    /// What was found under a name, and what it was found as.
    fn named(&self, key: &Key) -> Option<(&Source, &Arc<T>)> {
        self.proposed(key).find(|(_, found)| found.key() == key)
    }

    /// What was found as `source`.
    pub fn found_as(&self, source: &Source) -> Option<&Arc<T>> {
        self.found.get(source)
    }

    /// What something was found as in a cluster.
    pub(crate) fn sources_in(&self, cluster: &str) -> Vec<Source> {
        self.found
            .keys()
            .filter(|source| source.key.cluster() == cluster)
            .cloned()
            .collect()
    }

    /// What may have been found under a name.
    fn proposed(&self, key: &Key) -> impl Iterator<Item = (&Source, &Arc<T>)> + use<'_, T> {
        let sources = self.sources.get(number(key));
        sources.filter_map(|source| Some((source, self.found.get(source)?)))
    }

    /// Objects that were found under a name; the first of them has it.
    pub fn sources_of<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = &'a Source> {
        let proposed = self.proposed(key);
        let named = proposed.filter(move |(_, found)| found.key() == key);
        named.map(|(source, _)| source)
    }

    /// Other objects that were found under a name that the first of them has.
    pub fn namesakes<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = &'a Source> {
        self.sources_of(key).skip(1)
    }

    /// Everything found, in the order of its names.
    pub fn all_found(&self) -> impl Iterator<Item = &Arc<T>> {
        self.effective.keys().filter_map(|key| self.found(key))
    }

    /// Says what is found as `source` now; returns the names for which that may change things.
    pub(crate) fn set_found(&mut self, source: &Source, now: Option<Arc<T>>) -> Vec<Key> {
        let before = self.found.get(source).cloned();
        if is_as_found(before.as_ref(), now.as_ref()) {
            return Vec::new();
        }
        let mut names = Vec::new();
        if let Some(before) = before {
            self.sources.remove(&number(before.key()), source);
            names.push(before.key().clone());
        }
        match now {
            Some(now) => {
                self.sources.insert(&number(now.key()), source.clone());
                if !names.contains(now.key()) {
                    names.push(now.key().clone());
                }
                self.found.insert(source.clone(), now);
            }
            None => {
                self.found.remove(source);
            }
        }
        names
    }

    /// Works out again what there is under a name. `is_told_gone` says whether what is stored and not found is
    /// gone: discovery is complete where it was found.
    pub(crate) fn settle(
        &mut self,
        key: &Key,
        stored: Option<&Arc<T>>,
        is_told_gone: bool,
    ) -> Option<Shift<T>> {
        let generation = stored.map_or(0, |stored| stored.generation());
        let after = match (self.named(key), stored) {
            (Some((_, found)), _) if found.generation() == generation => Some(Arc::clone(found)),
            (Some((source, found)), _) => {
                // What was found and what there is are one object.
                let (source, now) = (source.clone(), Arc::new(found.with_generation(generation)));
                self.found.insert(source, Arc::clone(&now));
                Some(now)
            }
            (None, stored) => stored.filter(|_| !is_told_gone).cloned(),
        };
        let before = self.effective.get(key).cloned();
        if before == after {
            return None;
        }
        match &after {
            Some(after) => self.effective.insert(key.clone(), Arc::clone(after)),
            None => {
                self.effective.remove(key);
            }
        }
        Some(Shift { before, after })
    }
}
