//! Services.

use std::sync::Arc;

use ferromesh_crds::meta::DISCOVERY_ENABLED_ANNOTATION;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::destination::{Address, Port, ServiceType, TargetPort, number};
use super::super::labels::Labels;
use super::endpoints::IpFamily;
use super::{annotations, boxed, key, protocol};
use crate::key::Key;

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Name, namespace and cluster.
    pub key: Key,
    /// Its labels.
    pub labels: Labels,
    /// Annotations that travel with what is discovered.
    pub annotations: Labels,
    /// Whether it asks to be a destination whatever is behind it.
    pub is_enabled: bool,
    /// `spec.selector`.
    pub selector: Labels,
    /// Its ports, as the destination that it is has them.
    pub ports: Arc<[Port]>,
    /// `spec.ipFamilies`: the first is the one that a client of one family is served with.
    pub ip_families: Box<[IpFamily]>,
    /// `spec.type`.
    pub service_type: ServiceType,
    /// `spec.externalIPs`.
    pub external_ips: Box<[String]>,
    /// `status.loadBalancer.ingress`, those that have an address.
    pub load_balancer: Box<[Address]>,
    /// `spec.externalName`, empty without.
    pub external_name: Box<str>,
}

impl Service {
    /// Keeps what matters of a Service.
    pub fn parse(object: &v1::Service, cluster: &str) -> Self {
        let spec = object.spec.clone().unwrap_or_default();
        let labels = Labels::from(object.metadata.labels.as_ref());
        Self {
            key: key(&object.metadata, cluster),
            annotations: annotations(&object.metadata),
            is_enabled: object.metadata.annotations.as_ref().is_some_and(|all| {
                all.get(DISCOVERY_ENABLED_ANNOTATION)
                    .is_some_and(|value| value == "true")
            }),
            selector: Labels::from(spec.selector.as_ref()).shared_with(&labels),
            labels,
            ports: spec.ports.iter().flatten().map(port).collect(),
            ip_families: spec
                .ip_families
                .iter()
                .flatten()
                .filter_map(|name| IpFamily::parse(name))
                .collect(),
            service_type: match spec.type_.as_deref() {
                Some("NodePort") => ServiceType::NodePort,
                Some("LoadBalancer") => ServiceType::LoadBalancer,
                Some("ExternalName") => ServiceType::ExternalName,
                _ => ServiceType::ClusterIp,
            },
            external_ips: spec.external_ips.unwrap_or_default().into(),
            load_balancer: object
                .status
                .iter()
                .filter_map(|status| status.load_balancer.as_ref()?.ingress.as_ref())
                .flatten()
                .filter_map(|ingress| {
                    let given =
                        |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
                    given(&ingress.ip)
                        .map(Address::Ip)
                        .or_else(|| given(&ingress.hostname).map(Address::DnsName))
                })
                .collect(),
            external_name: boxed(spec.external_name.as_ref()).unwrap_or_default(),
        }
    }
}

fn port(port: &v1::ServicePort) -> Port {
    Port {
        port: number(port.port),
        name: boxed(port.name.as_ref()).unwrap_or_default(),
        protocol: protocol(port.protocol.as_ref()),
        app_protocol: boxed(port.app_protocol.as_ref()).unwrap_or_default(),
        target: match &port.target_port {
            Some(IntOrString::String(name)) => TargetPort::Name(name.as_str().into()),
            Some(IntOrString::Int(number)) => TargetPort::Number((*number).max(0)),
            None => TargetPort::Number(0),
        },
        node_port: number(port.node_port.unwrap_or_default()),
    }
}
