//! The address for kubelet, Prometheus and a person with a port-forward.
//!
//! Not meant for the open network: it shows metrics and, to the machine itself, changes the log filter.

use std::{fmt::Write, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{ConnectInfo, DefaultBodyLimit, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, put},
};
use prometheus_client::{encoding::text::encode, registry::Registry};

use crate::{
    ready::Readiness,
    telemetry::{Chain, LogHandle},
};

/// The content type that Prometheus expects of `OpenMetrics` 1.0.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The largest filter that is read.
const MAX_FILTER: usize = 4096;

/// `GET /healthz`, `GET /readyz`, `GET /metrics` and `PUT /log`, to be merged with what else a binary shows.
///
/// - `/healthz` answers as long as the process does.
/// - `/readyz` is 200 or 503 and names what is waited for, one line each.
/// - `/metrics` is the registry in `OpenMetrics` text.
/// - `/log` takes log directives as its body, from loopback addresses only.
pub fn router(readiness: Readiness, metrics: Arc<Registry>, log: LogHandle) -> Router {
    let log = put(set_log)
        .layer(DefaultBodyLimit::max(MAX_FILTER))
        .with_state(log);
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(show_readiness).with_state(readiness))
        .route("/metrics", get(show_metrics).with_state(metrics))
        .route("/log", log)
}

async fn show_readiness(State(readiness): State<Readiness>) -> (StatusCode, String) {
    let is_ready = readiness.is_ready();
    let (status, mut text) = match (is_ready, readiness.closed()) {
        (true, _) => (StatusCode::OK, String::from("ready\n")),
        (false, None) => (StatusCode::SERVICE_UNAVAILABLE, String::from("not ready\n")),
        (false, Some(reason)) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {reason}\n"),
        ),
    };
    for blocked in readiness.blockers() {
        writeln!(text, "waiting for {blocked}").expect("a string takes any text");
    }
    (status, text)
}

async fn show_metrics(State(metrics): State<Arc<Registry>>) -> Response {
    let mut text = String::new();
    match encode(&mut text, &metrics) {
        Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "a metric cannot be encoded\n",
        )
            .into_response(),
    }
}

async fn set_log(
    State(log): State<LogHandle>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    directives: String,
) -> (StatusCode, String) {
    if !peer.ip().to_canonical().is_loopback() {
        let text = "the log filter can be changed from the machine itself only: use kubectl port-forward\n";
        return (StatusCode::FORBIDDEN, text.into());
    }
    let directives = directives.trim();
    match log.set(directives) {
        Ok(()) => {
            tracing::info!(directives, "log filter changed");
            (StatusCode::OK, format!("{directives}\n"))
        }
        Err(error) => (StatusCode::BAD_REQUEST, format!("{}\n", Chain(&error))),
    }
}
