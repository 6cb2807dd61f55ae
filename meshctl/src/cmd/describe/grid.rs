//! All objects of a kind as a table.

use serde_json::Value;

use crate::kind::Shown;
use crate::render::yaml_of;

/// The titles of a kind's table.
pub(super) fn titles(kind: Shown) -> &'static [&'static str] {
    match kind {
        Shown::Mesh => &[
            "METADATA",
            "VIRTUAL MESH",
            "VIRTUAL DESTINATIONS",
            "GATEWAYS",
        ],
        Shown::Workload => &["METADATA", "KUBERNETES", "MESH"],
        Shown::Destination => &["METADATA", "TRAFFIC POLICIES", "ACCESS POLICIES"],
        Shown::VirtualMesh => &["METADATA", "NET", "MESHES", "STATUS"],
        Shown::TrafficPolicy => &[
            "METADATA",
            "SOURCE WORKLOADS",
            "DESTINATION SERVICES",
            "HTTP MATCHERS",
            "POLICY",
            "STATUS",
        ],
        Shown::AccessPolicy => &[
            "METADATA",
            "FILTERS",
            "SOURCE SERVICE ACCOUNTS",
            "DESTINATION SERVICES",
            "STATUS",
        ],
        Shown::KubernetesCluster => &["METADATA", "CLUSTER", "STATUS"],
    }
}

/// An object's row in it.
pub(super) fn row(kind: Shown, object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let status = &object["status"];
    let mut cells = vec![metadata(kind, object)];
    cells.extend(match kind {
        Shown::Mesh => vec![
            text(status.pointer("/appliedVirtualMesh/ref").map(reference)),
            references(&status["appliedVirtualDestinations"]),
            gateways(&status["appliedEastWestIngressGateways"]),
        ],
        Shown::Workload => {
            let kubernetes = &spec["kubernetes"];
            let account = &kubernetes["serviceAccountName"];
            vec![
                lines([
                    ("Service account", account.as_str().map(str::to_owned)),
                    ("Controller", kubernetes.get("controller").map(reference)),
                    ("Pod labels", block(&kubernetes["podLabels"])),
                ]),
                text(spec.get("mesh").map(reference)),
            ]
        }
        Shown::Destination => vec![
            references(&status["appliedTrafficPolicies"]),
            references(&status["appliedAccessPolicies"]),
        ],
        Shown::VirtualMesh => vec![
            lines([
                ("Global access policy", scalar(&spec["globalAccessPolicy"])),
                ("Trust", block(&spec["mtlsConfig"])),
                ("Federation", block(&spec["federation"])),
            ]),
            references(&spec["meshes"]),
            verdict(status),
        ],
        Shown::TrafficPolicy => vec![
            selectors(&spec["sourceSelector"], "all workloads"),
            selectors(&spec["destinationSelector"], "all destinations"),
            selectors(&spec["httpRequestMatchers"], "all requests"),
            selectors(&spec["policy"], "nothing"),
            verdict(status),
        ],
        Shown::AccessPolicy => {
            let filters = ["allowedPaths", "allowedMethods", "allowedPorts"]
                .map(|field| (field, block(&spec[field])));
            vec![
                match lines(filters) {
                    filters if filters.is_empty() => "all requests".to_owned(),
                    filters => filters,
                },
                selectors(&spec["sourceSelector"], "everybody"),
                selectors(&spec["destinationSelector"], "all destinations"),
                verdict(status),
            ]
        }
        Shown::KubernetesCluster => vec![
            lines([
                ("Domain", scalar(&spec["clusterDomain"])),
                ("Registered in", scalar(&status["namespace"])),
            ]),
            verdict(status),
        ],
    });
    cells
}

fn metadata(kind: Shown, object: &Value) -> String {
    let metadata = &object["metadata"];
    let cluster = match kind {
        Shown::KubernetesCluster => None,
        kind => kind.cluster(object).map(str::to_owned),
    };
    let spec = &object["spec"];
    let service = &spec["kubeService"];
    let mut types = spec.as_object().into_iter().flatten();
    let installation = types.find_map(|(name, mesh)| Some((name, mesh.get("installation")?)));
    lines([
        ("Name", scalar(&metadata["name"])),
        ("Namespace", scalar(&metadata["namespace"])),
        ("Cluster", cluster),
        ("Type", installation.map(|(name, _)| name.clone())),
        (
            "Version",
            installation.and_then(|(_, it)| scalar(&it["version"])),
        ),
        ("Service", service.get("ref").map(reference)),
        ("Type", scalar(&service["serviceType"])),
        (
            "Federated host",
            object
                .pointer("/status/appliedFederation/federatedHostname")
                .and_then(scalar),
        ),
        ("External host", block(&spec["externalService"]["hosts"])),
    ])
}

