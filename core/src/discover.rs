//! Discovery: what the objects of a cluster say about its meshes, workloads and destinations.
//!
//! Detectors are pure and look at one thing each: a control plane ([`mesh`]), a controller of
//! pods ([`workload`]), a Service ([`destination`]).

pub(crate) mod address;
pub(crate) mod destination;
pub(crate) mod image;
pub(crate) mod index;
pub(crate) mod mesh;
pub(crate) mod workload;
