//! The chart, as Helm itself installs it, and the plain form, as kubectl does. `hack/manifests --check` builds
//! Helm; the test bed has kubectl.

use std::path::{Path, PathBuf};
use std::process::Command;

use ferromesh_e2e::{MANAGEMENT, client, eventually, kubeconfigs, namespace};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Client;
use kube::api::{Api, DeleteParams};

/// The name of the release: another one than that of the server that other tests start.
const RELEASE: &str = "helm-trial";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs a tool of the test bed against the management cluster; returns what it says.
fn run(tool: &str, arguments: &[&str]) -> String {
    let done = Command::new(root().join("target/testbed").join(tool))
        .args(arguments)
        .current_dir(root())
        .env("KUBECONFIG", &kubeconfigs()[MANAGEMENT])
        // Nothing that a person has configured, and nothing left for them.
        .env("HELM_CACHE_HOME", std::env::temp_dir().join("helm-cache"))
        .env("HELM_CONFIG_HOME", std::env::temp_dir().join("helm-config"))
        .env("HELM_DATA_HOME", std::env::temp_dir().join("helm-data"))
        .output()
        .unwrap_or_else(|error| panic!("{tool}: {error}; hack/manifests --check builds it"));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (told, failed) = (text(done.stdout), text(done.stderr));
    assert!(
        done.status.success(),
        "{tool} {arguments:?}: {failed}{told}"
    );
    told
}

async fn replicas(client: &Client, namespace: &str) -> Option<i32> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let deployment = deployments.get_opt(RELEASE).await.unwrap()?;
    deployment.spec?.replicas
}

#[tokio::test]
async fn helm_installs_upgrades_rolls_back_and_uninstalls_the_chart() {
    let management = client(MANAGEMENT).await;
    let home = namespace(&management, "helm").await;
    let helm = |arguments: &[&str]| run("helm-cli", &[arguments, &["--namespace", &home]].concat());
    helm(&["install", RELEASE, "manifests/ferromesh"]);
    assert_eq!(replicas(&management, &home).await, Some(2));
    helm(&[
        "upgrade",
        RELEASE,
        "manifests/ferromesh",
        "--set",
        "replicas=3",
        "--reset-then-reuse-values",
    ]);
    assert_eq!(replicas(&management, &home).await, Some(3));
    let history = helm(&["history", RELEASE]);
    assert!(history.contains("Upgrade complete"), "{history}");
    helm(&["rollback", RELEASE, "1"]);
    assert_eq!(replicas(&management, &home).await, Some(2));
    helm(&["uninstall", RELEASE]);
    let roles: Api<ClusterRole> = Api::all(management.clone());
    eventually("the release is gone", async || {
        let role = roles.get_opt(RELEASE).await.unwrap();
        let left = replicas(&management, &home).await;
        (role.is_none() && left.is_none()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn kubectl_applies_the_plain_form_and_then_changes_nothing() {
    let management = client(MANAGEMENT).await;
    let apply = || {
        let arguments = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "-k",
            "manifests/plain",
        ];
        run("bin/kubectl", &arguments)
    };
    let first = apply();
    assert!(first.contains("deployment.apps/ferromesh"), "{first}");
    let deployments: Api<Deployment> = Api::namespaced(management.clone(), "gloo-mesh");
    let generation = async || {
        deployments
            .get("ferromesh")
            .await
            .unwrap()
            .metadata
            .generation
    };
    let before = generation().await;
    apply();
    assert_eq!(generation().await, before);
    // Its pods run nothing here; accounts and definitions are those of other tests, too.
    let params = DeleteParams::default();
    deployments.delete("ferromesh", &params).await.unwrap();
    let services: Api<Service> = Api::namespaced(management.clone(), "gloo-mesh");
    services.delete("ferromesh", &params).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(management.clone(), "gloo-mesh");
    budgets.delete("ferromesh", &params).await.unwrap();
    let policies: Api<NetworkPolicy> = Api::namespaced(management.clone(), "gloo-mesh");
    policies.delete("ferromesh", &params).await.unwrap();
}
