//! A webhook over a state that stands still.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::{Change, Kind, Object, Scope, State};
use ferromesh_webhook::{Limits, Metrics, router};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

/// Two Istio meshes and three Services, of which reviews is in both.
const ESTATE: &str = include_str!("estate.yaml");

pub(crate) const REVIEWS_1: &str = "[{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}]}}]";
pub(crate) const REVIEWS: &str = "[{kubeServiceMatcher: {labels: {app: reviews}}}]";

/// What the webhook knows, and how long it may think.
#[derive(Clone)]
pub(crate) struct World {
    state: Arc<State>,
    limits: Limits,
}

/// What the webhook said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) allowed: bool,
    pub(crate) code: u64,
    pub(crate) message: String,
    /// Field and message.
    pub(crate) causes: Vec<(String, String)>,
    pub(crate) warnings: Vec<String>,
}

pub(crate) fn read(text: &str) -> Vec<Object> {
    manifest::read(text, "")
        .into_iter()
        .map(|entry| match entry {
            Entry::Object(object) => object,
            other => panic!("{other:?}"),
        })
        .collect()
}

impl World {
    /// The estate, with the management cluster listed.
    pub(crate) fn new() -> Self {
        let kinds = Kind::ALL
            .iter()
            .filter(|kind| matches!(kind.scope(), Scope::Management | Scope::Everywhere));
        let listed = kinds.map(|kind| Change::Synced {
            cluster: "".into(),
            kind: *kind,
        });
        let world = Self::unlisted();
        Self {
            state: Arc::new((*world.state).clone().step(listed).0),
            ..world
        }
    }

    /// The estate, before the management cluster has been listed to its end.
    pub(crate) fn unlisted() -> Self {
        let changes = read(ESTATE).into_iter().map(Change::Upsert);
        Self {
            state: Arc::new(State::default().step(changes).0),
            // Slow machines are not what most tests are about.
            limits: Limits {
                deadline: Duration::from_mins(1),
                ..Limits::default()
            },
        }
    }

    pub(crate) fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Stores objects, whatever is wrong with them.
    pub(crate) fn with(self, object: &Value) -> Self {
        let changes: Vec<_> = read(&object.to_string())
            .into_iter()
            .map(Change::Upsert)
            .collect();
        let state = (*self.state).clone().step(changes).0;
        Self {
            state: Arc::new(state),
            ..self
        }
    }

    pub(crate) fn router(&self) -> Router {
        self.router_with(Metrics::default())
    }

    pub(crate) fn router_with(&self, metrics: Metrics) -> Router {
        let state = Arc::clone(&self.state);
        router(move || Arc::clone(&state), self.limits, metrics)
    }

    pub(crate) async fn create(&self, object: &Value) -> Answer {
        self.ask(&review("CREATE", Some(object), None)).await
    }

    pub(crate) async fn update(&self, old: &Value, new: &Value) -> Answer {
        self.ask(&review("UPDATE", Some(new), Some(old))).await
    }

    pub(crate) async fn delete(&self, old: &Value) -> Answer {
        self.ask(&review("DELETE", None, Some(old))).await
    }

    pub(crate) async fn ask(&self, review: &Value) -> Answer {
        Answer::read(&self.answer("/validate", review).await)
    }

    /// The answer as it is sent.
    pub(crate) async fn answer(&self, path: &str, review: &Value) -> Value {
        let (status, body) = send(self.router(), path, review.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }
}

impl Answer {
    fn read(answer: &Value) -> Self {
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["kind"], "AdmissionReview");
        let response = &answer["response"];
        assert_eq!(response["uid"], UID);
        let status = &response["status"];
        let texts = |value: &Value| -> Vec<String> {
            value
                .as_array()
                .into_iter()
                .flatten()
                .map(|text| text.as_str().unwrap().to_owned())
                .collect()
        };
        Self {
            allowed: response["allowed"].as_bool().unwrap(),
            code: status["code"].as_u64().unwrap_or_default(),
            message: status["message"].as_str().unwrap_or_default().to_owned(),
            causes: status["details"]["causes"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|cause| {
                    let text = |name: &str| cause[name].as_str().unwrap_or_default().to_owned();
                    (text("field"), text("message"))
                })
                .collect(),
            warnings: texts(&response["warnings"]),
        }
    }

    #[track_caller]
    pub(crate) fn accepts(self) -> Self {
        assert!(self.allowed, "is refused: {self:#?}");
        assert_eq!(self.causes, []);
        self
    }

    #[track_caller]
    pub(crate) fn rejects(self, field: &str, part: &str) -> Self {
        assert!(!self.allowed, "is let through: {self:#?}");
        assert_eq!(self.code, 422);
        assert!(
            self.causes
                .iter()
                .any(|(at, message)| at == field && message.contains(part)),
            "{field}: {part} is not among {:#?}",
            self.causes
        );
        assert!(self.message.contains(part), "{}", self.message);
        self
    }

    #[track_caller]
    pub(crate) fn warns(self, part: &str) -> Self {
        // What is longer than a line goes on in the next.
        let told = self.warnings.join("\n").replace("\n… ", " ");
        assert!(told.contains(part), "{part:?} is not in {told}");
        self
    }
}

pub(crate) const UID: &str = "705ab4f5-6393-11e8-b7cc-42010a800002";

/// A review as an API server writes it.
pub(crate) fn review(operation: &str, object: Option<&Value>, old: Option<&Value>) -> Value {
    let subject = object.or(old).unwrap();
    let kind = subject["kind"].as_str().unwrap();
    let (group, version) = subject["apiVersion"]
        .as_str()
        .unwrap()
        .split_once('/')
        .unwrap();
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": UID,
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": "whatever"},
            "requestKind": {"group": group, "version": version, "kind": kind},
            "name": subject["metadata"]["name"],
            "namespace": subject["metadata"]["namespace"],
            "operation": operation,
            "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
            "object": object,
            "oldObject": old,
            "dryRun": false,
            "options": null,
        },
    })
}

pub(crate) async fn send(
    router: Router,
    path: &str,
    body: impl Into<Body>,
) -> (StatusCode, Vec<u8>) {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(body.into())
        .unwrap();
    let response = router.oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, body.to_vec())
}

/// An object of one of our kinds; `spec` is YAML.
pub(crate) fn object(kind: &str, name: &str, spec: &str) -> Value {
    let group = if kind == "Settings" {
        "settings"
    } else {
        "networking"
    };
    let spec: Value = yaml(spec);
    json!({
        "apiVersion": format!("{group}.mesh.gloo.solo.io/v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": "gloo-mesh"},
        "spec": spec,
    })
}

pub(crate) fn traffic_policy(name: &str, spec: &str) -> Value {
    object("TrafficPolicy", name, spec)
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// A traffic policy that bounds requests to reviews.
pub(crate) fn timeout(name: &str, selector: &str, timeout: &str) -> Value {
    traffic_policy(
        name,
        &format!("{{destinationSelector: {selector}, policy: {{requestTimeout: {timeout}}}}}"),
    )
}
