//! What has vanished, computed once for all consumers.

use std::{collections::BTreeSet, mem};

use kube::Resource;

use super::{NamespacedName, Observed};

/// Turns the sequence of a [pump](super::pump) into the keys that are gone.
///
/// It keeps a key per object. A consumer that has its own store of objects needs it all the same, unless
/// that store can tell what it held before a relist.
#[derive(Clone, Debug)]
pub struct Relist<Key> {
    known: BTreeSet<Key>,
    /// During a relist: what was known and has not come up in it yet.
    unseen: Option<BTreeSet<Key>>,
}

// === impl Relist ===

impl<Key> Default for Relist<Key> {
    fn default() -> Self {
        Self {
            known: BTreeSet::new(),
            unseen: None,
        }
    }
}

impl<Key: Clone + Ord> Relist<Key> {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A relist begins.
    pub fn start(&mut self) {
        self.unseen = Some(self.known.clone());
    }

    /// The object exists.
    pub fn insert(&mut self, key: Key) {
        if let Some(unseen) = &mut self.unseen {
            unseen.remove(&key);
        }
        self.known.insert(key);
    }

    /// The object is gone. Tells whether it was known.
    pub fn remove(&mut self, key: &Key) -> bool {
        if let Some(unseen) = &mut self.unseen {
            unseen.remove(key);
        }
        self.known.remove(key)
    }

    /// The relist is complete: what was known and has not come up in it is gone, and is returned in order.
    pub fn finish(&mut self) -> BTreeSet<Key> {
        let vanished = mem::take(&mut self.unseen).unwrap_or_default();
        for key in &vanished {
            self.known.remove(key);
        }
        vanished
    }

    /// What is known to exist.
    pub fn known(&self) -> &BTreeSet<Key> {
        &self.known
    }
}

impl Relist<NamespacedName> {
    /// Follows one observation and returns what is gone with it.
    ///
    /// `Deleted` yields its key if it was known; `Synced` yields what has vanished.
    pub fn follow<K: Resource>(&mut self, observed: &Observed<K>) -> BTreeSet<NamespacedName> {
        match observed {
            Observed::Started => self.start(),
            Observed::Present(object) | Observed::Applied(object) => {
                self.insert(NamespacedName::of(object));
            }
            Observed::Invalid(invalid) => self.insert(invalid.key.clone()),
            Observed::Deleted(key) => {
                if self.remove(key) {
                    return BTreeSet::from([key.clone()]);
                }
            }
            Observed::Synced => return self.finish(),
            Observed::Failed(_) | Observed::Recovered => {}
        }
        BTreeSet::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What an API server holds, seen through a pump: each round is a relist, which may break off some
    /// times before it is complete, and the changes after it.
    #[derive(Clone, Debug)]
    struct Round {
        broken: Vec<BTreeSet<u8>>,
        list: BTreeSet<u8>,
        changes: Vec<(bool, u8)>,
    }

    fn keys() -> impl Strategy<Value = BTreeSet<u8>> {
        prop::collection::btree_set(0..12_u8, 0..10)
    }

    fn rounds() -> impl Strategy<Value = Vec<Round>> {
        let broken = prop::collection::vec(keys(), 0..3);
        let changes = prop::collection::vec((any::<bool>(), 0..12_u8), 0..10);
        let round = (broken, keys(), changes);
        prop::collection::vec(
            round.prop_map(|(broken, list, changes)| Round {
                broken,
                list,
                changes,
            }),
            1..6,
        )
    }

    proptest! {
        /// A consumer that adds what it sees and removes what the tracker returns holds, after each
        /// relist and after each change, exactly what the API server holds.
        #[test]
        fn the_consumer_holds_what_the_api_server_holds(rounds in rounds()) {
            let mut relist = Relist::new();
            let mut held = BTreeSet::new();
            for Round { broken, list, changes } in rounds {
                for part in broken {
                    relist.start();
                    for key in part {
                        relist.insert(key);
                        held.insert(key);
                    }
                }
                relist.start();
                for key in &list {
                    relist.insert(*key);
                    held.insert(*key);
                }
                for key in relist.finish() {
                    prop_assert!(held.remove(&key), "{key} was never held");
                }
                prop_assert_eq!(&held, &list);

                let mut server = list;
                for (is_applied, key) in changes {
                    if is_applied {
                        server.insert(key);
                        relist.insert(key);
                        held.insert(key);
                    } else {
                        server.remove(&key);
                        prop_assert_eq!(relist.remove(&key), held.remove(&key));
                    }
                    prop_assert_eq!(&held, &server);
                }
                prop_assert_eq!(relist.known(), &held);
            }
        }
    }

    #[test]
    fn nothing_vanishes_before_the_relist_is_complete() {
        let mut relist = Relist::new();
        relist.start();
        relist.insert("a");
        assert!(relist.finish().is_empty());
        relist.start();
        assert_eq!(relist.known(), &BTreeSet::from(["a"]));
        relist.start();
        relist.insert("b");
        assert_eq!(relist.finish(), BTreeSet::from(["a"]));
    }
}
