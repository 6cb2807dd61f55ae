//! East-west ingress gateways: what other clusters come in through.

use std::collections::BTreeMap;
use std::sync::Arc;

use ferromesh_crds::meta::DEFAULT_GATEWAY_PORT_NAME;

use super::Inputs;
use crate::diagnose::{Code, Finding};
use crate::index::{DestinationIndex, default_gateway_of};
use crate::key::Key;
use crate::model::destination::{KubeService, ServiceType, TargetPort};
use crate::model::labels::Labels;
use crate::model::selector::Destinations;
use crate::model::virtual_mesh::GatewaySelector;
use crate::model::{Destination, Mesh, VirtualMesh};

/// Where a virtual mesh selects gateways.
const SELECTORS: &str = "spec.federation.eastWestIngressGatewaySelectors";

/// A service that lets other clusters in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedGateway {
    /// The destination.
    pub destination: Key,
    /// Name of its Service.
    pub service: Arc<str>,
    /// Labels of its pods.
    pub pod_labels: Labels,
    /// Where other clusters reach it.
    pub addresses: Box<[Arc<str>]>,
    /// The port at those addresses.
    pub port: u32,
    /// The port on its pods.
    pub container_port: u32,
}

/// The gateways of one mesh, and what is wrong with others that were to be.
#[derive(Default)]
pub(super) struct Selected {
    pub(super) gateways: Vec<AppliedGateway>,
    pub(super) errors: Vec<Finding>,
}

/// Chooses the gateways of a mesh: those that the virtual mesh selects there, else those that the
/// mesh lists, else Istio's own. `path` is where the virtual mesh lists the mesh.
pub(super) fn select(
    inputs: &Inputs<'_>,
    mesh: &Mesh,
    virtual_mesh: &VirtualMesh,
    size: usize,
    path: &str,
) -> Selected {
    let mut selected = Selected::default();
    for (at, destination) in chosen(inputs, mesh, virtual_mesh).into_values() {
        let selector = &virtual_mesh.federation.gateways[at];
        match AppliedGateway::new(destination, &selector.port_name) {
            Ok(gateway) => selected.gateways.push(gateway),
            Err(finding) => {
                let path = path_to(at, selector, destination);
                selected.errors.push(finding.at(path));
            }
        }
    }
    if !selected.gateways.is_empty() || !selected.errors.is_empty() {
        return selected;
    }
    selected.gateways = listed(inputs, mesh);
    if !selected.gateways.is_empty() {
        return selected;
    }
    let default = default_gateway(inputs, mesh)
        .map(|destination| AppliedGateway::new(destination, DEFAULT_GATEWAY_PORT_NAME));
    match default {
        Some(Ok(gateway)) => selected.gateways.push(gateway),
        // A virtual mesh of one has nobody to let in, and nobody asked for this gateway.
        Some(Err(finding)) if size > 1 => selected.errors.push(finding.at(path)),
        Some(Err(_)) | None => {}
    }
    selected
}

/// What of the nth selector of gateways chooses a destination.
fn path_to(nth: usize, selector: &GatewaySelector, destination: &Destination) -> String {
    let path = format!("{SELECTORS}[{nth}]");
    match (&selector.destinations, &destination.service) {
        (Destinations::All, _) | (_, None) => path,
        (selected, Some(service)) => {
            selected.path_to(&format!("{path}.destinationSelectors"), service)
        }
    }
}

/// What the selectors of the virtual mesh choose in this mesh, each with the position of the first
/// selector that matches it: that one names its port.
fn chosen<'a>(
    inputs: &Inputs<'a>,
    mesh: &Mesh,
    virtual_mesh: &VirtualMesh,
) -> BTreeMap<&'a Key, (usize, &'a Arc<Destination>)> {
    let mut chosen = BTreeMap::new();
    for (at, selector) in virtual_mesh.federation.gateways.iter().enumerate() {
        let destinations = match &selector.destinations {
            // Left out, the selection stands for the default gateway of each mesh.
            Destinations::All => default_gateway(inputs, mesh).into_iter().collect(),
            selected @ Destinations::Selected(_) => {
                inputs.index.select(selected, inputs.destinations)
            }
        };
        for destination in destinations {
            if destination.mesh.as_ref() == Some(&mesh.key) {
                chosen.entry(&destination.key).or_insert((at, destination));
            }
        }
    }
    chosen
}

/// Istio's own ingress gateway in a mesh, the first by key where there are more.
fn default_gateway<'a>(inputs: &Inputs<'a>, mesh: &Mesh) -> Option<&'a Arc<Destination>> {
    let key = inputs.index.default_gateway(&mesh.key)?;
    inputs.destinations.get(key)
}

/// What the mesh itself lists, the older way; entries without a destination, or whose Service
/// selects no pods, are passed over.
fn listed(inputs: &Inputs<'_>, mesh: &Mesh) -> Vec<AppliedGateway> {
    let Some(istio) = mesh.istio() else {
        return Vec::new();
    };
    istio
        .ingress_gateways
        .iter()
        .filter(|gateway| gateway.external_tls_port != 0 && gateway.tls_container_port != 0)
        .filter_map(|gateway| {
            let service = Key::new(
                &gateway.name,
                &gateway.namespace,
                &istio.installation.cluster,
            );
            let destination = inputs
                .destinations
                .get(inputs.index.of_service(&service)?)?;
            let service = destination
                .service
                .as_ref()
                .filter(|service| !service.selector.is_empty())?;
            Some(AppliedGateway {
                destination: destination.key.clone(),
                service: service.reference.name().into(),
                pod_labels: service.selector.clone(),
                addresses: addresses(service),
                port: gateway.external_tls_port,
                container_port: gateway.tls_container_port,
            })
        })
        .collect()
}

