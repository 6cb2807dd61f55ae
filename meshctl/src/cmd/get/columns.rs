//! The columns of each kind.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::kind::Shown;

/// One column.
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) shown: When,
    /// What stands there for an object; empty where there is nothing to say.
    pub(super) cell: fn(&Value, Timestamp) -> String,
}

/// When a column is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Always,
    Wide,
    AllNamespaces,
}

const NAMESPACE: Column = Column {
    title: "NAMESPACE",
    shown: When::AllNamespaces,
    cell: |object, _| text(object, "/metadata/namespace"),
};
const NAME: Column = always("NAME", |object, _| text(object, "/metadata/name"));
const AGE: Column = always("AGE", |object, now| {
    let created = text(object, "/metadata/creationTimestamp");
    created
        .parse()
        .map_or_else(|_| created, |since| age(since, now))
});
const STATE: Column = always("STATE", |object, _| text(object, "/status/state"));
const OBSERVED: Column = always("OBSERVED", |object, _| observed(object).to_owned());
const REASON: Column = always("REASON", |object, _| {
    text_of(condition(object, "Accepted"), "/reason")
});
const PROGRAMMED: Column = wide("PROGRAMMED", |object, _| {
    text_of(condition(object, "Programmed"), "/status")
});
const MESSAGE: Column = wide("MESSAGE", |object, _| {
    let worst = [
        "Accepted",
        "ResolvedRefs",
        "TrustReady",
        "Programmed",
        "Ready",
    ]
    .into_iter()
    .filter_map(|kind| condition(object, kind))
    .find(|condition| condition["status"] != "True");
    text_of(worst, "/message")
});
const DESTINATIONS: Column = always("DESTINATIONS", |object, _| {
    accepted(object, "/status/destinations")
});
const MESH: Column = always("MESH", |object, _| text(object, "/spec/mesh/name"));

const fn always(title: &'static str, cell: fn(&Value, Timestamp) -> String) -> Column {
    Column {
        title,
        shown: When::Always,
        cell,
    }
}

const fn wide(title: &'static str, cell: fn(&Value, Timestamp) -> String) -> Column {
    Column {
        title,
        shown: When::Wide,
        cell,
    }
}

/// The columns of a kind.
pub(super) fn of(kind: Shown) -> Vec<Column> {
    let mut columns = vec![NAMESPACE, NAME];
    columns.extend(match kind {
        Shown::Mesh => vec![
            always("CLUSTER", |object, _| installation(object, "cluster")),
            always("TYPE", |object, _| mesh_type(object)),
            always("VERSION", |object, _| installation(object, "version")),
            always("VIRTUAL MESH", |object, _| {
                text(object, "/status/appliedVirtualMesh/ref/name")
            }),
            wide("INSTALLED IN", |object, _| {
                installation(object, "namespace")
            }),
            wide("TRUST DOMAIN", |object, _| {
                text(object, "/spec/istio/trustDomain")
            }),
            wide("GATEWAYS", |object, _| {
                count(object, "/status/appliedEastWestIngressGateways")
            }),
        ],
        Shown::Workload => vec![
            always("CLUSTER", |object, _| {
                text(object, "/spec/kubernetes/controller/clusterName")
            }),
            always("WORKLOAD", |object, _| {
                let controller = object.pointer("/spec/kubernetes/controller");
                let of = |field| text_of(controller, field);
                slashed(&of("/namespace"), &of("/name"))
            }),
            MESH,
            wide("SERVICE ACCOUNT", |object, _| {
                text(object, "/spec/kubernetes/serviceAccountName")
            }),
            wide("LABELS", |object, _| {
                labels(object.pointer("/spec/kubernetes/podLabels"))
            }),
        ],
        Shown::Destination => vec![
            always("CLUSTER", |object, _| {
                text(object, "/spec/kubeService/ref/clusterName")
            }),
            always("SERVICE", |object, _| {
                let service = object.pointer("/spec/kubeService/ref");
                let of = |field| text_of(service, field);
                slashed(&of("/namespace"), &of("/name"))
            }),
            always("PORTS", |object, _| ports(object)),
            always("TRAFFIC POLICIES", |object, _| {
                count(object, "/status/appliedTrafficPolicies")
            }),
            always("ACCESS POLICIES", |object, _| {
                count(object, "/status/appliedAccessPolicies")
            }),
            wide("MESH", |object, _| text(object, "/spec/mesh/name")),
            wide("FEDERATED HOST", |object, _| {
                text(object, "/status/appliedFederation/federatedHostname")
            }),
        ],
        Shown::TrafficPolicy | Shown::AccessPolicy => vec![
            STATE,
            OBSERVED,
            REASON,
            DESTINATIONS,
            always("WORKLOADS", |object, _| count(object, "/status/workloads")),
            PROGRAMMED,
        ],
        Shown::VirtualMesh => vec![
            STATE,
            OBSERVED,
            REASON,
            always("TRUST", |object, _| {
                text_of(condition(object, "TrustReady"), "/status")
            }),
            always("MESHES", |object, _| accepted(object, "/status/meshes")),
            DESTINATIONS,
            PROGRAMMED,
        ],
        Shown::KubernetesCluster => vec![
            always("READY", |object, _| {
                text_of(condition(object, "Ready"), "/status")
            }),
            always("REASON", |object, _| {
                text_of(condition(object, "Ready"), "/reason")
            }),
            always("DOMAIN", |object, _| text(object, "/spec/clusterDomain")),
            wide("REGISTERED IN", |object, _| {
                text(object, "/status/namespace")
            }),
        ],
    });
    columns.push(AGE);
    match kind {
        Shown::TrafficPolicy
        | Shown::AccessPolicy
        | Shown::VirtualMesh
        | Shown::KubernetesCluster => columns.push(MESSAGE),
        Shown::Mesh | Shown::Workload | Shown::Destination => {}
    }
    columns
}

