//! Pods.

use k8s_openapi::api::core::v1;

use super::super::labels::Labels;
use super::{Owner, key};
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
    pub node: String,
    /// The mesh whose proxy it carries.
    pub containers: Containers,
}

/// Containers, reduced to what their images and names tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Containers {
    /// Image of the first container that is Istio's control plane.
    pub istiod: Option<String>,
    /// Image of the first container that is Open Service Mesh's controller.
    pub osm_controller: Option<String>,
    /// Whether one is Istio's proxy; a native sidecar is an init container.
    pub istio_proxy: bool,
    /// Whether Open Service Mesh's init container and proxy are both there.
    pub osm_proxy: bool,
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
                .and_then(|spec| spec.node_name.clone())
                .unwrap_or_default(),
            containers: spec.map(Containers::of).unwrap_or_default(),
        }
    }
}

impl Containers {
    /// Reads the containers of a pod or of a template.
    pub(super) fn of(spec: &v1::PodSpec) -> Self {
        fn image(container: &v1::Container) -> &str {
            container.image.as_deref().unwrap_or_default()
        }
        let first = |words: &[&str]| {
            spec.containers
                .iter()
                .map(image)
                .find(|image| words.iter().all(|word| image.contains(word)))
                .map(str::to_owned)
        };
        let init = || spec.init_containers.iter().flatten();
        let is_istio_proxy = |container: &v1::Container| {
            image(container).contains("istio") && image(container).contains("proxy")
        };
        Self {
            istiod: first(&["istio", "pilot"]),
            osm_controller: first(&["osm-controller"]),
            // A native sidecar is an init container that stays (`restartPolicy: Always`); the
            // init container that sets up traffic capture uses the same image and does not.
            istio_proxy: spec.containers.iter().any(is_istio_proxy)
                || init().any(|container| {
                    container.restart_policy.as_deref() == Some("Always")
                        && is_istio_proxy(container)
                }),
            osm_proxy: init().any(|container| {
                image(container).contains("openservicemesh/init")
                    && container.name.contains("osm-init")
            }) && spec
                .containers
                .iter()
                .any(|container| image(container).contains("envoyproxy/envoy-alpine")),
        }
    }
}
