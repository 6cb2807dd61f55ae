//! Parsed forms: what an object means, once it came through the door.
//!
//! Every kind has one file with one parser. Whatever reads objects (the watch of a cluster, an
//! admission review, a directory of files) comes through these parsers, so nothing can be
//! admitted that could not be read later. A parser looks at one object and refuses what is wrong
//! with that object by itself; whether objects fit together is not its business.
//!
//! An object that people write ([`TrafficPolicy`], [`AccessPolicy`], [`VirtualMesh`],
//! [`Settings`]) is kept even when something in it is refused, together with its
//! [`Rejection`]s: its status has to say so, and an access policy that cannot be read must keep
//! its services closed.

pub mod access_policy;
pub mod cluster;
pub mod destination;
pub mod duration;
pub mod kubernetes;
pub mod labels;
pub mod mesh;
pub mod reference;
pub mod reject;
pub mod selector;
pub mod settings;
pub mod traffic_policy;
pub mod virtual_mesh;
pub mod workload;

pub use access_policy::AccessPolicy;
pub use cluster::KubernetesCluster;
pub use destination::Destination;
pub use labels::Labels;
pub use mesh::Mesh;
pub use reference::Reference;
pub use reject::{Code, Rejection};
pub use settings::Settings;
pub use traffic_policy::TrafficPolicy;
pub use virtual_mesh::VirtualMesh;
pub use workload::Workload;
