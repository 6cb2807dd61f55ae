//! Reviews of objects that nobody means well by, and requests that are none.
//!
//! `FERROMESH_HOSTILE` sets how many; `FERROMESH_HOSTILE_SEED` repeats one round. What they are drawn from is
//! what the engine's own tests draw from.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

#[path = "../../../core/tests/hostile/bomb.rs"]
mod bomb;
#[path = "../../../core/tests/hostile/dice.rs"]
mod dice;
#[path = "../../../core/tests/hostile/drawn.rs"]
mod drawn;
#[path = "../../../core/tests/hostile/value.rs"]
mod value;
#[path = "../../../core/tests/hostile/world.rs"]
#[expect(dead_code, reason = "a webhook is asked by one cluster")]
mod world;
#[path = "../../../core/tests/hostile/written.rs"]
mod written;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use ferromesh_webhook::{Limits, Metrics, router};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::bomb::BOMBS;
use crate::dice::Dice;

/// Requests that are drawn from one seed.
const ROUND: usize = 24;
/// Bytes of an answer at the most: a patch of a thousand places, in base64.
const MAX_ANSWER: usize = 256 << 10;
/// How long an answer takes at the most, unoptimised and on a busy machine.
const MAX_TIME: Duration = Duration::from_mins(1);

fn drawn(dice: &mut Dice, bomb: Option<usize>) -> Value {
    let bomb = bomb.or_else(|| dice.one_in(60).then(|| dice.below(BOMBS.len())));
    if let Some((_, make)) = bomb.map(|bomb| BOMBS[bomb]) {
        return make(dice);
    }
    match dice.below(60) {
        0..26 => drawn::mutated(dice),
        26..58 => drawn::by_schema(dice),
        _ => value::anything(dice, 6),
    }
}

/// A review of an object, of which parts may be missing or something else.
fn review(dice: &mut Dice, object: &Value, old: &Value) -> Value {
    let kind = &object["kind"];
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let gvk = json!({ "group": group, "version": version, "kind": kind });
    let operation = *dice.pick(&["CREATE", "UPDATE", "DELETE", "CONNECT"]);
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": gvk,
            "resource": { "group": group, "version": version, "resource": "any" },
            "name": value::text(dice),
            "namespace": "gloo-mesh",
            "operation": operation,
            "userInfo": { "username": value::text(dice) },
            "object": object,
            "oldObject": old,
        },
    });
    if dice.one_in(6) {
        let at = if dice.one_in(3) { "" } else { "request" };
        let part = if at.is_empty() {
            &mut review
        } else {
            &mut review[at]
        };
        let members = part.as_object_mut().unwrap();
        let keys: Vec<_> = members.keys().cloned().collect();
        let key = dice.pick(&keys).clone();
        members[&key] = value::anything(dice, 3);
    }
    review
}

/// What is sent: a review, mostly.
fn body(dice: &mut Dice, object: &Value, old: &Value) -> String {
    let review = review(dice, object, old);
    match dice.below(12) {
        0 => written::text(dice, &review),
        1 => format!("{review}{review}"),
        2 => format!("{}{}", "[".repeat(100_000), review),
        _ => review.to_string(),
    }
}

async fn ask(router: &Router, path: &str, body: String) -> (StatusCode, Vec<u8>) {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, body.to_vec())
}

/// Asks for everything that a seed stands for; the longest answer's time.
async fn round(router: &Router, seed: u64) -> Duration {
    let mut dice = Dice::new(seed ^ 0x5eed);
    let mut old = Value::Null;
    let mut longest = Duration::ZERO;
    for turn in 0..ROUND {
        let bomb = usize::try_from(seed).unwrap();
        let bomb = Some(bomb).filter(|bomb| turn < 2 && *bomb < BOMBS.len());
        let object = drawn(&mut dice, bomb);
        let body = body(&mut dice, &object, &old);
        let path = *dice.pick(&["/validate", "/validate/7", "/mutate"]);
        let told = format!("FERROMESH_HOSTILE_SEED={seed}, request {turn} to {path}");
        let began = Instant::now();
        let (status, answer) = ask(router, path, body).await;
        let took = began.elapsed();
        assert!(took < MAX_TIME, "{told}: {took:?}");
        longest = longest.max(took);
        let is_expected = matches!(
            status,
            StatusCode::OK | StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE
        );
        let text = String::from_utf8_lossy(&answer);
        assert!(is_expected, "{told}: {status}: {text}");
        assert!(
            answer.len() <= MAX_ANSWER,
            "{told}: {} bytes: {text:.200}",
            answer.len()
        );
        if status == StatusCode::OK {
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert!(answer["response"]["allowed"].is_boolean(), "{told}: {text}");
        }
        old = object;
    }
    longest
}

fn wanted(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test]
async fn every_hostile_review_gets_an_answer() {
    let state = Arc::new(world::state());
    let router = router(
        move || Arc::clone(&state),
        Limits::default(),
        Metrics::default(),
    );
    let count = wanted("FERROMESH_HOSTILE").unwrap_or(1_000);
    let seeds = match wanted("FERROMESH_HOSTILE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count.div_ceil(ROUND.try_into().unwrap()),
    };
    let (began, mut longest) = (Instant::now(), (Duration::ZERO, 0));
    for seed in seeds {
        let took = round(&router, seed).await;
        longest = longest.max((took, seed));
    }
    println!("{count} reviews in {:?}", began.elapsed());
    println!("the longest took {:?} (seed {})", longest.0, longest.1);
}
