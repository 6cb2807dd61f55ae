//! Addresses of Services from outside their cluster: one rule for destinations and for gateways.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::graph::Reader;
use crate::model::destination::{Address, ServiceType};
use crate::model::kubernetes::node::AddressType;
use crate::model::kubernetes::{Node, Pod, Service};

/// Every address at which a Service is reached from outside: those that its author lists, then
/// those of the nodes behind it, or of its load balancer, or the name that it is an alias of. Each
/// once, in that order.
pub(super) fn external<'a, N>(service: &Service, nodes: impl FnOnce() -> N) -> Box<[Address]>
where
    N: Iterator<Item = &'a Arc<Node>>,
{
    let mut addresses: Vec<Address> = listed(service).collect();
    match service.service_type {
        ServiceType::NodePort => addresses.extend(nodes().flat_map(|node| of_node(node))),
        ServiceType::LoadBalancer => addresses.extend(of_load_balancer(service)),
        ServiceType::ExternalName => {
            let name = Address::DnsName(service.external_name.to_string());
            addresses.extend(Some(name).filter(is_address));
        }
        ServiceType::ClusterIp => {}
    }
    let mut known = BTreeSet::new();
    addresses.retain(|address| known.insert(address.clone()));
    addresses.into()
}

/// Whether it is an address at all: Istio refuses what is none.
fn is_address(address: &Address) -> bool {
    match address {
        Address::Ip(text) => text.parse::<IpAddr>().is_ok(),
        Address::DnsName(text) => !text.is_empty(),
    }
}

/// What the Service's author lists.
fn listed(service: &Service) -> impl Iterator<Item = Address> {
    let listed = service.external_ips.iter().cloned();
    listed.map(Address::Ip).filter(is_address)
}

fn of_load_balancer(service: &Service) -> impl Iterator<Item = Address> {
    service
        .load_balancer
        .iter()
        .filter(|it| is_address(it))
        .cloned()
}

/// Where a node is reached from outside: its external addresses, and in a kind cluster, which has
/// none, its internal ones. A node's host name resolves for nobody else and is left out.
fn of_node(node: &Node) -> impl Iterator<Item = Address> {
    node.addresses
        .iter()
        .filter_map(|(sort, address)| match sort {
            AddressType::ExternalIp => Some(Address::Ip(address.clone())),
            AddressType::ExternalDns => Some(Address::DnsName(address.clone())),
            AddressType::InternalIp => node.is_kind.then(|| Address::Ip(address.clone())),
            AddressType::Other => None,
        })
        .filter(is_address)
}

/// The one address of a gateway in the mesh's own list: a node's, or the load balancer's, or one
/// that its author lists.
pub(super) fn gateway<'a>(
    reader: &Reader<'_>,
    service: &Service,
    mut pods: impl Iterator<Item = &'a Pod>,
) -> Option<Address> {
    let listed = || listed(service).next();
    match service.service_type {
        ServiceType::NodePort => pods
            .find_map(|pod| of_node(reader.node(&pod.node, service.key.cluster())?).next())
            .or_else(listed),
        ServiceType::LoadBalancer => of_load_balancer(service).next().or_else(listed),
        ServiceType::ClusterIp | ServiceType::ExternalName => None,
    }
}
