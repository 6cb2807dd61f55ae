//! `translate`.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{
    directories, directory, documents, expected, files, inputs, meshctl, scenarios, with_input,
};

const MESH: &str = "
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Mesh
metadata: {name: m, namespace: gloo-mesh, generation: 3}
spec: {istio: {installation: {cluster: c, namespace: istio-system}}}
";

const BROKEN: &str = "
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: simple, namespace: gloo-mesh}
spec: {policy: {retries: {attempts: many}}}
";

/// One object comes of it: how callers reach the destination.
const ESTATE: &str = "
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Mesh
metadata: {name: m, namespace: gloo-mesh}
spec: {istio: {installation: {cluster: c, namespace: istio-system}}}
---
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Destination
metadata: {name: reviews-shop-c, namespace: gloo-mesh}
spec:
  mesh: {name: m, namespace: gloo-mesh}
  kubeService:
    ref: {name: reviews, namespace: shop, clusterName: c}
    ports: [{name: http, port: 9080, protocol: TCP}]
";

/// What a document sorts its entries by.
fn order(list: &Value) -> Vec<[String; 4]> {
    let list = list.as_array().unwrap().iter();
    list.map(|entry| {
        ["cluster", "kind", "namespace", "name"]
            .map(|field| entry[field].as_str().unwrap_or_default().to_owned())
    })
    .collect()
}

#[test]
fn the_corpus_comes_out_as_expected() {
    for scenario in scenarios() {
        let input = scenario.join("input");
        if !input.is_dir() || !directories(&scenario.join("clusters")).is_empty() {
            continue;
        }
        let input = input.to_str().unwrap();
        let json = meshctl(&["translate", "-f", input, "-o", "json"]).json();
        let fields: Vec<_> = json.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["outputs", "statuses"]);
        for name in fields {
            assert_eq!(json[name], expected(&scenario, name), "{input}: {name}");
            assert!(order(&json[name]).is_sorted(), "{input}: {name}");
        }
        let yaml = meshctl(&["translate", "-f", input]);
        assert_eq!(yaml.code, 0);
        let yaml: Value = serde_saphyr::from_str(&yaml.stdout).unwrap();
        assert_eq!(yaml, json, "{input}: YAML and JSON differ");
    }
}

#[test]
fn the_same_objects_in_other_files_come_out_byte_by_byte_the_same() {
    for scenario in inputs() {
        let input = scenario.join("input");
        let objects = documents(&input);
        let first = meshctl(&["translate", "-f", input.to_str().unwrap(), "-o", "json"]);
        let elsewhere = directory("shuffled");
        for (at, object) in objects.iter().enumerate() {
            let place = (at * 7) % objects.len().max(1);
            let folder = elsewhere.join(format!("{}", place % 3));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("{place:03}-{at}.yaml")), object).unwrap();
        }
        let shuffled = meshctl(&["translate", "-f", elsewhere.to_str().unwrap(), "-o", "json"]);
        assert_eq!(first, shuffled, "{}", scenario.display());
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_comes_out() {
    let path = files(
        "broken",
        [
            ("deep/er/mesh.yml", MESH),
            ("policy.yaml", BROKEN),
            ("syntax.yaml", &format!("kind: [\n---\n{MESH}")),
            ("notes.txt", "kind: ["),
            (".hidden/policy.yaml", BROKEN),
        ],
    );
    let path = path.to_str().unwrap();
    let ran = meshctl(&["translate", "-f", path, "-o", "json"]);
    assert_eq!(ran.code, 1);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["statuses"].as_array().unwrap().len(), 1);
    let lines = ran.stderr.lines();
    let lines: Vec<_> = lines.filter(|line| line.starts_with("error")).collect();
    let policy = format!(
        "error: {path}/policy.yaml: TrafficPolicy gloo-mesh/simple: spec.policy.retries.attempts: "
    );
    assert!(lines[0].starts_with(&policy), "{lines:#?}");
    let syntax = format!("error: {path}/syntax.yaml, document 1: ");
    assert!(lines[1].starts_with(&syntax), "{lines:#?}");
    assert!(!ran.stderr.contains("notes"), "{lines:#?}");
    assert!(!ran.stderr.contains("hidden"), "{lines:#?}");
}

