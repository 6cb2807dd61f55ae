//! Kubernetes' own kinds, reduced to what discovery looks at.
//!
//! A watch delivers whole objects; what is kept is a fraction of them. Two objects that differ
//! only in what is not kept are equal here, so a change of a Pod's conditions ends at the door.

pub mod config_map;
pub mod controller;
pub mod endpoints;
pub mod node;
pub mod pod;
pub mod secret;
pub mod service;

pub use config_map::ConfigMap;
pub use controller::Controller;
pub use endpoints::EndpointSlice;
pub use node::Node;
pub use pod::Pod;
pub use secret::Secret;
pub use service::Service;

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::labels::Labels;
use crate::key::Key;
use crate::kinds::Kind;

/// The key of an object that was read from `cluster`.
pub(crate) fn key(meta: &ObjectMeta, cluster: &str) -> Key {
    Key::new(
        meta.name.as_deref().unwrap_or_default(),
        meta.namespace.as_deref().unwrap_or_default(),
        cluster,
    )
}

/// Annotations without those that tools write for themselves: the last applied configuration can
/// hold anything, and revision counters change with every rollout.
pub(crate) fn annotations(meta: &ObjectMeta) -> Labels {
    meta.annotations
        .iter()
        .flatten()
        .filter(|(key, _)| {
            !key.starts_with("kubectl.kubernetes.io/")
                && !key.starts_with("deployment.kubernetes.io/")
        })
        .map(|(key, value)| (&**key, &**value))
        .collect()
}

/// Label of a namespace and of a pod that names the revision of Istio that is to inject it;
/// annotation that the injector writes, whichever way it was asked: the revision that did (Istio:
/// the injector's templates).
pub(crate) const REVISION: &str = "istio.io/rev";

/// A text that is kept: there are very many, and none grows.
fn boxed(text: Option<&String>) -> Option<Box<str>> {
    text.map(|text| text.as_str().into())
}

/// The protocol of a port (Kubernetes: `TCP` unless it says otherwise).
fn protocol(said: Option<&String>) -> Box<str> {
    boxed(said).unwrap_or_else(|| "TCP".into())
}

fn annotation(meta: &ObjectMeta, key: &str) -> Option<Box<str>> {
    boxed(meta.annotations.as_ref()?.get(key))
}

/// The owner that controls an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A controller of a kind that is read, by its name in the namespace of what it owns.
    Known(Kind, Box<str>),
    /// Something else.
    Other,
}

impl Owner {
    /// The controlling one among an object's owners.
    pub(crate) fn of(meta: &ObjectMeta) -> Option<Self> {
        let mut owners = meta.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true))?;
        let group = owner.api_version.split_once('/').map(|(group, _)| group);
        let kind = match (group, owner.kind.as_str()) {
            (Some("apps"), "Deployment") => Kind::Deployment,
            (Some("apps"), "ReplicaSet") => Kind::ReplicaSet,
            (Some("apps"), "DaemonSet") => Kind::DaemonSet,
            (Some("apps"), "StatefulSet") => Kind::StatefulSet,
            _ => return Some(Self::Other),
        };
        Some(Self::Known(kind, owner.name.as_str().into()))
    }
}

/// A Namespace: its name and labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Name and cluster.
    pub key: Key,
    /// Labels; injection and admission look at them.
    pub labels: Labels,
}

impl Namespace {
    /// Keeps what matters of a Namespace.
    pub fn parse(object: &v1::Namespace, cluster: &str) -> Self {
        Self {
            key: key(&object.metadata, cluster),
            labels: Labels::from(object.metadata.labels.as_ref()),
        }
    }
}
