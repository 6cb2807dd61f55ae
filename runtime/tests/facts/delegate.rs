use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, Response, StatusCode},
    routing::get,
};
use ferromesh_runtime::delegate::guarded;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::ServiceExt;

use super::wire::Answer;

const PATH: &str = "/debug/snapshot";

/// What an API server was asked, and the token that it knows: that of ada, who may get [`PATH`] unless the
/// token says otherwise.
#[derive(Clone, Default)]
struct ApiServer {
    asked: Arc<Mutex<Vec<Value>>>,
    is_down: bool,
}

impl ApiServer {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(self, request: Request<kube::client::Body>) -> Response<Body> {
        if self.is_down {
            let status = json!({ "kind": "Status", "code": 500, "message": "of no concern" });
            return answer(500, &status);
        }
        let path = request.uri().path().to_owned();
        let body = to_bytes(Body::new(request.into_body()), usize::MAX).await;
        let mut review: Value = serde_json::from_slice(&body.unwrap()).unwrap();
        self.asked.lock().unwrap().push(review.clone());
        review["status"] = match path.as_str() {
            "/apis/authentication.k8s.io/v1/tokenreviews" => match review["spec"]["token"].as_str()
            {
                Some("good" | "weak") => json!({
                    "authenticated": true,
                    "user": {
                        "username": review["spec"]["token"], "groups": ["people"],
                        "extra": { "scopes": ["all"] },
                    },
                }),
                _ => json!({ "authenticated": false, "error": "no such token" }),
            },
            "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                json!({ "allowed": review["spec"]["user"] == "good" })
            }
            other => panic!("{other} is asked for"),
        };
        answer(201, &review)
    }

    fn app(&self) -> Router {
        let app = Router::new().route(PATH, get(async || "inside"));
        guarded(app, self.client(), 2)
    }

    async fn ask(&self, authorization: Option<&str>) -> Answer {
        ask(self.app(), authorization).await
    }
}

fn answer(status: u16, body: &Value) -> Response<Body> {
    let answer = Response::builder().status(status);
    answer.body(Body::from(body.to_string())).unwrap()
}

fn request(authorization: Option<&str>) -> Request<Body> {
    let mut request = Request::get(PATH);
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    request.body(Body::empty()).unwrap()
}

async fn ask(app: Router, authorization: Option<&str>) -> Answer {
    Answer::read(app.oneshot(request(authorization)).await.unwrap()).await
}

#[tokio::test]
async fn whoever_may_is_let_through_by_what_the_api_server_says() {
    let server = ApiServer::default();
    let answer = server.ask(Some("Bearer good")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.text, "inside");
    let asked = server.asked.lock().unwrap();
    assert_eq!(asked[0]["spec"], json!({ "token": "good" }));
    assert_eq!(
        asked[1]["spec"],
        json!({
            "user": "good", "groups": ["people"], "extra": { "scopes": ["all"] },
            "nonResourceAttributes": { "path": PATH, "verb": "get" },
        })
    );
}

#[tokio::test]
async fn without_a_good_token_nobody_is_let_through() {
    let server = ApiServer::default();
    let long = format!("Bearer {}", "x".repeat(16 * 1024 + 1));
    for authorization in [None, Some("Basic good"), Some("Bearer "), Some(&*long)] {
        let answer = server.ask(authorization).await;
        assert_eq!(answer.status, 401, "{authorization:?}");
    }
    assert_eq!(server.asked.lock().unwrap().len(), 0, "nobody was asked");
    assert_eq!(server.ask(Some("Bearer bad")).await.status, 401);
}

#[tokio::test]
async fn without_the_right_one_is_told_which_is_missing() {
    let answer = ApiServer::default().ask(Some("Bearer weak")).await;
    assert_eq!(answer.status, 403);
    assert_eq!(
        answer.text,
        "weak may not get /debug/snapshot: bind a ClusterRole with nonResourceURLs [/debug/snapshot] and verbs [get]\n"
    );
}

#[tokio::test]
async fn nobody_is_let_through_while_the_api_server_cannot_say_who_they_are() {
    let server = ApiServer {
        is_down: true,
        ..ApiServer::default()
    };
    let answer = server.ask(Some("Bearer good")).await;
    assert_eq!(answer.status, 503);
    assert!(!answer.text.contains("of no concern"), "{}", answer.text);
}

#[tokio::test]
async fn only_so_many_are_answered_at_a_time() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let hold = {
        let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        async move || {
            begun.notify_one();
            go_on.notified().await;
            StatusCode::OK
        }
    };
    let app = Router::new().route(PATH, get(hold));
    let app = guarded(app, ApiServer::default().client(), 1);
    let first = tokio::spawn(ask(app.clone(), Some("Bearer good")));
    begun.notified().await;
    assert_eq!(ask(app.clone(), Some("Bearer good")).await.status, 429);
    go_on.notify_one();
    assert_eq!(first.await.unwrap().status, 200);
    go_on.notify_one();
    assert_eq!(ask(app, Some("Bearer good")).await.status, 200);
}
