//! Labels and annotations in the form that is compared most: a sorted, shared list.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Pairs of strings, sorted by key. Cloning shares them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self
            .0
            .binary_search_by(|(name, _)| name.as_ref().cmp(key))
            .ok()?;
        Some(&self.0[at].1)
    }

    /// Whether every pair of `other` is here too.
    pub fn contain(&self, other: &Self) -> bool {
        other
            .0
            .iter()
            .all(|(key, value)| self.get(key) == Some(value))
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All pairs in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    /// The pairs as the map that Kubernetes objects carry.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }
}

impl Default for Labels {
    fn default() -> Self {
        static EMPTY: std::sync::LazyLock<Labels> =
            std::sync::LazyLock::new(|| Labels(Arc::from([])));
        EMPTY.clone()
    }
}

impl From<&BTreeMap<String, String>> for Labels {
    fn from(map: &BTreeMap<String, String>) -> Self {
        if map.is_empty() {
            return Self::default();
        }
        map.iter()
            .map(|(key, value)| (Arc::from(key.as_str()), Arc::from(value.as_str())))
            .collect()
    }
}

impl From<Option<&BTreeMap<String, String>>> for Labels {
    fn from(map: Option<&BTreeMap<String, String>>) -> Self {
        map.map(Self::from).unwrap_or_default()
    }
}

impl FromIterator<(Arc<str>, Arc<str>)> for Labels {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Arc<str>)>>(pairs: I) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_by(|(left, _), (right, _)| left.cmp(right));
        pairs.dedup_by(|(left, _), (right, _)| left == right);
        Self(pairs.into())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs
            .iter()
            .map(|(key, value)| (Arc::from(*key), Arc::from(*value)))
            .collect()
    }

    #[test]
    fn labels_contain_each_of_their_subsets_and_nothing_else() {
        let all = labels(&[("version", "v1"), ("app", "reviews")]);
        assert!(all.contain(&labels(&[])));
        assert!(all.contain(&labels(&[("app", "reviews")])));
        assert!(!all.contain(&labels(&[("app", "ratings")])));
        assert!(!all.contain(&labels(&[("app", "reviews"), ("tier", "1")])));
    }
}
