//! Nodes.

use std::sync::Arc;

use k8s_openapi::api::core::v1;

use super::key;
use crate::key::Key;

/// A Node: where it is and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name and cluster.
    pub key: Key,
    /// `topology.kubernetes.io/region`, or the older beta label; empty without either.
    pub region: Arc<str>,
    /// `topology.kubernetes.io/zone`, or the older beta label; empty without either.
    pub zone: Arc<str>,
    /// `topology.istio.io/subzone`; empty without.
    pub sub_zone: Arc<str>,
    /// Addresses in the order in which the node lists them.
    pub addresses: Box<[(AddressType, String)]>,
    /// Whether it is a node of a kind cluster, whose internal addresses are all there is.
    pub is_kind: bool,
}

/// What sort of address a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressType {
    /// An IP address that is reachable from outside.
    ExternalIp,
    /// A DNS name that resolves outside.
    ExternalDns,
    /// An IP address within the cluster's network.
    InternalIp,
    /// A name that need not mean anything to anybody else.
    Other,
}

impl Node {
    /// Keeps what matters of a Node.
    pub fn parse(object: &v1::Node, cluster: &str) -> Self {
        let label = |keys: &[&str]| {
            keys.iter()
                .find_map(|key| object.metadata.labels.as_ref()?.get(*key))
                .map(|value| value.as_str().into())
                .unwrap_or_default()
        };
        let status = object.status.as_ref();
        Self {
            key: key(&object.metadata, cluster),
            region: label(&[
                "topology.kubernetes.io/region",
                "failure-domain.beta.kubernetes.io/region",
            ]),
            zone: label(&[
                "topology.kubernetes.io/zone",
                "failure-domain.beta.kubernetes.io/zone",
            ]),
            sub_zone: label(&["topology.istio.io/subzone"]),
            addresses: status
                .and_then(|status| status.addresses.as_ref())
                .into_iter()
                .flatten()
                .map(|address| {
                    let sort = match address.type_.as_str() {
                        "ExternalIP" => AddressType::ExternalIp,
                        "ExternalDNS" => AddressType::ExternalDns,
                        "InternalIP" => AddressType::InternalIp,
                        _ => AddressType::Other,
                    };
                    (sort, address.address.clone())
                })
                .collect(),
            is_kind: status
                .and_then(|status| status.images.as_ref())
                .into_iter()
                .flatten()
                .flat_map(|image| image.names.iter().flatten())
                .any(|name| name.contains("kindnetd")),
        }
    }
}
