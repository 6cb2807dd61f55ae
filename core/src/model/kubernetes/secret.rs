//! Secrets that may hold a root of trust. No key ever comes in here.

use ferromesh_crds::meta::{ROOT_CERT_KEY, ROOT_KEY_KEY};
use k8s_openapi::api::core::v1;

use super::key;
use crate::diagnose::Finding;
use crate::key::Key;

/// A Secret, reduced to whether it could be a root of trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Name, namespace and cluster.
    pub key: Key,
    /// Whether it has a certificate where a root's is looked for.
    pub has_certificate: bool,
    /// Whether it has a key where a root's is looked for.
    pub has_key: bool,
    /// What is wrong with the certificate, as whoever read the Secret found.
    pub findings: Box<[Finding]>,
}

impl Secret {
    /// Keeps what matters of a Secret; what its bytes are worth is for the caller to add.
    pub fn parse(object: &v1::Secret, cluster: &str) -> Self {
        let has = |name: &str| {
            object
                .data
                .as_ref()
                .and_then(|data| data.get(name))
                .is_some_and(|data| !data.0.is_empty())
        };
        Self {
            key: key(&object.metadata, cluster),
            has_certificate: has(ROOT_CERT_KEY),
            has_key: has(ROOT_KEY_KEY),
            findings: Box::default(),
        }
    }
}
