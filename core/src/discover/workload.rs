//! Workloads: controllers whose pods carry a mesh's proxy.

use std::sync::Arc;

use crate::graph::Reader;
use crate::key::Key;
use crate::kinds::Kind;
use crate::layer::Source;
use crate::model::kubernetes::controller::INJECT;
use crate::model::kubernetes::{Controller, REVISION};
use crate::model::workload::KubeWorkload;
use crate::model::{Labels, Mesh, Workload};
use crate::naming;

use super::mesh::ControlPlanes;

/// Label of a namespace that turns injection on.
const INJECTION: &str = "istio-injection";
/// Namespaces in which Istio's injector does nothing, whatever their labels say.
const NEVER_INJECTED: [&str; 4] = [
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "local-path-storage",
];

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
        annotations: controller.annotations(),
        mesh: Some(mesh.key.clone()),
        controller: Some(KubeWorkload {
            reference: key.clone(),
            pod_labels: controller.pod_labels.clone(),
            service_account: controller.service_account.clone(),
        }),
        // The same cluster, and one text for it: there are very many workloads.
        discovered_in: Arc::clone(&mesh.discovered_in),
    })
}

/// What pods of a controller carry: as the template says, else as its pods show, else as they
/// would once there are any. A workload does not end when it is scaled to zero.
fn proxy(reader: &Reader<'_>, source: &Source, controller: &Controller) -> Option<Proxy> {
    if controller.proxies.istio {
        // Nothing was injected here: only the template itself can say for whom it was written.
        let revision = controller.revision();
        return Some(Proxy::Istio {
            revision: revision
                .or_else(|| controller.pod_labels.get(REVISION))
                .map(str::to_owned)
                .or_else(|| revision_of_new(reader, controller)),
        });
    }
    if controller.proxies.osm {
        return Some(Proxy::Osm);
    }
    let mut has_pods = false;
    for pod in reader.pods_of(source) {
        has_pods = true;
        if pod.proxies.istio {
            return Some(Proxy::Istio {
                revision: pod
                    .revision
                    .as_deref()
                    .map(str::to_owned)
                    .or_else(|| revision_of_new(reader, controller)),
            });
        }
        if pod.proxies.osm {
            return Some(Proxy::Osm);
        }
    }
    (!has_pods && is_injected(reader, controller)).then(|| Proxy::Istio {
        revision: revision_of_new(reader, controller),
    })
}

fn namespace_labels<'a>(reader: &Reader<'a>, controller: &Controller) -> Option<&'a Labels> {
    reader
        .namespace_of(&controller.key)
        .map(|namespace| &namespace.labels)
}

/// The revision that would inject new pods, none for the default one: labels of the namespace come
/// before those of the pod, and `istio-injection` before a revision (Istio: the selectors of the
/// injector's webhooks).
fn revision_of_new(reader: &Reader<'_>, controller: &Controller) -> Option<String> {
    let label = |key| namespace_labels(reader, controller)?.get(key);
    if label(INJECTION).is_some() {
        return None;
    }
    label(REVISION)
        .or_else(|| controller.pod_labels.get(REVISION))
        .map(str::to_owned)
}

/// Whether Istio's injector would put a proxy into new pods: whether one of its webhooks is called,
/// whose selectors look at labels alone, and whether the injector then does it, which looks at the
/// annotation too where there is no label (Istio: the injector's webhooks, its `injectRequired`).
fn is_injected(reader: &Reader<'_>, controller: &Controller) -> bool {
    if controller.is_host_network || NEVER_INJECTED.contains(&controller.key.namespace()) {
        return false;
    }
    let wanted = controller.pod_labels.get(INJECT);
    let label = |key| namespace_labels(reader, controller)?.get(key);
    let is_called = match (label(INJECTION), label(REVISION)) {
        (Some(value), _) => value == "enabled",
        (None, Some(_)) => true,
        (None, None) => wanted == Some("true") || controller.pod_labels.get(REVISION).is_some(),
    };
    let wanted = wanted.or(controller.inject()).unwrap_or_default();
    let is_yes = ["y", "yes", "true", "on"]
        .iter()
        .any(|yes| wanted.eq_ignore_ascii_case(yes));
    is_called && (wanted.is_empty() || is_yes)
}
