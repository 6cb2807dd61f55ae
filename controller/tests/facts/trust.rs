//! When a virtual mesh says that its meshes trust each other.

use ferromesh_ca::cacerts::Found;
use ferromesh_core::Kind;
use ferromesh_crds::meta::CACERTS_SECRET;
use ferromesh_hands::sealed::Sealed;
use ferromesh_testkit::fakeapi::{FakeApi, Fault, Request};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::world::{World, found, input, meta, put};

const ISTIO: &str = "istio-system";
const READY: (&str, &str) = ("True", "Verified");

fn cacerts(cluster: &FakeApi) -> Option<Value> {
    cluster.get(&input(Kind::Secret), ISTIO, CACERTS_SECRET)
}

impl World {
    async fn trust(&self, so: (&str, &str)) -> String {
        self.told(Kind::VirtualMesh, "all", "TrustReady", so).await
    }

    /// What istiod would make of the Secret.
    fn read(&self, cluster: &str) -> Option<Found> {
        let secret: Secret = serde_json::from_value(cacerts(&self.cluster(cluster))?).unwrap();
        let secret = Sealed::from(secret);
        Some(Found::read(secret.entries(), self.now()))
    }

    fn root(&self, cluster: &str) -> String {
        match self.read(cluster) {
            Some(Found::Valid { signer, .. }) => signer.root_id().to_string(),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn meshes_trust_each_other_once_the_certificates_of_all_are_in_place_and_verified() {
    let world = World::with(&["east", "west"]).await;
    let west = world.cluster("west");
    let is_cacerts = |request: &Request| {
        let is_named =
            request.name == CACERTS_SECRET || request.body["metadata"]["name"] == *CACERTS_SECRET;
        request.plural == "secrets" && request.verb.is_write() && is_named
    };
    west.fail(Fault::refuse(403), is_cacerts);
    world.unite(&["east", "west"]);
    let message = world.trust(("False", "IssuanceFailed")).await;
    assert!(
        message.contains("west") && message.contains("register the cluster again"),
        "{message}"
    );
    world.quiet().await;
    assert!(matches!(world.read("east"), Some(Found::Valid { .. })));
    assert!(world.read("west").is_none());

    west.heal();
    let message = world.trust(READY).await;
    assert!(message.starts_with("2 of 2 meshes"), "{message}");
    assert_eq!(world.root("east"), world.root("west"));

    // Without it, it is not so any more, and the Secret is made again.
    west.fail(Fault::refuse(403), is_cacerts);
    west.remove(&input(Kind::Secret), ISTIO, CACERTS_SECRET);
    let object = world
        .until(Kind::VirtualMesh, "all", |object| {
            found(object, "TrustReady")["status"] != "True"
        })
        .await;
    assert_eq!(found(&object, "TrustReady")["status"], "False");
    west.heal();
    world.trust(READY).await;
    assert_eq!(world.root("east"), world.root("west"));
}

#[tokio::test(start_paused = true)]
async fn a_foreign_cacerts_is_never_overwritten_and_the_remedy_told() {
    for data in [
        json!({}),
        json!({ "ca-cert.pem": "bm8gY2VydGlmaWNhdGU=", "ca-key.pem": "bm8ga2V5" }),
    ] {
        let mut world = World::new(&["east", "west"]);
        let west = world.cluster("west");
        let theirs = json!({
            "metadata": meta(ISTIO, CACERTS_SECRET), "type": "Opaque", "data": data,
        });
        put(&west, &input(Kind::Secret), &theirs);
        let before = cacerts(&west).unwrap();
        world.start();
        world.unite(&["east", "west"]);
        let message = world.trust(("False", "ForeignSigner")).await;
        for part in ["west", "istio-system/cacerts", "label"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let quiet = world.quiet().await;
        assert_eq!(cacerts(&west).unwrap(), before);
        assert!(matches!(world.read("east"), Some(Found::Valid { .. })));

        world.stop().await;
        world.start();
        assert_eq!(world.quiet().await, quiet);

        // The remedy.
        west.remove(&input(Kind::Secret), ISTIO, CACERTS_SECRET);
        world.trust(READY).await;
        assert_eq!(world.root("east"), world.root("west"));
    }
}

#[tokio::test(start_paused = true)]
async fn private_keys_are_sent_to_their_own_cluster_alone() {
    let world = World::with(&["east", "west"]).await;
    world.unite(&["east", "west"]);
    world.trust(READY).await;
    world.quiet().await;
    let apis = [
        ("management", world.management.clone()),
        ("east", world.cluster("east")),
        ("west", world.cluster("west")),
    ];
    let entry = |secret: Value, name: &str| secret["data"][name].as_str().unwrap().to_owned();
    let root = world.own(Kind::Secret, "all.gloo-mesh").unwrap();
    let mut keys = vec![("management", entry(root, "key.pem"))];
    for (name, api) in &apis[1..] {
        keys.push((name, entry(cacerts(api).unwrap(), "ca-key.pem")));
    }
    assert_ne!(keys[1].1, keys[2].1);
    for (place, api) in apis {
        for request in api.requests() {
            for (home, key) in &keys {
                let is_told = request.body.to_string().contains(key.as_str());
                let is_at_home = *home == place && request.plural == "secrets";
                assert!(is_at_home || !is_told, "{home} in {place}: {}", request.uri);
            }
        }
    }
}
