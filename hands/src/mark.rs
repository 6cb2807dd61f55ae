//! The labels and annotations by which the objects of a certificate are known.
//!
//! An object of one of our names without [`is_ours`] belongs to somebody else and is left alone.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use ferromesh_crds::meta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Annotation on `cacerts`: the name of the `IssuedCertificate` that it was written for.
pub const OWNER: &str = "certificates.mesh.gloo.solo.io/certificate";
/// Annotation on a key, its request and `cacerts`: the [`Generation`].
pub const GENERATION: &str = "certificates.mesh.gloo.solo.io/generation";
/// Annotation on a key and on `cacerts`: a digest of the [terms](crate::terms::Terms).
pub const TERMS: &str = "certificates.mesh.gloo.solo.io/terms";
/// Annotation on `cacerts`: a digest of its certificates, by which an edit is noticed.
pub const CONTENT: &str = "certificates.mesh.gloo.solo.io/content";
/// Annotation on `cacerts`: the identity of the root that its signer chains to.
pub const ROOT: &str = "certificates.mesh.gloo.solo.io/root";
/// Annotation on `cacerts`: since when it chains to that root, where that is later than its creation.
pub const ROOT_SINCE: &str = "certificates.mesh.gloo.solo.io/root-since";

/// Counts the keys of one certificate, from 1. Each has a key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// The first one.
    pub const FIRST: Self = Self(1);

    /// The one after `latest`, the first if there was none.
    pub fn after(latest: Option<Self>) -> Self {
        latest.map_or(Self::FIRST, |latest| Self(latest.0.saturating_add(1)))
    }

    /// What `meta` says of it.
    pub fn of(meta: &ObjectMeta) -> Option<Self> {
        annotation(meta, GENERATION)?.parse().ok()
    }

    /// Its number.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is not a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a generation is a whole number from 1 on")]
pub struct NotAGeneration;

impl FromStr for Generation {
    type Err = NotAGeneration;

    fn from_str(text: &str) -> Result<Self, NotAGeneration> {
        match text.parse() {
            // Far beyond anything that counts honestly, and so that the next one always exists.
            Ok(number @ 1..=1_000_000_000) => Ok(Self(number)),
            _ => Err(NotAGeneration),
        }
    }
}

/// Which state of which object: a write that carries it changes that object in that state or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// `metadata.uid`.
    pub uid: Option<String>,
    /// `metadata.resourceVersion`.
    pub resource_version: Option<String>,
}

impl Version {
    /// The one of the object with this metadata.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self {
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
        }
    }

    /// Makes a write of an object with this metadata depend on it.
    pub fn require(&self, meta: &mut ObjectMeta) {
        meta.uid.clone_from(&self.uid);
        meta.resource_version.clone_from(&self.resource_version);
    }
}

/// The labels of everything that belongs to the certificates of `namespace`, as the compatible API has
/// them.
pub fn labels(namespace: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (
            meta::CERTIFICATES_AGENT_LABEL.to_owned(),
            namespace.to_owned(),
        ),
        (meta::CLUSTER_LABEL.to_owned(), String::new()),
    ])
}

/// Whether the labels say that the object belongs to the certificates of `namespace`.
pub fn is_ours(meta: &ObjectMeta, namespace: &str) -> bool {
    let label = meta
        .labels
        .as_ref()
        .and_then(|labels| labels.get(meta::CERTIFICATES_AGENT_LABEL));
    label.is_some_and(|label| label == namespace)
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}

/// Who wrote an object last, besides `ourselves`.
pub(crate) fn other_writer(meta: &ObjectMeta, ourselves: &str) -> Option<String> {
    let entries = meta.managed_fields.as_deref().unwrap_or_default();
    let others = entries
        .iter()
        .filter(|entry| entry.manager.as_deref().is_some_and(|it| it != ourselves));
    let last = others.max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    last.and_then(|entry| entry.manager.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_count_from_one_and_there_is_always_a_next() {
        assert_eq!(Generation::after(None), Generation::FIRST);
        assert_eq!(Generation::after(Some(Generation::FIRST)).get(), 2);
        for text in ["0", "-1", "x", "", "18446744073709551615"] {
            assert_eq!(text.parse::<Generation>(), Err(NotAGeneration), "{text}");
        }
    }

    #[test]
    fn objects_of_another_namespace_are_not_ours() {
        let meta = ObjectMeta {
            labels: Some(labels("gloo-mesh")),
            ..ObjectMeta::default()
        };
        assert!(is_ours(&meta, "gloo-mesh"));
        assert!(!is_ours(&meta, "other"));
        assert!(!is_ours(&ObjectMeta::default(), ""));
    }
}
