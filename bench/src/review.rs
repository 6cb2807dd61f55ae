//! Reviews, through the router that API servers ask.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use axum::Router;
use axum::body::Body;
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
const EACH: u32 = 100;
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
    runtime.block_on(async {
        let one = |number| {
            let router = router.clone();
            let service = fleet.service(number % fleet.services);
            let policy = service.traffic_policy("under-review", 5);
            async move { ask(router, &policy).await }
        };
        // Warm.
        for number in 0..200 {
            one(number * 11).await?;
        }
        let mut times = Vec::new();
        for number in 0..1_000 {
            times.push(one(number * 13).await?);
        }
        figures.times("review_alone", times);

        let begun = Instant::now();
        let tasks: Vec<_> = (0..IN_FLIGHT)
            .map(|task| {
                let reviews: Vec<_> = (0..EACH).map(|turn| one(task * 131 + turn * 17)).collect();
                tokio::spawn(async move {
                    let mut times = Vec::new();
                    for review in reviews {
                        times.push(review.await?);
                    }
                    anyhow::Ok(times)
                })
            })
            .collect();
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await??);
        }
        let took = begun.elapsed();
        figures.number(
            "reviews_per_second",
            u128::from(IN_FLIGHT * EACH) * 1_000_000 / took.as_micros().max(1),
        );
        figures.times("review_of_one_64_in_flight", times);

        let mut times = Vec::new();
        for turn in 0..BROAD {
            times.push(ask(router.clone(), &broad_policy("under-review", 5 + turn)).await?);
        }
        figures.times("review_of_all", times);
        Ok(())
    })
}

/// How long one review takes, from the bytes of the request to those of the answer.
async fn ask(router: Router, policy: &Value) -> anyhow::Result<Duration> {
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
    let request = Request::post("/validate")
        .header("content-type", "application/json")
        .body(Body::from(review.to_string()))?;
    let begun = Instant::now();
    let answer = router.oneshot(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    let took = begun.elapsed();
    ensure!(status == StatusCode::OK, "{status}");
    let answer: Value = serde_json::from_slice(&body)?;
    ensure!(answer["response"]["allowed"] == true, "{answer}");
    Ok(took)
}