fn text(object: &Value, pointer: &str) -> String {
    text_of(Some(object), pointer)
}

fn text_of(object: Option<&Value>, pointer: &str) -> String {
    let found = object.and_then(|object| object.pointer(pointer));
    found.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The condition of a type.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Whether the status speaks of the spec that is stored.
fn observed(object: &Value) -> &'static str {
    let generation = object.pointer("/metadata/generation");
    match object.pointer("/status/observedGeneration") {
        None => "",
        Some(observed) if observed.as_i64() < Some(0) => "",
        observed if observed == generation => "yes",
        Some(_) => "no",
    }
}

/// How many entries a list or a map has.
fn count(object: &Value, pointer: &str) -> String {
    let len = match object.pointer(pointer) {
        Some(Value::Array(list)) => list.len(),
        Some(Value::Object(map)) => map.len(),
        _ => 0,
    };
    len.to_string()
}

/// How many entries of a map are accepted, and of how many where not all are.
fn accepted(object: &Value, pointer: &str) -> String {
    let Some(entries) = object.pointer(pointer).and_then(Value::as_object) else {
        return "0".to_owned();
    };
    let good = entries
        .values()
        .filter(|entry| entry["state"] == "ACCEPTED");
    match (good.count(), entries.len()) {
        (good, all) if good == all => all.to_string(),
        (good, all) => format!("{good}/{all}"),
    }
}

