//! `validate`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::bench::{Ran, directory, documents, files, inputs, meshctl, with_input};

const ESTATE: &str = "
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Mesh
metadata: {name: istiod-east, namespace: gloo-mesh}
spec: {istio: {installation: {cluster: east, namespace: istio-system}, trustDomain: east.local}}
---
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Destination
metadata: {name: reviews-shop-east, namespace: gloo-mesh}
spec:
  mesh: {name: istiod-east, namespace: gloo-mesh}
  kubeService:
    ref: {name: reviews, namespace: shop, clusterName: east}
    workloadSelectorLabels: {app: reviews}
    ports: [{name: http, port: 9080, protocol: TCP}]
";

const CLUSTER: &str = "
apiVersion: multicluster.solo.io/v1alpha1
kind: KubernetesCluster
metadata: {name: east, namespace: gloo-mesh}
spec: {}
";

fn retries(name: &str, service: &str) -> String {
    format!(
        "
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {{name: {name}, namespace: gloo-mesh}}
spec:
  destinationSelector: [{{kubeServiceRefs: {{services: [{{name: {service}, namespace: shop, clusterName: east}}]}}}}]
  policy: {{retries: {{attempts: 3}}}}
"
    )
}

fn virtual_mesh(name: &str) -> String {
    format!(
        "
apiVersion: networking.mesh.gloo.solo.io/v1
kind: VirtualMesh
metadata: {{name: {name}, namespace: gloo-mesh}}
spec: {{meshes: [{{name: istiod-east, namespace: gloo-mesh}}]}}
"
    )
}

fn settings(unresolved: &str) -> String {
    format!(
        "
apiVersion: settings.mesh.gloo.solo.io/v1
kind: Settings
metadata: {{name: settings, namespace: gloo-mesh}}
spec: {{admission: {{unresolvedReferences: {unresolved}}}}}
"
    )
}

fn validate(parts: &[&str]) -> (i32, Value) {
    let text = parts.join("---");
    let Ran {
        code,
        stdout,
        stderr,
    } = with_input(&["validate", "-f", "-", "-o", "json"], &text);
    assert_eq!(stderr, "");
    (code, serde_json::from_str(&stdout).unwrap())
}

/// Names of the objects that are denied, with the reasons.
fn denied(validation: &Value) -> Vec<(&str, Vec<&str>)> {
    let objects = validation["objects"].as_array().unwrap().iter();
    objects
        .filter(|object| object["allowed"] == false)
        .map(|object| {
            let denials = object["denials"].as_array().unwrap().iter();
            let reasons = denials.map(|denial| denial["reason"].as_str().unwrap());
            (object["name"].as_str().unwrap(), reasons.collect())
        })
        .collect()
}

#[test]
fn what_fits_together_is_let_through() {
    let (code, validation) = validate(&[ESTATE, CLUSTER, &retries("a", "reviews")]);
    assert_eq!((code, denied(&validation)), (0, vec![]));
    assert_eq!(validation["apiVersion"], "cli.mesh/v1");
    assert_eq!(validation["kind"], "Validation");
    assert_eq!(
        validation["summary"],
        json!({"judged": 1, "denied": 0, "warned": 0, "unreadable": 0})
    );
}

#[test]
fn a_reference_to_what_is_not_in_the_files_is_denied() {
    for estate in [&[ESTATE][..], &[ESTATE, CLUSTER]] {
        let policy = retries("a", "ratings");
        let parts: Vec<_> = estate.iter().copied().chain([&*policy]).collect();
        let (code, validation) = validate(&parts);
        assert_eq!(denied(&validation), [("a", vec!["NotFound"])]);
        assert_eq!(code, 1);
        let denial = &validation["objects"][0]["denials"][0];
        assert_eq!(
            denial["field"],
            "spec.destinationSelector[0].kubeServiceRefs.services[0]"
        );
        assert!(
            denial["message"]
                .as_str()
                .unwrap()
                .contains("ratings.shop.east")
        );
        assert!(denial["remedy"].is_string());
    }
}

#[test]
fn a_cluster_is_there_when_it_is_registered_though_nothing_is_in_it() {
    let policy = "
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: a, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceMatcher: {clusters: [west]}}]
  policy: {requestTimeout: 1s}
";
    let west = CLUSTER.replace("east", "west");
    let (code, validation) = validate(&[ESTATE, CLUSTER, &west, policy]);
    assert_eq!((code, denied(&validation)), (0, vec![]));
    let (code, validation) = validate(&[ESTATE, CLUSTER, policy]);
    assert_eq!(
        (code, denied(&validation)),
        (1, vec![("a", vec!["NotFound"])])
    );
}

