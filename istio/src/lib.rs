//! The words of Istio that Ferromesh writes, and the few that it reads.
//!
//! The room holds data only: the specs of the kinds we produce, shaped as Istio's API has them,
//! and the part of its mesh configuration that discovery looks at. A union of Istio's API is an
//! enum here, so that an object with two members set cannot be built. Field docs say what Istio
//! does with a value only where the name does not.
//!
//! What may not enter: rules about our own API, anything that knows a second object exists, a
//! Kubernetes client. Versions are not part of a spec: which one a cluster serves is found out
//! per cluster, so a kind names all that its spec is valid for ([`Kind::versions`]).
//!
//! Reading order: [`kind`], [`virtual_service`], [`destination_rule`], [`service_entry`],
//! [`gateway`], [`authorization_policy`], [`string_match`], [`mesh_config`], [`mesh_networks`].

pub mod authorization_policy;
pub mod destination_rule;
pub mod gateway;
pub mod kind;
pub mod mesh_config;
pub mod mesh_networks;
pub mod service_entry;
pub mod string_match;
pub mod virtual_service;

pub use authorization_policy::AuthorizationPolicy;
pub use destination_rule::DestinationRule;
pub use gateway::Gateway;
pub use kind::Kind;
pub use mesh_config::MeshConfig;
pub use mesh_networks::MeshNetworks;
pub use service_entry::ServiceEntry;
pub use string_match::StringMatch;
pub use virtual_service::VirtualService;
