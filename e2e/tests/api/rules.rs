//! The rules of the schema: each accepts its good case and refuses its bad one.

use std::fs;
use std::path::Path;

use ferromesh_e2e::{MANAGEMENT, client, install, namespace};
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

fn cases() -> Vec<Value> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds/tests/rules");
    let mut files: Vec<_> = fs::read_dir(rules)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .flat_map(|file| {
            let text = fs::read_to_string(file).unwrap();
            serde_saphyr::from_multiple::<Value>(&text).unwrap()
        })
        .collect()
}

#[tokio::test]
async fn every_rule_accepts_its_good_case_and_refuses_its_bad_one() {
    let client = client(MANAGEMENT).await;
    install(&client, ferromesh_crds::all()).await;
    let namespace = namespace(&client, "rules").await;
    let definitions = ferromesh_crds::all();
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(!cases.is_empty());
    for (number, case) in cases.iter().enumerate() {
        let (name, kind) = (
            case["name"].as_str().unwrap(),
            case["kind"].as_str().unwrap(),
        );
        let definition = definitions
            .iter()
            .find(|definition| definition.spec.names.kind == kind)
            .unwrap_or_else(|| panic!("{name}: no kind {kind}"));
        let version = &definition.spec.versions[0].name;
        let gvk = GroupVersionKind::gvk(&definition.spec.group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &definition.spec.names.plural);
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
        let mut object = case["object"].clone();
        object["apiVersion"] = json!(resource.api_version);
        object["kind"] = json!(kind);
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = json!(format!("case-{number}"));
        }
        object["metadata"]["namespace"] = json!(namespace);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let answer = api.create(&dry_run, &object).await;
        match (answer, case["accept"].as_bool().unwrap()) {
            (Ok(_), true) => {}
            (Ok(_), false) => wrong.push(format!("{kind}: {name}: was accepted")),
            (Err(kube::Error::Api(status)), false) => {
                let expected = case["message"].as_str().unwrap_or_default();
                let said = status.message.replace("\\\"", "\"");
                if !said.contains(expected) {
                    wrong.push(format!("{kind}: {name}: {said}"));
                }
            }
            (Err(error), _) => wrong.push(format!("{kind}: {name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn the_definitions_of_managed_clusters_stand_beside_istios() {
    for cluster in [1, 2] {
        let client = client(cluster).await;
        install(&client, ferromesh_crds::managed()).await;
        install(&client, ferromesh_crds::managed()).await;
    }
}
