//! The two routes, `/validate` and `/mutate`, and what they may cost.

use std::num::NonZeroUsize;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State as Extract};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use ferromesh_core::State;
use ferromesh_core::review::{Candidate, Intent, Replacement, Review, author, canonical, judged};
use ferromesh_crds::meta::LAST_AUTHOR_ANNOTATION;
use ferromesh_runtime::telemetry::SPANS;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, ReplaceOperation};
use kube_core::DynamicObject;
use kube_core::admission::{
    AdmissionRequest, AdmissionResponse, AdmissionReview, META_API_VERSION_V1,
};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;
use tracing::{Instrument as _, Span};

use crate::metrics::{HalfLabel, Metrics};
use crate::respond::{self, respond, shortened};
use crate::review::{self, Verdict};

/// The path of the validating half. A segment that follows names the form of the registration.
pub(crate) const VALIDATE: &str = "/validate";
/// The path of the mutating half.
pub(crate) const MUTATE: &str = "/mutate";

/// How long a review is worked on where it came in. Nearly all are done by then, and to hand one to a thread
/// costs as much as to judge a policy of one destination.
const AT_ONCE: Duration = Duration::from_micros(500);
/// Most bytes of a request that is worked on there at all. To read an object, and to find what it selects, cannot
/// be interrupted, and others wait meanwhile.
const SMALL: usize = 8 << 10;
/// Most bytes of each name in a request that the answer repeats: no API server has a longer one.
const MAX_NAME: usize = 256;

/// What reviews may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long an object may be judged; after that the answer says what is known by then.
    pub deadline: Duration,
    /// Most bytes of a request. An update carries an object twice, and etcd takes 1.5 MiB of one.
    pub body: usize,
    /// How long a request may take to arrive.
    pub arrival: Duration,
    /// Requests that are read or answered at a time; their bodies are in memory.
    pub requests: usize,
    /// Objects that are judged at a time: each takes a core, and its time to the deadline runs.
    pub trials: usize,
    /// How long a request may wait for its turn. What has none by then is told to come back in a
    /// second (HTTP status 429, which clients of Kubernetes do by themselves): to let it through
    /// would open a door to whoever can make the webhook busy. Deletions, and updates that need
    /// not be judged, are let through.
    pub wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(200),
            body: 4 << 20,
            arrival: Duration::from_secs(2),
            requests: 32,
            trials: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            wait: Duration::from_secs(1),
        }
    }
}

/// What both halves share.
struct Door {
    state: Box<dyn Fn() -> Arc<State> + Send + Sync>,
    limits: Limits,
    metrics: Metrics,
    requests: Semaphore,
    trials: Arc<Semaphore>,
}

/// Why there is no answer but an HTTP status.
struct Refused(StatusCode, String);

/// Answers reviews by the state that `state` returns at that moment, and by nothing else.
pub fn router(
    state: impl Fn() -> Arc<State> + Send + Sync + 'static,
    limits: Limits,
    metrics: Metrics,
) -> Router {
    let door = Door {
        state: Box::new(state),
        limits,
        metrics,
        requests: Semaphore::new(limits.requests),
        trials: Arc::new(Semaphore::new(limits.trials)),
    };
    Router::new()
        .route(VALIDATE, post(validate))
        .route(&format!("{VALIDATE}/{{registration}}"), post(validate))
        .route(MUTATE, post(mutate))
        .layer(DefaultBodyLimit::max(limits.body))
        .with_state(Arc::new(door))
}

async fn validate(
    Extract(door): Extract<Arc<Door>>,
    registration: Option<Path<String>>,
    request: Request,
) -> Result<Response, Refused> {
    let began = Instant::now();
    let _in_flight = door.metrics.begin();
    let _place = door.place().await?;
    let (mut request, size) = door.read(request).await?;
    let registration = registration.map(|Path(it)| it).unwrap_or_default();
    let verdict = match review::candidate(&mut request) {
        None => Verdict::Passed,
        Some(candidate) => {
            let span = span(&request);
            door.judge(candidate, size, began).instrument(span).await?
        }
    };
    door.record(&request, &verdict);
    let answer = respond(&request, verdict, &registration);
    door.metrics.took(HalfLabel::Validating, began.elapsed());
    Ok(axum::Json(answer).into_response())
}

