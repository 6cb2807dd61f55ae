//! Requests that are not what they should be.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use ferromesh_webhook::{Limits, Metrics};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower::ServiceExt;

use crate::world::{REVIEWS, World, review, send, timeout, traffic_policy};

const BOTH: [&str; 2] = ["/validate", "/mutate"];

#[tokio::test]
async fn a_body_above_the_limit_is_refused_unread() {
    let limit = Limits::default().body;
    assert_eq!(limit, 4 << 20);
    let mut ask = review("CREATE", Some(&timeout("a", REVIEWS, "1s")), None);
    ask["request"]["object"]["metadata"]["annotations"] = json!({"a": "x".repeat(limit)});
    for path in BOTH {
        let (status, _) = send(World::new().router(), path, ask.to_string()).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        // One that does not say how long it is.
        let chunks = in_pieces(&vec![b' '; limit + 1]);
        let (status, _) = send(World::new().router(), path, chunks).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    }
}

/// A body in pieces, without a length.
fn in_pieces(bytes: &[u8]) -> Body {
    let pieces: Vec<Result<Vec<u8>, std::convert::Infallible>> = bytes
        .chunks(65_536)
        .map(|piece| Ok(piece.to_vec()))
        .collect();
    Body::from_stream(futures_util::stream::iter(pieces))
}

#[tokio::test]
async fn a_large_object_below_the_limit_is_judged() {
    let mut policy = timeout("a", REVIEWS, "1s");
    policy["metadata"]["annotations"] = json!({"a": "x".repeat(3 << 20)});
    World::new().create(&policy).await.accepts();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_is_given_up() {
    for path in BOTH {
        let body = Body::from_stream(futures_util::stream::pending::<
            Result<Vec<u8>, std::io::Error>,
        >());
        let (status, _) = send(World::new().router(), path, body).await;
        assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
    }
}

#[tokio::test(start_paused = true)]
async fn more_requests_than_there_is_room_for_are_told_to_come_back() {
    let world = World::new().limits(Limits {
        requests: 1,
        arrival: Duration::from_mins(1),
        ..Limits::default()
    });
    let router = world.router();
    let slow = Body::from_stream(futures_util::stream::pending::<
        Result<Vec<u8>, std::io::Error>,
    >());
    let first = tokio::spawn(send(router.clone(), "/validate", slow));
    tokio::task::yield_now().await;
    let request = Request::post("/validate").body(Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()["retry-after"], "1");
    first.abort();
}

#[tokio::test]
async fn a_trial_that_nobody_waits_for_any_more_keeps_its_turn() {
    let (sender, mut trials) = mpsc::unbounded_channel();
    let (hold, gate) = std::sync::mpsc::channel::<()>();
    let (world, gate) = (World::new(), Mutex::new(gate));
    let state = move || {
        sender.send(()).unwrap();
        // Until the test lets go of the other end.
        gate.lock().unwrap().recv().unwrap_err();
        Arc::new(world.state().clone())
    };
    let limits = Limits {
        trials: 1,
        wait: Duration::ZERO,
        ..Limits::default()
    };
    let router = ferromesh_webhook::router(state, limits, Metrics::default());
    // Too large to be worked on where it came in.
    let mut policy = timeout("a", REVIEWS, "1s");
    policy["metadata"]["annotations"]["note"] = "long ".repeat(2_000).into();
    let ask = review("CREATE", Some(&policy), None).to_string();
    let first = tokio::spawn(send(router.clone(), "/validate", ask.clone()));
    trials.recv().await.unwrap();
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());

    let second = tokio::time::timeout(Duration::from_secs(10), send(router, "/validate", ask));
    let (_, answer) = second.await.expect("it is not judged");
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["response"]["status"]["code"], 429);
    drop(hold);
}

