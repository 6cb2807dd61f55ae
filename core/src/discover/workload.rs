//! Workloads: controllers whose pods carry a mesh's proxy.

use crate::graph::Reader;
use crate::key::Key;
use crate::kinds::Kind;
use crate::layer::Source;
use crate::model::kubernetes::{Controller, Pod};
use crate::model::workload::KubeWorkload;
use crate::model::{Mesh, Workload};
use crate::naming;

use super::mesh::ControlPlanes;

/// Label of a namespace that turns injection on.
const INJECTION: &str = "istio-injection";
/// Label of a namespace, of a template and of an injected pod that names a revision.
const REVISION: &str = "istio.io/rev";

/// Which sort of proxy pods carry, and the revision that put it there.
enum Proxy {
    Istio { revision: Option<String> },
    Osm,
}

/// The workload that a controller is.
pub(crate) fn discover(
    reader: &Reader<'_>,
    source: &Source,
    controller: &Controller,
) -> Option<Workload> {
    // What a Deployment owns is the Deployment's workload.
    if source.kind == Kind::ReplicaSet && controller.owner.is_some() {
        return None;
    }
    let proxy = proxy(reader, source, controller)?;
    let planes = ControlPlanes::of(reader, source.key.cluster());
    let mesh: &Mesh = match &proxy {
        Proxy::Istio { revision } => planes.istio(revision.as_deref())?,
        Proxy::Osm => planes.osm()?,
    };
    let key = &source.key;
    let base = naming::discovered(key.name(), key.namespace(), key.cluster());
    Some(Workload {
        key: Key::local(
            &format!("{base}-{}", source.kind.name().to_ascii_lowercase()),
            reader.namespace(),
        ),
        generation: 0,
        annotations: controller.annotations.clone(),
        mesh: Some(mesh.key.clone()),
        controller: Some(KubeWorkload {
            reference: key.clone(),
            pod_labels: controller.pod_labels.clone(),
            service_account: controller.service_account.clone(),
        }),
        discovered_in: key.cluster().into(),
    })
}

/// What pods of a controller carry: as the template says, else as its pods show, else as they
/// would once there are any. A workload does not end when it is scaled to zero.
fn proxy(reader: &Reader<'_>, source: &Source, controller: &Controller) -> Option<Proxy> {
    let containers = &controller.containers;
    let revision = || {
        controller
            .injection
            .revision
            .clone()
            .or_else(|| namespace_revision(reader, &source.key))
    };
    if containers.istio_proxy {
        return Some(Proxy::Istio {
            revision: revision(),
        });
    }
    if containers.osm_proxy {
        return Some(Proxy::Osm);
    }
    let mut has_pods = false;
    for pod in reader.pods_of(source) {
        has_pods = true;
        if pod.containers.istio_proxy {
            return Some(Proxy::Istio {
                revision: pod_revision(pod).or_else(revision),
            });
        }
        if pod.containers.osm_proxy {
            return Some(Proxy::Osm);
        }
    }
    (!has_pods && is_injected(reader, controller)).then(|| Proxy::Istio {
        revision: revision(),
    })
}

fn pod_revision(pod: &Pod) -> Option<String> {
    pod.labels.get(REVISION).map(str::to_owned)
}

fn namespace_revision(reader: &Reader<'_>, key: &Key) -> Option<String> {
    reader
        .namespace_of(key)?
        .labels
        .get(REVISION)
        .map(str::to_owned)
}

/// Whether Istio's injector would put a proxy into new pods (Istio: sidecar injection). Inside
/// namespaces of the control plane and of Kubernetes itself nothing is injected unasked.
fn is_injected(reader: &Reader<'_>, controller: &Controller) -> bool {
    let injection = &controller.injection;
    if injection.is_gateway {
        return injection.inject != Some(false);
    }
    let namespace = reader.namespace_of(&controller.key);
    let labels = namespace.map(|namespace| &namespace.labels);
    match labels.and_then(|labels| labels.get(INJECTION)) {
        Some("enabled") => injection.inject != Some(false),
        Some(_) => false,
        None => {
            let has_revision = labels.is_some_and(|labels| labels.get(REVISION).is_some());
            match injection.inject {
                Some(inject) => inject,
                None => has_revision || injection.revision.is_some(),
            }
        }
    }
}
