//! What an object is called across the whole fleet.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The name of one object of a kind: `<name>.<namespace>.<cluster>`.
///
/// Objects of the management cluster have an empty cluster, so their key ends in a dot. The
/// order of keys is the byte order of that string, and it is the order in which the compatible
/// API lists, judges and prefers objects: `foo-bar.ns.` sorts before `foo.ns.`. For people the
/// dot at the end is left out.
///
/// Neither a namespace nor a cluster name contains a dot, so the string takes apart again in one
/// way only. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    text: Arc<str>,
    name_end: u32,
    namespace_end: u32,
}

impl Key {
    /// Names an object of a cluster; `cluster` is empty for the management cluster.
    pub fn new(name: &str, namespace: &str, cluster: &str) -> Self {
        let mut text = String::with_capacity(name.len() + namespace.len() + cluster.len() + 2);
        text.push_str(name);
        text.push('.');
        text.push_str(namespace);
        text.push('.');
        text.push_str(cluster);
        Self {
            name_end: offset(name.len()),
            namespace_end: offset(name.len() + 1 + namespace.len()),
            text: text.into(),
        }
    }

    /// Names an object of the management cluster.
    pub fn local(name: &str, namespace: &str) -> Self {
        Self::new(name, namespace, "")
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        &self.text[..position(self.name_end)]
    }

    /// Its namespace, empty for objects that have none.
    pub fn namespace(&self) -> &str {
        &self.text[position(self.name_end) + 1..position(self.namespace_end)]
    }

    /// Its cluster, empty for the management cluster.
    pub fn cluster(&self) -> &str {
        &self.text[position(self.namespace_end) + 1..]
    }

    /// The whole key as text, as statuses list it.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Half as wide as it could be: there are keys everywhere.
fn offset(position: usize) -> u32 {
    u32::try_from(position).expect("no document is larger than four gigabytes")
}

fn position(offset: u32) -> usize {
    usize::try_from(offset).expect("there are no platforms of sixteen bits")
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        // What is found is mostly the very key that is looked for, and its text need not be fetched.
        if Arc::ptr_eq(&self.text, &other.text) {
            return Ordering::Equal;
        }
        self.text
            .cmp(&other.text)
            .then_with(|| self.namespace_end.cmp(&other.namespace_end))
            .then_with(|| self.name_end.cmp(&other.name_end))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end_matches('.'))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_takes_apart_into_what_it_was_made_of() {
        let key = Key::new("a.b", "ns", "c-1");
        assert_eq!(
            (key.name(), key.namespace(), key.cluster()),
            ("a.b", "ns", "c-1")
        );
        assert_eq!(Key::local("m", "gloo-mesh").as_str(), "m.gloo-mesh.");
    }

    #[test]
    fn people_are_told_no_cluster_where_there_is_none() {
        assert_eq!(Key::local("m", "gloo-mesh").to_string(), "m.gloo-mesh");
        assert_eq!(Key::new("a", "ns", "c-1").to_string(), "a.ns.c-1");
        assert_eq!(Key::local("ns", "").to_string(), "ns");
    }

    #[test]
    fn keys_sort_by_the_bytes_of_their_text() {
        let mut keys = [
            Key::local("tp-2", "ns"),
            Key::local("foo", "ns"),
            Key::local("tp-10", "ns"),
            Key::local("foo-bar", "ns"),
        ];
        keys.sort();
        assert_eq!(
            keys.each_ref().map(Key::as_str),
            ["foo-bar.ns.", "foo.ns.", "tp-10.ns.", "tp-2.ns."]
        );
    }
}