fn slashed(namespace: &str, name: &str) -> String {
    match (namespace, name) {
        (_, "") => String::new(),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// The only member of a mesh's spec that says what it is.
fn mesh_type(object: &Value) -> String {
    let types = [
        ("istio", "Istio"),
        ("osm", "OSM"),
        ("awsAppMesh", "AppMesh"),
        ("linkerd", "Linkerd"),
        ("consulConnect", "ConsulConnect"),
    ];
    let found = types
        .into_iter()
        .find(|(field, _)| object["spec"].get(field).is_some());
    found.map_or("", |(_, name)| name).to_owned()
}

fn installation(object: &Value, field: &str) -> String {
    let spec = object["spec"].as_object();
    let mut members = spec.into_iter().flat_map(serde_json::Map::values);
    let installation = members.find_map(|member| member.get("installation"));
    text_of(installation, &format!("/{field}"))
}

fn ports(object: &Value) -> String {
    let ports = object.pointer("/spec/kubeService/ports");
    let ports = ports.and_then(Value::as_array).into_iter().flatten();
    let numbers = ports.filter_map(|port| port["port"].as_u64());
    numbers
        .map(|number| number.to_string())
        .collect::<Vec<_>>()
        .join(",")
}

fn labels(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let pairs = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(",")
}

/// How long ago something was, in its one or two largest units.
fn age(since: Timestamp, now: Timestamp) -> String {
    const UNITS: [(i64, &str); 3] = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let seconds = now.duration_since(since).as_secs().max(0);
    // A unit is used from its second on: `119s`, `2m`, `47h`, `2d`.
    UNITS
        .into_iter()
        .find(|(unit, _)| seconds >= 2 * unit)
        .map_or_else(
            || format!("{seconds}s"),
            |(unit, name)| format!("{}{name}", seconds / unit),
        )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(kind: Shown, object: &Value) -> Vec<(&'static str, String)> {
        let now = "2026-03-04T05:06:07Z".parse().unwrap();
        of(kind)
            .into_iter()
            .map(|column| (column.title, (column.cell)(object, now)))
            .filter(|(_, cell)| !cell.is_empty())
            .collect()
    }

    #[test]
    fn a_policy_tells_what_became_of_it() {
        let policy = json!({
            "metadata": {"name": "p", "namespace": "n", "generation": 3, "creationTimestamp": "2026-03-04T03:06:07Z"},
            "status": {
                "observedGeneration": 2,
                "state": "INVALID",
                "destinations": {"a.n.": {"state": "ACCEPTED"}, "b.n.": {"state": "INVALID"}},
                "workloads": ["w.n."],
                "conditions": [
                    {"type": "Accepted", "status": "False", "reason": "Conflicted", "message": "on b"},
                    {"type": "Programmed", "status": "True", "reason": "Programmed", "message": ""},
                ],
            },
        });
        assert_eq!(
            row(Shown::TrafficPolicy, &policy),
            [
                ("NAMESPACE", "n"),
                ("NAME", "p"),
                ("STATE", "INVALID"),
                ("OBSERVED", "no"),
                ("REASON", "Conflicted"),
                ("DESTINATIONS", "1/2"),
                ("WORKLOADS", "1"),
                ("PROGRAMMED", "True"),
                ("AGE", "2h"),
                ("MESSAGE", "on b"),
            ]
            .map(|(title, cell)| (title, cell.to_owned()))
        );
    }

    #[test]
    fn a_mesh_tells_its_type_and_where_it_runs() {
        let mesh = json!({
            "metadata": {"name": "m"},
            "spec": {"agentInfo": {"agentNamespace": "g"}, "osm": {"installation": {"cluster": "c", "namespace": "osm-system", "version": "1.2"}}},
        });
        let row = row(Shown::Mesh, &mesh);
        for cell in [("TYPE", "OSM"), ("CLUSTER", "c"), ("VERSION", "1.2")] {
            assert!(row.contains(&(cell.0, cell.1.to_owned())), "{row:?}");
        }
    }

    #[test]
    fn an_object_that_says_nothing_has_a_row_all_the_same() {
        for kind in <Shown as clap::ValueEnum>::value_variants() {
            let row = row(*kind, &json!({"metadata": {"name": "x"}, "spec": {}}));
            assert_eq!(row[0], ("NAME", "x".to_owned()));
        }
    }

    #[test]
    fn ages_are_short() {
        let now: Timestamp = "2026-01-31T00:00:00Z".parse().unwrap();
        for (since, expected) in [
            ("2026-01-30T23:59:59Z", "1s"),
            ("2026-01-30T23:58:01Z", "119s"),
            ("2026-01-30T23:58:00Z", "2m"),
            ("2026-01-30T00:30:00Z", "23h"),
            ("2026-01-01T00:00:00Z", "30d"),
            ("2026-02-01T00:00:00Z", "0s"),
        ] {
            assert_eq!(age(since.parse().unwrap(), now), expected, "{since}");
        }
    }
}
