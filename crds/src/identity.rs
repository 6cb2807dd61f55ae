//! The identity of a workload in a mesh.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::{NameError, Namespace, ObjectName, TrustDomain};

const SCHEME: &str = "spiffe://";

/// The SPIFFE ID that Istio gives the workloads of a `ServiceAccount`:
/// `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SpiffeId {
    /// Trust domain of the mesh.
    pub trust_domain: TrustDomain,
    /// Namespace of the `ServiceAccount`.
    pub namespace: Namespace,
    /// Name of the `ServiceAccount`.
    pub service_account: ObjectName,
}

/// Why a text is not the identity of a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpiffeIdError {
    /// It is not built like one.
    #[error("an identity has the form spiffe://<trust domain>/ns/<namespace>/sa/<service account>")]
    Form,
    /// A part of it is not a name.
    #[error("cannot read a part of an identity")]
    Part(#[from] NameError),
}

impl SpiffeId {
    /// The identity without its scheme, as Istio's authorization policies write it.
    pub fn principal(&self) -> impl fmt::Display {
        let Self {
            trust_domain,
            namespace,
            service_account,
        } = self;
        fmt::from_fn(move |f| write!(f, "{trust_domain}/ns/{namespace}/sa/{service_account}"))
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.principal())
    }
}

impl FromStr for SpiffeId {
    type Err = SpiffeIdError;

    fn from_str(text: &str) -> Result<Self, SpiffeIdError> {
        let principal = text.strip_prefix(SCHEME).ok_or(SpiffeIdError::Form)?;
        let parts: Vec<&str> = principal.splitn(6, '/').collect();
        let [trust_domain, "ns", namespace, "sa", service_account] = parts[..] else {
            return Err(SpiffeIdError::Form);
        };
        Ok(Self {
            trust_domain: trust_domain.parse()?,
            namespace: namespace.parse()?,
            service_account: service_account.parse()?,
        })
    }
}

impl TryFrom<String> for SpiffeId {
    type Error = SpiffeIdError;

    fn try_from(text: String) -> Result<Self, SpiffeIdError> {
        text.parse()
    }
}

impl From<SpiffeId> for String {
    fn from(id: SpiffeId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISTIOD: &str = "spiffe://cluster.local/ns/istio-system/sa/istiod-service-account";

    #[test]
    fn an_identity_prints_as_it_was_read() {
        let id: SpiffeId = ISTIOD.parse().unwrap();
        assert_eq!(id.namespace.as_str(), "istio-system");
        assert_eq!(id.to_string(), ISTIOD);
        assert_eq!(
            id.principal().to_string(),
            "cluster.local/ns/istio-system/sa/istiod-service-account"
        );
    }

    #[test]
    fn what_is_built_differently_is_refused() {
        for text in [
            "",
            "cluster.local/ns/a/sa/b",
            "spiffe://cluster.local/ns/a",
            "spiffe://cluster.local/ns/a/sa/b/c",
            "spiffe://cluster.local/sa/a/ns/b",
            "https://cluster.local/ns/a/sa/b",
        ] {
            assert_eq!(text.parse::<SpiffeId>(), Err(SpiffeIdError::Form), "{text}");
        }
    }

    #[test]
    fn a_part_that_is_not_a_name_is_refused() {
        for text in [
            "spiffe:///ns/a/sa/b",
            "spiffe://cluster.local:8080/ns/a/sa/b",
            "spiffe://cluster.local/ns/*/sa/b",
            "spiffe://cluster.local/ns/a/sa/b?c",
        ] {
            let error = text.parse::<SpiffeId>().unwrap_err();
            assert!(matches!(error, SpiffeIdError::Part(_)), "{text}: {error}");
        }
    }
}
