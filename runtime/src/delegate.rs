//! Who may ask: told by the API server, as components of Kubernetes have it told.
//!
//! A request shows a bearer token. The API server says whose it is (`TokenReview`) and whether that user
//! may do this to this path (`SubjectAccessReview` of a `nonResourceURL`; RBAC grants it by a `ClusterRole`).
//! Nothing is remembered: a right that is taken away is gone with the next request. Tokens are neither
//! logged nor kept.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{AUTHORIZATION, CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::{sync::Semaphore, time::timeout};

use crate::telemetry::Chain;

/// The longest token that is shown to the API server, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// How long the API server may take for one answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Lets those requests through to `app` that the API server of `client` allows, at most `at_once` at a time,
/// their answers included.
///
/// Others are refused: 401 without a token that is good, 403 without the right, 429 where there is no room,
/// 503 where the API server cannot be asked.
pub fn guarded(app: Router, client: Client, at_once: usize) -> Router {
    let door = Arc::new(Door {
        client,
        places: Semaphore::new(at_once),
    });
    app.layer(from_fn_with_state(door, pass))
}

struct Door {
    client: Client,
    places: Semaphore,
}

/// Why a request goes no further.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("a bearer token is needed")]
    NoToken,
    #[error("the token is not one that the API server knows")]
    Unknown,
    #[error(
        "{user} may not {verb} {path}: bind a ClusterRole with nonResourceURLs [{path}] and verbs [{verb}]"
    )]
    Forbidden {
        user: String,
        verb: String,
        path: String,
    },
    #[error("too many ask at the same time")]
    Busy,
    #[error("asking the API server who this is and what they may do")]
    Kube(#[source] kube::Error),
    #[error("the API server has not said in {} s who this is and what they may do", TIMEOUT.as_secs())]
    TimedOut,
}

async fn pass(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let token = match token(request.headers()) {
        Ok(token) => token.to_owned(),
        Err(refusal) => return refusal.into_response(),
    };
    // Held until there is an answer: what is asked for costs more than to be asked.
    let Ok(_place) = door.places.try_acquire() else {
        return Refusal::Busy.into_response();
    };
    let (verb, path) = (verb(request.method()), request.uri().path().to_owned());
    match door.judge(token, verb, path).await {
        Ok(()) => {
            let mut answer = next.run(request).await;
            let headers = answer.headers_mut();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            answer
        }
        Err(refusal) => refusal.into_response(),
    }
}

impl Door {
    async fn judge(&self, token: String, verb: String, path: String) -> Result<(), Refusal> {
        let user = within(self.user(token)).await?;
        let name = user.username.clone().unwrap_or_default();
        if within(self.may(user, &verb, &path)).await? {
            tracing::info!(user = name, verb, path, "somebody looks into this process");
            return Ok(());
        }
        let user = name;
        Err(Refusal::Forbidden { user, verb, path })
    }

    /// Whose the token is.
    async fn user(&self, token: String) -> Result<UserInfo, Refusal> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let review = reviews
            .create(&PostParams::default(), &review)
            .await
            .map_err(Refusal::Kube)?;
        let status = review.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        user.ok_or(Refusal::Unknown)
    }

    /// Whether RBAC, or whatever else the API server goes by, allows it.
    async fn may(&self, user: UserInfo, verb: &str, path: &str) -> Result<bool, Refusal> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    verb: Some(verb.to_owned()),
                    path: Some(path.to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = reviews
            .create(&PostParams::default(), &review)
            .await
            .map_err(Refusal::Kube)?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }
}

async fn within<T>(asked: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    let answer = timeout(TIMEOUT, asked).await;
    answer.unwrap_or(Err(Refusal::TimedOut))
}

/// The token of a request (RFC 6750, section 2.1).
fn token(headers: &HeaderMap) -> Result<&str, Refusal> {
    let header = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
    let (scheme, token) = header
        .and_then(|header| header.split_once(' '))
        .ok_or(Refusal::NoToken)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || token.len() > MAX_TOKEN {
        return Err(Refusal::NoToken);
    }
    Ok(token)
}

/// The verb of a method (Kubernetes: request attributes of `nonResourceURLs`).
fn verb(method: &Method) -> String {
    method.as_str().to_ascii_lowercase()
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::NoToken | Self::Unknown => StatusCode::UNAUTHORIZED,
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Kube(_) | Self::TimedOut => StatusCode::SERVICE_UNAVAILABLE,
        };
        if status == StatusCode::SERVICE_UNAVAILABLE {
            tracing::warn!(error = %Chain(&self), "who may look into this process is not known");
        }
        // What an API server says of us is nobody else's business.
        let mut answer = (status, format!("{self}\n")).into_response();
        let headers = answer.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}
