//! What is read of files, and what is said about the rest.

#![cfg(unix)]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::bench::{directory, files, meshctl, with_input};

const POLICY: &str = "
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: p, namespace: gloo-mesh}
spec: {destinationSelector: [{}]}
";

#[test]
fn links_that_lead_nowhere_are_named_where_they_are_called_manifests() {
    let path = files("links", [("a.yaml", POLICY)]);
    symlink("nowhere", path.join("gone.yaml")).unwrap();
    symlink("loop.yaml", path.join("loop.yaml")).unwrap();
    symlink("nowhere", path.join("notes")).unwrap();
    let path = path.to_str().unwrap();
    let ran = meshctl(&["translate", "-f", path, "-o", "json"]);
    assert_eq!(ran.code, 1);
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    for (line, name) in lines.iter().zip(["gone", "loop"]) {
        let expected = format!("error: {path}/{name}.yaml: ");
        assert!(line.starts_with(&expected), "{line}");
    }
    assert!(ran.stdout.contains("\"name\":\"p\""), "{}", ran.stdout);
}

#[test]
fn a_file_that_many_links_lead_to_is_read_once() {
    let path = files("once", [("a.yaml", POLICY)]);
    symlink("a.yaml", path.join("b.yaml")).unwrap();
    let file = path.join("a.yaml");
    let (path, file) = (path.to_str().unwrap(), file.to_str().unwrap());
    let ran = meshctl(&["translate", "-v", "-f", path, "-f", file, "-f", path]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (0, "1 object read, 0 documents of other kinds passed over\n")
    );
}

