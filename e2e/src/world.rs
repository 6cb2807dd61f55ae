//! The clusters, what stands in them, and the server.

use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Command, Stdio};

use ferromesh_crds::TrafficPolicy;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::{Mutex, RwLock};

use crate::account::{NAME, NAMESPACE};
use crate::server::{Server, Start, binary};
use crate::{client, eventually, install, kubeconfigs, yaml};

/// The names of the registered clusters.
pub const NAMES: [&str; 2] = ["cluster-1", "cluster-2"];

const CONTROL_PLANE: &str = include_str!("../../docs/examples/istio/control-plane.yaml");
/// The virtual mesh of both clusters.
pub const VIRTUAL_MESH: &str = include_str!("../../docs/examples/virtual-mesh.yaml");

/// What is true of the world, as a test.
pub type Fact = for<'a> fn(&'a World) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Lists facts for `run`, which takes a name and a [`Fact`](crate::world::Fact): each a function that takes the
/// world, by module and name.
#[macro_export]
macro_rules! facts {
    ($run:ident: $($module:ident::$fact:ident,)*) => {
        [$($run(
            concat!(stringify!($module), "::", stringify!($fact)),
            |world| Box::pin($module::$fact(world)),
        ),)*]
    };
}

/// A management cluster, two clusters with Istio in one virtual mesh, and one server.
pub struct World {
    /// The management cluster.
    pub management: Client,
    /// In the order of [`NAMES`].
    pub clusters: [Client; 2],
    /// Who has all of it to themselves.
    pub turn: RwLock<()>,
    /// What the server is started with.
    pub start: Start,
    server: Mutex<Option<Server>>,
}

/// A namespace with reviews in both clusters: version v1 in the first, v2 in the second.
pub struct Shop {
    /// Its name in both clusters.
    pub namespace: String,
}

impl World {
    /// As [`begin`](Self::begin); makes a virtual mesh of both clusters, and waits for their trust.
    pub async fn start() -> Self {
        let world = Self::begin().await;
        yaml::apply(&world.management, VIRTUAL_MESH).await.unwrap();
        world
            .until(&world.own("VirtualMesh"), "shop", is("TrustReady", "True"))
            .await;
        world
    }

    /// Installs what is needed, starts the server, and registers the clusters.
    pub async fn begin() -> Self {
        let management = client(0).await;
        let clusters = [client(1).await, client(2).await];
        install(&management, ferromesh_crds::all()).await;
        let namespace =
            format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {NAMESPACE} }}");
        yaml::apply(&management, &namespace).await.unwrap();
        for (cluster, name) in clusters.iter().zip(NAMES) {
            let plane = CONTROL_PLANE.replace("TRUST_DOMAIN", &format!("{name}.example.com"));
            yaml::apply(cluster, &plane).await.unwrap();
        }
        let log = std::env::temp_dir().join(format!("ferromesh-e2e-{}.log", std::process::id()));
        let start = Start::new(&kubeconfigs()[0], log);
        let server = start.server().await;
        let world = Self {
            management,
            clusters,
            turn: RwLock::default(),
            start,
            server: Mutex::new(Some(server)),
        };
        for cluster in [0, 1] {
            register(cluster);
        }
        for name in NAMES {
            let mesh = format!("istiod-istio-system-{name}");
            world.until(&world.own("Mesh"), &mesh, |_| true).await;
        }
        world
    }

    /// Ends the server, if it runs, for somebody who has servers of their own.
    pub async fn stop(&self) {
        *self.server.lock().await = None;
        self.free_lease().await;
    }

    /// Takes the lease away from a server that is dead: nobody has to wait until it has expired.
    pub async fn free_lease(&self) {
        let leases: Api<Lease> = Api::namespaced(self.management.clone(), NAMESPACE);
        let freed = leases.delete(NAME, &DeleteParams::default()).await;
        // There may be none.
        freed.map(drop).unwrap_or_default();
    }

    /// Takes away what would disturb others.
    pub async fn end(&self) {
        self.stop().await;
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.management.clone());
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.management.clone());
        let params = DeleteParams::default();
        // A server that has not got its lease has registered nothing.
        for gone in [
            validating.delete("ferromesh", &params).await.map(drop),
            mutating.delete("ferromesh", &params).await.map(drop),
        ] {
            match gone {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                gone => gone.unwrap(),
            }
        }
    }

    /// Where the log of the server is.
    pub fn log(&self) -> &PathBuf {
        &self.start.log
    }

    /// What the admin server of the server answers with success.
    pub async fn get(&self, path: &str) -> Option<String> {
        self.server.lock().await.as_ref()?.get(path)
    }

    /// Kills the server. Until [`revive`](Self::revive) nobody answers reviews.
    pub async fn kill(&self) {
        self.server.lock().await.take().unwrap().kill();
    }

    /// Starts the server again that was killed.
    pub async fn revive(&self) {
        let mut server = self.server.lock().await;
        assert!(server.is_none(), "it is dead");
        *server = Some(self.start.server().await);
    }

    /// The API of one of our kinds, in our namespace.
    pub fn own(&self, kind: &str) -> Api<DynamicObject> {
        let group = match kind {
            "Mesh" | "Workload" | "Destination" => ferromesh_crds::DISCOVERY_GROUP,
            "KubernetesCluster" => {
                let version = format!("{}/v1alpha1", ferromesh_crds::MULTICLUSTER_GROUP);
                return yaml::api(&self.management, &version, kind, NAMESPACE);
            }
            _ => ferromesh_crds::NETWORKING_GROUP,
        };
        yaml::api(&self.management, &format!("{group}/v1"), kind, NAMESPACE)
    }

    /// The API of one of Istio's networking kinds in a cluster.
    pub fn istio(&self, cluster: usize, kind: &str, namespace: &str) -> Api<DynamicObject> {
        yaml::api(
            &self.clusters[cluster],
            "networking.istio.io/v1",
            kind,
            namespace,
        )
    }

    /// Waits until an object is as `is_it` says.
    pub async fn until(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        is_it: impl Fn(&DynamicObject) -> bool,
    ) -> DynamicObject {
        let last = std::sync::Mutex::new(None);
        let what = Told(name, &last, self);
        eventually(what, async || {
            let object = api.get_opt(name).await.ok()?;
            let found = object.clone().filter(&is_it);
            *last.lock().unwrap() = object;
            found
        })
        .await
    }

    /// Waits until there is no object of a name.
    pub async fn until_gone(&self, api: &Api<DynamicObject>, name: &str) {
        eventually(format!("{name} is gone"), async || {
            api.get_opt(name).await.ok()?.is_none().then_some(())
        })
        .await;
    }

    /// A namespace with reviews in both clusters, discovered.
    pub async fn shop(&self) -> Shop {
        let namespace = crate::namespace(&self.clusters[0], "shop").await;
        let shop = Shop { namespace };
        let own = format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {} }}",
            shop.namespace
        );
        yaml::apply(&self.clusters[1], &own).await.unwrap();
        for (cluster, version) in self.clusters.iter().zip(["v1", "v2"]) {
            yaml::apply(cluster, &shop.reviews(version)).await.unwrap();
        }
        for name in NAMES {
            self.until(&self.own("Destination"), &shop.destination(name), |_| true)
                .await;
        }
        shop
    }

    /// The API of traffic policies.
    pub fn traffic_policies(&self) -> Api<TrafficPolicy> {
        Api::namespaced(self.management.clone(), NAMESPACE)
    }
}

