//! Destinations: what requests can be sent to.

use std::sync::Arc;

use ferromesh_crds::meta::DISCOVERY_ENABLED_ANNOTATION;
use ferromesh_crds::name::is_dns_label;
use ferromesh_crds::reference::{ClusterObjectRef, ObjectRef};
use ferromesh_crds::{self as crds, destination as wire};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::kubernetes::{annotations, key};
use super::labels::Labels;
use crate::key::Key;

/// A destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Name and namespace in the management cluster.
    pub key: Key,
    /// Generation of the stored object, 0 where there is none.
    pub generation: i64,
    /// Annotations that travel to what is made of it.
    pub annotations: Labels,
    /// The mesh that it is part of.
    pub mesh: Option<Key>,
    /// The Kubernetes Service that it is; none for a service outside the meshes.
    pub service: Option<KubeService>,
    /// Cluster it was discovered in, empty for what people wrote.
    pub discovered_in: Arc<str>,
}

/// A Kubernetes Service as a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeService {
    /// The Service.
    pub reference: Key,
    /// `spec.selector` of the Service.
    pub selector: Labels,
    /// Its labels.
    pub labels: Labels,
    /// Its ports.
    pub ports: Arc<[Port]>,
    /// Label keys that tell its workloads apart, each with its values in order.
    pub subsets: Box<[(Box<str>, Values)]>,
    /// The region of its pods, empty where unknown.
    pub region: Arc<str>,
    /// Ready endpoints.
    pub endpoints: Arc<[EndpointSubset]>,
    /// Addresses from outside the cluster.
    pub external_addresses: Box<[Address]>,
    /// `spec.type` of the Service.
    pub service_type: ServiceType,
}

/// Values of a label, in order.
pub type Values = Box<[Box<str>]>;

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The number that clients call.
    pub port: u32,
    /// Its name, empty where it has none.
    pub name: Box<str>,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Box<str>,
    /// What is spoken on it, empty where it does not say.
    pub app_protocol: Box<str>,
    /// Where it leads.
    pub target: TargetPort,
    /// The port on every node, 0 without.
    pub node_port: u32,
}

/// Where a Service's port leads on the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPort {
    /// A number; 0 says the same number as the Service's.
    Number(i32),
    /// A named port of the container.
    Name(Box<str>),
}

/// Endpoints that share their ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSubset {
    /// The endpoints.
    pub endpoints: Box<[Endpoint]>,
    /// Ports of each of them.
    pub ports: Arc<[EndpointPort]>,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// IP address.
    pub address: Arc<str>,
    /// Labels of the pod's workload.
    pub labels: Labels,
    /// Zone and sub-zone, empty where unknown.
    pub zone: Arc<str>,
    /// Sub-zone, empty where unknown.
    pub sub_zone: Arc<str>,
}

/// A port of endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointPort {
    /// The number on the pod.
    pub port: u32,
    /// The name of the Service's port, empty where it has none.
    pub name: Box<str>,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Box<str>,
    /// What is spoken on it, empty where it does not say.
    pub app_protocol: Box<str>,
}

/// An address from outside the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// A host name.
    DnsName(String),
    /// An IP address.
    Ip(String),
}

/// How a Service is exposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceType {
    /// Within the cluster.
    #[default]
    ClusterIp,
    /// On a port of every node.
    NodePort,
    /// At an address of its own.
    LoadBalancer,
    /// An alias of another name.
    ExternalName,
}

impl Address {
    /// The address as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::DnsName(text) | Self::Ip(text) => text,
        }
    }
}

impl Destination {
    /// Whether it is there because its Service asks to be, and nothing that answers carries a proxy:
    /// an alias of another name, addresses that somebody wrote down, pods outside the mesh.
    pub fn is_outside_meshes(&self) -> bool {
        let Some(service) = &self.service else {
            return true;
        };
        let is_asked_for = self.annotations.get(DISCOVERY_ENABLED_ANNOTATION) == Some("true");
        let mut endpoints = service
            .endpoints
            .iter()
            .flat_map(|it| &it.endpoints)
            .peekable();
        // Endpoints have the labels of a workload where there is one behind them.
        is_asked_for
            && (service.selector.is_empty()
                || endpoints.peek().is_some() && endpoints.all(|it| it.labels.is_empty()))
    }
}