#[tokio::test]
async fn a_review_that_panics_is_answered_and_so_is_the_next_one() {
    for note in ["short", &"long ".repeat(2_000)] {
        let (world, is_sound) = (World::new(), AtomicBool::new(false));
        let state = move || {
            assert!(is_sound.swap(true, Ordering::Relaxed), "the first review");
            Arc::new(world.state().clone())
        };
        let router = ferromesh_webhook::router(state, Limits::default(), Metrics::default());
        let mut policy = timeout("a", REVIEWS, "1s");
        policy["metadata"]["annotations"]["note"] = note.into();
        let ask = review("CREATE", Some(&policy), None).to_string();
        let (status, _) = send(router.clone(), "/validate", ask.clone()).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        let (status, answer) = send(router, "/validate", ask).await;
        assert_eq!(status, StatusCode::OK);
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["response"]["allowed"], true);
    }
}

#[tokio::test]
async fn what_is_no_json_or_no_post_is_refused() {
    let router = World::new().router();
    let request = Request::get("/validate").body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    for kind in [None, Some("application/xml"), Some("\u{1}")] {
        let mut request = Request::post("/validate");
        if let Some(kind) = kind.filter(|kind| kind.len() > 1) {
            request = request.header("content-type", kind);
        }
        let response = router
            .clone()
            .oneshot(request.body(Body::from("{}")).unwrap())
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}

#[tokio::test]
async fn what_is_no_review_is_refused_in_few_words() {
    let good = review("CREATE", Some(&timeout("a", REVIEWS, "1s")), None);
    let mut old = good.clone();
    old["apiVersion"] = json!("admission.k8s.io/v1beta1");
    let mut empty = good.clone();
    empty["request"] = json!(null);
    let long = ["/uid", "/name", "/kind/group", "/kind/kind"].map(|place| {
        let mut long = good.clone();
        *long["request"].pointer_mut(place).unwrap() = json!("x".repeat(257));
        long.to_string()
    });
    let deep = "[".repeat(100_000);
    for body in [
        String::new(),
        "{}".to_owned(),
        "[1, 2".to_owned(),
        "\u{0}\u{1}".to_owned(),
        deep,
        old.to_string(),
        empty.to_string(),
        json!({ "request": "x".repeat(1 << 20) }).to_string(),
    ]
    .into_iter()
    .chain(long)
    {
        for path in BOTH {
            let (status, answer) = send(World::new().router(), path, body.clone()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {body:.40}");
            assert!(answer.len() < 1_000, "{path}: {body:.40}");
        }
    }
}

#[tokio::test]
async fn a_review_without_its_object_is_let_through() {
    // Nothing that an API server would send; there is nothing to judge.
    let mut ask = review("CREATE", Some(&timeout("a", REVIEWS, "1s")), None);
    ask["request"]["object"] = json!(null);
    World::new().ask(&ask).await.accepts();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_it_fall_over(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        for path in BOTH {
            let (status, _) = runtime().block_on(send(World::new().router(), path, bytes.clone()));
            prop_assert_eq!(status, StatusCode::BAD_REQUEST);
        }
    }

    #[test]
    fn no_damage_to_a_review_makes_it_fall_over(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let policy = traffic_policy("a", "{policy: {retries: {attempts: 3}, requestTimeout: 1s}}");
        let mut body = review("UPDATE", Some(&policy), Some(&policy)).to_string().into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        for path in BOTH {
            let (status, _) = runtime().block_on(send(World::new().router(), path, body.clone()));
            prop_assert!(status == StatusCode::OK || status == StatusCode::BAD_REQUEST, "{}", status);
        }
    }
}

#[tokio::test]
async fn reviews_are_counted_by_kind_operation_and_verdict() {
    let metrics = Metrics::default();
    let mut registry = Registry::with_prefix("ferromesh");
    metrics.register(&mut registry);
    let router = World::new().router_with(metrics);
    for policy in [
        timeout("a", REVIEWS, "1s"),
        traffic_policy("a", "{policy: {retries: {attempts: -1}}}"),
    ] {
        let body = review("CREATE", Some(&policy), None).to_string();
        send(router.clone(), "/validate", body).await;
    }
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        "ferromesh_webhook_reviews_total{kind=\"TrafficPolicy\",operation=\"Create\",verdict=\"Warned\"} 1",
        "ferromesh_webhook_reviews_total{kind=\"TrafficPolicy\",operation=\"Create\",verdict=\"Denied\"} 1",
        "ferromesh_webhook_review_duration_seconds_count{half=\"Validating\"} 2",
        "ferromesh_webhook_requests_in_flight 0",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
