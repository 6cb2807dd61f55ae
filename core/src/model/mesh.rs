//! Meshes: one control plane and what it manages.

use std::sync::Arc;

use ferromesh_crds::{self as crds, mesh as wire};

use super::destination::{Address, discovered_in, number, signed};
use super::kubernetes::{annotations, key};
use super::labels::Labels;
use crate::key::Key;

/// A mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Name and namespace in the management cluster.
    pub key: Key,
    /// Generation of the stored object, 0 where there is none.
    pub generation: i64,
    /// Annotations copied from the control plane's Deployment.
    pub annotations: Labels,
    /// What sort of mesh it is.
    pub kind: MeshKind,
    /// Namespace of the agent that manages certificates there, empty without one.
    pub agent_namespace: String,
    /// Cluster it was discovered in, empty for what people wrote.
    pub discovered_in: Arc<str>,
}

/// Sorts of meshes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeshKind {
    /// Istio.
    Istio(Istio),
    /// Open Service Mesh.
    Osm(Installation),
    /// A sort that we know by name only: nothing is translated for it.
    Other(&'static str),
}

/// An Istio control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Istio {
    /// Where it is installed.
    pub installation: Installation,
    /// Trust domain of its identities, empty where its configuration names none.
    pub trust_domain: String,
    /// Network of its workloads, empty where it has no name.
    pub network: String,
    /// Service account of istiod.
    pub service_account: String,
    /// Ingress gateways in istiod's namespace, the older way to find them.
    pub ingress_gateways: Box<[IngressGateway]>,
    /// Whether proxies answer DNS queries, so that any suffix resolves.
    pub smart_dns: bool,
}

/// Where a control plane is installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// Namespace.
    pub namespace: String,
    /// Cluster.
    pub cluster: Arc<str>,
    /// Labels of its pods: the Deployment's selector.
    pub pod_labels: Labels,
    /// Tag or digest of its image, empty where the image has neither.
    pub version: String,
    /// Region, empty where unknown.
    pub region: String,
}

/// An ingress gateway as the mesh lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressGateway {
    /// Name of the Service.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Labels of its pods: the Service's selector.
    pub workload_labels: Labels,
    /// Where it is reached from other clusters.
    pub address: Option<Address>,
    /// The port at that address.
    pub external_tls_port: u32,
    /// The port on the pod.
    pub tls_container_port: u32,
}

impl Mesh {
    /// The mesh as Istio, if that is what it is.
    pub fn istio(&self) -> Option<&Istio> {
        match &self.kind {
            MeshKind::Istio(istio) => Some(istio),
            MeshKind::Osm(_) | MeshKind::Other(_) => None,
        }
    }

    /// Where its control plane is, for sorts that have one in a cluster.
    pub fn installation(&self) -> Option<&Installation> {
        match &self.kind {
            MeshKind::Istio(istio) => Some(&istio.installation),
            MeshKind::Osm(installation) => Some(installation),
            MeshKind::Other(_) => None,
        }
    }
}

/// Reading and writing the stored form.
impl Mesh {
    /// Reads a mesh.
    pub fn parse(object: &crds::Mesh) -> Self {
        let spec = &object.spec;
        let kind = if let Some(istio) = &spec.istio {
            MeshKind::Istio(Istio::parse(istio))
        } else if let Some(osm) = &spec.osm {
            MeshKind::Osm(Installation::parse(osm.installation.as_ref()))
        } else if spec.aws_app_mesh.is_some() {
            MeshKind::Other("awsAppMesh")
        } else if spec.linkerd.is_some() {
            MeshKind::Other("linkerd")
        } else if spec.consul_connect.is_some() {
            MeshKind::Other("consulConnect")
        } else {
            MeshKind::Other("unknown")
        };
        Self {
            key: key(&object.metadata, ""),
            generation: object.metadata.generation.unwrap_or_default(),
            annotations: annotations(&object.metadata),
            kind,
            agent_namespace: spec
                .agent_info
                .as_ref()
                .map(|agent| agent.agent_namespace.clone())
                .unwrap_or_default(),
            discovered_in: discovered_in(&object.metadata),
        }
    }

