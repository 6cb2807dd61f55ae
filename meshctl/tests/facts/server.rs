//! An API server in memory behind a socket, and what stands in it.

use std::fs;
use std::sync::LazyLock;

use ferromesh_testkit::fakeapi::{FakeApi, Fault, Kind};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::bench::{Ran, directory, meshctl};

/// An API server that answers for as long as this value lives.
pub(crate) struct Server {
    pub(crate) api: FakeApi,
    /// The file that leads to it.
    pub(crate) kubeconfig: String,
    _runtime: Runtime,
}

/// What an API server of a supported version says of itself.
pub(crate) const VERSION: &str = r#"{"major":"1","minor":"33","gitVersion":"v1.33.1","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#;

/// Of all our kinds. Making them takes longer than any test.
static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(ferromesh_crds::all);

/// One of our kinds.
pub(crate) fn ours(name: &str) -> Kind {
    let definition = DEFINITIONS.iter().find(|it| it.spec.names.kind == name);
    let spec = &definition.unwrap().spec;
    Kind::new(&spec.group, name, &spec.names.plural)
        .with_versions(&[spec.versions[0].name.as_str()])
}

/// Definitions of custom resources.
pub(crate) fn definition() -> Kind {
    let (kind, plural) = ("CustomResourceDefinition", "customresourcedefinitions");
    Kind::new("apiextensions.k8s.io", kind, plural)
}

/// Registrations of webhooks.
pub(crate) fn webhook() -> Kind {
    let kind = "ValidatingWebhookConfiguration";
    let plural = "validatingwebhookconfigurations";
    Kind::new("admissionregistration.k8s.io", kind, plural)
}

pub(crate) fn secret() -> Kind {
    Kind::new("", "Secret", "secrets")
}

pub(crate) fn namespace() -> Kind {
    Kind::new("", "Namespace", "namespaces")
}

/// A file that leads to this cluster, in a directory of a test's own.
pub(crate) fn kubeconfig(name: &str, cluster: &Value) -> String {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": cluster}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "users": [{"name": "me", "user": {"token": "secret-of-a-person"}}],
    });
    let file = directory(name).join("kubeconfig");
    fs::write(&file, text.to_string()).unwrap();
    file.display().to_string()
}

impl Server {
    /// A cluster that serves our kinds, and of Kubernetes' own what `meshctl` asks for.
    pub(crate) fn new(name: &str) -> Self {
        let server = Self::bare(name);
        for definition in &*DEFINITIONS {
            server.api.serve(&ours(&definition.spec.names.kind));
        }
        server
    }

    /// The same without our kinds.
    pub(crate) fn bare(name: &str) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let api = FakeApi::new();
        let address = runtime.block_on(api.listen()).unwrap();
        for (group, kind, plural) in [
            ("", "Pod", "pods"),
            ("", "ServiceAccount", "serviceaccounts"),
            ("apps", "Deployment", "deployments"),
            ("rbac.authorization.k8s.io", "ClusterRole", "clusterroles"),
            (
                "rbac.authorization.k8s.io",
                "ClusterRoleBinding",
                "clusterrolebindings",
            ),
            ("rbac.authorization.k8s.io", "Role", "roles"),
            ("rbac.authorization.k8s.io", "RoleBinding", "rolebindings"),
        ] {
            api.serve(&Kind::new(group, kind, plural));
        }
        for kind in [definition(), webhook(), secret(), namespace()] {
            api.serve(&kind);
        }
        api.fail(Fault::Answer(VERSION), |request| {
            request.uri.starts_with("/version")
        });
        let cluster = json!({"server": format!("http://{address}")});
        Self {
            api,
            kubeconfig: kubeconfig(name, &cluster),
            _runtime: runtime,
        }
    }

    /// Runs the binary on this cluster. What is said about the unencrypted connection is left out.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let all = [arguments, &["--kubeconfig", &self.kubeconfig]].concat();
        let mut ran = meshctl(&all);
        let lines = ran.stderr.split_inclusive('\n');
        let lines =
            lines.filter(|line| !line.starts_with("warning: credentials and objects travel"));
        ran.stderr = lines.collect();
        ran
    }

    /// Stores an object of ours in the namespace of the management plane.
    pub(crate) fn put(&self, kind: &str, name: &str, rest: Value) {
        let mut object = rest;
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!("gloo-mesh");
        self.api.put("somebody", &ours(kind), &object);
    }

    /// Stores the definitions, as an API server has them that serves them.
    pub(crate) fn define(&self) {
        let kind = definition();
        for definition in &*DEFINITIONS {
            let mut object = serde_json::to_value(definition).unwrap();
            object["status"] = json!({
                "conditions": [{"type": "Established", "status": "True"}],
                "storedVersions": [],
                "acceptedNames": {"plural": "", "kind": ""},
            });
            self.api.put("somebody", &kind, &object);
        }
    }

    /// Stores a registration of the webhook.
    pub(crate) fn register_webhook(&self) {
        let object = json!({
            "metadata": {"name": "ferromesh"},
            "webhooks": [{
                "name": "validate.mesh",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"url": "https://127.0.0.1", "caBundle": "YQ=="},
                "rules": [{"apiGroups": ["networking.mesh.gloo.solo.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}],
            }],
        });
        self.api.put("somebody", &webhook(), &object);
    }
}

/// A small estate, as it stands in `estate.yaml`.
pub(crate) fn estate(name: &str) -> Server {
    let server = Server::new(name);
    let objects: Vec<Value> = serde_saphyr::from_multiple(include_str!("estate.yaml")).unwrap();
    for object in objects {
        let kind = ours(object["kind"].as_str().unwrap());
        server.api.put("somebody", &kind, &object);
    }
    server
}
