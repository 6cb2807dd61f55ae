//! Services.

use ferromesh_crds::meta::DISCOVERY_ENABLED_ANNOTATION;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::destination::{Address, ServiceType, TargetPort};
use super::super::labels::Labels;
use super::endpoints::IpFamily;
use super::{annotations, key};
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
    /// Its ports.
    pub ports: Box<[Port]>,
    /// `spec.ipFamilies`: the first is the one that a client of one family is served with.
    pub ip_families: Box<[IpFamily]>,
    /// `spec.type`.
    pub service_type: ServiceType,
    /// `spec.externalIPs`.
    pub external_ips: Box<[String]>,
    /// `status.loadBalancer.ingress`, those that have an address.
    pub load_balancer: Box<[Address]>,
    /// `spec.externalName`, empty without.
    pub external_name: String,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The number that clients call.
    pub port: i32,
    /// Its name, empty where it has none.
    pub name: String,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// What is spoken on it, empty where it does not say.
    pub app_protocol: String,
    /// Where it leads.
    pub target: TargetPort,
    /// The port on every node, 0 without.
    pub node_port: i32,
}

impl Service {
    /// Keeps what matters of a Service.
    pub fn parse(object: &v1::Service, cluster: &str) -> Self {
        let spec = object.spec.clone().unwrap_or_default();
        Self {
            key: key(&object.metadata, cluster),
            labels: Labels::from(object.metadata.labels.as_ref()),
            annotations: annotations(&object.metadata),
            is_enabled: object.metadata.annotations.as_ref().is_some_and(|all| {
                all.get(DISCOVERY_ENABLED_ANNOTATION)
                    .is_some_and(|value| value == "true")
            }),
            selector: Labels::from(spec.selector.as_ref()),
            ports: spec
                .ports
                .unwrap_or_default()
                .into_iter()
                .map(Port::from)
                .collect(),
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
            external_name: spec.external_name.unwrap_or_default(),
        }
    }
}

impl From<v1::ServicePort> for Port {
    fn from(port: v1::ServicePort) -> Self {
        Self {
            port: port.port,
            name: port.name.unwrap_or_default(),
            protocol: port.protocol.unwrap_or_else(|| "TCP".to_owned()),
            app_protocol: port.app_protocol.unwrap_or_default(),
            target: match port.target_port {
                Some(IntOrString::String(name)) => TargetPort::Name(name),
                Some(IntOrString::Int(number)) => TargetPort::Number(number),
                None => TargetPort::Number(0),
            },
            node_port: port.node_port.unwrap_or_default(),
        }
    }
}
