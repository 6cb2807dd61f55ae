//! What people have put into the clusters.

use ferromesh_core::Kind;
use ferromesh_testkit::fakeapi::FakeApi;
use serde_json::{Value, json};

use super::world::{NAMESPACE, World, input, meta, put};

/// Where applications are.
pub(super) const SHOP: &str = "shop";

/// Istio with its gateway, and a shop with one service.
pub(super) fn install(cluster: &FakeApi, name: &str) {
    let pod = |labels: Value, account: &str, container: &str, image: &str| {
        json!({
            "metadata": { "labels": labels },
            "spec": {
                "serviceAccountName": account,
                "containers": [{ "name": container, "image": image }],
            },
        })
    };
    let deployment = |namespace: &str, name: &str, labels: Value, template: Value| {
        let object = json!({
            "metadata": meta(namespace, name),
            "spec": { "selector": { "matchLabels": labels }, "template": template },
        });
        put(cluster, &input(Kind::Deployment), &object);
    };
    let labels = json!({ "app": "istiod", "istio": "pilot" });
    let template = pod(
        labels.clone(),
        "istiod",
        "discovery",
        "docker.io/istio/pilot:1.29.2",
    );
    deployment("istio-system", "istiod", labels, template);
    let mesh = format!("trustDomain: {name}.example.com\n");
    put(
        cluster,
        &input(Kind::ConfigMap),
        &json!({ "metadata": meta("istio-system", "istio"), "data": { "mesh": mesh } }),
    );
    let proxy = "docker.io/istio/proxyv2:1.29.2";
    let labels = json!({ "app": "istio-ingressgateway", "istio": "ingressgateway" });
    let template = pod(labels.clone(), "gateway", "istio-proxy", proxy);
    deployment(
        "istio-system",
        "istio-ingressgateway",
        labels.clone(),
        template,
    );
    put(
        cluster,
        &input(Kind::Service),
        &json!({
            "metadata": meta("istio-system", "istio-ingressgateway"),
            "spec": {
                "type": "LoadBalancer",
                "selector": labels,
                "ports": [{ "name": "tls", "port": 15443 }],
            },
            "status": { "loadBalancer": { "ingress": [{ "ip": "203.0.113.10" }] } },
        }),
    );
    let labels = json!({ "app": "reviews" });
    let template = pod(labels.clone(), "reviews", "istio-proxy", proxy);
    deployment(SHOP, "reviews", labels, template);
    put(cluster, &input(Kind::Service), &service("reviews"));
}

/// A service that is a destination whatever is behind it.
pub(super) fn service(name: &str) -> Value {
    let mut metadata = meta(SHOP, name);
    metadata["annotations"] = json!({ "discovery.mesh.gloo.solo.io/enabled": "true" });
    json!({
        "metadata": metadata,
        "spec": { "selector": { "app": name }, "ports": [{ "name": "http", "port": 9080 }] },
    })
}

pub(super) fn mesh(cluster: &str) -> String {
    format!("istiod-istio-system-{cluster}")
}

/// The name of what discovery makes of a service of the shop.
pub(super) fn destination(service: &str, cluster: &str) -> String {
    format!("{service}-{SHOP}-{cluster}")
}

/// Many services, by name.
pub(super) fn many(count: usize) -> Vec<String> {
    (0..count).map(|nth| format!("service-{nth:04}")).collect()
}

impl World {
    /// Puts services into the shop of a cluster.
    pub(super) fn add(&self, cluster: &str, services: &[String]) {
        let cluster = self.cluster(cluster);
        for name in services {
            put(&cluster, &input(Kind::Service), &service(name));
        }
    }

    /// Takes services away again.
    pub(super) fn take_away(&self, cluster: &str, services: &[String]) {
        let cluster = self.cluster(cluster);
        for name in services {
            cluster.remove(&input(Kind::Service), SHOP, name);
        }
    }

    /// One root and every service known everywhere, for the meshes of these clusters: the virtual mesh
    /// `all`.
    pub(super) fn unite(&self, clusters: &[&str]) {
        let meshes: Vec<_> = clusters
            .iter()
            .map(|cluster| meta(NAMESPACE, &mesh(cluster)))
            .collect();
        let object = json!({
            "metadata": meta(NAMESPACE, "all"),
            "spec": {
                "mtlsConfig": { "shared": { "rootCertificateAuthority": { "generated": {} } } },
                "federation": { "selectors": [{}] },
                "meshes": meshes,
            },
        });
        put(&self.management, &input(Kind::VirtualMesh), &object);
    }

    /// A traffic policy for everything in the shops of these clusters, or of all where none is named.
    pub(super) fn time_out(&self, name: &str, clusters: &[&str], after: &str) {
        let object = json!({
            "metadata": meta(NAMESPACE, name),
            "spec": {
                "destinationSelector": [
                    { "kubeServiceMatcher": { "namespaces": [SHOP], "clusters": clusters } },
                ],
                "policy": { "requestTimeout": after },
            },
        });
        put(&self.management, &input(Kind::TrafficPolicy), &object);
    }

    /// An access policy for everything in the shops: the policy `callers`.
    pub(super) fn guard(&self) {
        let object = json!({
            "metadata": meta(NAMESPACE, "callers"),
            "spec": {
                "destinationSelector": [{ "kubeServiceMatcher": { "namespaces": [SHOP] } }],
                "allowedMethods": ["GET"],
            },
        });
        put(&self.management, &input(Kind::AccessPolicy), &object);
    }
}
