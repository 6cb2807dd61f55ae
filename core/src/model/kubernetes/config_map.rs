//! ConfigMaps: how an Istio mesh is configured.
//!
//! The YAML is read here, once for each ConfigMap that comes in: what stands in a mesh's
//! configuration beside what discovery looks at is most of it, and changes nothing.

use std::collections::BTreeMap;

use ferromesh_istio::mesh_config::Lenient;
use ferromesh_istio::{MeshConfig, MeshNetworks};
use k8s_openapi::api::core::v1;
use serde::de::DeserializeOwned;
use serde_saphyr::{budget, options};

use super::key;
use crate::key::Key;

/// How many values of a mesh's configuration are read, aliases followed: some hundred times what a
/// large one has. What has more is refused before it holds everything up.
const MAX_VALUES: usize = 20_000;
/// What makes proxies answer DNS queries.
const DNS_CAPTURE: &str = "ISTIO_META_DNS_CAPTURE";

/// A ConfigMap: Istio's mesh configuration in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigMap {
    /// Name, namespace and cluster.
    pub key: Key,
    /// What stands under the key `mesh`.
    pub mesh: Mesh,
    /// What stands under the key `meshNetworks`: networks by the name that Istio knows a cluster by.
    /// Nothing where it cannot be read.
    pub networks: BTreeMap<String, String>,
}

/// A mesh's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mesh {
    /// There is none.
    Absent,
    /// There is one that cannot be read.
    Unreadable,
    /// What it says.
    Says {
        /// Trust domain of the mesh's identities, empty where it names none.
        trust_domain: String,
        /// Whether proxies answer DNS queries unless told otherwise.
        smart_dns: bool,
    },
}

impl ConfigMap {
    /// Keeps what matters of a ConfigMap.
    pub fn parse(object: &v1::ConfigMap, cluster: &str) -> Self {
        let text = |name| object.data.as_ref()?.get(name).map(String::as_str);
        Self {
            key: key(&object.metadata, cluster),
            mesh: match text("mesh").map(read::<MeshConfig>) {
                None => Mesh::Absent,
                Some(None) => Mesh::Unreadable,
                Some(Some(config)) => Mesh::from(config),
            },
            networks: text("meshNetworks")
                .and_then(read::<MeshNetworks>)
                .map(by_registry)
                .unwrap_or_default(),
        }
    }
}

/// Reads a document; none where it cannot be. An empty one says nothing.
fn read<T: DeserializeOwned + Default>(text: &str) -> Option<T> {
    if text.trim().is_empty() {
        return Some(T::default());
    }
    let options = options! { budget: budget! { max_nodes: MAX_VALUES } };
    serde_saphyr::from_str_with_options(text, options).ok()
}

impl From<MeshConfig> for Mesh {
    fn from(config: MeshConfig) -> Self {
        let text = |Lenient(text)| text;
        let capture = config
            .default_config
            .and_then(|defaults| defaults.proxy_metadata)
            .and_then(|mut metadata| metadata.remove(DNS_CAPTURE))
            .flatten();
        Self::Says {
            trust_domain: config.trust_domain.map(text).unwrap_or_default(),
            smart_dns: capture.map(text).as_deref() == Some("true"),
        }
    }
}

/// The first network by name that takes all endpoints of a cluster, for each cluster.
fn by_registry(networks: MeshNetworks) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, network) in networks.networks.unwrap_or_default() {
        let endpoints = network.and_then(|network| network.endpoints);
        for endpoints in endpoints.unwrap_or_default() {
            if let Some(Lenient(registry)) = endpoints.from_registry {
                found.entry(registry).or_insert_with(|| name.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(mesh: &str) -> ConfigMap {
        let object = v1::ConfigMap {
            data: Some(BTreeMap::from([("mesh".to_owned(), mesh.to_owned())])),
            ..v1::ConfigMap::default()
        };
        ConfigMap::parse(&object, "c1")
    }

    #[test]
    fn configurations_that_differ_in_what_nobody_looks_at_are_equal() {
        assert_eq!(
            parsed("trustDomain: a.example.com\naccessLogFile: /dev/stdout"),
            parsed("# ours\ntrustDomain: a.example.com")
        );
        assert_ne!(
            parsed("trustDomain: a.example.com"),
            parsed("trustDomain: b.example.com")
        );
    }

    #[test]
    fn a_configuration_that_goes_on_without_end_cannot_be_read() {
        let aliases = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
            c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
            e: [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n";
        assert_eq!(parsed(aliases).mesh, Mesh::Unreadable);
    }
}
