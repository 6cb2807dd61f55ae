//! The server's own account in the management cluster, with the rights that `manifests/` grants it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{connect, yaml};

/// Our own namespace in the management cluster.
pub const NAMESPACE: &str = "gloo-mesh";
/// The name of the account, as of everything else that the manifests hold.
pub const NAME: &str = "ferromesh";

/// What an account is, and what it may do.
const KINDS: [&str; 5] = [
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
];

/// Longer than any run.
const LIFETIME: i64 = 7 * 24 * 60 * 60;

/// Everything that is installed, as it is rendered from the chart.
///
/// # Panics
///
/// Panics where it is missing.
pub fn manifests() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/plain/ferromesh.yaml");
    std::fs::read_to_string(path).expect("hack/manifests wrote it")
}

/// Makes the account in the cluster of an administrator's kubeconfig, and writes its own to `file`.
///
/// # Panics
///
/// Panics if the API server refuses: tests cannot go on without it.
pub async fn kubeconfig(administrator: &str, file: &Path) {
    let client = connect(administrator).await;
    let namespace =
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {NAMESPACE} }}\n---\n");
    let manner = PatchParams::apply("e2e").force();
    for object in yaml::objects(&(namespace + &manifests())) {
        let kind = object.types.as_ref().map(|types| types.kind.as_str());
        if kind.is_some_and(|kind| kind == "Namespace" || KINDS.contains(&kind)) {
            let done = yaml::put(&client, &object, &manner).await;
            done.expect("an administrator may make an account");
        }
    }
    let request = TokenRequest {
        spec: TokenRequestSpec {
            expiration_seconds: Some(LIFETIME),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client, NAMESPACE);
    let answer = accounts
        .create_token_request(NAME, &PostParams::default(), &request)
        .await;
    let status = answer
        .expect("an administrator may have a token")
        .status
        .expect("an API server answers with a token");

    let text = std::fs::read_to_string(administrator).expect("the test bed wrote a kubeconfig");
    let mut config: Value = serde_saphyr::from_str(&text).expect("a kubeconfig is YAML");
    for user in config["users"].as_array_mut().into_iter().flatten() {
        user["user"] = json!({ "token": status.token });
    }
    let written = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(file)
        .and_then(|mut file| file.write_all(config.to_string().as_bytes()));
    written.expect("the kubeconfig of the account can be written");
}
