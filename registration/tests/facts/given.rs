//! What the tests start from.

use ferromesh_registration::{Address, ApiServer, Plan, Registration};
use k8s_openapi::ByteString;
use kube::config::Kubeconfig;
use serde_json::Value;

/// A PEM certificate as far as anybody here looks.
pub(super) const CERTIFICATE: &str =
    "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";

/// The kubeconfig of a person: two clusters, two contexts, a credential that must not go anywhere.
pub(super) fn kubeconfig(east: &str) -> Kubeconfig {
    let text = format!(
        "
apiVersion: v1
kind: Config
current-context: west-admin
contexts:
- name: east-admin
  context: {{cluster: east, user: admin, namespace: default}}
- name: west-admin
  context: {{cluster: west, user: admin}}
clusters:
- name: east
  cluster: {{{east}}}
- name: west
  cluster: {{server: 'https://west.example.com:6443'}}
users:
- name: admin
  user: {{token: secret-of-a-person}}
"
    );
    Kubeconfig::from_yaml(&text).unwrap()
}

/// The API server of cluster east, given its entry and perhaps another address.
pub(super) fn east(entry: &str, address: Option<&str>) -> ApiServer {
    let address: Option<Address> = address.map(|address| address.parse().unwrap());
    ApiServer::resolve(&kubeconfig(entry), Some("east-admin"), address.as_ref()).unwrap()
}

pub(super) fn registration(name: &str) -> Registration {
    let api_server = east("server: 'https://east.example.com:6443'", None);
    Registration::new(name.parse().unwrap(), api_server)
}

/// The object of a plan with that reference, as JSON.
pub(super) fn planned(plan: &Plan, reference: &str) -> Value {
    let object = plan
        .objects()
        .find(|object| object.reference().to_string() == reference)
        .unwrap_or_else(|| panic!("{reference} is not planned"));
    serde_json::to_value(object.body()).unwrap()
}

/// What is under the key `kubeconfig` of a Secret.
pub(super) fn kubeconfig_in(secret: &Value) -> Value {
    let data = secret["data"]["kubeconfig"].clone();
    let ByteString(bytes) = serde_json::from_value(data).unwrap();
    yaml(str::from_utf8(&bytes).unwrap())
}

pub(super) fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}