#[test]
fn settings_turn_a_missing_reference_into_a_warning() {
    let policy = retries("a", "ratings");
    for (setting, code) in [("Deny", 1), ("Warn", 0)] {
        let (is, validation) = validate(&[ESTATE, &policy, &settings(setting)]);
        assert_eq!(is, code, "{setting}: {validation:#}");
    }
}

#[test]
fn warnings_are_findings_for_the_strict() {
    let policy = retries("a", "reviews").replace("  destinationSelector: [", "  # [");
    let text = [ESTATE, &*policy].join("---");
    let of = |arguments: &[&str]| with_input(arguments, &text);
    let lenient = of(&["validate", "-f", "-"]);
    let strict = of(&["validate", "-f", "-", "--strict"]);
    assert_eq!((lenient.code, strict.code), (0, 1), "{}", lenient.stdout);
    assert_eq!(lenient.stdout, strict.stdout);
    let warning = "  warning: spec.destinationSelector is empty: selects 1 of 1 destination";
    assert!(lenient.stdout.contains(warning), "{}", lenient.stdout);
}

#[test]
fn two_that_cannot_both_be_are_both_denied() {
    let (code, validation) = validate(&[ESTATE, &virtual_mesh("one"), &virtual_mesh("two")]);
    assert_eq!(
        denied(&validation),
        [("one", vec!["Conflicted"]), ("two", vec!["Conflicted"])]
    );
    assert_eq!(code, 1);
}

#[test]
fn a_root_that_is_not_in_the_files_is_missing() {
    let wanting = virtual_mesh("one").replace(
        "meshes:",
        "mtlsConfig: {shared: {rootCertificateAuthority: {secret: {name: root, namespace: gloo-mesh}}}}, meshes:",
    );
    let (code, validation) = validate(&[ESTATE, &wanting]);
    assert_eq!(denied(&validation), [("one", vec!["NotFound"])]);
    assert_eq!(code, 1);
}

#[test]
fn a_misspelt_field_is_named_with_what_it_leads_to() {
    let policy = retries("a", "reviews").replace("destinationSelector:", "destinationSelectors:");
    let (code, validation) = validate(&[ESTATE, &policy]);
    assert_eq!(code, 0);
    let warnings = validation["objects"][0]["warnings"].as_array().unwrap();
    let messages: Vec<_> = warnings
        .iter()
        .map(|warning| warning["message"].as_str().unwrap())
        .collect();
    assert!(messages[0].starts_with("spec.destinationSelectors is no field"));
    assert!(messages[1].starts_with("spec.destinationSelector is empty"));
}

#[test]
fn a_denial_names_the_field_where_it_is_one_alone() {
    let policy = retries("a", "reviews").replace("attempts: 3", "attempts: -3");
    let (code, validation) = validate(&[ESTATE, &policy]);
    assert_eq!(
        (code, denied(&validation)),
        (1, vec![("a", vec!["Invalid"])])
    );
    let denial = &validation["objects"][0]["denials"][0];
    assert_eq!(denial["field"], "spec.policy.retries.attempts");
    assert_eq!(
        denial["message"],
        "is negative; use 0 to turn retries off, or a positive number"
    );
}

#[test]
fn an_object_that_stands_twice_is_told_and_is_a_finding_for_the_strict() {
    let policy = retries("a", "reviews");
    let (code, validation) = validate(&[ESTATE, &policy, &policy]);
    assert_eq!(code, 0);
    assert_eq!(
        validation["warnings"],
        json!([{
            "file": "stdin",
            "document": 4,
            "message": "TrafficPolicy gloo-mesh/a stands in stdin, document 3 too, with the same content: remove one of them",
        }])
    );
    let text = [ESTATE, &*policy, &policy].join("---");
    let strict = with_input(&["validate", "--strict", "-f", "-"], &text);
    assert_eq!(strict.code, 1);
}

#[test]
fn a_broken_document_is_a_finding_and_the_rest_is_judged() {
    let (code, validation) = validate(&[
        ESTATE,
        &retries("a", "reviews"),
        "\nkind: [\n",
        &retries("b", "reviews").replace("attempts: 3", "attempts: many"),
    ]);
    assert_eq!((code, denied(&validation)), (1, vec![]));
    let unreadable = validation["unreadable"].as_array().unwrap();
    assert_eq!(unreadable.len(), 2);
    assert_eq!(unreadable[0]["document"], 4);
    assert_eq!(unreadable[0].get("object"), None);
    assert_eq!(unreadable[1]["document"], 5);
    assert_eq!(unreadable[1]["object"], "TrafficPolicy gloo-mesh/b");
    assert_eq!(unreadable[1]["field"], "spec.policy.retries.attempts");
    assert_eq!(validation["summary"]["judged"], 1);
}

