use std::{
    net::SocketAddr,
    sync::{Arc, LazyLock},
};

use axum::{Router, body::Body, extract::ConnectInfo, http::Request};
use ferromesh_runtime::{
    admin::router,
    ready::Readiness,
    serve::{Drain, Limits, Server},
    telemetry::{LogFormat, LogHandle, init},
};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::wire::{Answer, Connection, LOOPBACK};

static LOG: LazyLock<LogHandle> = LazyLock::new(|| init("error", LogFormat::Text).unwrap());

fn app(readiness: &Readiness) -> Router {
    let mut metrics = Registry::default();
    let counter = Counter::<u64>::default();
    counter.inc();
    metrics.register("things", "Things that were counted", counter);
    router(readiness.clone(), Arc::new(metrics), LOG.clone())
}

async fn asked(app: Router, request: Request<Body>) -> Answer {
    Answer::read(app.oneshot(request).await.unwrap()).await
}

async fn got(app: Router, path: &str) -> Answer {
    asked(app, Request::get(path).body(Body::empty()).unwrap()).await
}

fn log_request(peer: Option<&str>, directives: &str) -> Request<Body> {
    let mut request = Request::put("/log")
        .body(Body::from(directives.to_owned()))
        .unwrap();
    if let Some(peer) = peer {
        let peer: SocketAddr = peer.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
    }
    request
}

#[tokio::test]
async fn readyz_names_what_is_waited_for() {
    let readiness = Readiness::new();
    let blockers = (
        readiness.block("first list of pods"),
        readiness.block("certificate"),
    );
    let answer = got(app(&readiness), "/readyz").await;
    assert_eq!(answer.status, 503);
    assert_eq!(
        answer.text,
        "not ready\nwaiting for first list of pods (for 0 s)\nwaiting for certificate (for 0 s)\n"
    );
    assert_eq!(got(app(&readiness), "/healthz").await.status, 200);

    drop(blockers);
    let answer = got(app(&readiness), "/readyz").await;
    assert_eq!(
        (answer.status.as_u16(), answer.text.as_str()),
        (200, "ready\n")
    );

    readiness.close("shutting down");
    let answer = got(app(&readiness), "/readyz").await;
    assert_eq!(
        (answer.status.as_u16(), answer.text.as_str()),
        (503, "not ready: shutting down\n")
    );
}

#[tokio::test]
async fn metrics_are_open_metrics_text() {
    let answer = got(app(&Readiness::new()), "/metrics").await;
    assert!(
        answer.text.contains("things_total 1\n") && answer.text.ends_with("# EOF\n"),
        "{}",
        answer.text
    );
    assert!(
        answer
            .content_type
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
}

#[tokio::test]
async fn only_the_machine_itself_changes_the_log_filter() {
    for (peer, status) in [
        (Some("127.0.0.1:4000"), 200),
        (Some("[::1]:4000"), 200),
        (Some("[::ffff:127.0.0.1]:4000"), 200),
        (Some("10.1.2.3:4000"), 403),
        (Some("[::ffff:10.1.2.3]:4000"), 403),
        (None, 500),
    ] {
        let answer = asked(app(&Readiness::new()), log_request(peer, "error")).await;
        assert_eq!(answer.status, status, "{peer:?}");
    }
}

#[tokio::test]
async fn a_filter_that_cannot_be_read_is_refused() {
    let answer = asked(
        app(&Readiness::new()),
        log_request(Some("127.0.0.1:1"), "a=b=c"),
    )
    .await;
    assert_eq!(answer.status, 400);
    assert!(answer.text.contains("a=b=c"), "{}", answer.text);
    let huge = "x".repeat(5000);
    let answer = asked(
        app(&Readiness::new()),
        log_request(Some("127.0.0.1:1"), &huge),
    )
    .await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn the_peer_is_known_where_it_is_served() {
    let server = Server::bind(LOOPBACK, Limits::default()).await.unwrap();
    let address = server.address();
    tokio::spawn(server.http(
        app(&Readiness::new()),
        Drain::default(),
        CancellationToken::new(),
    ));
    let mut connection = Connection::plain(address).await;
    let request = Request::put("/log")
        .header("host", "localhost")
        .body(Body::from("error"))
        .unwrap();
    let answer = Answer::read(connection.send(request).await.unwrap()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.text.as_str()),
        (200, "error\n")
    );
}
