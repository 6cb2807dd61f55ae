//! Labels and annotations in the form that is compared most: a sorted, shared list.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Ends each string within a text. Labels and annotations of Kubernetes have no such character; where a
/// file has one, it is read as one that cannot be displayed.
const END: char = '\0';

/// Pairs of strings, sorted by key. Cloning shares them.
///
/// One text holds them all: there are very many, most with two or three short pairs, and going through
/// a text costs less than following pointers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<str>);

impl Labels {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut pairs = self.iter();
        let (_, value) = pairs.find(|(name, _)| *name == key)?;
        Some(value)
    }

    /// Whether every pair of `other` is here too.
    pub fn contain(&self, other: &Self) -> bool {
        // Both are sorted: one walk along both.
        let mut here = self.iter();
        other.iter().all(|wanted| here.any(|pair| pair == wanted))
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// All pairs in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut strings = self.0.split_terminator(END);
        std::iter::from_fn(move || strings.next().zip(strings.next()))
    }

    /// The pairs as the map that Kubernetes objects carry.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    /// These, held in one place with others that say the same.
    #[must_use]
    pub(crate) fn shared_with(self, others: &Self) -> Self {
        if self == *others {
            return others.clone();
        }
        self
    }

    fn of_sorted<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut text = String::new();
        for string in pairs.flat_map(|(key, value)| [key, value]) {
            if string.contains(END) {
                text.push_str(&string.replace(END, "\u{fffd}"));
            } else {
                text.push_str(string);
            }
            text.push(END);
        }
        if text.is_empty() {
            return Self::default();
        }
        Self(text.into())
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
        static EMPTY: LazyLock<Labels> = LazyLock::new(|| Labels(Arc::from("")));
        EMPTY.clone()
    }
}

impl From<&BTreeMap<String, String>> for Labels {
    fn from(map: &BTreeMap<String, String>) -> Self {
        Self::of_sorted(map.iter().map(|(key, value)| (&**key, &**value)))
    }
}

impl From<Option<&BTreeMap<String, String>>> for Labels {
    fn from(map: Option<&BTreeMap<String, String>>) -> Self {
        map.map(Self::from).unwrap_or_default()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Labels {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_by_key(|(key, _)| *key);
        pairs.dedup_by_key(|(key, _)| *key);
        Self::of_sorted(pairs.into_iter())
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
        pairs.iter().copied().collect()
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
    fn labels_say_what_they_were_made_of() {
        let all = labels(&[("version", "v1"), ("app", "reviews"), ("empty", "")]);
        assert_eq!(all.get("app"), Some("reviews"));
        assert_eq!(all.get("empty"), Some(""));
        assert_eq!(all.get("v1"), None);
        let pairs: Vec<_> = all.iter().collect();
        assert_eq!(
            pairs,
            [("app", "reviews"), ("empty", ""), ("version", "v1")]
        );
        assert_eq!(all.len(), 3);
        assert_eq!(Labels::from(&all.to_map()), all);
        assert!(Labels::default().is_empty());
        assert_eq!(labels(&[]), Labels::default());
    }

    #[test]
    fn a_string_that_holds_what_ends_strings_ends_none() {
        let odd = labels(&[("a", "b\0c"), ("d", "e")]);
        assert_eq!(odd.len(), 2);
        assert_eq!(odd.get("d"), Some("e"));
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
