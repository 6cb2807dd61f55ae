//! What is wrong with an object by itself, and since when.

use std::collections::BTreeSet;

use crate::diagnose::{self, Finding};
use crate::kinds::Object;
use crate::model::Rejection;

/// What is wrong with an object by itself.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// What was not wrong before.
    pub(super) new: Vec<Finding>,
    /// All of it, as it is told of an object that is stored.
    pub(super) told: BTreeSet<Finding>,
}

impl Own {
    pub(super) fn of(new: Option<&Object>, old: Option<&Object>) -> Self {
        let findings = |object: Option<&Object>| -> Vec<Finding> {
            let rejections = object.map(rejections).unwrap_or_default();
            rejections.iter().map(Finding::from).collect()
        };
        let all = findings(new);
        Self {
            new: diagnose::brought(&findings(old), &all),
            told: all.into_iter().collect(),
        }
    }
}

fn rejections(object: &Object) -> &[Rejection] {
    match object {
        Object::TrafficPolicy(policy) => &policy.rejections,
        Object::AccessPolicy(policy) => &policy.rejections,
        Object::VirtualMesh(virtual_mesh) => &virtual_mesh.rejections,
        Object::Settings(settings) => &settings.rejections,
        Object::KubernetesCluster(_)
        | Object::Mesh(_)
        | Object::Workload(_)
        | Object::Destination(_)
        | Object::Secret(_)
        | Object::Namespace(_)
        | Object::Node(_)
        | Object::ConfigMap(_)
        | Object::Deployment(_)
        | Object::ReplicaSet(_)
        | Object::DaemonSet(_)
        | Object::StatefulSet(_)
        | Object::Pod(_)
        | Object::Service(_)
        | Object::EndpointSlice(_)
        | Object::Endpoints(_) => &[],
    }
}
