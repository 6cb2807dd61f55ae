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
        let expected = format!("error: {path}/{name}.yaml: file: ");
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
    let expected = "/d: file: is not read: it lies 64 directories deep\n";
    assert!(ran.stderr.ends_with(expected), "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["statuses"].as_array().unwrap().len(), 1);
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    let ran = meshctl(&["translate", "-f", "/dev/zero"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            1,
            "error: /dev/zero: file: is larger than 256 MiB: split it\n"
        )
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
fn kinds_that_our_groups_do_not_have_are_named_and_those_of_others_are_not() {
    let other = |api_version: &str, kind: &str| {
        format!("---\napiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\n")
    };
    let text = [
        other("networking.mesh.gloo.solo.io/v1", "TrafficPolicies"),
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
        "warning: stdin: TrafficPolicies is passed over: networking.mesh.gloo.solo.io has no such kind, only AccessPolicy, TrafficPolicy, VirtualMesh\n\
         warning: stdin: VirtualDestination is passed over: networking.enterprise.mesh.gloo.solo.io is not supported\n"
    );
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