impl AppliedGateway {
    fn new(destination: &Destination, port_name: &str) -> Result<Self, Finding> {
        let key = &destination.key;
        let no_port = || {
            Finding::about(
                Code::NotReady,
                key,
                format!(
                    "ingress gateway destination port info could not be determined for tls port name: {port_name}; destination {key} needs a port of that name, and type NodePort or LoadBalancer"
                ),
            )
        };
        let service = destination.service.as_ref().ok_or_else(no_port)?;
        if service.selector.is_empty() {
            return Err(Finding::about(
                Code::Invalid,
                key,
                format!(
                    "attempting to select ingress gateway destination {key} with no selector labels"
                ),
            ));
        }
        let port = service
            .ports
            .iter()
            .rev()
            .find(|port| *port.name == *port_name)
            .ok_or_else(no_port)?;
        let container_port = match &port.target {
            TargetPort::Number(0) => Some(port.port),
            TargetPort::Number(number) => u32::try_from(*number).ok(),
            TargetPort::Name(name) => service
                .endpoints
                .iter()
                .flat_map(|subset| subset.ports.iter())
                .find(|port| port.name == *name)
                .or_else(|| {
                    // Endpoint ports carry the name of the Service's port.
                    service
                        .endpoints
                        .iter()
                        .flat_map(|subset| subset.ports.iter())
                        .find(|endpoint| endpoint.name == port.name)
                })
                .map(|port| port.port),
        };
        let external_port = match service.service_type {
            ServiceType::NodePort => port.node_port,
            ServiceType::LoadBalancer => port.port,
            ServiceType::ClusterIp | ServiceType::ExternalName => 0,
        };
        let container_port = container_port
            .filter(|port| *port != 0)
            .ok_or_else(no_port)?;
        if external_port == 0 {
            return Err(no_port());
        }
        Ok(Self {
            destination: key.clone(),
            service: service.reference.name().into(),
            pod_labels: service.selector.clone(),
            addresses: addresses(service),
            port: external_port,
            container_port,
        })
    }
}

fn addresses(service: &KubeService) -> Box<[Arc<str>]> {
    service
        .external_addresses
        .iter()
        .map(|address| address.as_str().into())
        .collect()
}

/// Services that a virtual mesh names, as gateways or to federate them, and that do not exist.
pub(super) fn missing_services(
    virtual_mesh: &VirtualMesh,
    index: &DestinationIndex,
) -> Vec<Finding> {
    let federation = &virtual_mesh.federation;
    let gateways = federation.gateways.iter().map(|it| &it.destinations);
    let gateways = gateways.enumerate().map(|(at, it)| (SELECTORS, at, it));
    let federated = federation.selectors.iter().map(|it| &it.destinations);
    let federated = federated.enumerate();
    let federated = federated.map(|(at, it)| ("spec.federation.selectors", at, it));
    let named = gateways.chain(federated).flat_map(|(path, at, selected)| {
        let services = selected.services();
        services.map(move |listed| (path, at, listed))
    });
    named
        .filter(|(_, _, listed)| index.of_service(listed.service).is_none())
        .map(|(path, at, listed)| {
            let service = listed.service;
            let text = format!("Invalid Destination selector: Destination {service} not found");
            let path = listed.path(&format!("{path}[{at}].destinationSelectors"));
            Finding::about(Code::NotFound, service, text).at(path)
        })
        .collect()
}

/// Whether the estate could look different because of this destination.
pub(crate) fn concerns_estate<'a>(
    destination: &Destination,
    meshes: impl Fn(&Key) -> Option<&'a Arc<Mesh>>,
    mut virtual_meshes: impl Iterator<Item = &'a Arc<VirtualMesh>>,
) -> bool {
    let Some(service) = &destination.service else {
        return false;
    };
    if default_gateway_of(destination).is_some() {
        return true;
    }
    let is_listed = destination
        .mesh
        .as_ref()
        .and_then(meshes)
        .is_some_and(|mesh| {
            mesh.istio().is_some_and(|istio| {
                istio.ingress_gateways.iter().any(|gateway| {
                    gateway.name == service.reference.name()
                        && gateway.namespace == service.reference.namespace()
                })
            })
        });
    is_listed
        || virtual_meshes.any(|virtual_mesh| {
            let federation = &virtual_mesh.federation;
            let is_gateway = federation.gateways.iter().any(|selector| {
                matches!(selector.destinations, Destinations::Selected(_))
                    && selector.destinations.select(Some(service))
            });
            let mut federated = federation.selectors.iter();
            is_gateway
                || federated.any(|selector| {
                    let mut named = selector.destinations.services();
                    named.any(|listed| *listed.service == service.reference)
                })
        })
}
