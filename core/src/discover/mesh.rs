//! Meshes: control planes, found by their Deployments.

use std::sync::Arc;

use ferromesh_istio::{MeshConfig, mesh_config::Lenient};
use serde_saphyr::{budget, options};

use super::{address, image};
use crate::graph::Reader;
use crate::key::Key;
use crate::model::destination::{ServiceType, TargetPort};
use crate::model::kubernetes::{Controller, Pod, Service};
use crate::model::mesh::{IngressGateway, Installation, Istio, MeshKind};
use crate::model::{Mesh, Settings};
use crate::naming;
use ferromesh_crds::meta::AGENT_LABEL;

/// What the name of an Istio control plane's Deployment starts with; `istiod-<revision>` follows.
pub(crate) const ISTIOD: &str = "istiod";
/// The name of Open Service Mesh's control plane.
pub(crate) const OSM_CONTROLLER: &str = "osm-controller";
/// The ConfigMap of an Istio mesh's configuration; `istio-<revision>` for a revision.
const CONFIG: &str = "istio";
/// How many values of a mesh's configuration are read, aliases followed: some hundred times what a
/// large one has. What has more is refused before it holds everything up.
const MAX_VALUES: usize = 20_000;
/// What makes proxies answer DNS queries.
const DNS_CAPTURE: &str = "ISTIO_META_DNS_CAPTURE";

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
        annotations: deployment.annotations.clone(),
        kind,
        agent_namespace,
        discovered_in: key.cluster().into(),
    };
    if let Some(image) = &deployment.containers.istiod
        && key.name().starts_with(ISTIOD)
    {
        let config = configuration(reader, deployment, &Key::local(&name, reader.namespace()));
        let istio = Istio {
            installation: installation(image, region(reader, key.cluster())),
            trust_domain: config.trust_domain,
            service_account: deployment.service_account.clone(),
            ingress_gateways: gateways(reader, key),
            smart_dns: config.smart_dns,
        };
        return Some(mesh(
            MeshKind::Istio(istio),
            agent_namespace(reader, key.cluster()),
        ));
    }
    let image = deployment.containers.osm_controller.as_ref()?;
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
    smart_dns: bool,
}

/// Reads the mesh's configuration: of its revision, else the one without.
///
/// Where it is missing or cannot be read, what was found earlier stands, as the stored mesh says:
/// a mesh does not vanish because of a slip in a ConfigMap, and everything in it with it.
fn configuration(reader: &Reader<'_>, deployment: &Controller, mesh: &Key) -> Configuration {
    let key = &deployment.key;
    let read = |name: &str| {
        let config = reader.config_map(&Key::new(name, key.namespace(), key.cluster()))?;
        let text = config.mesh.as_deref()?;
        // An empty document is a configuration that says nothing.
        if text.trim().is_empty() {
            return Some(MeshConfig::default());
        }
        let options = options! { budget: budget! { max_nodes: MAX_VALUES } };
        serde_saphyr::from_str_with_options::<MeshConfig>(text, options).ok()
    };
    let revised = match revision(key.name()) {
        "default" => None,
        revision => read(&format!("{CONFIG}-{revision}")),
    };
    match revised.or_else(|| read(CONFIG)) {
        Some(config) => {
            let text = |value: Lenient| value.0;
            let capture = config
                .default_config
                .and_then(|defaults| defaults.proxy_metadata)
                .and_then(|mut metadata| metadata.remove(DNS_CAPTURE))
                .flatten();
            Configuration {
                trust_domain: config.trust_domain.map(text).unwrap_or_default(),
                smart_dns: capture.map(text).as_deref() == Some("true"),
            }
        }
        None => reader
            .stored_mesh(mesh)
            .and_then(|mesh| mesh.istio())
            .map(|istio| Configuration {
                trust_domain: istio.trust_domain.clone(),
                smart_dns: istio.smart_dns,
            })
            .unwrap_or_default(),
    }
}

/// The region of a cluster: that of the first of its nodes that says one.
fn region(reader: &Reader<'_>, cluster: &str) -> String {
    reader
        .nodes(cluster)
        .map(|node| node.region.as_str())
        .find(|region| !region.is_empty())
        .unwrap_or_default()
        .to_owned()
}

/// The namespace of the certificate agent in a cluster, empty where there is none.
fn agent_namespace(reader: &Reader<'_>, cluster: &str) -> String {
    reader
        .pods(cluster)
        .find(|pod| is_agent(pod))
        .map(|pod| pod.key.namespace().to_owned())
        .unwrap_or_default()
}

/// Whether a pod is the agent that manages certificates.
pub(crate) fn is_agent(pod: &Pod) -> bool {
    let (key, value) = AGENT_LABEL;
    pod.labels.get(key) == Some(value)
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
    let port = service.ports.iter().find(|port| port.name == port_name)?;
    let external = match service.service_type {
        // A manifest that nobody has applied yet has no port of nodes.
        ServiceType::NodePort => Some(port.node_port).filter(|port| *port != 0)?,
        ServiceType::LoadBalancer => port.port,
        ServiceType::ClusterIp | ServiceType::ExternalName => return None,
    };
    let container = match port.target {
        TargetPort::Number(0) => port.port,
        TargetPort::Number(number) => number,
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
        external_tls_port: u32::try_from(external).ok()?,
        tls_container_port: u32::try_from(container).ok()?,
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
