//! Requests about one object: server-side apply, to the object or its status, and what goes with it.
//!
//! Also for those who write single objects themselves. Nothing is tried twice here.

use std::{borrow::Cow, fmt, time::Duration};

use http::{HeaderMap, Request, header::RETRY_AFTER};
use http_body_util::{BodyExt, Limited};
use kube::{
    Client,
    api::{DeleteParams, DynamicObject, GetParams, Patch, PatchParams, Preconditions},
    client::Body,
    core::{Status, request},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Cause, Error};

/// The largest answer that is read. Objects are bounded by etcd, at 1.5 MiB by default.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// The longest that an API server may ask to be left alone; it is asked again then, whatever it said.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// Writes objects to one cluster, in the name of one field manager.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    manager: Cow<'static, str>,
    timeout: Duration,
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The resource name in a URL.
    pub plural: String,
    /// The namespace; empty if there is none.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What to do about fields that another manager has set to something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherManagers {
    /// Take their fields over.
    Override,
    /// Refuse, as [`Error::Conflict`].
    Respect,
}

/// What an API server answered, if it did not refuse.
type Answer = Result<Vec<u8>, Error>;

// === impl Address ===

impl Address {
    /// The path of the collection; none if a part of the address cannot stand in a path.
    fn path(&self) -> Option<String> {
        let is_plain = |part: &str| {
            !part.contains("..")
                && part != "."
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte))
        };
        let needed = [&self.version, &self.plural, &self.name];
        let optional = [&self.group, &self.namespace];
        if needed.iter().any(|part| part.is_empty())
            || !needed
                .into_iter()
                .chain(optional)
                .all(|part| is_plain(part))
        {
            return None;
        }
        let root = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        Some(match self.namespace.as_str() {
            "" => format!("{root}/{}", self.plural),
            namespace => format!("{root}/namespaces/{namespace}/{}", self.plural),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if self.namespace.is_empty() {
            write!(f, " {}", self.name)
        } else {
            write!(f, " {}/{}", self.namespace, self.name)
        }
    }
}

// === impl Writer ===

impl Writer {
    /// A writer in the name of the field manager `manager`; each of its requests may take `timeout`.
    pub fn new(client: Client, manager: impl Into<Cow<'static, str>>, timeout: Duration) -> Self {
        Self {
            client,
            manager: manager.into(),
            timeout,
        }
    }

    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// Applies `body` to an object, which need not exist, and returns the object as it is then.
    ///
    /// A `metadata.resourceVersion` in `body` is a precondition: if the object exists and has another one,
    /// the answer is [`Error::Conflict`]. A `metadata.uid` demands that the object exists.
    pub async fn apply(
        &self,
        address: &Address,
        body: &Value,
        others: OtherManagers,
    ) -> Result<DynamicObject, Error> {
        let action = || format!("applying {address}");
        let request = request(address, action, |request| {
            request.patch(&address.name, &self.params(others), &Patch::Apply(body))
        })?;
        self.object(action, request).await
    }

    /// Applies `body`, which holds the status, to the status of an existing object.
    pub async fn apply_status(
        &self,
        address: &Address,
        body: &Value,
        others: OtherManagers,
    ) -> Result<DynamicObject, Error> {
        let action = || format!("applying the status of {address}");
        let request = request(address, action, |request| {
            let params = self.params(others);
            request.patch_subresource("status", &address.name, &params, &Patch::Apply(body))
        })?;
        self.object(action, request).await
    }

    /// Merges `patch` into an existing object (RFC 7396). `metadata.resourceVersion` is a precondition.
    pub async fn merge(&self, address: &Address, patch: &Value) -> Result<DynamicObject, Error> {
        let action = || format!("patching {address}");
        let request = request(address, action, |request| {
            let params = PatchParams {
                field_manager: Some(self.manager.clone().into_owned()),
                ..PatchParams::default()
            };
            request.patch(&address.name, &params, &Patch::Merge(patch))
        })?;
        self.object(action, request).await
    }

