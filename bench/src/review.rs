//! Reviews, through the router that API servers ask.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use ferromesh_bench::world::{self, stepped};
use ferromesh_core::State;
use ferromesh_testkit::fleet::{Fleet, broad_policy};
use ferromesh_webhook::{Limits, Metrics, router};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::figures::Figures;

/// How many reviews are under way at once.
const IN_FLIGHT: usize = 64;
/// How many of them there are.
const MANY: u32 = 12_800;
/// How many reviews of a policy that selects everything.
const BROAD: u32 = 50;

/// Reviews of policies for one service, many at once; then of policies for all, one at a time.
pub(crate) fn reviews(fleet: Fleet, figures: &mut Figures) -> anyhow::Result<()> {
    let state = Arc::new(stepped(State::default(), world::discovered(&fleet)?));
    let limits = Limits {
        deadline: Duration::from_secs(10),
        ..Limits::default()
    };
    let router = router(move || Arc::clone(&state), limits, Metrics::default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let one = |number: u32| {
        let service = fleet.service(number % fleet.services);
        body(&service.traffic_policy("under-review", 5))
    };
    // On the runtime's own threads, as the connections of a server are.
    let times = |bodies: Vec<Bytes>, in_flight| {
        runtime.block_on(runtime.spawn(answered(router.clone(), bodies, in_flight)))?
    };
    times((0..200).map(|number| one(number * 11)).collect(), 1)?; // Warm.
    let alone = (0..1_000).map(|number| one(number * 13)).collect();
    figures.times("review_alone", times(alone, 1)?);

    let many = (0..MANY).map(|number| one(number * 17)).collect();
    let begun = Instant::now();
    figures.times("review_of_one_64_in_flight", times(many, IN_FLIGHT)?);
    figures.number(
        "reviews_per_second",
        u128::from(MANY) * 1_000_000 / begun.elapsed().as_micros().max(1),
    );

    let broad = (0..BROAD).map(|turn| body(&broad_policy("under-review", 5 + turn)));
    figures.times("review_of_all", times(broad.collect(), 1)?);
    Ok(())
}

/// A request to review a new policy.
fn body(policy: &Value) -> Bytes {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": { "group": "networking.mesh.gloo.solo.io", "version": "v1", "kind": "TrafficPolicy" },
            "resource": { "group": "networking.mesh.gloo.solo.io", "version": "v1", "resource": "trafficpolicies" },
            "name": "under-review", "namespace": "gloo-mesh", "operation": "CREATE",
            "userInfo": { "username": "bench" },
            "object": policy, "oldObject": null, "dryRun": false,
        },
    });
    review.to_string().into()
}

/// How long each of these reviews takes where `in_flight` are under way at any time, each in a task of its own:
/// so an API server asks over one connection of HTTP/2, and so a server serves that.
async fn answered(
    router: Router,
    bodies: Vec<Bytes>,
    in_flight: usize,
) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(bodies.len());
    let mut under_way = JoinSet::new();
    for body in bodies {
        if under_way.len() == in_flight
            && let Some(answered) = under_way.join_next().await
        {
            times.push(answered??);
        }
        under_way.spawn(ask(router.clone(), body, Instant::now()));
    }
    while let Some(answered) = under_way.join_next().await {
        times.push(answered??);
    }
    Ok(times)
}

/// How long one review takes that was `sent` then, from the bytes of the request to those of the answer.
async fn ask(router: Router, body: Bytes, sent: Instant) -> anyhow::Result<Duration> {
    let request = Request::post("/validate")
        .header("content-type", "application/json")
        .body(Body::from(body))?;
    let answer = router.oneshot(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    let took = sent.elapsed();
    ensure!(status == StatusCode::OK, "{status}");
    let body = str::from_utf8(&body)?;
    ensure!(body.contains(r#""allowed":true"#), "{body}");
    Ok(took)
}
