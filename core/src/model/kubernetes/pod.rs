//! Pods.

use k8s_openapi::api::core::v1;

use super::super::labels::Labels;
use super::{Owner, REVISION, annotation, key};
use crate::key::Key;

/// A Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Name, namespace and cluster.
    pub key: Key,
    /// Its labels.
    pub labels: Labels,
    /// What controls it.
    pub owner: Option<Owner>,
    /// The node it runs on, empty before it is scheduled.
    pub node: Box<str>,
    /// Proxies that it carries.
    pub proxies: Proxies,
    /// The revision of Istio that injected it, where its annotation says so.
    pub revision: Option<Box<str>>,
}

/// Proxies among the containers of a pod or of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// Whether one is Istio's; a native sidecar is an init container.
    pub istio: bool,
    /// Whether Open Service Mesh's init container and proxy are both there.
    pub osm: bool,
}

impl Pod {
    /// Keeps what matters of a Pod.
    pub fn parse(object: &v1::Pod, cluster: &str) -> Self {
        let spec = object.spec.as_ref();
        Self {
            key: key(&object.metadata, cluster),
            labels: Labels::from(object.metadata.labels.as_ref()),
            owner: Owner::of(&object.metadata),
            node: spec
                .and_then(|spec| spec.node_name.as_deref())
                .unwrap_or_default()
                .into(),
            proxies: spec.map(Proxies::of).unwrap_or_default(),
            revision: annotation(&object.metadata, REVISION),
        }
    }
}

/// The image of a container, empty where it names none.
pub(super) fn image(container: &v1::Container) -> &str {
    container.image.as_deref().unwrap_or_default()
}

impl Proxies {
    /// Reads the containers of a pod or of a template.
    pub(super) fn of(spec: &v1::PodSpec) -> Self {
        let init = || spec.init_containers.iter().flatten();
        let is_istio_proxy = |container: &v1::Container| {
            image(container).contains("istio") && image(container).contains("proxy")
        };
        Self {
            // A native sidecar is an init container that stays (`restartPolicy: Always`); the
            // init container that sets up traffic capture uses the same image and does not.
            istio: spec.containers.iter().any(is_istio_proxy)
                || init().any(|container| {
                    container.restart_policy.as_deref() == Some("Always")
                        && is_istio_proxy(container)
                }),
            osm: init().any(|container| {
                image(container).contains("openservicemesh/init")
                    && container.name.contains("osm-init")
            }) && spec
                .containers
                .iter()
                .any(|container| image(container).contains("envoyproxy/envoy-alpine")),
        }
    }
}
