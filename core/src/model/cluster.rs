//! Registered clusters.

use std::sync::Arc;

use ferromesh_crds as crds;
use ferromesh_crds::meta::DEFAULT_CLUSTER_DOMAIN;
use ferromesh_crds::name::Hostname;

use super::kubernetes::key;
use crate::key::Key;

/// A registered cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesCluster {
    /// Name (the cluster's) and namespace.
    pub key: Key,
    /// DNS domain of the cluster, the one of most where none is given.
    pub domain: Arc<str>,
    /// Namespace of our own objects in the cluster, empty where registration has not said.
    pub namespace: String,
}

impl KubernetesCluster {
    /// Reads a registered cluster.
    pub fn parse(object: &crds::KubernetesCluster) -> Self {
        // The schema refuses what is no DNS name; it would be in the host names of every service there.
        let domain: Option<Hostname> = object.spec.cluster_domain.parse().ok();
        let domain = domain.as_ref().map(Hostname::as_str);
        Self {
            key: key(&object.metadata, ""),
            domain: domain.unwrap_or(DEFAULT_CLUSTER_DOMAIN).into(),
            namespace: object
                .status
                .as_ref()
                .map(|status| status.namespace.clone())
                .unwrap_or_default(),
        }
    }
}
