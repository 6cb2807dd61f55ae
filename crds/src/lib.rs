//! Our Kubernetes API: kinds, names as types, conditions, schema.
//!
//! This room holds the wire form: data as users and API servers write it, read leniently. No rule
//! about what the data means may enter, nor any knowledge of a second object; what a value must
//! look like to be stored is said in the schema, next to the field.
//!
//! In reading order:
//! - [`meta`]: labels, annotations and names that everybody must spell alike.
//! - [`name`], [`identity`]: names as types.
//! - [`condition`]: conditions of a status, and when they move.
//! - [`mod@reference`], [`selector`], [`string_match`], [`approval`], [`cert_options`],
//!   [`header_manipulation`], [`tcp_keepalive`], [`empty`]: what several kinds share.
//! - [`mesh`], [`workload`], [`destination`]: what discovery finds.
//! - [`traffic_policy`], [`access_policy`], [`virtual_mesh`]: what users ask for.
//! - [`issued_certificate`], [`certificate_request`], [`pod_bounce_directive`]: the life of a
//!   certificate.
//! - [`kubernetes_cluster`], [`settings`]: what the management plane itself needs.
//! - [`definition`]: all of them, as an API server is told about them.
//! - `schema`, `wire`: schemas of scalars; how values are read and written.

pub mod access_policy;
pub mod approval;
pub mod cert_options;
pub mod certificate_request;
pub mod condition;
pub mod definition;
pub mod destination;
pub mod empty;
pub mod header_manipulation;
pub mod identity;
pub mod issued_certificate;
pub mod kubernetes_cluster;
pub mod mesh;
pub mod meta;
pub mod name;
pub mod pod_bounce_directive;
pub mod reference;
pub mod selector;
pub mod settings;
pub mod string_match;
pub mod tcp_keepalive;
pub mod traffic_policy;
pub mod virtual_mesh;
pub mod workload;

mod schema;
mod wire;

// The derives of kube-derive speak of `kube::core`. This room must not name `kube`, which could
// reach its client, so the crate stands in for it and lends it the part that is data.
extern crate self as kube;
#[doc(hidden)]
pub use kube_core as core;
#[doc(hidden)]
pub use kube_derive::KubeSchema;

pub use self::access_policy::{AccessPolicy, AccessPolicySpec, AccessPolicyStatus};
pub use self::certificate_request::{
    CertificateRequest, CertificateRequestSpec, CertificateRequestStatus,
};
pub use self::definition::{all, managed};
pub use self::destination::{Destination, DestinationSpec, DestinationStatus};
pub use self::issued_certificate::{
    IssuedCertificate, IssuedCertificateSpec, IssuedCertificateStatus,
};
pub use self::kubernetes_cluster::{
    KubernetesCluster, KubernetesClusterSpec, KubernetesClusterStatus,
};
pub use self::mesh::{Mesh, MeshSpec, MeshStatus};
pub use self::pod_bounce_directive::{
    PodBounceDirective, PodBounceDirectiveSpec, PodBounceDirectiveStatus,
};
pub use self::reference::{ClusterObjectRef, ObjectRef};
pub use self::settings::{Settings, SettingsSpec, SettingsStatus};
pub use self::traffic_policy::{TrafficPolicy, TrafficPolicySpec, TrafficPolicyStatus};
pub use self::virtual_mesh::{VirtualMesh, VirtualMeshSpec, VirtualMeshStatus};
pub use self::workload::{Workload, WorkloadSpec, WorkloadStatus};

/// API group of what discovery finds.
pub const DISCOVERY_GROUP: &str = "discovery.mesh.gloo.solo.io";
/// API group of what users ask for.
pub const NETWORKING_GROUP: &str = "networking.mesh.gloo.solo.io";
/// API group of certificates and what becomes of them.
pub const CERTIFICATES_GROUP: &str = "certificates.mesh.gloo.solo.io";
/// API group of the management plane's settings.
pub const SETTINGS_GROUP: &str = "settings.mesh.gloo.solo.io";
/// API group of registered clusters.
pub const MULTICLUSTER_GROUP: &str = "multicluster.solo.io";