/// The span of a review.
fn span(request: &AdmissionRequest<DynamicObject>) -> Span {
    let namespace = request.namespace.as_deref().unwrap_or_default();
    let (kind, name) = (&*request.kind.kind, &*request.name);
    tracing::trace_span!(target: SPANS, parent: None, "review", kind, namespace, name)
}

async fn mutate(Extract(door): Extract<Arc<Door>>, request: Request) -> Result<Response, Refused> {
    let began = Instant::now();
    let _in_flight = door.metrics.begin();
    let _place = door.place().await?;
    let (request, _) = door.read(request).await?;
    let mut answer = AdmissionResponse::from(&request);
    let patch = patch(&(door.state)(), &request);
    if !patch.0.is_empty() {
        answer = answer.with_patch(patch).map_err(|_| {
            Refused(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the patch cannot be written".to_owned(),
            )
        })?;
    }
    door.metrics.took(HalfLabel::Mutating, began.elapsed());
    Ok(axum::Json(answer.into_review()).into_response())
}

/// What puts an object into its canonical form, and says whose it is.
fn patch(state: &State, request: &AdmissionRequest<DynamicObject>) -> Patch {
    let kind = judged(&request.kind.group, &request.kind.kind);
    let wire = |object: &Option<DynamicObject>| serde_json::to_value(object.as_ref()?).ok();
    let Some((kind, new)) = kind.zip(wire(&request.object)) else {
        return Patch::default();
    };
    let replacements = canonical(kind, &new).into_iter();
    let replace = |Replacement { path, value }| {
        let path = PointerBuf::from_tokens(path.iter().map(String::as_str));
        PatchOperation::Replace(ReplaceOperation { path, value })
    };
    let mut operations: Vec<_> = replacements.map(replace).collect();
    let has_annotations = new.pointer("/metadata/annotations").is_some();
    let intent = match wire(&request.old_object) {
        Some(old) => Intent::Update { old, new },
        None => Intent::Create(new),
    };
    let user = request.user_info.username.as_deref().unwrap_or_default();
    if let Some(author) = author(state, &intent, user) {
        let annotations = PointerBuf::from_tokens(["metadata", "annotations"]);
        if !has_annotations {
            operations.push(add(annotations.clone(), json!({})));
        }
        let path = annotations.with_trailing_token(LAST_AUTHOR_ANNOTATION);
        operations.push(add(path, author.into()));
    }
    Patch(operations)
}

fn add(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}