/// What became of an object.
fn verdict(status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions: Vec<_> = conditions
        .map(|condition| {
            let of = |field: &str| condition[field].as_str().unwrap_or_default();
            format!("{}: {} ({})", of("type"), of("status"), of("reason"))
        })
        .collect();
    let mut cell = lines([
        ("State", scalar(&status["state"])),
        ("Errors", block(&status["errors"])),
    ]);
    if !cell.is_empty() && !conditions.is_empty() {
        cell.push('\n');
    }
    cell + &conditions.join("\n")
}

fn gateways(gateways: &Value) -> String {
    let list = gateways.as_array().into_iter().flatten();
    let gateways = list.map(|gateway| {
        let addresses = gateway["externalAddresses"]
            .as_array()
            .into_iter()
            .flatten();
        let addresses: Vec<_> = addresses.filter_map(Value::as_str).collect();
        format!(
            "{}: {}",
            reference(&gateway["destinationRef"]),
            match addresses.join(", ") {
                none if none.is_empty() => "no address".to_owned(),
                addresses => addresses,
            }
        )
    });
    gateways.collect::<Vec<_>>().join("\n")
}

/// `namespace/name`, with the cluster where there is one.
fn reference(reference: &Value) -> String {
    let of = |field: &str| reference[field].as_str().unwrap_or_default();
    match of("clusterName") {
        "" => format!("{}/{}", of("namespace"), of("name")),
        cluster => format!("{}/{} on {cluster}", of("namespace"), of("name")),
    }
}

/// References, each on a line; some are members of their entry.
fn references(list: &Value) -> String {
    let list = list.as_array().into_iter().flatten();
    let references = list.map(|entry| reference(entry.get("ref").unwrap_or(entry)));
    references.collect::<Vec<_>>().join("\n")
}

/// Selectors as they are written; `all` where there are none.
fn selectors(value: &Value, all: &str) -> String {
    match block(value) {
        Some(block) => block.trim_start_matches('\n').to_owned(),
        None => format!("({all})"),
    }
}

fn scalar(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn text(value: Option<String>) -> String {
    value.unwrap_or_default()
}

/// Something with members as YAML, on lines of its own.
fn block(value: &Value) -> Option<String> {
    let is_empty = match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    (!is_empty).then(|| format!("\n{}", yaml_of(value)))
}

/// Labelled lines, those without a value left out.
fn lines<const N: usize>(lines: [(&str, Option<String>); N]) -> String {
    let lines = lines.into_iter().filter_map(|(label, value)| {
        let value = value.filter(|value| !value.is_empty())?;
        Some(match value.strip_prefix('\n') {
            Some(block) => format!("{label}:\n  {}", block.replace('\n', "\n  ")),
            None => format!("{label}: {value}"),
        })
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_has_a_cell_for_each_title() {
        for kind in <Shown as clap::ValueEnum>::value_variants() {
            let object = json!({"metadata": {"name": "x", "namespace": "n"}, "spec": {}});
            let row = row(*kind, &object);
            assert_eq!(row.len(), titles(*kind).len(), "{kind:?}");
            assert!(row[0].starts_with("Name: x\nNamespace: n"), "{row:?}");
        }
    }

    #[test]
    fn an_access_policy_with_more_ports_than_methods_shows_both() {
        let policy = json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"allowedMethods": ["GET"], "allowedPorts": [9080, 9081, 9082]},
        });
        let row = row(Shown::AccessPolicy, &policy);
        assert_eq!(
            row[1],
            "allowedMethods:\n  - GET\nallowedPorts:\n  - 9080\n  - 9081\n  - 9082"
        );
        assert_eq!(row[2], "(everybody)");
    }

    #[test]
    fn a_traffic_policy_shows_what_it_asks_for() {
        let policy = json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {
                "destinationSelector": [{"kubeServiceMatcher": {"labels": {"b": "2", "a": "1"}}}],
                "policy": {"retries": {"attempts": 3}},
            },
            "status": {"state": "INVALID", "errors": ["conflict"], "conditions": [{"type": "Accepted", "status": "False", "reason": "Conflicted"}]},
        });
        let row = row(Shown::TrafficPolicy, &policy);
        assert_eq!(
            row[1..],
            [
                "(all workloads)",
                "- kubeServiceMatcher:\n    labels:\n      a: \"1\"\n      b: \"2\"",
                "(all requests)",
                "retries:\n  attempts: 3",
                "State: INVALID\nErrors:\n  - conflict\nAccepted: False (Conflicted)",
            ]
        );
    }
}
