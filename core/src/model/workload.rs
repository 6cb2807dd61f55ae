//! Workloads: what runs in a mesh.

use std::sync::Arc;

use ferromesh_crds::reference::ClusterObjectRef;
use ferromesh_crds::{self as crds, workload as wire};

use super::destination::{discovered_in, object_ref};
use super::kubernetes::{annotations, key};
use super::labels::Labels;
use crate::key::Key;

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Name and namespace in the management cluster.
    pub key: Key,
    /// Generation of the stored object, 0 where there is none.
    pub generation: i64,
    /// Annotations copied from the controller.
    pub annotations: Labels,
    /// The mesh that its proxies belong to.
    pub mesh: Option<Key>,
    /// What runs it; none for a workload outside Kubernetes.
    pub controller: Option<KubeWorkload>,
    /// Cluster it was discovered in, empty for what people wrote.
    pub discovered_in: Arc<str>,
}

/// A controller of pods as a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeWorkload {
    /// The Deployment, DaemonSet or StatefulSet.
    pub reference: Key,
    /// Labels of its pods.
    pub pod_labels: Labels,
    /// Service account of its pods, empty for the namespace's default.
    pub service_account: Box<str>,
}

/// Reading and writing the stored form.
impl Workload {
    /// Reads a workload.
    pub fn parse(object: &crds::Workload) -> Self {
        Self {
            key: key(&object.metadata, ""),
            generation: object.metadata.generation.unwrap_or_default(),
            annotations: annotations(&object.metadata),
            mesh: object
                .spec
                .mesh
                .as_ref()
                .map(|mesh| Key::local(&mesh.name, &mesh.namespace)),
            controller: object.spec.kubernetes.as_ref().map(|workload| {
                let reference = workload.controller.clone().unwrap_or_default();
                KubeWorkload {
                    reference: Key::new(
                        &reference.name,
                        &reference.namespace,
                        &reference.cluster_name,
                    ),
                    pod_labels: Labels::from(&workload.pod_labels),
                    service_account: workload.service_account_name.as_str().into(),
                }
            }),
            discovered_in: discovered_in(&object.metadata),
        }
    }

    /// The spec that stands for it, for workloads that were discovered.
    pub fn to_spec(&self) -> wire::WorkloadSpec {
        wire::WorkloadSpec {
            kubernetes: self
                .controller
                .as_ref()
                .map(|workload| wire::KubernetesWorkload {
                    controller: Some(ClusterObjectRef {
                        name: workload.reference.name().to_owned(),
                        namespace: workload.reference.namespace().to_owned(),
                        cluster_name: workload.reference.cluster().to_owned(),
                    }),
                    pod_labels: workload.pod_labels.to_map(),
                    service_account_name: workload.service_account.to_string(),
                }),
            mesh: self.mesh.as_ref().map(object_ref),
            app_mesh: None,
        }
    }
}
