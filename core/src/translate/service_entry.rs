//! `ServiceEntry`: a federated destination, for the clusters that see it and for its own.

use std::collections::{BTreeMap, BTreeSet};

use ferromesh_istio::ServiceEntry;
use ferromesh_istio::service_entry::{Location, ServicePort, WorkloadEntry};

use crate::estate::AppliedGateway;
use crate::federate::Federation;
use crate::model::destination::{EndpointPort, EndpointSubset, KubeService, Port};

/// For a cluster that sees the destination: its endpoints are the gateways of its mesh, each once
/// for every pod behind it, so that subsets and shares come out as in its own cluster.
pub(crate) fn remote(
    service: &KubeService,
    federation: &Federation,
    gateways: &[AppliedGateway],
) -> ServiceEntry {
    let ports = ports(service);
    let mut endpoints = Vec::new();
    for gateway in gateways {
        let gateway_ports: BTreeMap<_, _> = ports
            .iter()
            .map(|port| (port.name.clone(), gateway.port))
            .collect();
        for address in &gateway.addresses {
            endpoints.extend(
                service
                    .endpoints
                    .iter()
                    .flat_map(|subset| &subset.endpoints)
                    .map(|endpoint| WorkloadEntry {
                        address: address.to_string(),
                        ports: gateway_ports.clone(),
                        labels: endpoint.labels.to_map(),
                    }),
            );
        }
    }
    ServiceEntry {
        addresses: vec![federation.virtual_ip.to_string()],
        ports,
        resolution: federation.remote_resolution,
        endpoints,
        ..shared(federation)
    }
}

/// For the destination's own cluster, where it gives the gateway the name that other clusters
/// ask for. Nobody else sees it. Ports of endpoints that the Service has no more are left out:
/// Istio refuses an entry with one.
pub(crate) fn own(service: &KubeService, federation: &Federation) -> ServiceEntry {
    let ports = ports(service);
    let names: BTreeSet<_> = ports.iter().map(|port| port.name.clone()).collect();
    ServiceEntry {
        ports,
        resolution: federation.local_resolution,
        endpoints: service
            .endpoints
            .iter()
            .flat_map(|EndpointSubset { endpoints, ports }| {
                let ports: BTreeMap<_, _> = ports
                    .iter()
                    .map(|port| (endpoint_port_name(port), port.port))
                    .filter(|(name, _)| names.contains(name))
                    .collect();
                endpoints.iter().map(move |endpoint| WorkloadEntry {
                    address: endpoint.address.to_string(),
                    ports: ports.clone(),
                    labels: endpoint.labels.to_map(),
                })
            })
            .collect(),
        export_to: vec![".".to_owned()],
        ..shared(federation)
    }
}

fn shared(federation: &Federation) -> ServiceEntry {
    ServiceEntry {
        hosts: vec![federation.hostname.to_string()],
        location: Location::MeshInternal,
        ..ServiceEntry::default()
    }
}

/// Ports of the entry. Istio takes a number once, so of TCP and UDP on one number the first counts.
fn ports(service: &KubeService) -> Vec<ServicePort> {
    let mut seen = BTreeSet::new();
    service
        .ports
        .iter()
        .filter(|port| seen.insert(port.port))
        .map(|port| ServicePort {
            number: port.port,
            protocol: protocol(port).to_owned(),
            name: named(&port.name, &port.protocol),
        })
        .collect()
}

fn endpoint_port_name(port: &EndpointPort) -> String {
    named(&port.name, &port.protocol)
}

/// A port without a name is called after its protocol.
fn named(name: &str, protocol: &str) -> String {
    if name.is_empty() {
        protocol.to_owned()
    } else {
        name.to_owned()
    }
}

/// The protocol of a port in Istio's words: what the application says, else what the port's name
/// starts with, else what is usual for its number.
fn protocol(port: &Port) -> &str {
    const NAMED: [(&str, &str); 12] = [
        ("tcp", "TCP"),
        ("udp", "UDP"),
        ("grpc", "GRPC"),
        ("http", "HTTP"),
        ("http_proxy", "HTTP_PROXY"),
        ("http2", "HTTP2"),
        ("https", "HTTPS"),
        ("thrift", "Thrift"),
        ("tls", "TLS"),
        ("mongo", "Mongo"),
        ("redis", "Redis"),
        ("mysql", "MySQL"),
    ];
    if *port.protocol == *"UDP" {
        return "UDP";
    }
    let name = if port.app_protocol.is_empty() {
        &port.name
    } else {
        &port.app_protocol
    }
    .to_ascii_lowercase();
    if name.starts_with("grpc-web") {
        return "GRPC-Web";
    }
    let prefix = name.split('-').next().unwrap_or_default();
    if let Some((_, protocol)) = NAMED.iter().find(|(word, _)| *word == prefix) {
        return protocol;
    }
    // SMTP, DNS, MySQL and MongoDB speak first or are not HTTP in any case.
    if matches!(port.port, 25 | 53 | 3306 | 27017) || port.protocol.is_empty() {
        return "TCP";
    }
    &port.protocol
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::destination::TargetPort;

    #[test]
    fn a_port_speaks_what_its_application_or_its_name_says() {
        for (name, app_protocol, protocol_field, number, expected) in [
            ("http", "", "TCP", 9080, "HTTP"),
            ("http-web", "", "TCP", 80, "HTTP"),
            ("HTTP2-x", "", "TCP", 80, "HTTP2"),
            ("grpc-web-x", "", "TCP", 80, "GRPC-Web"),
            ("tcp", "grpc", "TCP", 80, "GRPC"),
            ("dns", "", "UDP", 53, "UDP"),
            ("", "", "TCP", 3306, "TCP"),
            ("web", "", "TCP", 80, "TCP"),
            ("x", "kubernetes.io/h2c", "TCP", 80, "TCP"),
            ("tls", "", "TCP", 15443, "TLS"),
            ("s", "", "SCTP", 99, "SCTP"),
        ] {
            let port = Port {
                port: number,
                name: name.into(),
                protocol: protocol_field.into(),
                app_protocol: app_protocol.into(),
                target: TargetPort::Number(0),
                node_port: 0,
            };
            assert_eq!(protocol(&port), expected, "{name}/{app_protocol}");
        }
    }
}