    /// The spec that stands for it, for meshes that were discovered.
    pub fn to_spec(&self) -> wire::MeshSpec {
        let mut spec = wire::MeshSpec {
            agent_info: (!self.agent_namespace.is_empty()).then(|| wire::AgentInfo {
                agent_namespace: self.agent_namespace.clone(),
            }),
            ..wire::MeshSpec::default()
        };
        match &self.kind {
            MeshKind::Istio(istio) => spec.istio = Some(istio.to_wire()),
            MeshKind::Osm(installation) => {
                spec.osm = Some(wire::OsmMesh {
                    installation: Some(installation.to_wire()),
                });
            }
            MeshKind::Other(_) => {}
        }
        spec
    }
}

impl Istio {
    fn parse(istio: &wire::IstioMesh) -> Self {
        Self {
            installation: Installation::parse(istio.installation.as_ref()),
            trust_domain: istio.trust_domain.clone(),
            network: istio.network.clone(),
            service_account: istio.istiod_service_account.clone(),
            ingress_gateways: istio
                .ingress_gateways
                .iter()
                .map(|gateway| IngressGateway {
                    name: gateway.name.clone(),
                    namespace: gateway.namespace.clone(),
                    workload_labels: Labels::from(&gateway.workload_labels),
                    address: Address::parse(gateway.dns_name.as_ref(), gateway.ip.as_ref())
                        .or_else(|| {
                            // The oldest form has one field for both sorts.
                            (!gateway.external_address.is_empty()).then(|| {
                                let text = gateway.external_address.clone();
                                match text.parse::<std::net::IpAddr>() {
                                    Ok(_) => Address::Ip(text),
                                    Err(_) => Address::DnsName(text),
                                }
                            })
                        }),
                    external_tls_port: number(gateway.external_tls_port),
                    tls_container_port: number(gateway.tls_container_port),
                })
                .collect(),
            smart_dns: istio.smart_dns_proxying_enabled,
        }
    }

    fn to_wire(&self) -> wire::IstioMesh {
        wire::IstioMesh {
            installation: Some(self.installation.to_wire()),
            trust_domain: self.trust_domain.clone(),
            network: self.network.clone(),
            istiod_service_account: self.service_account.clone(),
            ingress_gateways: self
                .ingress_gateways
                .iter()
                .map(|gateway| {
                    let (dns_name, ip) = match &gateway.address {
                        Some(Address::DnsName(name)) => (Some(name.clone()), None),
                        Some(Address::Ip(ip)) => (None, Some(ip.clone())),
                        None => (None, None),
                    };
                    wire::IngressGateway {
                        name: gateway.name.clone(),
                        namespace: gateway.namespace.clone(),
                        workload_labels: gateway.workload_labels.to_map(),
                        external_address: gateway
                            .address
                            .as_ref()
                            .map(|address| address.as_str().to_owned())
                            .unwrap_or_default(),
                        dns_name,
                        ip,
                        external_tls_port: signed(gateway.external_tls_port),
                        tls_container_port: signed(gateway.tls_container_port),
                    }
                })
                .collect(),
            smart_dns_proxying_enabled: self.smart_dns,
        }
    }
}

impl Installation {
    fn parse(installation: Option<&wire::MeshInstallation>) -> Self {
        installation
            .map(|installation| Self {
                namespace: installation.namespace.clone(),
                cluster: installation.cluster.as_str().into(),
                pod_labels: Labels::from(&installation.pod_labels),
                version: installation.version.clone(),
                region: installation.region.clone(),
            })
            .unwrap_or_default()
    }

    fn to_wire(&self) -> wire::MeshInstallation {
        wire::MeshInstallation {
            namespace: self.namespace.clone(),
            cluster: self.cluster.to_string(),
            pod_labels: self.pod_labels.to_map(),
            version: self.version.clone(),
            region: self.region.clone(),
        }
    }
}
