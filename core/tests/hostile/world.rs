//! The fleet that hostile objects come to.

use std::sync::LazyLock;

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::{Change, Kind, Object, Scope, State};
use serde_json::json;

/// Services beside those of the universe.
const SERVICES: usize = 60;

/// Two clusters and the management cluster, everything listed.
pub(crate) fn state() -> State {
    static STATE: LazyLock<State> = LazyLock::new(|| {
        let files = [
            (include_str!("../universe/management.yaml"), ""),
            (include_str!("../universe/cluster.yaml"), "c1"),
            (include_str!("../universe/cluster.yaml"), "c2"),
            (include_str!("../universe/one.yaml"), "c1"),
        ];
        let read = files
            .into_iter()
            .flat_map(|(text, cluster)| objects(text, cluster));
        let changes = read.chain(services()).map(Change::Upsert);
        let listed = ["", "c1", "c2"].into_iter().flat_map(|cluster| {
            Kind::ALL.iter().map(move |kind| Change::Synced {
                cluster: cluster.into(),
                kind: *kind,
            })
        });
        State::default().step(changes.chain(listed)).0
    });
    STATE.clone()
}

fn objects(text: &str, cluster: &str) -> Vec<Object> {
    let entries = manifest::read(text, cluster).into_iter();
    let read = entries.map(|entry| match entry {
        Entry::Object(object) => object,
        other @ (Entry::Ignored { .. } | Entry::Unreadable { .. }) => panic!("{other:?}"),
    });
    read.collect()
}

fn services() -> impl Iterator<Item = Object> {
    (0..SERVICES).flat_map(|number| {
        let name = format!("service-{number}");
        let service = json!({
            "apiVersion": "discovery.mesh.gloo.solo.io/v1",
            "kind": "Destination",
            "metadata": { "name": name, "namespace": "gloo-mesh", "generation": 1 },
            "spec": {
                "mesh": { "name": "istiod-istio-system-c2", "namespace": "gloo-mesh" },
                "kubeService": {
                    "ref": { "name": name, "namespace": format!("team-{}", number % 5), "clusterName": "c2" },
                    "labels": { "app": format!("a-{}", number % 3), "tier": "web" },
                    "workloadSelectorLabels": { "app": name },
                    "ports": [{ "port": 80, "name": "http", "protocol": "TCP" }],
                },
            },
        });
        objects(&service.to_string(), "")
    })
}

/// Where objects of a kind come from.
pub(crate) fn clusters(kind: Option<Kind>) -> &'static [&'static str] {
    match kind.map(Kind::scope) {
        Some(Scope::Management) | None => &[""],
        Some(Scope::Managed | Scope::Files) => &["c1", "c2"],
        Some(Scope::Everywhere) => &["", "c1", "c2"],
    }
}
