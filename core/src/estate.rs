//! What holds for whole meshes: which virtual mesh a mesh belongs to, its gateways, its peers.
//!
//! There are few meshes and virtual meshes, and much depends on each, so this is computed as one
//! value whenever one of them changes, and compared mesh by mesh: only the destinations of a mesh
//! for which something changed are looked at again.

mod gateway;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferromesh_crds::meta::{DEFAULT_CLUSTER_DOMAIN, DEFAULT_HOSTNAME_SUFFIX};
use ferromesh_istio::destination_rule::ClientTlsMode;

use crate::diagnose::{Code, Finding};
use crate::index::DestinationIndex;
use crate::key::Key;
use crate::model::mesh::MeshKind;
use crate::model::{Destination, KubernetesCluster, Mesh, Reference, Settings, VirtualMesh};
use crate::table::Table;

pub use gateway::AppliedGateway;
pub(crate) use gateway::concerns_estate;

/// Facts about all meshes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estate {
    /// Every Istio mesh.
    pub sites: BTreeMap<Key, Arc<Site>>,
    /// Every virtual mesh, as it is judged.
    pub virtual_meshes: BTreeMap<Key, Arc<Standing>>,
    /// Trust domains of the Istio meshes of each cluster; empty ones are left out.
    pub trust_domains: Arc<TrustDomains>,
    /// DNS domains of clusters that registered with one.
    pub domains: BTreeMap<Arc<str>, Arc<str>>,
}

/// Trust domains by cluster; each has at least one.
pub type TrustDomains = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

/// What a mesh is to the translation of its destinations.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The mesh.
    pub mesh: Arc<Mesh>,
    /// Cluster of its control plane.
    pub cluster: Arc<str>,
    /// Namespace of its control plane, where objects for the whole mesh go.
    pub namespace: Arc<str>,
    /// DNS domain of the cluster.
    pub domain: Arc<str>,
    /// TLS mode of its destination rules.
    pub tls_mode: ClientTlsMode,
    /// Where our own objects are in the cluster, the certificates' namespace.
    pub agent_namespace: Arc<str>,
    /// The virtual mesh that it is in.
    pub membership: Option<Membership>,
}

/// A virtual mesh, seen from one of its meshes.
#[derive(Clone, Debug, PartialEq)]
pub struct Membership {
    /// The virtual mesh.
    pub virtual_mesh: Arc<VirtualMesh>,
    /// How many meshes it lists, existing or not.
    pub size: usize,
    /// What other clusters come in through.
    pub gateways: Arc<[AppliedGateway]>,
    /// The other meshes of the virtual mesh, in key order.
    pub peers: Arc<[Client]>,
    /// Meshes that federation selectors name, in key order; those that do not exist are left out.
    pub named: Arc<[Client]>,
}

/// A mesh that sees services of others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    /// The mesh.
    pub mesh: Key,
    /// Its cluster.
    pub cluster: Arc<str>,
    /// Namespace of its control plane.
    pub namespace: Arc<str>,
    /// Whether its proxies answer DNS queries, so that any suffix resolves.
    pub smart_dns: bool,
}

/// How a virtual mesh is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The virtual mesh.
    pub virtual_mesh: Arc<VirtualMesh>,
    /// Whether it holds its meshes: another one may hold one of them.
    pub is_applied: bool,
    /// What is wrong with it as a whole.
    pub findings: Vec<Finding>,
    /// Its existing meshes in key order, each with what is wrong there.
    pub members: BTreeMap<Key, Member>,
}

/// One mesh of a virtual mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// Where the virtual mesh lists it.
    pub position: usize,
    /// What is wrong there.
    pub errors: Vec<Finding>,
    /// What will not work yet.
    pub warnings: Vec<Finding>,
}

/// What the estate is computed from.
pub(crate) struct Inputs<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) meshes: &'a Table<Key, Arc<Mesh>>,
    pub(crate) virtual_meshes: &'a Table<Key, Arc<VirtualMesh>>,
    pub(crate) clusters: &'a Table<Key, Arc<KubernetesCluster>>,
    pub(crate) settings: Option<&'a Arc<Settings>>,
    pub(crate) destinations: &'a Table<Key, Arc<Destination>>,
    pub(crate) index: &'a DestinationIndex,
}

impl Estate {
    /// The DNS domain of a cluster.
    pub fn domain(&self, cluster: &str) -> Arc<str> {
        self.domains
            .get(cluster)
            .map_or_else(|| DEFAULT_CLUSTER_DOMAIN.into(), Arc::clone)
    }

    /// The site of a mesh; none for what is no Istio mesh.
    pub fn site(&self, mesh: &Key) -> Option<&Arc<Site>> {
        self.sites.get(mesh)
    }

