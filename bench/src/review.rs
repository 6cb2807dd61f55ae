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
use tower::ServiceExt as _;

use crate::figures::Figures;

/// How many reviews are under way at once.
const IN_FLIGHT: u32 = 64;
/// How many reviews each of those asks for, one after the other.
const EACH: u32 = 200;
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
    let times = |bodies: Vec<Bytes>| {
        let router = router.clone();
        runtime.spawn(async move {
            let mut times = Vec::with_capacity(bodies.len());
            for body in bodies {
                times.push(ask(router.clone(), body).await?);
            }
            anyhow::Ok(times)
        })
    };
    // Warm.
    runtime.block_on(times((0..200).map(|number| one(number * 11)).collect()))??;
    let alone = times((0..1_000).map(|number| one(number * 13)).collect());
    figures.times("review_alone", runtime.block_on(alone)??);

    let each = |task| {
        (0..EACH)
            .map(move |turn| one(task * 131 + turn * 17))
            .collect()
    };
    let bodies: Vec<Vec<Bytes>> = (0..IN_FLIGHT).map(each).collect();
    let begun = Instant::now();
    let tasks: Vec<_> = bodies.into_iter().map(&times).collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(runtime.block_on(task)??);
    }
    let took = begun.elapsed();
    figures.number(
        "reviews_per_second",
        u128::from(IN_FLIGHT * EACH) * 1_000_000 / took.as_micros().max(1),
    );
    figures.times("review_of_one_64_in_flight", all);

    let broad = (0..BROAD).map(|turn| body(&broad_policy("under-review", 5 + turn)));
    figures.times("review_of_all", runtime.block_on(times(broad.collect()))??);
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

/// How long one review takes, from the bytes of the request to those of the answer.
async fn ask(router: Router, body: Bytes) -> anyhow::Result<Duration> {
    let request = Request::post("/validate")
        .header("content-type", "application/json")
        .body(Body::from(body))?;
    let begun = Instant::now();
    // A task of its own, as each request to a server has.
    let answer = tokio::spawn(router.oneshot(request)).await??;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    let took = begun.elapsed();
    ensure!(status == StatusCode::OK, "{status}");
    let body = str::from_utf8(&body)?;
    ensure!(body.contains(r#""allowed":true"#), "{body}");
    Ok(took)
}