    /// An object; none if there is none.
    pub async fn read(&self, address: &Address) -> Result<Option<DynamicObject>, Error> {
        let action = || format!("reading {address}");
        let request = request(address, action, |request| {
            request.get(&address.name, &GetParams::default())
        })?;
        match self.object(action, request).await {
            Ok(object) => Ok(Some(object)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object if these preconditions hold, else [`Error::Conflict`].
    ///
    /// Finalizers may keep it for a while.
    pub async fn delete(
        &self,
        address: &Address,
        preconditions: Preconditions,
    ) -> Result<(), Error> {
        let action = || format!("deleting {address}");
        let request = request(address, action, |request| {
            request.delete(
                &address.name,
                &DeleteParams::background().preconditions(preconditions),
            )
        })?;
        let answer = self.ask(action, request).await?;
        // What is not said by an API server is not done: proxies have pages of their own.
        read::<Map<String, Value>>(action, &answer).map(drop)
    }

    /// What lies at `path`; none if nothing does.
    pub(crate) async fn document<T: DeserializeOwned>(
        &self,
        action: impl Fn() -> String,
        path: &str,
    ) -> Result<Option<T>, Error> {
        let request = Request::get(path).body(Vec::new());
        let request =
            request.map_err(|error| unsendable(&action, request::Error::BuildRequest(error)))?;
        match self.ask(&action, request).await {
            Ok(answer) => read(&action, &answer).map(Some),
            Err(Error::NotFound { .. } | Error::NotServed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn params(&self, others: OtherManagers) -> PatchParams {
        PatchParams {
            field_manager: Some(self.manager.clone().into_owned()),
            force: others == OtherManagers::Override,
            ..PatchParams::default()
        }
    }

    async fn object(
        &self,
        action: impl Fn() -> String,
        request: Request<Vec<u8>>,
    ) -> Result<DynamicObject, Error> {
        let answer = self.ask(&action, request).await?;
        read(action, &answer)
    }

    async fn ask(&self, action: impl Fn() -> String, request: Request<Vec<u8>>) -> Answer {
        let answered = async {
            let response = self.client.send(request.map(Body::from)).await;
            let response = response.map_err(|error| broken(&action, error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await;
            let body = body.map_err(|error| broken(&action, kube::Error::Service(error)))?;
            let body = Vec::from(body.to_bytes());
            if head.status.is_success() {
                return Ok(body);
            }
            let code = head.status.as_u16();
            let status = serde_json::from_slice::<Status>(&body).ok();
            let is_status = status.is_some();
            let status = status
                .unwrap_or_else(|| Status::failure(&head.status.to_string(), "").with_code(code));
            // The code of the answer counts; proxies have been seen to add bodies of their own.
            let status = status.with_code(code);
            let after = retry_after(&head.headers);
            Err(Error::refused(action(), status, is_status, after))
        };
        let answered = tokio::time::timeout(self.timeout, answered).await;
        answered.unwrap_or_else(|_| {
            Err(Error::Timeout {
                action: action(),
                after: self.timeout,
            })
        })
    }
}

/// Builds a request about the object at `address`.
fn request(
    address: &Address,
    action: impl Fn() -> String,
    build: impl FnOnce(request::Request) -> Result<Request<Vec<u8>>, request::Error>,
) -> Result<Request<Vec<u8>>, Error> {
    let Some(path) = address.path() else {
        let message = "a part of its address is not a name in Kubernetes";
        return Err(Error::Invalid {
            action: action(),
            status: Status::failure(message, "Invalid").with_code(422).boxed(),
        });
    };
    build(request::Request::new(path)).map_err(|error| unsendable(action, error))
}

/// `Retry-After` in seconds; API servers use no dates.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    let seconds = text.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

fn read<T: DeserializeOwned>(action: impl Fn() -> String, answer: &[u8]) -> Result<T, Error> {
    let read = serde_json::from_slice(answer);
    read.map_err(|error| broken(action, kube::Error::SerdeError(error)))
}

fn broken(action: impl Fn() -> String, error: kube::Error) -> Error {
    Error::Unreachable {
        action: action(),
        cause: Cause::Client(Box::new(error)),
    }
}

fn unsendable(action: impl Fn() -> String, error: request::Error) -> Error {
    broken(action, kube::Error::BuildRequest(error))
}
