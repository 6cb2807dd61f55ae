//! Persistent ordered maps and sets: the only place that names the tree behind them.
//!
//! A clone is a pointer copy and shares everything with its origin; a change copies the path to
//! what it changes and nothing else. That is what lets a reader hold a state for as long as it
//! likes, and what makes a trial on a copy cost no more than the trial itself.

mod tree;

use std::borrow::Borrow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use self::tree::Tree;

/// A persistent map, iterated in key order.
#[derive(Clone)]
pub struct Table<K: Ord, V>(Tree<K, V>);

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    /// An empty table.
    pub fn new() -> Self {
        Self(Tree::new())
    }

    /// What stands under `key`.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    /// Whether something stands under `key`.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.get(key).is_some()
    }

    /// Puts `value` under `key`, in place of what was there.
    pub fn insert(&mut self, key: K, value: V) {
        self.0.insert(key, value);
    }

    /// Takes away what stands under `key`; says whether there was something.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }

    /// Changes what stands under `key` in place.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// All entries in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter()
    }

    /// All keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Entries from `key` on, in order.
    pub fn starting_at<'a>(
        &'a self,
        key: &K,
    ) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        self.0.starting_at(key)
    }
}

impl<K: Ord + Clone, V: Clone> Default for Table<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone + fmt::Debug, V: Clone + fmt::Debug> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> PartialEq for Table<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

/// A persistent set, iterated in order.
#[derive(Clone)]
pub struct Set<T: Ord>(Tree<T, ()>);

impl<T: Ord + Clone> Set<T> {
    /// An empty set.
    pub fn new() -> Self {
        Self(Tree::new())
    }

    /// Adds `item`.
    pub fn insert(&mut self, item: T) {
        self.0.insert(item, ());
    }

    /// Takes `item` out; says whether it was in.
    pub fn remove<Q: Ord + ?Sized>(&mut self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.remove(item)
    }

    /// Whether `item` is in.
    pub fn contains<Q: Ord + ?Sized>(&self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.get(item).is_some()
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// The smallest item.
    pub fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    /// All items in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(item, ())| item)
    }
}

impl<T: Ord + Clone> Default for Set<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Ord + Clone + fmt::Debug> fmt::Debug for Set<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<T: Ord + Clone> PartialEq for Set<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

/// What stands for a key in an index of very many, in eight bytes. Others may have the same: whatever is found under
/// it is looked at.
pub(crate) type Number = u64;

/// The number of a key.
pub(crate) fn number(key: &impl Hash) -> Number {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Which values belong to which keys, one entry for each pair: for many keys with few values each. Both are
/// ordered.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation<K: Ord + Clone, V: Ord + Clone>(Set<(K, Option<V>)>);

impl<K: Ord + Clone, V: Ord + Clone> Relation<K, V> {
    /// Puts `value` under `key`.
    pub fn insert(&mut self, key: &K, value: V) {
        // None is where a key's values begin, and is in no entry.
        self.0.insert((key.clone(), Some(value)));
    }

    /// Takes `value` from under `key`.
    pub fn remove(&mut self, key: &K, value: &V) {
        self.0.remove(&(key.clone(), Some(value.clone())));
    }

    /// The values under `key`, in order.
    pub fn get(&self, key: K) -> impl Iterator<Item = &V> + use<'_, K, V> {
        let from = (key.clone(), None);
        let entries = self.0.0.starting_at(&from);
        entries
            .take_while(move |((other, _), ())| *other == key)
            .filter_map(|((_, value), ())| value.as_ref())
    }

    /// The values under that one of `keys` that has the fewest; none where there are no keys.
    pub fn fewest(&self, keys: Vec<K>) -> Option<impl Iterator<Item = &V> + use<'_, K, V>> {
        let mut heads: Vec<_> = keys.iter().map(|key| self.get(key.clone())).collect();
        // Whoever ends first has the fewest: of a common label no more is looked at than of a rare one.
        while !heads.is_empty() {
            if let Some(ended) = heads.iter_mut().position(|values| values.next().is_none()) {
                return keys.into_iter().nth(ended).map(|key| self.get(key));
            }
        }
        None
    }
}

impl<K: Ord + Clone, V: Ord + Clone> Default for Relation<K, V> {
    fn default() -> Self {
        Self(Set::new())
    }
}

/// Many values under one key, both ordered, for few keys with many values each; a key without values is not
/// kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Multimap<K: Ord + Clone, V: Ord + Clone>(Table<K, Set<V>>);

impl<K: Ord + Clone, V: Ord + Clone> Multimap<K, V> {
    /// Puts `value` under `key`.
    pub fn insert(&mut self, key: &K, value: V) {
        if let Some(set) = self.0.get_mut(key) {
            set.insert(value);
        } else {
            let mut set = Set::new();
            set.insert(value);
            self.0.insert(key.clone(), set);
        }
    }

    /// Takes `value` from under `key`.
    pub fn remove(&mut self, key: &K, value: &V) {
        let Some(set) = self.0.get_mut(key) else {
            return;
        };
        set.remove(value);
        if set.is_empty() {
            self.0.remove(key);
        }
    }

    /// The values under `key`.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&Set<V>>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }
}

impl<K: Ord + Clone, V: Ord + Clone> Default for Multimap<K, V> {
    fn default() -> Self {
        Self(Table::new())
    }
}
