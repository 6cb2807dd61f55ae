//! Outputs: objects as they are to stand in a cluster.

pub(crate) mod comparison;
pub mod destination;
pub mod discovered;
pub mod mesh;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ferromesh_crds::{self as crds, meta};
use ferromesh_istio as istio;
use serde::Serialize;

use crate::key::Key;

/// A kind of object that we write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutputKind {
    /// A kind of Istio.
    Istio(istio::Kind),
    /// The authority that a mesh is to have.
    IssuedCertificate,
    /// Pods to restart once it has.
    PodBounceDirective,
    /// A discovered mesh.
    Mesh,
    /// A discovered workload.
    Workload,
    /// A discovered destination.
    Destination,
}

impl OutputKind {
    /// The kinds that are written to managed clusters: those that others refer to come before those that
    /// refer to them.
    pub const PUSHED: [Self; 7] = [
        Self::Istio(istio::Kind::ServiceEntry),
        Self::Istio(istio::Kind::Gateway),
        Self::Istio(istio::Kind::DestinationRule),
        Self::Istio(istio::Kind::VirtualService),
        Self::Istio(istio::Kind::AuthorizationPolicy),
        Self::PodBounceDirective,
        Self::IssuedCertificate,
    ];

    /// The kinds that discovery writes to the management cluster, in the same order.
    pub const DISCOVERED: [Self; 3] = [Self::Mesh, Self::Workload, Self::Destination];
}

/// Which object of which cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutputKey {
    /// The cluster, empty for the management cluster.
    pub cluster: Arc<str>,
    /// The kind.
    pub kind: OutputKind,
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

/// An object as it is to stand in a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Which object.
    pub key: OutputKey,
    /// Its labels, ownership included.
    pub labels: BTreeMap<String, String>,
    /// Its annotations, parents included.
    pub annotations: BTreeMap<String, String>,
    /// Its spec.
    pub spec: Spec,
}

/// The spec of an output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each is the spec of the kind of its name")]
pub enum Spec {
    AuthorizationPolicy(istio::AuthorizationPolicy),
    DestinationRule(istio::DestinationRule),
    Gateway(istio::Gateway),
    ServiceEntry(istio::ServiceEntry),
    VirtualService(istio::VirtualService),
    IssuedCertificate(Box<crds::IssuedCertificateSpec>),
    PodBounceDirective(crds::PodBounceDirectiveSpec),
    Mesh(Box<crds::MeshSpec>),
    Workload(Box<crds::WorkloadSpec>),
    Destination(Box<crds::DestinationSpec>),
}

impl Output {
    /// Its place among the outputs of its kind on its cluster: a lower rank is to be there first, and to
    /// go last. An `AuthorizationPolicy` that allows nothing comes after those that allow something, so
    /// that nobody is locked out in between.
    pub fn rank(&self) -> u8 {
        let allows_nothing = matches!(
            &self.spec,
            Spec::AuthorizationPolicy(policy) if policy.rules.is_empty()
        );
        u8::from(allows_nothing)
    }
}

// === impl OutputKind ===

impl OutputKind {
    /// The kind's name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Istio(kind) => kind.name(),
            Self::IssuedCertificate => "IssuedCertificate",
            Self::PodBounceDirective => "PodBounceDirective",
            Self::Mesh => "Mesh",
            Self::Workload => "Workload",
            Self::Destination => "Destination",
        }
    }

    /// The resource name in a URL.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Istio(kind) => kind.plural(),
            Self::IssuedCertificate => "issuedcertificates",
            Self::PodBounceDirective => "podbouncedirectives",
            Self::Mesh => "meshes",
            Self::Workload => "workloads",
            Self::Destination => "destinations",
        }
    }

    /// The API group.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Istio(kind) => kind.group(),
            Self::IssuedCertificate | Self::PodBounceDirective => crds::CERTIFICATES_GROUP,
            Self::Mesh | Self::Workload | Self::Destination => crds::DISCOVERY_GROUP,
        }
    }

    /// The versions that our specs are valid for, best first.
    pub const fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Istio(kind) => kind.versions(),
            Self::IssuedCertificate
            | Self::PodBounceDirective
            | Self::Mesh
            | Self::Workload
            | Self::Destination => &["v1"],
        }
    }
}

impl fmt::Display for OutputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for OutputKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}/{} on {}",
            self.kind, self.namespace, self.name, self.cluster
        )
    }
}

// === metadata ===

/// Labels of what is made of policies and virtual meshes; `owner` is our namespace.
fn owned(owner: &str, cluster: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (meta::NETWORKING_OWNER_LABEL.to_owned(), owner.to_owned()),
        (meta::CLUSTER_LABEL.to_owned(), cluster.to_owned()),
    ])
}

/// What an object was made of, as an annotation: trouble in writing the object is theirs.
fn parents(annotations: &mut BTreeMap<String, String>, kind: &str, parent: &Key) {
    #[derive(Serialize)]
    struct Reference<'a> {
        name: &'a str,
        namespace: &'a str,
    }
    let parents = BTreeMap::from([(
        kind,
        [Reference {
            name: parent.name(),
            namespace: parent.namespace(),
        }],
    )]);
    let text = serde_json::to_string(&parents).expect("strings are JSON");
    annotations.insert(meta::PARENTS_ANNOTATION.to_owned(), text);
}

/// A destination as a parent.
const DESTINATION: &str = "discovery.mesh.gloo.solo.io/v1, Kind=Destination";
/// A virtual mesh as a parent.
const VIRTUAL_MESH: &str = "networking.mesh.gloo.solo.io/v1, Kind=VirtualMesh";
