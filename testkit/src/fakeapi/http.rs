//! The protocol: paths, verbs, answers.

use std::{collections::BTreeMap, convert::Infallible, io};

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{
        HeaderValue, Request as HttpRequest, Response, StatusCode, Uri,
        header::{CONTENT_TYPE, RETRY_AFTER},
        request::Parts,
    },
};
use futures_util::stream;
use serde_json::{Value, json};

use super::{
    FakeApi, Fault, Request, Verb,
    refusal::Refusal,
    store::{Collection, Key, Store, Target},
    watch::{Watch, matches},
};

/// A path and its query, taken apart.
struct Address {
    path: Vec<String>,
    query: BTreeMap<String, String>,
}

/// What a path names below a group and a version.
pub(super) struct Place {
    pub(super) collection: Collection,
    pub(super) api_version: String,
    pub(super) namespace: String,
    name: String,
    subresource: &'static str,
}

impl FakeApi {
    /// Answers one request, as it would if it had come over a wire; an error is a connection that breaks.
    pub async fn answer(&self, request: HttpRequest<Body>) -> io::Result<Response<Body>> {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.map_err(io::Error::other)?;
        let body: Value = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body)?
        };
        let Some(mut request) = Request::of(&head) else {
            return Ok(refusal(&Refusal::new(405, "not in this API server")));
        };
        let address = Address::of(&head.uri);
        let Some(place) = address.place() else {
            return self
                .answer_with(request, |store| Ok(address.discover(store)))
                .await;
        };
        let verb = request.verb;
        request.body = body.clone();
        let mutate = self.mutation();
        self.answer_with(request, |store| {
            let versions = store
                .kinds
                .get(&place.collection)
                .map(|kind| &kind.versions);
            if !versions.is_some_and(|versions| versions.contains(&place.version())) {
                return Ok(page_not_found());
            }
            let key = (
                place.namespace.clone(),
                match verb {
                    Verb::Create => text(&body["metadata"]["name"]),
                    _ => place.name.clone(),
                },
            );
            let target = Target {
                collection: &place.collection,
                key: &key,
                api_version: place.api_version.clone(),
                manager: address
                    .query
                    .get("fieldManager")
                    .map_or("unknown", String::as_str),
                subresource: place.subresource,
            };
            let is_forced = address
                .query
                .get("force")
                .is_some_and(|force| force == "true");
            let mutate = mutate.as_deref();
            let object = match verb {
                Verb::List => return Ok(list(store, &place, &address.query)),
                Verb::Watch => return Ok(Watch::open(self, store, &place, &address.query)),
                Verb::Get | Verb::Discover => store
                    .get(&place.collection, &key)
                    .ok_or_else(Refusal::not_found)?,
                Verb::Create => store.create(&target, &body, mutate)?,
                Verb::Replace => store.replace(&target, &body, mutate)?,
                Verb::Apply => store.apply(&target, &body, is_forced, mutate)?,
                Verb::Merge => store.merge(&target, &body, mutate)?,
                Verb::Delete => store.delete(&place.collection, &key, &body["preconditions"])?,
            };
            Ok(answer(&place.in_version(object)))
        })
        .await
    }

    async fn answer_with(
        &self,
        request: Request,
        act: impl FnOnce(&mut Store) -> Result<Response<Body>, Refusal>,
    ) -> io::Result<Response<Body>> {
        let fault = self.fault(&request);
        self.store().requests.push(request);
        match fault {
            Some(Fault::Refuse { code, retry_after }) => {
                let mut response = refusal(&Refusal::new(code, "as the test wants it"));
                if let Some(after) = retry_after {
                    response
                        .headers_mut()
                        .insert(RETRY_AFTER, HeaderValue::from(after.as_secs()));
                }
                return Ok(response);
            }
            Some(Fault::Status(status)) => return Ok(with_code(&status)),
            Some(Fault::Answer(text)) => return Ok(Response::new(Body::from(text))),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Mute) => {
                let silence = stream::pending::<Result<Bytes, Infallible>>();
                return Ok(Response::new(Body::from_stream(silence)));
            }
            Some(Fault::Break) => return Err(broken()),
            Some(Fault::LoseAnswer | Fault::WithholdAnswer) | None => {}
        }
        let answered = act(&mut self.store());
        self.tell_watchers();
        match fault {
            Some(Fault::LoseAnswer) => Err(broken()),
            Some(Fault::WithholdAnswer) => std::future::pending().await,
            _ => Ok(answered.unwrap_or_else(|why| refusal(&why))),
        }
    }
}

fn list(store: &Store, place: &Place, query: &BTreeMap<String, String>) -> Response<Body> {
    let selector = query.get("labelSelector").map_or("", String::as_str);
    let after: Key = query
        .get("continue")
        .and_then(|token| token.split_once('/'))
        .map_or_else(Key::default, |(namespace, name)| {
            (namespace.into(), name.into())
        });
    let limit = query
        .get("limit")
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(usize::MAX);
    let mut rest = store
        .list(&place.collection)
        .into_iter()
        .filter(|(key, object)| {
            let is_here = place.namespace.is_empty() || key.0 == place.namespace;
            is_here && *key > after && matches(selector, object)
        });
    let page: Vec<_> = rest.by_ref().take(limit).collect();
    let token = match (rest.next(), page.last()) {
        (Some(_), Some(((namespace, name), _))) => format!("{namespace}/{name}"),
        _ => String::new(),
    };
    let items = page.into_iter().map(|(_, object)| place.in_version(object));
    answer(&json!({
        "kind": "List", "apiVersion": place.api_version,
        "metadata": { "resourceVersion": store.version.to_string(), "continue": token },
        "items": items.collect::<Vec<_>>(),
    }))
}

