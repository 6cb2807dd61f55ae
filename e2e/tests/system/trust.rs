//! Certificates.

use std::collections::BTreeMap;

use ferromesh_ca::verify::{IstiodFiles, VerifiedSigner, verify_for_istiod};
use ferromesh_e2e::eventually;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::world::World;

fn secrets(world: &World, cluster: usize) -> Api<Secret> {
    Api::namespaced(world.clusters[cluster].clone(), "istio-system")
}

fn verified(secret: Secret) -> Result<VerifiedSigner, ferromesh_ca::Error> {
    let data: BTreeMap<_, _> = secret.data.unwrap();
    let file = |name: &str| data[name].0.as_slice();
    let files = IstiodFiles {
        ca_cert: file("ca-cert.pem"),
        ca_key: file("ca-key.pem"),
        cert_chain: file("cert-chain.pem"),
        root_cert: file("root-cert.pem"),
    };
    verify_for_istiod(&files, Timestamp::now())
}

pub(crate) async fn the_chains_of_both_clusters_verify_against_one_root(world: &World) {
    let mut signers = Vec::new();
    for cluster in [0, 1] {
        let secret = secrets(world, cluster).get("cacerts").await.unwrap();
        signers.push(verified(secret).unwrap());
    }
    assert_eq!(signers[0].root_id(), signers[1].root_id());
    assert_eq!(signers[0].roots(), signers[1].roots());
    assert_ne!(signers[0].key_fingerprint(), signers[1].key_fingerprint());
}

pub(crate) async fn a_secret_that_somebody_edits_is_put_right(world: &World) {
    let secrets = secrets(world, 1);
    let before = secrets.get("cacerts").await.unwrap().data;
    let patch = Patch::Merge(json!({ "data": { "ca-cert.pem": "bm8gY2VydGlmaWNhdGU=" } }));
    let edited = secrets
        .patch("cacerts", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_ne!(edited.data, before);
    eventually("cacerts verifies again", async || {
        verified(secrets.get("cacerts").await.ok()?).ok()
    })
    .await;
}
