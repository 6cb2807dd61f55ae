//! Secrets of the management cluster: what is kept of them, and what is not.

use ferromesh_core::{Kind, Object};
use rcgen::{CertificateParams, KeyPair};

use super::world::{World, object, put, secret};

/// A self-signed certificate that is no CA's.
fn leaf() -> String {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(Vec::new()).unwrap();
    params.self_signed(&key).unwrap().pem()
}

#[tokio::test(start_paused = true)]
async fn of_a_root_nothing_is_kept_but_whether_it_can_be_one() {
    let world = World::new().await;
    let root = secret(
        "shop",
        "root",
        "Opaque",
        &[
            ("root-cert.pem", leaf().as_bytes()),
            ("key.pem", b"hunter2"),
            ("other", b"hunter2"),
        ],
    );
    put(&world.management, Kind::Secret, &root);
    let state = world
        .until(|state| object(state, Kind::Secret, "root", "shop").is_some())
        .await;
    let Some(Object::Secret(root)) = object(&state, Kind::Secret, "root", "shop") else {
        panic!("it is a Secret");
    };
    assert!(root.has_certificate && root.has_key);
    let findings: Vec<_> = root.findings.iter().map(|it| it.message.as_str()).collect();
    assert!(
        findings
            .iter()
            .any(|it| it.contains("not a CA certificate")),
        "{findings:?}"
    );
    // `hunter2` as text, as bytes, and in base64.
    let shown = format!("{state:?}");
    for trace in ["hunter2", "104, 117, 110", "aHVudGVyMg"] {
        assert!(!shown.contains(trace), "{trace}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_none_is_a_finding() {
    let world = World::new().await;
    let root = secret("shop", "root", "Opaque", &[("root-cert.pem", b"hello")]);
    put(&world.management, Kind::Secret, &root);
    let state = world
        .until(|state| object(state, Kind::Secret, "root", "shop").is_some())
        .await;
    let Some(Object::Secret(root)) = object(&state, Kind::Secret, "root", "shop") else {
        panic!("it is a Secret");
    };
    assert!(root.has_certificate && !root.has_key);
    let message = &root.findings[0].message;
    assert!(
        message.starts_with("has a certificate that cannot be a root: reading root-cert.pem"),
        "{message}"
    );
}
