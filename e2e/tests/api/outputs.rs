//! What the engine makes, as API servers take it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ferromesh_e2e::{MANAGEMENT, client, install, namespace, yaml};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

/// Files of this name below a directory.
fn files(directory: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, name));
        } else if path.file_name().is_some_and(|file| file == name) {
            found.push(path);
        }
    }
    found
}

/// Every object that a scenario expects, once, as it is applied to a cluster.
fn expected() -> BTreeSet<(bool, String)> {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let mut objects = BTreeSet::new();
    for file in files(&scenarios, "outputs.yaml") {
        let text = fs::read_to_string(&file).unwrap();
        let outputs: Vec<Value> = serde_saphyr::from_str(&text).unwrap();
        for output in outputs {
            let object = json!({
                "apiVersion": output["apiVersion"],
                "kind": output["kind"],
                "metadata": {
                    "name": output["name"],
                    "labels": output["labels"],
                    "annotations": output["annotations"],
                },
                "spec": output["spec"],
            });
            objects.insert((output["cluster"] == "", object.to_string()));
        }
    }
    objects
}

#[tokio::test]
async fn every_object_that_a_scenario_expects_is_accepted_field_by_field() {
    let (management, cluster) = (client(MANAGEMENT).await, client(1).await);
    install(&management, ferromesh_crds::all()).await;
    install(&cluster, ferromesh_crds::managed()).await;
    let homes = [
        (&cluster, namespace(&cluster, "outputs").await),
        (&management, namespace(&management, "outputs").await),
    ];
    let objects = expected();
    assert!(!objects.is_empty());
    let mut wrong = Vec::new();
    for (is_management, object) in objects {
        let (client, namespace) = &homes[usize::from(is_management)];
        let object: DynamicObject = serde_json::from_str(&object).unwrap();
        let types = object.types.clone().unwrap();
        let api = yaml::api(client, &types.api_version, &types.kind, namespace);
        let manner = PatchParams::apply("e2e").dry_run().validation_strict();
        let name = object.metadata.name.clone().unwrap();
        let answer = api.patch(&name, &manner, &Patch::Apply(&object)).await;
        if let Err(error) = answer {
            wrong.push(format!("{} {name}: {error}", types.kind));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
