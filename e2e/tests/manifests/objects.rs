//! What is rendered from the chart, as API servers take it.

use std::fs;
use std::path::Path;

use ferromesh_e2e::account::{NAME, manifests};
use ferromesh_e2e::{MANAGEMENT, client, namespace, yaml};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, PatchParams};
use serde_json::{Value, json};

/// The manner in which objects are tried out.
fn trial() -> PatchParams {
    PatchParams::apply("e2e")
        .force()
        .dry_run()
        .validation_strict()
}

#[tokio::test]
async fn every_object_that_is_installed_passes_a_dry_run() {
    let management = client(MANAGEMENT).await;
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/plain");
    let home = fs::read_to_string(plain.join("namespace.yaml")).unwrap();
    yaml::apply(&management, &home).await.unwrap();
    let objects = yaml::objects(&manifests());
    assert!(objects.len() > 9, "{} objects", objects.len());
    let mut wrong = Vec::new();
    for object in objects {
        if let Err(error) = yaml::put(&management, &object, &trial()).await {
            let kind = object.types.clone().unwrap_or_default().kind;
            wrong.push(format!("{kind} {}: {error}", object.name_any()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A pod as the Deployment makes it, in a namespace.
fn pod(namespace: &str) -> Value {
    let objects = yaml::objects(&manifests());
    let mut deployments = objects.into_iter().filter(|object| {
        let types = object.types.as_ref();
        types.is_some_and(|types| types.kind == "Deployment")
    });
    let template = deployments.next().unwrap().data["spec"]["template"].take();
    let mut metadata = template["metadata"].clone();
    metadata["name"] = NAME.into();
    metadata["namespace"] = namespace.into();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template["spec"],
    })
}

#[tokio::test]
async fn the_pods_satisfy_the_restricted_level() {
    let management = client(MANAGEMENT).await;
    let namespace = namespace(&management, "restricted").await;
    let home = format!(
        r"
apiVersion: v1
kind: Namespace
metadata: {{ name: {namespace}, labels: {{ pod-security.kubernetes.io/enforce: restricted }} }}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{ name: {NAME}, namespace: {namespace} }}
"
    );
    yaml::apply(&management, &home).await.unwrap();
    let attempt = async |pod: Value| {
        let pod: DynamicObject = serde_json::from_value(pod).unwrap();
        yaml::put(&management, &pod, &trial()).await
    };
    attempt(pod(&namespace)).await.unwrap();

    let mut worse = pod(&namespace);
    worse["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = true.into();
    let refusal = attempt(worse).await.unwrap_err().to_string();
    assert!(refusal.contains("restricted"), "{refusal}");
}
