//! Meshes: control planes, found by their Deployments.

use std::sync::Arc;

use super::{address, image};
use crate::graph::Reader;
use crate::key::Key;
use crate::model::destination::{ServiceType, TargetPort};
use crate::model::kubernetes::controller::Istiod;
use crate::model::kubernetes::{ConfigMap, Controller, Service, config_map};
use crate::model::mesh::{IngressGateway, Installation, Istio, MeshKind};
use crate::model::{Labels, Mesh, Settings};
use crate::naming;
use ferromesh_crds::meta::AGENT_LABEL;

/// What the name of an Istio control plane's Deployment starts with; `istiod-<revision>` follows.
pub(crate) const ISTIOD: &str = "istiod";
/// The name of Open Service Mesh's control plane.
pub(crate) const OSM_CONTROLLER: &str = "osm-controller";
/// The ConfigMap of an Istio mesh's configuration; `istio-<revision>` for a revision.
const CONFIG: &str = "istio";
/// Label of istiod's namespace: the network that all pods of the cluster are in, unless they say
/// otherwise themselves.
const NETWORK: &str = "topology.istio.io/network";

/// Whether a Deployment of this name could be a control plane.
pub(crate) fn is_candidate(name: &str) -> bool {
    name.starts_with(ISTIOD) || name == OSM_CONTROLLER
}

/// The revision that an istiod of this name serves; the one without is `default`.
pub(crate) fn revision(deployment: &str) -> &str {
    deployment
        .strip_prefix(ISTIOD)
        .and_then(|rest| rest.strip_prefix('-'))
        .unwrap_or("default")
}

/// The mesh whose control plane a Deployment is.
pub(crate) fn discover(reader: &Reader<'_>, deployment: &Controller) -> Option<Mesh> {
    let key = &deployment.key;
    let installation = |image: &str, region: String| Installation {
        namespace: key.namespace().to_owned(),
        cluster: key.cluster().into(),
        pod_labels: deployment.selector.clone(),
        version: image::version(image).to_owned(),
        region,
    };
    let name = naming::discovered(key.name(), key.namespace(), key.cluster());
    let mesh = |kind, agent_namespace| Mesh {
        key: Key::local(&name, reader.namespace()),
        generation: 0,
        annotations: deployment.annotations(),
        kind,
        agent_namespace,
        discovered_in: key.cluster().into(),
    };
    if let Some(istiod) = deployment.istiod()
        && key.name().starts_with(ISTIOD)
    {
        let mesh_key = Key::local(&name, reader.namespace());
        let config = configuration(reader, deployment, istiod, &mesh_key);
        let istio = Istio {
            installation: installation(&istiod.image, region(reader, key.cluster())),
            trust_domain: config.trust_domain,
            network: network(reader, key).unwrap_or(config.network),
            service_account: deployment.service_account.to_string(),
            ingress_gateways: gateways(reader, key),
            smart_dns: config.smart_dns,
        };
        return Some(mesh(
            MeshKind::Istio(istio),
            agent_namespace(reader, key.cluster()),
        ));
    }
    let image = deployment.osm_controller()?;
    (key.name() == OSM_CONTROLLER).then(|| {
        mesh(
            MeshKind::Osm(installation(image, String::new())),
            String::new(),
        )
    })
}

/// What the mesh's configuration says.
#[derive(Default)]
struct Configuration {
    trust_domain: String,
    network: String,
    smart_dns: bool,
}

/// Looks at the mesh's configuration: that of its revision, else the one without.
///
/// Where it is missing or cannot be read, what was found earlier stands, as the stored mesh says:
/// a mesh does not vanish because of a slip in a ConfigMap, and everything in it with it.
fn configuration(
    reader: &Reader<'_>,
    deployment: &Controller,
    istiod: &Istiod,
    mesh: &Key,
) -> Configuration {
    let key = &deployment.key;
    let find = |name: &str| -> Option<&ConfigMap> {
        reader
            .config_map(&Key::new(name, key.namespace(), key.cluster()))
            .filter(|config| config.mesh != config_map::Mesh::Absent)
            .map(AsRef::as_ref)
    };
    let config = match revision(key.name()) {
        "default" => find(CONFIG),
        revision => find(&format!("{CONFIG}-{revision}")).or_else(|| find(CONFIG)),
    };
    if let Some(ConfigMap { mesh, networks, .. }) = config
        && let config_map::Mesh::Says {
            trust_domain,
            smart_dns,
        } = mesh
    {
        return Configuration {
            trust_domain: trust_domain.clone(),
            network: networks.get(&istiod.registry).cloned().unwrap_or_default(),
            smart_dns: *smart_dns,
        };
    }
    reader
        .stored_mesh(mesh)
        .and_then(|mesh| mesh.istio())
        .map(|istio| Configuration {
            trust_domain: istio.trust_domain.clone(),
            network: istio.network.clone(),
            smart_dns: istio.smart_dns,
        })
        .unwrap_or_default()
}

