//! Two API servers in memory: a management cluster and a remote one.

use std::{collections::BTreeMap, sync::LazyLock};

use ferromesh_crds::KubernetesCluster;
use ferromesh_registration::{
    Deregistration, Error, Event, Reference, Registration, Side, Validity, deregister,
    progress::Change, register,
};
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Kind, Request};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

pub(super) static NAMESPACE: LazyLock<Kind> =
    LazyLock::new(|| Kind::new("", "Namespace", "namespaces"));
pub(super) static SECRET: LazyLock<Kind> = LazyLock::new(|| Kind::new("", "Secret", "secrets"));
pub(super) static POD: LazyLock<Kind> = LazyLock::new(|| Kind::new("", "Pod", "pods"));
pub(super) static ACCOUNT: LazyLock<Kind> =
    LazyLock::new(|| Kind::new("", "ServiceAccount", "serviceaccounts"));
pub(super) static CLUSTER_ROLE: LazyLock<Kind> =
    LazyLock::new(|| rbac("ClusterRole", "clusterroles"));
pub(super) static CLUSTER_ROLE_BINDING: LazyLock<Kind> =
    LazyLock::new(|| rbac("ClusterRoleBinding", "clusterrolebindings"));
pub(super) static ROLE: LazyLock<Kind> = LazyLock::new(|| rbac("Role", "roles"));
pub(super) static ROLE_BINDING: LazyLock<Kind> =
    LazyLock::new(|| rbac("RoleBinding", "rolebindings"));
pub(super) static DEFINITION: LazyLock<Kind> = LazyLock::new(|| {
    Kind::new(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    )
});
pub(super) static CLUSTER: LazyLock<Kind> = LazyLock::new(|| {
    Kind::new(
        "multicluster.solo.io",
        "KubernetesCluster",
        "kubernetesclusters",
    )
    .with_versions(&["v1alpha1"])
});

fn rbac(kind: &str, plural: &str) -> Kind {
    Kind::new("rbac.authorization.k8s.io", kind, plural)
}

/// Kinds of every cluster.
pub(super) fn kinds() -> Vec<&'static Kind> {
    vec![
        &NAMESPACE,
        &SECRET,
        &POD,
        &ACCOUNT,
        &CLUSTER_ROLE,
        &CLUSTER_ROLE_BINDING,
        &ROLE,
        &ROLE_BINDING,
        &DEFINITION,
    ]
}

/// A cluster with these namespaces.
pub(super) fn cluster(namespaces: &[&str]) -> FakeApi {
    let server = FakeApi::new();
    for kind in kinds() {
        server.serve(kind);
    }
    for name in ["kube-system"].iter().chain(namespaces) {
        server.put(
            "somebody",
            &NAMESPACE,
            &json!({ "metadata": { "name": name } }),
        );
    }
    server
}

/// A token that is valid from 10 to 14 o'clock.
pub(super) fn token(text: &str) -> Fault {
    let answer = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
        "spec": { "audiences": [], "expirationSeconds": 4 * 3600 },
        "status": { "token": text, "expirationTimestamp": "2026-11-21T14:00:00Z" },
    });
    Fault::Answer(answer.to_string().leak())
}

pub(super) fn is_token_request(request: &Request) -> bool {
    request
        .uri
        .split('?')
        .next()
        .is_some_and(|path| path.ends_with("/token"))
}

pub(super) struct Estate {
    pub(super) management: FakeApi,
    pub(super) remote: FakeApi,
}

impl Estate {
    /// Two clusters that are not one, with Istio in the remote one, and tokens for whoever asks.
    pub(super) fn new() -> Self {
        let management = cluster(&[]);
        management.serve(&CLUSTER);
        let remote = cluster(&["istio-system"]);
        // The first uid of an API server in memory is always the same.
        remote.remove(&NAMESPACE, "", "kube-system");
        remote.put(
            "somebody",
            &NAMESPACE,
            &json!({ "metadata": { "name": "kube-system" } }),
        );
        remote.fail(token("the-token"), is_token_request);
        Self { management, remote }
    }

    pub(super) async fn register(
        &self,
        registration: &Registration,
    ) -> (Result<Option<Validity>, Error>, Vec<Event>) {
        let mut events = Vec::new();
        let done = register(
            &self.management.client(),
            &self.remote.client(),
            registration,
            &mut |event| events.push(event),
        )
        .await;
        (done, events)
    }

    pub(super) async fn registered(&self, registration: &Registration) -> Vec<Event> {
        let (done, events) = self.register(registration).await;
        done.unwrap();
        events
    }

    pub(super) async fn deregister(
        &self,
        deregistration: &Deregistration,
    ) -> (Result<(), Error>, Vec<Event>) {
        let mut events = Vec::new();
        let done = deregister(
            &self.management.client(),
            Some(&self.remote.client()),
            deregistration,
            &mut |event| events.push(event),
        )
        .await;
        (done, events)
    }

    /// What both clusters hold, but for what differs from run to run.
    pub(super) fn content(&self) -> BTreeMap<String, Value> {
        let mut content = BTreeMap::new();
        for (side, server) in [("management", &self.management), ("remote", &self.remote)] {
            for kind in kinds().into_iter().chain([&*CLUSTER]) {
                for mut object in server.list(kind) {
                    let reference = format!("{side}: {}", name(&object));
                    let meta = object["metadata"].as_object_mut().unwrap();
                    for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
                        meta.remove(field);
                    }
                    content.insert(reference, object);
                }
            }
        }
        content
    }
}

/// As references are shown.
pub(super) fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, meta) = (text(&object["kind"]), &object["metadata"]);
    match meta["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{}", text(&meta["name"])),
        None => format!("{kind} {}", text(&meta["name"])),
    }
}

/// Which objects a run applied with that outcome.
pub(super) fn applied(events: &[Event], wanted: Change) -> Vec<String> {
    let applied = events.iter().filter_map(|event| match event {
        Event::Applied { object, change, .. } if *change == wanted => Some(object.to_string()),
        _ => None,
    });
    applied.collect()
}

/// Which objects a run deleted.
pub(super) fn deleted(events: &[Event], wanted: Side) -> Vec<String> {
    let deleted = events.iter().filter_map(|event| match event {
        Event::Deleted { object, side } if *side == wanted => Some(object.to_string()),
        _ => None,
    });
    deleted.collect()
}

/// Which objects a run kept.
pub(super) fn kept(events: &[Event]) -> Vec<&Reference> {
    let kept = events.iter().filter_map(|event| match event {
        Event::Kept { object, .. } => Some(object),
        _ => None,
    });
    kept.collect()
}

/// Sets the status of a `KubernetesCluster`, as the server does.
pub(super) async fn set_status(server: &FakeApi, cluster: &str, status: &Value) {
    let clusters: Api<KubernetesCluster> = Api::namespaced(server.client(), "gloo-mesh");
    let parameters = PatchParams {
        field_manager: Some("ferromesh".to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({ "status": status }));
    clusters
        .patch_status(cluster, &parameters, &patch)
        .await
        .unwrap();
}

/// The condition of a cluster that is not reached.
pub(super) fn unreachable() -> Value {
    json!({
        "type": "Ready", "status": "False", "reason": "ClusterUnreachable", "message": "no route",
        "lastTransitionTime": "2026-11-21T10:00:00Z",
    })
}
