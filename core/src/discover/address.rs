//! Addresses of Services from outside their cluster: one rule for destinations and for gateways.

use crate::graph::Reader;
use crate::model::destination::{Address, ServiceType};
use crate::model::kubernetes::node::AddressType;
use crate::model::kubernetes::{Node, Pod, Service};

/// Every address at which a Service is reached from outside: those that its author lists, then
/// those of the nodes of its pods, or of its load balancer. Each once, in that order.
pub(super) fn external<'a>(
    reader: &Reader<'_>,
    service: &Service,
    pods: impl Iterator<Item = &'a Pod>,
) -> Box<[Address]> {
    let mut addresses: Vec<Address> = service
        .external_ips
        .iter()
        .cloned()
        .map(Address::Ip)
        .collect();
    match service.service_type {
        ServiceType::NodePort => {
            for node in pods.filter_map(|pod| reader.node(&pod.node, service.key.cluster())) {
                addresses.extend(of_node(node));
            }
        }
        ServiceType::LoadBalancer => addresses.extend(service.load_balancer.iter().cloned()),
        ServiceType::ClusterIp | ServiceType::ExternalName => {}
    }
    let mut once = Vec::with_capacity(addresses.len());
    for address in addresses {
        if !once.contains(&address) {
            once.push(address);
        }
    }
    once.into()
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
}

/// The one address of a gateway in the mesh's own list: a node's, or the load balancer's, or one
/// that its author lists.
pub(super) fn gateway<'a>(
    reader: &Reader<'_>,
    service: &Service,
    mut pods: impl Iterator<Item = &'a Pod>,
) -> Option<Address> {
    let listed = || service.external_ips.first().cloned().map(Address::Ip);
    match service.service_type {
        ServiceType::NodePort => pods
            .find_map(|pod| of_node(reader.node(&pod.node, service.key.cluster())?).next())
            .or_else(listed),
        ServiceType::LoadBalancer => service.load_balancer.first().cloned().or_else(listed),
        ServiceType::ClusterIp | ServiceType::ExternalName => None,
    }
}