/// Reading and writing the stored form.
impl Destination {
    /// Reads a destination.
    pub fn parse(object: &crds::Destination) -> Self {
        Self {
            key: key(&object.metadata, ""),
            generation: object.metadata.generation.unwrap_or_default(),
            annotations: annotations(&object.metadata),
            mesh: object
                .spec
                .mesh
                .as_ref()
                .map(|mesh| Key::local(&mesh.name, &mesh.namespace)),
            service: object
                .spec
                .kube_service
                .as_ref()
                .and_then(KubeService::parse),
            discovered_in: discovered_in(&object.metadata),
        }
    }

    /// The spec that stands for it, for destinations that were discovered.
    pub fn to_spec(&self) -> wire::DestinationSpec {
        wire::DestinationSpec {
            kube_service: self.service.as_ref().map(KubeService::to_wire),
            external_service: None,
            mesh: self.mesh.as_ref().map(object_ref),
        }
    }
}

/// Whether an API server can have a Service of this name, and others can know the name of its objects for
/// what it is: each part is a DNS label.
pub(crate) fn can_exist(service: &Key) -> bool {
    let parts = [service.name(), service.namespace(), service.cluster()];
    parts.into_iter().all(is_dns_label)
}

impl KubeService {
    /// Reads a Service; none where there can be no such Service.
    fn parse(service: &wire::KubeService) -> Option<Self> {
        let ClusterObjectRef {
            name,
            namespace,
            cluster_name,
        } = service.reference.as_ref()?;
        let reference = Key::new(name, namespace, cluster_name);
        if !can_exist(&reference) {
            return None;
        }
        Some(Self {
            reference,
            selector: Labels::from(&service.workload_selector_labels),
            labels: Labels::from(&service.labels),
            ports: service
                .ports
                .iter()
                .map(|port| Port {
                    port: number(port.port),
                    name: port.name.as_str().into(),
                    protocol: port.protocol.as_str().into(),
                    app_protocol: port.app_protocol.as_str().into(),
                    target: match &port.target_port_name {
                        Some(name) => TargetPort::Name(name.as_str().into()),
                        None => TargetPort::Number(port.target_port_number.unwrap_or_default()),
                    },
                    node_port: number(port.node_port),
                })
                .collect(),
            subsets: service
                .subsets
                .iter()
                .map(|(key, subset)| {
                    let values = subset.values.iter().map(|value| value.as_str().into());
                    (key.as_str().into(), values.collect())
                })
                .collect(),
            region: service.region.as_str().into(),
            endpoints: service
                .endpoint_subsets
                .iter()
                .map(EndpointSubset::parse)
                .collect(),
            external_addresses: service
                .external_addresses
                .iter()
                .filter_map(|address| {
                    Address::parse(address.dns_name.as_ref(), address.ip.as_ref())
                })
                .collect(),
            service_type: match service.service_type {
                wire::ServiceType::ClusterIp => ServiceType::ClusterIp,
                wire::ServiceType::NodePort => ServiceType::NodePort,
                wire::ServiceType::LoadBalancer => ServiceType::LoadBalancer,
                wire::ServiceType::ExternalName => ServiceType::ExternalName,
            },
        })
    }

    fn to_wire(&self) -> wire::KubeService {
        wire::KubeService {
            reference: Some(ClusterObjectRef {
                name: self.reference.name().to_owned(),
                namespace: self.reference.namespace().to_owned(),
                cluster_name: self.reference.cluster().to_owned(),
            }),
            workload_selector_labels: self.selector.to_map(),
            labels: self.labels.to_map(),
            ports: self
                .ports
                .iter()
                .map(|port| wire::KubeServicePort {
                    port: signed(port.port),
                    name: port.name.to_string(),
                    protocol: port.protocol.to_string(),
                    app_protocol: port.app_protocol.to_string(),
                    target_port_name: match &port.target {
                        TargetPort::Name(name) => Some(name.to_string()),
                        TargetPort::Number(_) => None,
                    },
                    target_port_number: match &port.target {
                        TargetPort::Name(_) => None,
                        TargetPort::Number(number) => Some(*number),
                    },
                    node_port: signed(port.node_port),
                })
                .collect(),
            subsets: self
                .subsets
                .iter()
                .map(|(key, values)| {
                    (
                        key.to_string(),
                        wire::SubsetValues {
                            values: values.iter().map(ToString::to_string).collect(),
                        },
                    )
                })
                .collect(),
            region: self.region.to_string(),
            endpoint_subsets: self.endpoints.iter().map(EndpointSubset::to_wire).collect(),
            external_addresses: self
                .external_addresses
                .iter()
                .map(|address| match address {
                    Address::DnsName(name) => wire::ExternalAddress {
                        dns_name: Some(name.clone()),
                        ip: None,
                    },
                    Address::Ip(ip) => wire::ExternalAddress {
                        dns_name: None,
                        ip: Some(ip.clone()),
                    },
                })
                .collect(),
            service_type: match self.service_type {
                ServiceType::ClusterIp => wire::ServiceType::ClusterIp,
                ServiceType::NodePort => wire::ServiceType::NodePort,
                ServiceType::LoadBalancer => wire::ServiceType::LoadBalancer,
                ServiceType::ExternalName => wire::ServiceType::ExternalName,
            },
        }
    }
}