/// The network that the label of istiod's namespace names; it comes before the configuration (Istio:
/// topology labels).
fn network(reader: &Reader<'_>, istiod: &Key) -> Option<String> {
    let namespace = reader.namespace_of(istiod)?;
    let network = namespace.labels.get(NETWORK)?;
    (!network.is_empty()).then(|| network.to_owned())
}

/// The region of a cluster: that of the first of its nodes that says one.
fn region(reader: &Reader<'_>, cluster: &str) -> String {
    reader
        .nodes(cluster)
        .map(|node| &*node.region)
        .find(|region| !region.is_empty())
        .unwrap_or_default()
        .to_owned()
}

/// The namespace of the certificate agent in a cluster, empty where there is none: that of its
/// Deployment, which stands while its pods come and go, else that of its first pod.
fn agent_namespace(reader: &Reader<'_>, cluster: &str) -> String {
    reader
        .agents_in(cluster)
        .next()
        .map(|agent| agent.key.namespace().to_owned())
        .unwrap_or_default()
}

/// Whether pods of these labels are the agent that manages certificates.
pub(crate) fn is_agent(pod_labels: &Labels) -> bool {
    let (key, value) = AGENT_LABEL;
    pod_labels.get(key) == Some(value)
}

/// Ingress gateways in istiod's namespace, the older way to find them.
fn gateways(reader: &Reader<'_>, istiod: &Key) -> Box<[IngressGateway]> {
    let detector = Settings::gateway_detector(reader.settings(), istiod.cluster());
    reader
        .services_beside(istiod)
        .filter(|service| service.selector.contain(&detector.workload_labels))
        .filter_map(|service| gateway(reader, service, &detector.tls_port_name))
        .collect()
}

fn gateway(reader: &Reader<'_>, service: &Service, port_name: &str) -> Option<IngressGateway> {
    let port = service.ports.iter().find(|port| *port.name == *port_name)?;
    let external = match service.service_type {
        // A manifest that nobody has applied yet has no port of nodes.
        ServiceType::NodePort => port.node_port,
        ServiceType::LoadBalancer => port.port,
        ServiceType::ClusterIp | ServiceType::ExternalName => return None,
    };
    let external_tls_port = Some(external).filter(|port| *port != 0)?;
    let container = match port.target {
        TargetPort::Number(0) => port.port,
        TargetPort::Number(number) => u32::try_from(number).ok()?,
        TargetPort::Name(_) => return None,
    };
    let pods = reader
        .pods_beside(&service.key)
        .filter(|pod| pod.labels.contain(&service.selector));
    Some(IngressGateway {
        name: service.key.name().to_owned(),
        namespace: service.key.namespace().to_owned(),
        workload_labels: service.selector.clone(),
        address: Some(address::gateway(reader, service, pods)?),
        external_tls_port,
        tls_container_port: container,
    })
}

/// The control planes of a cluster, by revision: what a proxy's mesh is found by.
pub(crate) struct ControlPlanes<'a> {
    /// Istio's, in key order, each with its revision and the mesh that it is.
    istio: Vec<(&'a str, &'a Arc<Mesh>)>,
    /// Open Service Mesh's first.
    osm: Option<&'a Arc<Mesh>>,
}

impl<'a> ControlPlanes<'a> {
    pub(crate) fn of(reader: &Reader<'a>, cluster: &str) -> Self {
        let mut planes = Self {
            istio: Vec::new(),
            osm: None,
        };
        for (deployment, mesh) in reader.found_meshes(cluster) {
            match &mesh.kind {
                MeshKind::Istio(_) => planes.istio.push((revision(deployment.name()), mesh)),
                MeshKind::Osm(_) => {
                    planes.osm.get_or_insert(mesh);
                }
                MeshKind::Other(_) => {}
            }
        }
        planes
    }

    /// Istio's control plane of a revision; with one alone there is no choice. A revision that is
    /// none of theirs is a tag, whose target shows nowhere but in the injector's webhooks: the
    /// default one is taken for it, or the first.
    pub(crate) fn istio(&self, revision: Option<&str>) -> Option<&'a Arc<Mesh>> {
        let of = |wanted: &str| {
            self.istio
                .iter()
                .find(|(revision, _)| *revision == wanted)
                .map(|(_, mesh)| *mesh)
        };
        match (&*self.istio, revision) {
            ([(_, only)], _) => Some(only),
            (planes, revision) => revision
                .and_then(of)
                .or_else(|| of("default"))
                .or_else(|| planes.first().map(|(_, mesh)| *mesh)),
        }
    }

    /// Open Service Mesh's control plane.
    pub(crate) fn osm(&self) -> Option<&'a Arc<Mesh>> {
        self.osm
    }
}