/// Runs `meshctl`, which must succeed.
pub fn meshctl(arguments: &[&str]) {
    let done = Command::new(binary("meshctl"))
        .args(arguments)
        .args(["--kubeconfig", &kubeconfigs()[0]])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Registers a cluster, or brings its registration up to date.
pub fn register(cluster: usize) {
    let file = &kubeconfigs()[cluster + 1];
    meshctl(&[
        "cluster",
        "register",
        NAMES[cluster],
        "--remote-kubeconfig",
        file,
    ]);
}

/// What was waited for in vain, with what was there instead.
struct Told<'a>(
    &'a str,
    &'a std::sync::Mutex<Option<DynamicObject>>,
    &'a World,
);

impl std::fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(name, last, world) = self;
        write!(
            f,
            "{name} (the log of the server is {}), ",
            world.log().display()
        )?;
        match &*last.lock().unwrap() {
            Some(object) => write!(f, "which is {}", serde_json::to_string(object).unwrap()),
            None => f.write_str("which is not there"),
        }
    }
}

impl Shop {
    /// The Service and the Deployment of a version.
    pub fn reviews(&self, version: &str) -> String {
        let Self { namespace } = self;
        format!(
            r#"
apiVersion: v1
kind: Service
metadata: {{ name: reviews, namespace: {namespace}, labels: {{ app: reviews }} }}
spec:
  selector: {{ app: reviews }}
  ports: [{{ name: http, port: 9080 }}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: reviews-{version}, namespace: {namespace} }}
spec:
  selector:
    matchLabels: {{ app: reviews, version: {version} }}
  template:
    metadata:
      labels: {{ app: reviews, version: {version} }}
    spec:
      containers:
        - {{ name: reviews, image: "example.com/reviews:{version}" }}
        - {{ name: istio-proxy, image: "docker.io/istio/proxyv2:1.29.2" }}
"#
        )
    }

    /// The name of the Destination of reviews in a cluster.
    pub fn destination(&self, cluster: &str) -> String {
        format!("reviews-{}-{cluster}", self.namespace)
    }

    /// A policy for reviews in all clusters, with the rest of its spec.
    pub fn policy(&self, name: &str, policy: &str) -> String {
        let Self { namespace } = self;
        format!(
            r"
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {{ name: {name}-{namespace}, namespace: {NAMESPACE} }}
spec:
  destinationSelector:
    - kubeServiceMatcher: {{ namespaces: [{namespace}] }}
  policy: {policy}
"
        )
    }

    /// The name of such a policy.
    pub fn name(&self, policy: &str) -> String {
        format!("{policy}-{}", self.namespace)
    }
}

/// Whether a condition of an object has a status.
pub fn is(condition: &'static str, status: &'static str) -> impl Fn(&DynamicObject) -> bool {
    move |object| found(object, condition).is_some_and(|condition| condition["status"] == *status)
}

/// A condition of an object.
pub fn found<'a>(object: &'a DynamicObject, condition: &str) -> Option<&'a Value> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    conditions.iter().find(|found| found["type"] == *condition)
}

/// The timeout of the first route of a VirtualService.
pub fn timeout(object: &DynamicObject) -> Option<&str> {
    object.data["spec"]["http"][0]["timeout"].as_str()
}

/// Whether what a status says is about the object as it is.
pub fn is_current(object: &DynamicObject) -> bool {
    object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation
}

/// The name and version of an object, as it would be told.
pub fn version(object: &DynamicObject) -> (String, String) {
    let name = format!(
        "{}/{}",
        object.namespace().unwrap_or_default(),
        object.name_any()
    );
    (name, object.resource_version().unwrap_or_default())
}