    /// This, with everything that is as it was being the same one: whoever compares it sees that at once.
    #[must_use]
    pub(crate) fn sharing(mut self, before: &Self) -> Self {
        for (mesh, site) in &mut self.sites {
            if let Some(old) = before.sites.get(mesh).filter(|old| *old == site) {
                *site = Arc::clone(old);
            }
        }
        if self.trust_domains == before.trust_domains {
            self.trust_domains = Arc::clone(&before.trust_domains);
        }
        self
    }

    pub(crate) fn new(inputs: &Inputs<'_>) -> Self {
        let mut virtual_meshes = claims(inputs);
        let clients: BTreeMap<&Key, Client> = inputs
            .meshes
            .iter()
            .filter_map(|(key, mesh)| Some((key, client(mesh)?)))
            .collect();
        let holder: BTreeMap<Key, Key> = virtual_meshes
            .iter()
            .filter(|(_, standing)| standing.is_applied)
            .flat_map(|(key, standing)| {
                standing
                    .members
                    .keys()
                    .map(move |mesh| (mesh.clone(), key.clone()))
            })
            .collect();
        let registered =
            |cluster: &str| inputs.clusters.get(&Key::local(cluster, inputs.namespace));
        let mut estate = Self::default();
        let mut trust_domains = TrustDomains::new();
        for cluster in inputs.clusters.values() {
            if cluster.key.namespace() == inputs.namespace {
                estate
                    .domains
                    .insert(cluster.key.name().into(), cluster.domain.clone());
            }
        }
        for (key, mesh) in inputs.meshes.iter() {
            let (Some(istio), Some(own)) = (mesh.istio(), clients.get(key)) else {
                continue;
            };
            if !istio.trust_domain.is_empty() {
                trust_domains
                    .entry(own.cluster.clone())
                    .or_default()
                    .insert(istio.trust_domain.as_str().into());
            }
            let membership = holder.get(key).and_then(|holder| {
                let standing = virtual_meshes.get_mut(holder)?;
                Some(membership(inputs, mesh, standing, &clients))
            });
            let agent_namespace = if mesh.agent_namespace.is_empty() {
                registered(&own.cluster)
                    .map(|cluster| cluster.namespace.as_str())
                    .filter(|namespace| !namespace.is_empty())
                    .unwrap_or(inputs.namespace)
            } else {
                &mesh.agent_namespace
            };
            estate.sites.insert(
                key.clone(),
                Arc::new(Site {
                    mesh: Arc::clone(mesh),
                    cluster: own.cluster.clone(),
                    namespace: own.namespace.clone(),
                    domain: estate.domain(&own.cluster),
                    tls_mode: inputs
                        .settings
                        .map_or(Settings::default_tls_mode(), |settings| settings.tls_mode),
                    agent_namespace: agent_namespace.into(),
                    membership,
                }),
            );
        }
        estate.trust_domains = Arc::new(trust_domains);
        estate.virtual_meshes = virtual_meshes
            .into_iter()
            .map(|(key, standing)| (key, Arc::new(standing)))
            .collect();
        estate
    }
}

/// Who holds which mesh: the virtual mesh with the lowest key, and one that loses a single mesh
/// holds none. A mesh that does not exist is an error, and takes nothing from those that do.
fn claims(inputs: &Inputs<'_>) -> BTreeMap<Key, Standing> {
    let mut held: BTreeMap<&Key, &Key> = BTreeMap::new();
    let mut standings = BTreeMap::new();
    for (key, virtual_mesh) in inputs.virtual_meshes.iter() {
        let mut findings: Vec<_> = virtual_mesh.rejections.iter().map(Finding::from).collect();
        let mut members = BTreeMap::new();
        let mut is_applied = true;
        for listed in &virtual_mesh.meshes {
            let mesh = &listed.key;
            let Some(known) = inputs.meshes.get(mesh) else {
                findings.push(mesh_not_found("", mesh).at(path_of(listed.position)));
                continue;
            };
            let member = members.entry(mesh.clone());
            member.or_insert_with(|| Member::of(known, listed.position));
            if let Some(holder) = held.get(mesh) {
                is_applied = false;
                let text = format!(
                    "Includes a Mesh ({mesh}) that already is grouped in a VirtualMesh ({holder})"
                );
                let conflict = Finding::about(Code::Conflicted, holder, text);
                findings.push(conflict.at(path_of(listed.position)));
            }
        }
        if is_applied {
            held.extend(
                virtual_mesh
                    .meshes
                    .iter()
                    .map(|listed| &listed.key)
                    .filter(|mesh| members.contains_key(mesh))
                    .map(|mesh| (mesh, key)),
            );
        }
        findings.extend(gateway::missing_services(virtual_mesh, inputs.index));
        findings.extend(missing_clients(inputs, virtual_mesh));
        standings.insert(
            key.clone(),
            Standing {
                virtual_mesh: Arc::clone(virtual_mesh),
                is_applied,
                findings,
                members,
            },
        );
    }
    standings
}

