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
        let mut found = self.proposed(key).map(|(_, found)| found);
        found.find(|found| found.key() == key)
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
        if before == now {
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

    /// Works out again what there is under a name. `speaks_for` says for which clusters discovery
    /// is complete.
    pub(crate) fn settle(
        &mut self,
        key: &Key,
        stored: Option<&Arc<T>>,
        speaks_for: impl Fn(&str) -> bool,
    ) -> Option<Shift<T>> {
        let after = match (self.found(key), stored) {
            (Some(found), Some(stored)) if stored.generation() != found.generation() => {
                let now = found.with_generation(stored.generation());
                // Held once, where it is stored as it was found.
                Some(if now == **stored {
                    Arc::clone(stored)
                } else {
                    Arc::new(now)
                })
            }
            (Some(found), _) => Some(Arc::clone(found)),
            (None, Some(stored)) if !speaks_for(stored.discovered_in()) => Some(Arc::clone(stored)),
            (None, _) => None,
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