#[test]
fn answers_come_by_kind_namespace_and_name() {
    let elsewhere = |name| retries(name, "reviews").replace("namespace: gloo-mesh", "namespace: a");
    let (_, validation) = validate(&[
        ESTATE,
        &virtual_mesh("one"),
        &retries("b", "reviews"),
        &retries("a", "reviews"),
        &elsewhere("z"),
        &settings("Deny"),
    ]);
    let objects = validation["objects"].as_array().unwrap().iter();
    let names: Vec<_> = objects
        .map(|object| {
            let text = |field: &str| object[field].as_str().unwrap();
            (text("kind"), text("namespace"), text("name"))
        })
        .collect();
    assert_eq!(
        names,
        [
            ("Settings", "gloo-mesh", "settings"),
            ("TrafficPolicy", "a", "z"),
            ("TrafficPolicy", "gloo-mesh", "a"),
            ("TrafficPolicy", "gloo-mesh", "b"),
            ("VirtualMesh", "gloo-mesh", "one"),
        ]
    );
}

/// The cases of the rules that API servers check, for the kinds that are judged.
fn rules() -> Vec<Value> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds/tests/rules");
    ["accesspolicy", "settings", "trafficpolicy", "virtualmesh"]
        .iter()
        .flat_map(|kind| {
            let text = fs::read_to_string(rules.join(format!("{kind}.yaml"))).unwrap();
            serde_saphyr::from_multiple::<Value>(&text).unwrap()
        })
        .collect()
}

#[test]
fn what_an_api_server_refuses_by_its_schema_is_refused_here_too() {
    let mut cases = rules();
    cases.retain(|case| case["accept"] == false);
    let objects: String = cases
        .iter()
        .enumerate()
        .map(|(at, case)| {
            let kind = case["kind"].as_str().unwrap();
            let group = if kind == "Settings" {
                "settings"
            } else {
                "networking"
            };
            let mut object = case["object"].clone();
            object["apiVersion"] = json!(format!("{group}.mesh.gloo.solo.io/v1"));
            object["kind"] = json!(kind);
            object["metadata"] = json!({"name": format!("case-{at}"), "namespace": "gloo-mesh"});
            object.to_string()
        })
        .collect();
    let (code, validation) = validate(&[&objects]);
    assert_eq!(code, 1);
    let mut refused: Vec<_> = denied(&validation)
        .into_iter()
        .filter(|(_, reasons)| reasons.iter().any(|reason| *reason != "NotFound"))
        .map(|(name, _)| name)
        .collect();
    let unreadable = validation["unreadable"].as_array().unwrap().iter();
    refused.extend(unreadable.filter_map(|it| it["object"].as_str()?.rsplit('/').next()));
    assert!(cases.len() > 50, "{}", cases.len());
    for (at, case) in cases.iter().enumerate() {
        let (name, kind) = (format!("case-{at}"), &case["kind"]);
        assert!(refused.contains(&&*name), "{kind}: {}", case["name"]);
    }
}

#[test]
fn the_corpus_is_judged_alike_in_any_order_of_files() {
    for scenario in inputs() {
        let objects = documents(&scenario.join("input"));
        let answers: Vec<Value> = [1, 7]
            .iter()
            .map(|step| {
                let path = directory("judged");
                for (at, object) in objects.iter().enumerate() {
                    let place = (at * step) % objects.len().max(1);
                    fs::write(path.join(format!("{place:03}-{at}.yaml")), object).unwrap();
                }
                let ran = meshctl(&["validate", "-f", path.to_str().unwrap(), "-o", "json"]);
                let mut answer: Value = serde_json::from_str(&ran.stdout).unwrap();
                for object in answer["objects"].as_array_mut().unwrap() {
                    for place in ["file", "document", "item"] {
                        object.as_object_mut().unwrap().remove(place);
                    }
                }
                answer
            })
            .collect();
        assert_eq!(answers[0], answers[1], "{}", scenario.display());
    }
}

#[test]
fn people_are_told_file_object_reason_and_remedy() {
    let path = files(
        "golden",
        [
            ("estate.yaml", ESTATE),
            (
                "policies.yaml",
                &[
                    retries("good", "reviews"),
                    retries("lost", "ratings"),
                    retries("odd", "reviews").replace("attempts: 3", "attempts: -3"),
                    retries("torn", "reviews").replace("attempts: 3", "attempts: many"),
                ]
                .join("---"),
            ),
            (
                "virtual-mesh.yaml",
                &virtual_mesh("vm").replace("istiod-east", "istiod-west"),
            ),
        ],
    );
    let path = path.to_str().unwrap();
    let ran = meshctl(&["validate", "-f", path]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    let text = ran.stdout.replace(path, "DIR");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/validate.txt");
    if std::env::var_os("FERROMESH_BLESS").is_some() {
        fs::write(&golden, &text).unwrap();
    }
    assert_eq!(
        text,
        fs::read_to_string(&golden).unwrap_or_default(),
        "see the difference with FERROMESH_BLESS=1"
    );
}
