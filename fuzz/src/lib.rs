//! What is thrown at the doors that strangers can reach. Each function takes any bytes, and must not panic.
//!
//! - [`review`]: whoever can reach the webhook's port.
//! - [`request`]: whoever can write a `CertificateRequest` in a managed cluster.
//! - [`kubeconfig`]: whoever can write a Secret in the namespace of the management plane.
//! - [`scenario`]: whoever writes manifests.
//!
//! `fuzz_targets/` hands them to libFuzzer.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use ferromesh_ca::request::VerifiedRequest;
use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::{Change, Kind, OutputChange, State};
use ferromesh_runtime::client::{Options, from_bytes};
use ferromesh_webhook::{Limits, Metrics, router};
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// Clusters of which everything is listed; the first is the management cluster.
const CLUSTERS: [&str; 3] = ["", "c1", "c2"];

/// One thread is enough: what runs on others would not be seen to cost anything.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("threads can be made")
});

/// A small fleet, everything listed.
static STATE: LazyLock<State> = LazyLock::new(|| {
    let files = [
        (
            include_str!("../../core/tests/universe/management.yaml"),
            "",
        ),
        (include_str!("../../core/tests/universe/cluster.yaml"), "c1"),
        (include_str!("../../core/tests/universe/cluster.yaml"), "c2"),
    ];
    let read = files
        .into_iter()
        .flat_map(|(text, cluster)| changes(text, cluster));
    let listed = CLUSTERS.into_iter().flat_map(|cluster| {
        Kind::ALL.iter().map(move |kind| Change::Synced {
            cluster: cluster.into(),
            kind: *kind,
        })
    });
    State::default().step(read.chain(listed)).0
});

static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    let state = Arc::new(STATE.clone());
    router(
        move || Arc::clone(&state),
        Limits::default(),
        Metrics::default(),
    )
});

fn changes(text: &str, cluster: &str) -> Vec<Change> {
    let entries = manifest::read(text, cluster).into_iter();
    let changes = entries.filter_map(|entry| match entry {
        Entry::Object(object) => Some(Change::Upsert(object)),
        Entry::Ignored { .. } | Entry::Unreadable { .. } => None,
    });
    changes.collect()
}

/// The body of a request to the webhook; its first byte says to which half.
pub fn review(bytes: &[u8]) {
    let (path, body) = match bytes.split_first() {
        Some((b'm', body)) => ("/mutate", body),
        Some((b'v', body)) => ("/validate/7", body),
        _ => ("/validate", bytes),
    };
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(Body::from(body.to_vec()))
        .expect("the request is one");
    let answer = RUNTIME.block_on(ROUTER.clone().oneshot(request));
    let status = answer.expect("the router answers").status();
    let is_expected = matches!(
        status,
        StatusCode::OK | StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE
    );
    assert!(is_expected, "{status}");
}

/// A certificate request, as DER and as PEM.
pub fn request(bytes: &[u8]) {
    for read in [
        VerifiedRequest::from_der(bytes),
        VerifiedRequest::from_pem(bytes),
    ] {
        match read {
            Ok(request) => assert!(!request.public_key().spki_der().is_empty()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// The content of a kubeconfig Secret.
pub fn kubeconfig(bytes: &[u8]) {
    let _runtime = RUNTIME.enter();
    match from_bytes(bytes, &Options::default()) {
        Ok(connection) => assert!(!connection.server.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A manifest, read as objects of each cluster and taken in.
pub fn scenario(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let changes = CLUSTERS
        .into_iter()
        .flat_map(|cluster| changes(&text, cluster));
    let (state, delta) = STATE.clone().step(changes);
    for change in delta.outputs() {
        if let OutputChange::Upsert(output) = change {
            assert_eq!(
                state.output(&output.key).as_ref(),
                Some(&*output),
                "{}",
                output.key
            );
        }
    }
    for key in delta.statuses() {
        let size = state
            .status(key)
            .map_or(0, |status| status.to_json().to_string().len());
        assert!(size < 12 << 10, "{size} bytes of status");
    }
}
