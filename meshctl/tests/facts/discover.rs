//! `discover`.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{directories, directory, documents, expected, files, meshctl, scenarios};

/// One `--cluster` per directory of a scenario's clusters.
fn clusters(scenario: &std::path::Path) -> Vec<String> {
    directories(&scenario.join("clusters"))
        .iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            format!("--cluster={name}={}", path.display())
        })
        .collect()
}

#[test]
fn the_corpus_comes_out_as_expected() {
    for scenario in scenarios() {
        let clusters = clusters(&scenario);
        if clusters.is_empty() {
            continue;
        }
        let input = scenario.join("input");
        let mut arguments = vec!["discover".to_owned(), "-o=json".to_owned()];
        arguments.extend(clusters);
        if input.is_dir() {
            arguments.extend(["-f".to_owned(), input.display().to_string()]);
        }
        let json = meshctl(&arguments).json();
        assert_eq!(
            json["outputs"],
            expected(&scenario, "discovered"),
            "{arguments:?}"
        );
        assert_eq!(json["statuses"], json!([]));
    }
}

#[test]
fn what_is_discovered_translates_as_if_it_were_stored() {
    for scenario in scenarios() {
        let input = scenario.join("input");
        // What is stored beside what is found is another question.
        let is_stored = |document: &String| document.contains("discovery.mesh.gloo.solo.io");
        let has_stored = input.is_dir() && documents(&input).iter().any(is_stored);
        if clusters(&scenario).is_empty() || has_stored {
            continue;
        }
        let found = json!({"outputs": expected(&scenario, "discovered"), "statuses": []});
        let path = directory("discovered").join("found.json");
        fs::write(&path, found.to_string()).unwrap();
        let mut arguments = vec!["translate".to_owned(), "-o=json".to_owned()];
        arguments.extend(["-f".to_owned(), path.display().to_string()]);
        if input.is_dir() {
            arguments.extend(["-f".to_owned(), input.display().to_string()]);
        }
        let json = meshctl(&arguments).json();
        assert_eq!(
            json["outputs"],
            expected(&scenario, "outputs"),
            "{arguments:?}"
        );
    }
}

const ISTIOD: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system}
spec:
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod, istio: pilot}}
    spec:
      serviceAccountName: istiod
      containers: [{name: discovery, image: 'docker.io/istio/pilot:1.26.2'}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: 'trustDomain: example.org'}
";

fn meshes(json: &Value) -> Vec<String> {
    let outputs = json["outputs"].as_array().unwrap().iter();
    outputs
        .filter(|output| output["kind"] == "Mesh")
        .map(|output| output["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn each_cluster_is_known_by_its_name() {
    let path = files("istiod", [("istiod.yaml", ISTIOD)]);
    let cluster = |name| format!("--cluster={name}={}", path.display());
    let json = meshctl(&["discover", &cluster("east"), &cluster("west"), "-o", "json"]).json();
    assert_eq!(
        meshes(&json),
        ["istiod-istio-system-east", "istiod-istio-system-west"]
    );
    let mesh = &json["outputs"][0];
    assert_eq!(mesh["cluster"], "");
    assert_eq!(mesh["spec"]["istio"]["trustDomain"], "example.org");
    let swapped = meshctl(&["discover", &cluster("west"), &cluster("east"), "-o", "json"]).json();
    assert_eq!(json, swapped);
}

#[test]
fn all_directories_of_a_cluster_are_one() {
    let other = ISTIOD.replace("example.org", "example.com");
    let path = files("halves", [("a/all.yaml", ISTIOD), ("b/all.yaml", &*other)]);
    let path = path.to_str().unwrap();
    let (a, b) = (format!("east={path}/a"), format!("east={path}/b"));
    let ran = meshctl(&["discover", "--cluster", &a, "--cluster", &b, "-o", "json"]);
    assert_eq!(
        (ran.code, ran.stderr),
        (
            0,
            format!(
                "warning: {path}/b/all.yaml, document 2: ConfigMap istio-system/istio stands in {path}/a/all.yaml, document 2 too, and differently: the last one counts, remove the other\n"
            )
        )
    );
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(meshes(&json), ["istiod-istio-system-east"]);
}

#[test]
fn objects_of_the_management_cluster_have_no_meaning_in_a_managed_one() {
    let policy = "
---
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Mesh
metadata: {name: stored, namespace: gloo-mesh}
spec: {istio: {installation: {cluster: east, namespace: istio-system}}}
";
    let path = files("mixed", [("all.yaml", &*format!("{ISTIOD}{policy}"))]);
    let cluster = format!("--cluster=east={}", path.display());
    let ran = meshctl(&["discover", &cluster, "-o", "json", "-v"]);
    assert_eq!(
        ran.stderr,
        "2 objects read, 1 document of other kinds passed over\n"
    );
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(meshes(&json), ["istiod-istio-system-east"]);
}
