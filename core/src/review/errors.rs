//! What is wrong with an object by itself, and since when.

use std::collections::BTreeSet;

use crate::diagnose::Code;
use crate::kinds::Object;
use crate::model::Rejection;

/// What is wrong with an object by itself.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// What was not wrong before.
    pub(super) new: Vec<Rejection>,
    /// All of it, as it is told of an object that is stored.
    pub(super) told: BTreeSet<String>,
}

impl Own {
    /// An entry that is put into a list moves those after it, and with them the paths of their
    /// errors: positions do not count, but how often there is one does.
    pub(super) fn of(new: Option<&Object>, old: Option<&Object>) -> Self {
        let all = new.map(rejections).unwrap_or_default();
        let before = old.map(rejections).unwrap_or_default();
        let mut known: Vec<_> = before.iter().map(placeless).collect();
        let is_new = |rejection: &&Rejection| {
            let place = placeless(rejection);
            let at = known.iter().position(|known| *known == place);
            at.map(|at| known.swap_remove(at)).is_none()
        };
        Self {
            new: all.iter().filter(is_new).cloned().collect(),
            told: all.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A rejection without the positions in its path.
fn placeless(rejection: &Rejection) -> (String, Code, &str) {
    let mut path = String::with_capacity(rejection.path.len());
    let mut is_position = false;
    for c in rejection.path.chars() {
        is_position = (is_position || c == '[') && c != ']';
        if !is_position {
            path.push(c);
        }
    }
    (path, rejection.code, &rejection.message)
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