/// Meshes that a virtual mesh federates services to and that do not exist.
fn missing_clients(inputs: &Inputs<'_>, virtual_mesh: &VirtualMesh) -> Vec<Finding> {
    let selectors = virtual_mesh.federation.selectors.iter().enumerate();
    selectors
        .flat_map(|(at, selector)| selector.meshes.iter().map(move |mesh| (at, mesh)))
        .filter(|(_, mesh)| !inputs.meshes.contains_key(&mesh.key))
        .map(|(at, Reference { key, position })| {
            let finding = mesh_not_found("Invalid federation selector: ", key);
            finding.at(format!(
                "spec.federation.selectors[{at}].meshes[{position}]"
            ))
        })
        .collect()
}

/// Where the virtual mesh lists a mesh.
fn path_of(position: usize) -> String {
    format!("spec.meshes[{position}]")
}

fn mesh_not_found(prefix: &str, mesh: &Key) -> Finding {
    Finding::about(
        Code::NotFound,
        mesh,
        format!("{prefix}Mesh {mesh} not found; list discovered meshes with `kubectl get mesh`"),
    )
}

impl Member {
    /// Where the virtual mesh lists it.
    pub(crate) fn path(&self) -> String {
        path_of(self.position)
    }

    /// A mesh of which nothing is known yet but its sort.
    fn of(mesh: &Mesh, position: usize) -> Self {
        let sort = match &mesh.kind {
            MeshKind::Istio(_) => None,
            MeshKind::Osm(_) => Some("osm"),
            MeshKind::Other(name) => Some(*name),
        };
        let unsupported = |sort| {
            let text = format!(
                "mesh {} is of type {sort}, for which trust, federation and access control are not supported yet: nothing is written there",
                mesh.key
            );
            Finding::about(Code::Unsupported, &mesh.key, text).at(path_of(position))
        };
        Self {
            position,
            errors: Vec::new(),
            warnings: sort.into_iter().map(unsupported).collect(),
        }
    }
}

/// How one mesh takes part; what is wrong goes into the virtual mesh's standing.
fn membership(
    inputs: &Inputs<'_>,
    mesh: &Mesh,
    standing: &mut Standing,
    clients: &BTreeMap<&Key, Client>,
) -> Membership {
    let virtual_mesh = Arc::clone(&standing.virtual_mesh);
    let listed: BTreeSet<&Key> = virtual_mesh.meshes.iter().map(|it| &it.key).collect();
    let size = listed.len();
    let position = standing.members.get(&mesh.key).map(|it| it.position);
    let path = path_of(position.unwrap_or_default());
    let selected = gateway::select(inputs, mesh, &virtual_mesh, size, &path);
    let mut member = Member {
        position: position.unwrap_or_default(),
        errors: selected.errors,
        warnings: Vec::new(),
    };
    if size > 1 && selected.gateways.is_empty() && member.errors.is_empty() {
        let text = format!(
            "no Destinations selected as ingress gateway for mesh {}. At least one must be selected: label the gateway's pods istio=ingressgateway and name its TLS port `tls`, or set federation.eastWestIngressGatewaySelectors",
            mesh.key
        );
        let finding = Finding::new(Code::NotReady, text).at(&path);
        member.errors.push(finding);
    }
    for gateway in selected
        .gateways
        .iter()
        .filter(|gateway| gateway.addresses.is_empty())
    {
        let text = format!(
            "ingress gateway {} has no external address yet; other clusters cannot reach it",
            gateway.destination
        );
        let finding = Finding::about(Code::NotReady, &gateway.destination, text);
        member.warnings.push(finding.at(&path));
    }
    standing.members.insert(mesh.key.clone(), member);
    let others = |keys: BTreeSet<&Key>| -> Arc<[Client]> {
        keys.into_iter()
            .filter(|key| **key != mesh.key)
            .filter_map(|key| clients.get(key).cloned())
            .collect()
    };
    Membership {
        size,
        gateways: selected.gateways.into(),
        peers: others(listed),
        named: others(
            virtual_mesh
                .federation
                .selectors
                .iter()
                .flat_map(|selector| &selector.meshes)
                .map(|listed| &listed.key)
                .collect(),
        ),
        virtual_mesh,
    }
}

fn client(mesh: &Mesh) -> Option<Client> {
    let istio = mesh.istio()?;
    Some(Client {
        mesh: mesh.key.clone(),
        cluster: istio.installation.cluster.clone(),
        namespace: istio.installation.namespace.as_str().into(),
        smart_dns: istio.smart_dns,
    })
}

impl Membership {
    /// Whether federated names of this virtual mesh resolve in the client by themselves.
    pub fn resolves_in(&self, client: &Client) -> bool {
        client.smart_dns
            || *self.virtual_mesh.federation.hostname_suffix == *DEFAULT_HOSTNAME_SUFFIX
    }
}