impl EndpointSubset {
    fn parse(subset: &wire::EndpointsSubset) -> Self {
        Self {
            endpoints: subset
                .endpoints
                .iter()
                .map(|endpoint| {
                    let locality = endpoint.sub_locality.clone().unwrap_or_default();
                    Endpoint {
                        address: endpoint.ip_address.as_str().into(),
                        labels: Labels::from(&endpoint.labels),
                        zone: locality.zone.into(),
                        sub_zone: locality.sub_zone.into(),
                    }
                })
                .collect(),
            ports: subset
                .ports
                .iter()
                .map(|port| EndpointPort {
                    port: number(port.port),
                    name: port.name.as_str().into(),
                    protocol: port.protocol.as_str().into(),
                    app_protocol: port.app_protocol.as_str().into(),
                })
                .collect(),
        }
    }

    fn to_wire(&self) -> wire::EndpointsSubset {
        wire::EndpointsSubset {
            endpoints: self
                .endpoints
                .iter()
                .map(|endpoint| wire::Endpoint {
                    ip_address: endpoint.address.to_string(),
                    labels: endpoint.labels.to_map(),
                    sub_locality: (!endpoint.zone.is_empty()).then(|| wire::SubLocality {
                        zone: endpoint.zone.to_string(),
                        sub_zone: endpoint.sub_zone.to_string(),
                    }),
                })
                .collect(),
            ports: self
                .ports
                .iter()
                .map(|port| wire::EndpointPort {
                    port: signed(port.port),
                    name: port.name.to_string(),
                    protocol: port.protocol.to_string(),
                    app_protocol: port.app_protocol.to_string(),
                })
                .collect(),
        }
    }
}

impl Address {
    /// Reads the two forms of an address; an empty one is none.
    pub(super) fn parse(dns_name: Option<&String>, ip: Option<&String>) -> Option<Self> {
        let given = |text: Option<&String>| text.filter(|text| !text.is_empty()).cloned();
        given(dns_name)
            .map(Self::DnsName)
            .or_else(|| given(ip).map(Self::Ip))
    }
}

/// A port as stored; what cannot be one is none.
pub(super) fn number(port: i32) -> u32 {
    u32::try_from(port).unwrap_or_default()
}

/// A port as it is stored.
pub(crate) fn signed(port: u32) -> i32 {
    i32::try_from(port).unwrap_or_default()
}

/// A reference to an object of the management cluster.
pub(crate) fn object_ref(key: &Key) -> ObjectRef {
    ObjectRef {
        name: key.name().to_owned(),
        namespace: key.namespace().to_owned(),
    }
}

/// The cluster whose discovery wrote an object, empty for what people wrote.
pub(super) fn discovered_in(meta: &ObjectMeta) -> Arc<str> {
    meta.labels
        .as_ref()
        .and_then(|labels| labels.get(crds::meta::DISCOVERED_CLUSTER_LABEL))
        .map_or_else(|| Arc::from(""), |cluster| Arc::from(cluster.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Destination;

    fn is_service(name: &str, namespace: &str, cluster: &str) -> bool {
        let object = serde_json::from_value(json!({
            "metadata": { "name": "a", "namespace": "gloo-mesh" },
            "spec": { "kubeService": {
                "ref": { "name": name, "namespace": namespace, "clusterName": cluster },
            } },
        }));
        let destination = Destination::parse(&object.expect("a destination"));
        destination.service.is_some()
    }

    #[test]
    fn a_service_that_no_api_server_can_have_is_none() {
        assert!(is_service("reviews", "bookinfo", "cluster-1"));
        assert!(!is_service(".s", "bookinfo", "cluster-1"));
        assert!(!is_service("reviews", "", "cluster-1"));
        assert!(!is_service("reviews", "bookinfo", "cluster.1"));
    }
}
