//! Deployments, ReplicaSets, DaemonSets and StatefulSets: what starts pods.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::labels::Labels;
use super::{Owner, annotations, key, pod};
use crate::key::Key;

/// A controller of pods with its template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Name, namespace and cluster.
    pub key: Key,
    /// Annotations that travel with what is discovered.
    pub annotations: Labels,
    /// What controls it, in turn.
    pub owner: Option<Owner>,
    /// `spec.selector.matchLabels`.
    pub selector: Labels,
    /// The template's labels.
    pub pod_labels: Labels,
    /// The template's service account, empty where it names none.
    pub service_account: String,
    /// The template's containers.
    pub containers: pod::Containers,
    /// What the template asks of Istio's injector.
    pub injection: Injection,
}

/// What labels and annotations of a pod template ask of Istio's injector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Injection {
    /// `sidecar.istio.io/inject` as label or, older, as annotation; the label wins.
    pub inject: Option<bool>,
    /// `istio.io/rev`: the revision of the control plane, by label.
    pub revision: Option<String>,
    /// `inject.istio.io/templates` names the gateway template.
    pub is_gateway: bool,
}

impl Controller {
    /// Keeps what matters of a Deployment.
    pub fn deployment(object: &v1::Deployment, cluster: &str) -> Self {
        let spec = object.spec.as_ref();
        Self::new(
            &object.metadata,
            cluster,
            spec.and_then(|spec| spec.selector.match_labels.as_ref()),
            spec.map(|spec| &spec.template),
        )
    }

    /// Keeps what matters of a ReplicaSet.
    pub fn replica_set(object: &v1::ReplicaSet, cluster: &str) -> Self {
        let spec = object.spec.as_ref();
        Self::new(
            &object.metadata,
            cluster,
            spec.and_then(|spec| spec.selector.match_labels.as_ref()),
            spec.and_then(|spec| spec.template.as_ref()),
        )
    }

    /// Keeps what matters of a DaemonSet.
    pub fn daemon_set(object: &v1::DaemonSet, cluster: &str) -> Self {
        let spec = object.spec.as_ref();
        Self::new(
            &object.metadata,
            cluster,
            spec.and_then(|spec| spec.selector.match_labels.as_ref()),
            spec.map(|spec| &spec.template),
        )
    }

    /// Keeps what matters of a StatefulSet.
    pub fn stateful_set(object: &v1::StatefulSet, cluster: &str) -> Self {
        let spec = object.spec.as_ref();
        Self::new(
            &object.metadata,
            cluster,
            spec.and_then(|spec| spec.selector.match_labels.as_ref()),
            spec.map(|spec| &spec.template),
        )
    }

    fn new(
        meta: &ObjectMeta,
        cluster: &str,
        selector: Option<&BTreeMap<String, String>>,
        template: Option<&PodTemplateSpec>,
    ) -> Self {
        let pod = template.and_then(|template| template.spec.as_ref());
        let template = template.and_then(|template| template.metadata.as_ref());
        Self {
            key: key(meta, cluster),
            annotations: annotations(meta),
            owner: Owner::of(meta),
            selector: Labels::from(selector),
            pod_labels: Labels::from(template.and_then(|template| template.labels.as_ref())),
            service_account: pod
                .and_then(|pod| pod.service_account_name.clone())
                .unwrap_or_default(),
            containers: pod.map(pod::Containers::of).unwrap_or_default(),
            injection: template.map(Injection::of).unwrap_or_default(),
        }
    }
}

impl Injection {
    fn of(template: &ObjectMeta) -> Self {
        let label = |key| template.labels.as_ref().and_then(|labels| labels.get(key));
        let annotation = |key| template.annotations.as_ref().and_then(|all| all.get(key));
        let inject =
            label("sidecar.istio.io/inject").or_else(|| annotation("sidecar.istio.io/inject"));
        Self {
            inject: inject.map(|value| value == "true"),
            revision: label("istio.io/rev").cloned(),
            is_gateway: annotation("inject.istio.io/templates")
                .is_some_and(|names| names.split(',').any(|name| name.trim() == "gateway")),
        }
    }
}
