//! EndpointSlices, and the older Endpoints in the same form.

use std::sync::Arc;

use k8s_openapi::api::{core::v1, discovery::v1 as discovery};

use super::super::destination::{EndpointPort, number};
use super::{boxed, key, protocol};
use crate::key::Key;

/// Ready addresses behind a Service, with the ports that they all have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    /// Name, namespace and cluster of the object.
    pub key: Key,
    /// Name of the Service, in the same namespace; empty for a slice that belongs to none.
    pub service: Box<str>,
    /// The family that all its addresses are of; none where it does not say, as the older
    /// Endpoints do not.
    pub family: Option<IpFamily>,
    /// Addresses and ports.
    pub subsets: Box<[Subset]>,
}

/// A family of IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum IpFamily {
    V4,
    V6,
}

impl IpFamily {
    /// The family of this name in Kubernetes' API.
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "IPv4" => Some(Self::V4),
            "IPv6" => Some(Self::V6),
            _ => None,
        }
    }
}

/// Addresses that share their ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subset {
    /// Ready addresses only.
    pub endpoints: Box<[Endpoint]>,
    /// Ports of each of them.
    pub ports: Arc<[EndpointPort]>,
}

/// One address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its IP address.
    pub address: Arc<str>,
    /// The pod behind it, in the slice's namespace.
    pub pod: Option<Box<str>>,
    /// The node that it is on.
    pub node: Option<Box<str>>,
}

impl EndpointSlice {
    /// Keeps what matters of an EndpointSlice. One of host names has no endpoints.
    pub fn parse(object: &discovery::EndpointSlice, cluster: &str) -> Self {
        let service = object
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get("kubernetes.io/service-name"))
            .map(|name| name.as_str().into())
            .unwrap_or_default();
        let endpoints: Box<[_]> = object
            .endpoints
            .iter()
            .filter(|_| object.address_type != "FQDN")
            // Absent readiness means ready (Kubernetes: EndpointConditions.ready).
            .filter(|endpoint| {
                endpoint
                    .conditions
                    .as_ref()
                    .and_then(|conditions| conditions.ready)
                    .unwrap_or(true)
            })
            .filter_map(|endpoint| {
                let pod = endpoint
                    .target_ref
                    .as_ref()
                    .filter(|target| target.kind.as_deref() == Some("Pod"));
                Some(Endpoint {
                    // Slices list one address an endpoint; further ones are reserved.
                    address: endpoint.addresses.first()?.as_str().into(),
                    pod: pod.and_then(|target| boxed(target.name.as_ref())),
                    node: boxed(endpoint.node_name.as_ref()),
                })
            })
            .collect();
        let ports = object
            .ports
            .iter()
            .flatten()
            .filter_map(|port| {
                Some(EndpointPort {
                    port: number(port.port?),
                    name: boxed(port.name.as_ref()).unwrap_or_default(),
                    protocol: protocol(port.protocol.as_ref()),
                    app_protocol: boxed(port.app_protocol.as_ref()).unwrap_or_default(),
                })
            })
            .collect();
        Self {
            key: key(&object.metadata, cluster),
            service,
            family: IpFamily::parse(&object.address_type),
            subsets: if endpoints.is_empty() {
                Box::default()
            } else {
                Box::new([Subset { endpoints, ports }])
            },
        }
    }

    /// Keeps what matters of an Endpoints object, as the slices of its Service.
    ///
    /// Directories of YAML often hold these; a live cluster is read by slices, which do not end
    /// at 1,000 addresses.
    pub fn of_endpoints(object: &v1::Endpoints, cluster: &str) -> Self {
        let key = key(&object.metadata, cluster);
        Self {
            service: key.name().into(),
            key,
            family: None,
            subsets: object
                .subsets
                .iter()
                .flatten()
                .filter_map(|subset| {
                    let endpoints: Box<[_]> = subset
                        .addresses
                        .iter()
                        .flatten()
                        .map(|address| Endpoint {
                            address: address.ip.as_str().into(),
                            pod: address
                                .target_ref
                                .as_ref()
                                .filter(|target| {
                                    target.kind.as_deref().is_none_or(|kind| kind == "Pod")
                                })
                                .and_then(|target| boxed(target.name.as_ref())),
                            node: boxed(address.node_name.as_ref()),
                        })
                        .collect();
                    (!endpoints.is_empty()).then(|| Subset {
                        endpoints,
                        ports: subset
                            .ports
                            .iter()
                            .flatten()
                            .map(|port| EndpointPort {
                                port: number(port.port),
                                name: boxed(port.name.as_ref()).unwrap_or_default(),
                                protocol: protocol(port.protocol.as_ref()),
                                app_protocol: boxed(port.app_protocol.as_ref()).unwrap_or_default(),
                            })
                            .collect(),
                    })
                })
                .collect(),
        }
    }
}