// === impl Request ===

impl Request {
    /// What is asked for, of a request whose body has not been read; none of one that no API server in
    /// memory knows.
    pub fn of(head: &Parts) -> Option<Self> {
        let address = Address::of(&head.uri);
        let Some(place) = address.place() else {
            return Some(Self::new(Verb::Discover, &head.uri, Value::Null));
        };
        let content = head.headers.get(CONTENT_TYPE);
        let content = content.and_then(|value| value.to_str().ok());
        let is_apply = content.is_some_and(|value| value.contains("apply-patch"));
        let is_watch = address.query.contains_key("watch");
        let verb = match (head.method.as_str(), place.name.is_empty()) {
            ("GET", true) if is_watch => Verb::Watch,
            ("GET", true) => Verb::List,
            ("GET", false) => Verb::Get,
            ("POST", true) => Verb::Create,
            ("PUT", false) => Verb::Replace,
            ("PATCH", false) if is_apply => Verb::Apply,
            ("PATCH", false) => Verb::Merge,
            ("DELETE", false) => Verb::Delete,
            _ => return None,
        };
        Some(Self {
            plural: place.collection.1,
            namespace: place.namespace,
            name: place.name,
            ..Self::new(verb, &head.uri, Value::Null)
        })
    }
}

// === impl Address ===

impl Address {
    fn of(uri: &Uri) -> Self {
        let path = uri.path().split('/').filter(|part| !part.is_empty());
        let query = uri.query().unwrap_or_default();
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self {
            path: path.map(str::to_owned).collect(),
            query: pairs
                .map(|(name, value)| (name.to_owned(), decoded(value)))
                .collect(),
        }
    }

    /// What lies below `/api/version` or `/apis/group/version`.
    fn place(&self) -> Option<Place> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let (group, version, rest) = match path.as_slice() {
            ["api", version, rest @ ..] => ("", version, rest),
            ["apis", group, version, rest @ ..] => (*group, version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, "", ""),
            [plural, name] => (plural, *name, ""),
            [plural, name, "status"] => (plural, *name, "status"),
            _ => return None,
        };
        Some(Place {
            collection: (group.to_owned(), (*plural).to_owned()),
            api_version: match group {
                "" => (*version).to_owned(),
                group => format!("{group}/{version}"),
            },
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource,
        })
    }

    /// `/apis/group` and `/apis/group/version`.
    fn discover(&self, store: &Store) -> Response<Body> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let (group, version) = match path.as_slice() {
            ["api", version] => ("", Some(*version)),
            ["apis", group] => (*group, None),
            ["apis", group, version] => (*group, Some(*version)),
            _ => return page_not_found(),
        };
        let kinds = || store.kinds.values().filter(|kind| kind.group == group);
        let Some(version) = version else {
            let mut versions: Vec<_> = kinds().flat_map(|kind| &kind.versions).collect();
            versions.dedup();
            let versions: Vec<_> = versions
                .into_iter()
                .map(|version| json!({ "groupVersion": format!("{group}/{version}"), "version": version }))
                .collect();
            if versions.is_empty() {
                return page_not_found();
            }
            return answer(&json!({
                "kind": "APIGroup", "apiVersion": "v1", "name": group,
                "versions": versions, "preferredVersion": versions[0],
            }));
        };
        let resources: Vec<_> = kinds()
            .filter(|kind| kind.versions.iter().any(|served| served == version))
            .map(|kind| {
                json!({
                    "name": kind.plural, "kind": kind.name, "singularName": "", "namespaced": true,
                    "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
                })
            })
            .collect();
        if resources.is_empty() {
            return page_not_found();
        }
        let group_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        answer(&json!({
            "kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": group_version, "resources": resources,
        }))
    }
}

// === impl Place ===

impl Place {
    fn version(&self) -> String {
        let version = self.api_version.rsplit('/').next();
        version.unwrap_or_default().to_owned()
    }

    fn in_version(&self, mut object: Value) -> Value {
        if object.is_object() {
            object["apiVersion"] = json!(self.api_version);
        }
        object
    }
}

/// Percent signs undone, as far as clients of Kubernetes write them.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digits = match byte {
            b'%' => [rest.next(), rest.next()],
            b'+' => {
                bytes.push(b' ');
                continue;
            }
            byte => {
                bytes.push(byte);
                continue;
            }
        };
        let digits: Vec<u8> = digits.into_iter().flatten().collect();
        let hex = str::from_utf8(&digits).ok();
        bytes.extend(hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn answer(object: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(object.to_string()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    response
}

fn with_code(status: &Value) -> Response<Body> {
    let mut response = answer(status);
    let code = status["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok());
    let code = code.and_then(|code| StatusCode::from_u16(code).ok());
    *response.status_mut() = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn refusal(refusal: &Refusal) -> Response<Body> {
    with_code(&refusal.status())
}

/// What an API server says of a path that it does not know.
fn page_not_found() -> Response<Body> {
    let mut response = Response::new(Body::from("404 page not found\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn broken() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionReset,
        "the test broke the connection",
    )
}
