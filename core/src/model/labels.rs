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

/// The first label that no pod can have, as `key=value`; none where each can be (Kubernetes: a key
/// is a name after an optional DNS prefix and a slash, a value a name or empty, and a name has at
/// most 63 letters, digits, `-`, `_` and `.`, an alphanumeric one at either end). Istio refuses an
/// object that asks for such a label.
pub(crate) fn impossible(labels: &BTreeMap<String, String>) -> Option<String> {
    const MAX_NAME: usize = 63;
    const MAX_PREFIX: usize = 253;
    let is_name = |text: &str| {
        let letters = text.as_bytes();
        text.len() <= MAX_NAME
            && letters.first().is_some_and(u8::is_ascii_alphanumeric)
            && letters.last().is_some_and(u8::is_ascii_alphanumeric)
            && letters
                .iter()
                .all(|letter| letter.is_ascii_alphanumeric() || b"-_.".contains(letter))
    };
    let is_key = |key: &str| match key.split_once('/') {
        Some((prefix, name)) => {
            prefix.len() <= MAX_PREFIX
                && prefix
                    .split('.')
                    .all(|label| is_name(label) && !label.contains('_'))
                && is_name(name)
        }
        None => is_name(key),
    };
    labels
        .iter()
        .find(|(key, value)| !is_key(key) || !(value.is_empty() || is_name(value)))
        .map(|(key, value)| format!("{key}={value}"))
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

    #[test]
    fn labels_that_no_pod_can_have_are_found() {
        let found = |key: &str, value: &str| {
            impossible(&BTreeMap::from([(key.to_owned(), value.to_owned())])).is_some()
        };
        for (key, value) in [
            ("app", "reviews"),
            ("app.kubernetes.io/name", "reviews"),
            ("version", "v1.2_Beta"),
            ("canary", ""),
        ] {
            assert!(!found(key, value), "{key}={value}");
        }
        for (key, value) in [
            ("", "a"),
            ("a b", "c"),
            ("-app", "reviews"),
            ("/name", "a"),
            ("a/b/c", "d"),
            ("example_com/name", "a"),
            ("app", "two words"),
            ("app", "v1-"),
            ("app", &"a".repeat(64)),
        ] {
            assert!(found(key, value), "{key}={value}");
        }
    }
}