#[test]
fn directories_are_read_to_a_bounded_depth() {
    let path = directory("deep");
    let mut deep = path.clone();
    for _ in 0..66 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("a.yaml"), POLICY).unwrap();
    fs::write(path.join("b.yaml"), POLICY).unwrap();
    let ran = meshctl(&["translate", "-f", path.to_str().unwrap(), "-o", "json"]);
    assert_eq!(ran.code, 1);
    let expected = "/d: is not read: it lies 64 directories deep\n";
    assert!(ran.stderr.ends_with(expected), "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["statuses"].as_array().unwrap().len(), 1);
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    let ran = meshctl(&["translate", "-f", "/dev/zero"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (1, "error: /dev/zero: is larger than 256 MiB: split it\n")
    );
}

#[test]
fn a_document_that_multiplies_itself_or_never_closes_is_refused() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for at in 1..12 {
        let before = format!("*a{}", at - 1);
        writeln!(bomb, "a{at}: &a{at} [{}]", [&*before; 9].join(",")).unwrap();
    }
    for text in [bomb, "[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        let ran = with_input(&["validate", "-f", "-"], &format!("{POLICY}---\n{text}"));
        assert_eq!(ran.code, 1);
        assert!(
            ran.stdout.contains("1 object judged: 0 denied"),
            "{}",
            ran.stdout
        );
        assert!(
            ran.stdout.contains("1 document unreadable"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn a_broken_document_is_told_by_its_line_in_the_file() {
    let text = format!("{POLICY}---\n{POLICY}---\nkind: [\n");
    let ran = with_input(&["translate", "-f", "-"], &text);
    let lines = text.lines().count();
    assert!(
        ran.stderr.contains(&format!("line {lines}")),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_directory_that_holds_nothing_to_read_is_told() {
    let path = files("nothing", [("notes.txt", "")]);
    let path = path.to_str().unwrap();
    let ran = meshctl(&["translate", "-f", path]);
    assert_eq!(ran.code, 0);
    assert_eq!(
        ran.stderr,
        format!("warning: {path}: holds no *.yaml, *.yml or *.json\n")
    );
    let strict = meshctl(&["validate", "--strict", "-f", path]);
    assert_eq!(strict.code, 1);
}

#[test]
fn kinds_of_groups_that_are_not_supported_are_named_and_those_of_others_are_not() {
    let other = |api_version: &str, kind: &str| {
        format!("---\napiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\n")
    };
    let text = [
        other(
            "networking.enterprise.mesh.gloo.solo.io/v1beta1",
            "VirtualDestination",
        ),
        other("certificates.mesh.gloo.solo.io/v1", "IssuedCertificate"),
        other("kustomize.config.k8s.io/v1beta1", "Kustomization"),
        "---\nreplicas: 3\n".to_owned(),
    ]
    .concat();
    let ran = with_input(&["translate", "-f", "-"], &text);
    assert_eq!(ran.code, 0);
    assert_eq!(
        ran.stderr,
        "warning: stdin, document 1: VirtualDestination is passed over: networking.enterprise.mesh.gloo.solo.io is not supported\n"
    );
}

/// What is said about one broken document after a sound one.
fn told(broken: &str) -> String {
    let ran = with_input(&["translate", "-f", "-"], &format!("{POLICY}---{broken}"));
    assert_eq!(ran.code, 1, "{broken}: {ran:?}");
    assert!(ran.stdout.contains("name: p\n"), "{ran:?}");
    let told = ran.stderr.strip_prefix("error: stdin, document 2");
    told.unwrap_or_else(|| panic!("{ran:?}"))
        .trim_end()
        .to_owned()
}

#[test]
fn what_cannot_be_read_is_told_with_document_object_field_and_remedy() {
    for (from, to, expected) in [
        (
            "name: p",
            "generateName: p-",
            ": TrafficPolicy: metadata.name: is missing; give the object a name",
        ),
        (
            "name: p",
            "name: P",
            ": TrafficPolicy gloo-mesh/P: metadata.name: `P` is not an object name: it may contain only lower-case letters, digits, `-` and `.`, and has `P`",
        ),
        (
            "gloo-mesh}",
            "a.b}",
            ": TrafficPolicy a.b/p: metadata.namespace: `a.b` is not a namespace: it may contain only lower-case letters, digits and `-`, and has `.`",
        ),
        (
            "name: p,",
            "name: p, labels: {version: 1.10},",
            ": TrafficPolicy gloo-mesh/p: metadata.labels.version: invalid type: floating point `1.1`, expected a string; write it in quotes",
        ),
        (
            "[{}]",
            "[{kubeServiceRefs: {services: true}}]",
            ": TrafficPolicy gloo-mesh/p: spec.destinationSelector[0].kubeServiceRefs.services: invalid type: boolean `true`, expected a list; see `kubectl explain trafficpolicy.spec.destinationSelector.kubeServiceRefs.services`",
        ),
        (
            "apiVersion: networking.mesh.gloo.solo.io/v1",
            "",
            ": TrafficPolicy gloo-mesh/p: apiVersion: is missing; write networking.mesh.gloo.solo.io/v1",
        ),
        (
            "kind: TrafficPolicy",
            "",
            ": gloo-mesh/p: kind: is missing; write one of AccessPolicy, TrafficPolicy, VirtualMesh",
        ),
        (
            "kind: TrafficPolicy",
            "kind: trafficPolicy",
            ": trafficPolicy gloo-mesh/p: kind: networking.mesh.gloo.solo.io has no trafficPolicy; write one of AccessPolicy, TrafficPolicy, VirtualMesh",
        ),
        (
            "solo.io/v1",
            "solo.io/v1alpha2",
            ": TrafficPolicy gloo-mesh/p: apiVersion: networking.mesh.gloo.solo.io/v1alpha2 is not served; write networking.mesh.gloo.solo.io/v1",
        ),
    ] {
        assert_eq!(told(&POLICY.replace(from, to)), expected);
    }
    assert!(told("\nkind: [\n").contains("line "));
}

#[test]
fn what_is_nobodys_business_need_not_be_in_order() {
    let broken = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: 7}\nspec: none\n";
    let ran = with_input(&["translate", "-f", "-"], &format!("{POLICY}---\n{broken}"));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let broken = POLICY.replace("[{}]", "none");
    let ran = with_input(&["discover", "--cluster", "east=-"], &broken);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn items_of_a_list_are_read_even_where_only_the_list_says_what_they_are() {
    let item = |name: &str| {
        format!(
            "- {{metadata: {{name: {name}, namespace: gloo-mesh}}, spec: {{destinationSelector: [{{}}]}}}}\n"
        )
    };
    let text = format!(
        "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicyList\nitems:\n{}{}{}",
        item("a"),
        item("B"),
        item("c")
    );
    let ran = with_input(&["translate", "-f", "-", "-o", "json"], &text);
    assert!(
        ran.stderr
            .starts_with("error: stdin, item 2: TrafficPolicy gloo-mesh/B: metadata.name: "),
        "{ran:?}"
    );
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let names: Vec<_> = json["statuses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|status| &status["name"])
        .collect();
    assert_eq!(names, ["a", "c"]);
}

#[test]
fn a_file_of_endlessly_many_documents_is_read_in_part() {
    let text = format!(
        r#"{{"kind": "List", "items": [{}{{}}]}}"#,
        "{},".repeat(1_000_000)
    );
    let ran = with_input(&["validate", "-f", "-"], &text);
    assert_eq!(ran.code, 1);
    let told = "stdin\n  unreadable: holds more than 1000000 objects: split it\n";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
}

#[test]
fn a_version_that_is_not_served_cannot_be_read() {
    let text = POLICY.replace("/v1", "/v1alpha2");
    let ran = with_input(&["validate", "-f", "-"], &text);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.starts_with(
            "stdin: TrafficPolicy gloo-mesh/p\n  unreadable: apiVersion: networking.mesh.gloo.solo.io/v1alpha2 is not served; write networking.mesh.gloo.solo.io/v1\n"
        ),
        "{}",
        ran.stdout
    );
}

#[test]
fn an_object_without_a_namespace_is_taken_for_one_of_the_management_plane() {
    let text = POLICY.replace(", namespace: gloo-mesh", "");
    let ran = with_input(&["translate", "-f", "-", "-o", "json", "-n", "mesh"], &text);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            0,
            "warning: stdin: TrafficPolicy p has no namespace and is taken for one of mesh: write metadata.namespace\n"
        )
    );
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["statuses"][0]["namespace"], "mesh");
}
