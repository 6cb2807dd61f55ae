//! How things that we make are called, and the addresses that we give them.
//!
//! Other controllers and people look our objects up by these names, so the formulas are part of
//! the compatible API: they must not change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use md5::{Digest, Md5};

/// Longest name that sanitising lets through, a DNS label's length (RFC 1123).
const MAX_NAME: usize = 63;
const HASH_KEPT: usize = 31;

/// Makes a name out of any text: separators become `-`, quotes and brackets go, what is too long
/// keeps its first 31 bytes and gets the start of the MD5 of the whole, letters become small.
///
/// Not injective: `a-b` in `c` and `a` in `b-c` meet. Whoever needs a name to be one object's
/// own must look for the other.
pub fn sanitize(text: &str) -> String {
    let mut name: String = text
        .chars()
        .filter(|c| !matches!(c, '[' | ']' | '\n' | '"' | '\''))
        .map(|c| {
            if matches!(c, '*' | '/' | '.' | ':' | '_' | ' ') {
                '-'
            } else {
                c
            }
        })
        .collect();
    if name.len() > MAX_NAME {
        let hash = Md5::digest(name.as_bytes());
        let head = name.floor_char_boundary(HASH_KEPT);
        name.truncate(head);
        name.push('-');
        for byte in hash {
            write!(name, "{byte:02x}").expect("writing to a String does not fail");
        }
        name.truncate(MAX_NAME);
    }
    name.make_ascii_lowercase();
    name
}

/// The name of a discovery object: the source object's name, namespace and cluster, sanitised.
pub fn discovered(name: &str, namespace: &str, cluster: &str) -> String {
    sanitize(&[name, namespace, cluster].join("-"))
}

/// The name of the subset that a set of labels stands for, empty for no labels.
pub fn subset(labels: &BTreeMap<String, String>) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let mut parts: Vec<_> = labels
        .iter()
        .map(|(key, value)| format!("{key}-{value}"))
        .collect();
    parts.sort_unstable();
    // An empty value would leave a hyphen at the end, and Istio refuses such a name.
    sanitize(&parts.join("-")).trim_end_matches('-').to_owned()
}

/// The name under which pods of its own cluster call a service.
pub fn local_fqdn(service: &str, namespace: &str, domain: &str) -> String {
    [service, namespace, "svc", domain].join(".")
}

/// The name under which other clusters call a service.
pub fn federated_hostname(service: &str, namespace: &str, cluster: &str, suffix: &str) -> String {
    [service, namespace, "svc", cluster, suffix].join(".")
}

/// Name of a federated service's `DestinationRule` and `VirtualService` in a client cluster.
pub fn federated_object(service: &str, namespace: &str, cluster: &str) -> String {
    [service, namespace, cluster].join("-")
}

/// The virtual address of a federated service, in 240.0.0.0/4.
///
/// FNV-1 over the concatenated names; its bytes, the low one first, are the octets. `attempt` is
/// 0 for the address that the formula gives; where that belongs to another service already,
/// higher attempts give others.
pub fn virtual_ip(service: &str, namespace: &str, cluster: &str, attempt: u32) -> Ipv4Addr {
    let mut hash = Fnv1::new();
    for part in [service, namespace, cluster, "kube-service"] {
        hash.write(part.as_bytes());
    }
    if attempt > 0 {
        hash.write(attempt.to_string().as_bytes());
    }
    let [first, second, third, fourth] = hash.0.to_le_bytes();
    Ipv4Addr::new(first | 0xf0, second, third, fourth)
}

/// 32-bit FNV-1: multiply, then xor (FNV-1a does it the other way round).
struct Fnv1(u32);

impl Fnv1 {
    const fn new() -> Self {
        Self(0x811c_9dc5)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(0x0100_0193) ^ u32::from(*byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sanitised_as_published() {
        for (text, name) in [
            ("1.1.1.1", "1-1-1-1"),
            ("version-v1.2_Beta", "version-v1-2-beta"),
            ("bb*b", "bb-b"),
            ("bb[b", "bbb"),
            (
                "a-very-long-service-name-for-testing-in-some-long-namespace-name-cluster-1",
                "a-very-long-service-name-for-te-41e4053025e10a41b371a5e15637ef0",
            ),
            (
                "a-very-long-service-name-for-the-checkout-team-checkout-namespace-production-cluster-eu-west-1",
                "a-very-long-service-name-for-th-2bea7b59d3c3bcebf780b91f1f81c0d",
            ),
        ] {
            assert_eq!(sanitize(text), name);
        }
        assert_eq!(
            sanitize(&"a".repeat(300)),
            format!("{}-4e5475d125a33c6190718e75adc1b70", "a".repeat(31))
        );
    }

    #[test]
    fn virtual_addresses_follow_the_published_vectors() {
        for (service, namespace, cluster, address) in [
            ("some-svc", "some-ns", "cluster", "243.21.204.125"),
            ("reviews", "bookinfo", "cluster-1", "244.80.133.147"),
            ("reviews", "bookinfo", "cluster-2", "255.51.210.11"),
            ("ratings", "bookinfo", "cluster-2", "248.81.13.71"),
            ("petstore", "default", "cluster-1", "255.37.55.186"),
            ("a", "bc", "d", "252.138.131.168"),
            ("ab", "c", "d", "252.138.131.168"),
        ] {
            assert_eq!(
                virtual_ip(service, namespace, cluster, 0).to_string(),
                address
            );
        }
        assert_ne!(virtual_ip("ab", "c", "d", 1), virtual_ip("ab", "c", "d", 0));
    }

    #[test]
    fn a_subset_is_named_after_its_sorted_labels() {
        let labels = [("version", "v1"), ("foo", "bar")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        assert_eq!(subset(&labels), "foo-bar-version-v1");
        assert_eq!(subset(&BTreeMap::new()), "");
        let flag = BTreeMap::from([("canary".to_owned(), String::new())]);
        assert_eq!(subset(&flag), "canary");
    }
}
