//! Deployments, ReplicaSets, DaemonSets and StatefulSets: what starts pods.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1;
use k8s_openapi::api::core::v1::{Container, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::labels::Labels;
use super::pod::{Proxies, image};
use super::{Owner, REVISION, annotation, annotations, key};
use crate::key::Key;

/// Label and annotation of a pod that asks for injection or against it.
pub(crate) const INJECT: &str = "sidecar.istio.io/inject";
/// The variable that tells istiod how it knows its own cluster.
const REGISTRY: &str = "CLUSTER_ID";
/// How istiod knows its own cluster unless told.
const DEFAULT_REGISTRY: &str = "Kubernetes";

/// A controller of pods with its template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Name, namespace and cluster.
    pub key: Key,
    /// What controls it, in turn.
    pub owner: Option<Owner>,
    /// `spec.selector.matchLabels`.
    pub selector: Labels,
    /// The template's labels.
    pub pod_labels: Labels,
    /// The template's service account, empty where it names none.
    pub service_account: Box<str>,
    /// Proxies that the template carries itself.
    pub proxies: Proxies,
    /// Whether its pods use the network of their node.
    pub is_host_network: bool,
    /// What most have not.
    rare: Option<Box<Rare>>,
}

/// What few controllers have, and none of it is there for one that has nothing of it: there are very many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rare {
    annotations: Labels,
    revision: Option<Box<str>>,
    inject: Option<Box<str>>,
    istiod: Option<Istiod>,
    osm_controller: Option<Box<str>>,
}

/// A container that is Istio's control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Istiod {
    /// Its image.
    pub image: String,
    /// The name by which it knows its own cluster, empty where the template does not tell.
    pub registry: String,
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

    /// Keeps what matters of a ReplicaSet. One that is owned is no workload itself: it only leads from its
    /// pods to its owner, and a Deployment leaves ten old ones behind.
    pub fn replica_set(object: &v1::ReplicaSet, cluster: &str) -> Self {
        let meta = &object.metadata;
        if Owner::of(meta).is_some() {
            return Self {
                rare: None,
                ..Self::new(meta, cluster, None, None)
            };
        }
        let spec = object.spec.as_ref();
        Self::new(
            meta,
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
        let selector = Labels::from(selector);
        let pod_labels = Labels::from(template.and_then(|template| template.labels.as_ref()));
        let containers = || pod.into_iter().flat_map(|pod| &pod.containers);
        let rare = Rare {
            annotations: annotations(meta),
            revision: template.and_then(|template| annotation(template, REVISION)),
            inject: template.and_then(|template| annotation(template, INJECT)),
            istiod: containers().find_map(Istiod::of),
            osm_controller: containers()
                .map(image)
                .find(|image| image.contains("osm-controller"))
                .map(Box::from),
        };
        Self {
            key: key(meta, cluster),
            owner: Owner::of(meta),
            pod_labels: pod_labels.shared_with(&selector),
            selector,
            service_account: pod
                .and_then(|pod| pod.service_account_name.as_deref())
                .unwrap_or_default()
                .into(),
            proxies: pod.map(Proxies::of).unwrap_or_default(),
            is_host_network: pod.and_then(|pod| pod.host_network).unwrap_or_default(),
            rare: (rare != Rare::default()).then(|| Box::new(rare)),
        }
    }

    /// Annotations that travel with what is discovered.
    pub fn annotations(&self) -> Labels {
        let rare = self.rare.as_ref();
        rare.map(|it| it.annotations.clone()).unwrap_or_default()
    }

    /// The revision of Istio that the template's proxy was written for, where its annotation says
    /// so.
    pub fn revision(&self) -> Option<&str> {
        self.rare.as_ref()?.revision.as_deref()
    }

    /// The older way to ask for injection or against it: the template's annotation
    /// `sidecar.istio.io/inject`.
    pub fn inject(&self) -> Option<&str> {
        self.rare.as_ref()?.inject.as_deref()
    }

    /// The template's first container that is Istio's control plane.
    pub fn istiod(&self) -> Option<&Istiod> {
        self.rare.as_ref()?.istiod.as_ref()
    }

    /// Image of the template's first container that is Open Service Mesh's controller.
    pub fn osm_controller(&self) -> Option<&str> {
        self.rare.as_ref()?.osm_controller.as_deref()
    }
}

impl Istiod {
    fn of(container: &Container) -> Option<Self> {
        let image = image(container);
        if !(image.contains("istio") && image.contains("pilot")) {
            return None;
        }
        let named = container.env.iter().flatten();
        Some(Self {
            image: image.to_owned(),
            registry: named
                .filter(|variable| variable.name == REGISTRY)
                .map(|variable| variable.value.clone().unwrap_or_default())
                .next_back()
                .unwrap_or_else(|| DEFAULT_REGISTRY.to_owned()),
        })
    }
}