#[test]
fn a_file_that_is_no_text_is_named() {
    let path = directory("binary");
    fs::write(path.join("a.yaml"), b"\xff\xfe\x00").unwrap();
    fs::write(path.join("b.yaml"), MESH).unwrap();
    let path = path.to_str().unwrap();
    let ran = meshctl(&["translate", "-f", path, "-o", "json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stderr,
        format!("error: {path}/a.yaml: is no text in UTF-8\n")
    );
    assert!(ran.stdout.contains("\"name\":\"m\""), "{}", ran.stdout);
}

#[test]
fn stdin_and_files_are_read_together() {
    let path = files("together", [("a.yaml", MESH)]);
    let other = MESH.replace("name: m", "name: o");
    let arguments = [
        "translate",
        "-f",
        "-",
        "-f",
        path.to_str().unwrap(),
        "-o",
        "json",
    ];
    let json = with_input(&arguments, &other).json();
    let names: Vec<_> = order(&json["statuses"]).into_iter().collect();
    let expected = ["m", "o"].map(|name| ["", "Mesh", "gloo-mesh", name].map(str::to_owned));
    assert_eq!(names, expected);
    assert_eq!(
        json["statuses"][0]["status"],
        json!({"observedGeneration": 3})
    );
}

#[test]
fn kinds_that_are_not_read_are_passed_over() {
    let text = format!(
        "{MESH}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d}}\n---\nreplicas: 3\n"
    );
    let quiet = with_input(&["translate", "-f", "-"], &text);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    let verbose = with_input(&["translate", "-v", "-f", "-"], &text);
    assert_eq!(
        verbose.stderr,
        "1 object read, 2 documents of other kinds passed over\n"
    );
    assert_eq!(quiet.stdout, verbose.stdout);
}

#[test]
fn a_list_of_any_length_is_read() {
    let mesh: Value = serde_saphyr::from_str(MESH).unwrap();
    let items: Vec<_> = (0..20_000)
        .map(|at| {
            let mut mesh = mesh.clone();
            mesh["metadata"]["name"] = format!("m-{at}").into();
            mesh
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let json = with_input(&["translate", "-f", "-", "-o", "json"], &list).json();
    assert_eq!(json["statuses"].as_array().unwrap().len(), 20_000);
}

#[test]
fn an_object_that_stands_twice_counts_as_it_stands_last_and_is_named() {
    let other = MESH.replace("generation: 3", "generation: 4");
    let path = files(
        "twice",
        [("a.yaml", MESH), ("b.yaml", &other), ("c.yaml", &other)],
    );
    let path = path.to_str().unwrap();
    let ran = meshctl(&["translate", "-f", path, "-o", "json"]);
    assert_eq!(ran.code, 0);
    assert_eq!(
        ran.stderr,
        format!(
            "warning: {path}/b.yaml: Mesh gloo-mesh/m stands in {path}/a.yaml too, and differently: \
             the last one counts, remove the other\n\
             warning: {path}/c.yaml: Mesh gloo-mesh/m stands in {path}/b.yaml too, with the same content: \
             remove one of them\n"
        )
    );
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["statuses"][0]["status"]["observedGeneration"], 4);
}

#[cfg(unix)]
#[test]
fn links_that_lead_in_circles_are_walked_once() {
    let path = files("circle", [("a.yaml", MESH), ("deep/b.yaml", BROKEN)]);
    std::os::unix::fs::symlink(&path, path.join("deep/up")).unwrap();
    std::os::unix::fs::symlink("nowhere", path.join("gone")).unwrap();
    let ran = meshctl(&["translate", "-f", path.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (1, 1), "{ran:?}");
}

#[test]
fn what_is_written_belongs_to_the_management_plane_of_the_namespace() {
    let path = files("elsewhere", [("a.yaml", ESTATE)]);
    let path = path.to_str().unwrap();
    let of = |namespace| {
        let json = meshctl(&["translate", "-f", path, "-o", "json", "-n", namespace]).json();
        let outputs = json["outputs"].as_array().unwrap().iter();
        let owner = "owner.networking.mesh.gloo.solo.io";
        let owners = outputs.map(|output| output["labels"][owner].as_str().unwrap().to_owned());
        owners.collect::<Vec<_>>()
    };
    assert_eq!(of("mesh-system"), ["mesh-system"]);
    assert_eq!(of("gloo-mesh"), ["gloo-mesh"]);
}

#[test]
fn a_missing_field_is_named() {
    let text = MESH.replace("spec:", "specs:");
    let ran = with_input(&["translate", "-f", "-"], &text);
    assert_eq!(
        ran.stderr,
        "error: stdin: Mesh gloo-mesh/m: missing field `spec`; see `kubectl explain mesh`\n"
    );
}
