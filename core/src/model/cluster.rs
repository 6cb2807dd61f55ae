//! Registered clusters.

use std::sync::Arc;

use ferromesh_crds::{self as crds, meta::DEFAULT_CLUSTER_DOMAIN};

use super::kubernetes::key;
use crate::key::Key;

/// A registered cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesCluster {
    /// Name (the cluster's) and namespace.
    pub key: Key,
    /// DNS domain of the cluster.
    pub domain: Arc<str>,
    /// Namespace of our own objects in the cluster, empty where registration has not said.
    pub namespace: String,
}

impl KubernetesCluster {
    /// Reads a registered cluster.
    pub fn parse(object: &crds::KubernetesCluster) -> Self {
        let domain = object.spec.cluster_domain.as_str();
        Self {
            key: key(&object.metadata, ""),
            domain: if domain.is_empty() {
                DEFAULT_CLUSTER_DOMAIN
            } else {
                domain
            }
            .into(),
            namespace: object
                .status
                .as_ref()
                .map(|status| status.namespace.clone())
                .unwrap_or_default(),
        }
    }
}
