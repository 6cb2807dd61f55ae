//! `MeshConfig`: the part of Istio's mesh configuration that discovery reads.
//!
//! Istio reads this YAML leniently (unquoted booleans and numbers where it wants strings), so
//! every scalar is a [`Lenient`].

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// What ConfigMap `istio`, key `mesh`, says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MeshConfig {
    /// Trust domain of the mesh's identities; absent means `cluster.local`.
    pub trust_domain: Option<Lenient>,
    /// Defaults of all proxies.
    pub default_config: Option<ProxyConfig>,
}

/// Proxy defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyConfig {
    /// Metadata that every proxy announces, and its environment.
    pub proxy_metadata: Option<BTreeMap<String, Option<Lenient>>>,
}

/// A scalar read as the text that stands for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lenient(pub String);

impl<'de> Deserialize<'de> for Lenient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Scalar {
            Bool(bool),
            Int(i64),
            Float(f64),
            Text(String),
        }
        Ok(Self(match Scalar::deserialize(deserializer)? {
            Scalar::Bool(value) => value.to_string(),
            Scalar::Int(value) => value.to_string(),
            Scalar::Float(value) => value.to_string(),
            Scalar::Text(value) => value,
        }))
    }
}