impl Door {
    /// A place among the requests that are read or answered.
    async fn place(&self) -> Result<SemaphorePermit<'_>, Refused> {
        match tokio::time::timeout(self.limits.wait, self.requests.acquire()).await {
            Ok(permit) => Ok(permit.expect("the semaphore is never closed")),
            Err(_) => Err(Refused(
                StatusCode::TOO_MANY_REQUESTS,
                "too many reviews at a time".to_owned(),
            )),
        }
    }

    /// What is in a request, and how many bytes it came in.
    async fn read(
        &self,
        request: Request,
    ) -> Result<(AdmissionRequest<DynamicObject>, usize), Refused> {
        if !is_json(request.headers()) {
            return Err(Refused(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "an AdmissionReview is application/json".to_owned(),
            ));
        }
        let body = tokio::time::timeout(self.limits.arrival, Bytes::from_request(request, &()));
        let body = match body.await {
            Ok(Ok(body)) => body,
            Ok(Err(rejection)) => return Err(Refused(rejection.status(), rejection.body_text())),
            Err(_) => {
                return Err(Refused(
                    StatusCode::REQUEST_TIMEOUT,
                    "the request has not arrived in time".to_owned(),
                ));
            }
        };
        let malformed = |text: String| Refused(StatusCode::BAD_REQUEST, text);
        let review: AdmissionReview<DynamicObject> = serde_json::from_slice(&body)
            .map_err(|error| malformed(shortened(format!("not an AdmissionReview: {error}"))))?;
        if review.types.api_version != META_API_VERSION_V1 {
            let version = META_API_VERSION_V1;
            return Err(malformed(format!("not an AdmissionReview of {version}")));
        }
        let request: AdmissionRequest<DynamicObject> = review
            .try_into()
            .map_err(|_| malformed("the AdmissionReview has no request".to_owned()))?;
        let repeated = [
            ("uid", &request.uid),
            ("name", &request.name),
            ("kind.group", &request.kind.group),
            ("kind.kind", &request.kind.kind),
        ];
        if let Some((field, _)) = repeated.iter().find(|(_, name)| name.len() > MAX_NAME) {
            let text = format!("request.{field} is longer than {MAX_NAME} bytes");
            return Err(malformed(text));
        }
        Ok((request, body.len()))
    }

    /// Judges an object when its turn comes. It came in a request of `size` bytes, which began when it says.
    async fn judge(
        self: &Arc<Self>,
        candidate: Candidate,
        size: usize,
        began: Instant,
    ) -> Result<Verdict, Refused> {
        if let Some(verdict) = review::answer_at_once(&candidate) {
            return Ok(verdict);
        }
        let left = self.limits.wait.saturating_sub(began.elapsed());
        let turn = Arc::clone(&self.trials).acquire_owned();
        let Ok(turn) = tokio::time::timeout(left, turn).await else {
            return Ok(match candidate.intent() {
                Intent::Delete(_) => Verdict::Unjudged,
                Intent::Create(_) | Intent::Update { .. } => Verdict::Busy,
            });
        };
        let turn = turn.expect("the semaphore is never closed");
        let now = Instant::now();
        let deadline = now + self.limits.deadline;
        let door = Arc::clone(self);
        let start = move || Review::new(&(door.state)(), candidate);
        let finish = move |mut review| {
            // Goes on to its end even if nobody waits for the answer any more.
            let _turn = turn;
            review::advance(&mut review, deadline);
            review.finish()
        };
        let trial = if size > SMALL {
            spawn_blocking(move || finish(start()))
        } else {
            let mut review = contained(start)?;
            let at_once = deadline.min(now + AT_ONCE);
            if contained(|| review::advance(&mut review, at_once))? {
                return Ok(Verdict::Judged(contained(|| review.finish())?));
            }
            spawn_blocking(move || finish(review))
        };
        let outcome = trial.await.map_err(|_| panicked())?;
        Ok(Verdict::Judged(outcome))
    }

    fn record(&self, request: &AdmissionRequest<DynamicObject>, verdict: &Verdict) {
        self.metrics
            .reviewed(&request.kind, &request.operation, verdict);
        let AdmissionRequest {
            name, namespace, ..
        } = request;
        let kind = &request.kind.kind;
        let namespace = namespace.as_deref().unwrap_or_default();
        match verdict {
            Verdict::Judged(outcome) if !outcome.is_allowed() => {
                let error = outcome.denials.first().map(tracing::field::display);
                tracing::info!(kind, namespace, name, error, "refused");
            }
            Verdict::Busy => tracing::warn!(kind, namespace, name, "no turn for a review"),
            Verdict::Judged(outcome) if outcome.is_complete => {
                tracing::debug!(kind, namespace, name, "reviewed");
            }
            Verdict::Judged(_) | Verdict::Unjudged => {
                tracing::warn!(
                    kind,
                    namespace,
                    name,
                    "let through without having been judged to the end"
                );
            }
            Verdict::Passed | Verdict::SelfTest => {
                tracing::debug!(kind, namespace, name, "nothing to review");
            }
        }
    }
}

/// Runs a part of a review where it came in. Whatever becomes of it, the requests beside it are answered.
fn contained<T>(part: impl FnOnce() -> T) -> Result<T, Refused> {
    // What a panic would leave half done is dropped with the review.
    panic::catch_unwind(AssertUnwindSafe(part)).map_err(|_| panicked())
}

fn panicked() -> Refused {
    tracing::error!("a review ended in a panic");
    Refused(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the review could not be finished".to_owned(),
    )
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(status, text) = self;
        let mut response = (status, format!("{text}\n")).into_response();
        if status == StatusCode::TOO_MANY_REQUESTS {
            response
                .headers_mut()
                .insert(RETRY_AFTER, respond::RETRY_AFTER.into());
        }
        response
    }
}
