//! An API server in memory, as far as list, watch, get, create, replace and delete go.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{Method, Request, Response, Uri},
};
use futures_util::stream;
use kube::Client;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

/// Clones share everything.
#[derive(Clone)]
pub(super) struct ApiServer {
    state: Arc<Mutex<State>>,
    faults: Arc<Mutex<BTreeMap<Verb, Fault>>>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    version: u64,
    /// By collection and key in it.
    objects: BTreeMap<(String, String), Value>,
    events: Vec<Event>,
    /// Watches from before this version are told 410.
    compacted: u64,
    /// Watches that began under an earlier number are ended.
    generation: u64,
    requests: Vec<(Verb, String)>,
}

#[derive(Clone)]
struct Event {
    version: u64,
    collection: String,
    verb: &'static str,
    object: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    List,
    Watch,
    Get,
    Create,
    Replace,
}

#[derive(Clone)]
pub(super) enum Fault {
    /// A Status of that code.
    Refuse(u16),
    /// A 200 with this body.
    Answer(&'static str),
    /// No answer.
    Hang,
    /// For watches: an answer that says nothing, not even that it is over.
    Mute,
}

impl ApiServer {
    pub(super) fn new() -> Self {
        Self {
            state: Arc::default(),
            faults: Arc::default(),
            changed: watch::Sender::default(),
        }
    }

    /// Another way to the same API server, with faults of its own.
    pub(super) fn another_way(&self) -> Self {
        Self {
            faults: Arc::default(),
            ..self.clone()
        }
    }

    pub(super) fn client(&self) -> Client {
        let server = self.clone();
        let answer = move |request: Request<kube::client::Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request.map(Body::new)).await) }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Stores an object in `collection`, the path without a namespace.
    pub(super) fn apply(&self, collection: &str, mut object: Value) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let key = (collection.to_owned(), key(&object));
        let known = state.objects.insert(key, object.clone());
        let verb = if known.is_some() { "MODIFIED" } else { "ADDED" };
        state.events.push(Event {
            version,
            collection: collection.into(),
            verb,
            object,
        });
        self.changed.send_replace(version);
    }

    pub(super) fn delete(&self, collection: &str, key: &str) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let mut object = state
            .objects
            .remove(&(collection.into(), key.into()))
            .expect("it exists");
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        state.events.push(Event {
            version,
            collection: collection.into(),
            verb: "DELETED",
            object,
        });
        self.changed.send_replace(version);
    }

    pub(super) fn get(&self, collection: &str, key: &str) -> Option<Value> {
        self.state()
            .objects
            .get(&(collection.into(), key.into()))
            .cloned()
    }

    /// Goes back to a version at which there was nothing, as if restored from a backup.
    pub(super) fn go_back(&self, version: u64) {
        let mut state = self.state();
        state.version = version;
        state.objects.clear();
        state.events.clear();
        drop(state);
        self.end_watches();
    }

    /// Forgets all events, so that older watches cannot go on, and ends them.
    pub(super) fn compact(&self) {
        let mut state = self.state();
        state.version += 1;
        state.compacted = state.version;
        state.events.clear();
        drop(state);
        self.end_watches();
    }

    pub(super) fn end_watches(&self) {
        let mut state = self.state();
        state.generation += 1;
        self.changed.send_replace(state.version);
    }

    /// Sends a bookmark of the current version.
    pub(super) fn bookmark(&self, collection: &str) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "resourceVersion": version.to_string() },
        });
        state.events.push(Event {
            version,
            collection: collection.into(),
            verb: "BOOKMARK",
            object,
        });
        self.changed.send_replace(version);
    }

    pub(super) fn fail(&self, verb: Verb, fault: Fault) {
        self.faults.lock().unwrap().insert(verb, fault);
    }

    pub(super) fn fail_all(&self, fault: &Fault) {
        for verb in [
            Verb::List,
            Verb::Watch,
            Verb::Get,
            Verb::Create,
            Verb::Replace,
        ] {
            self.fail(verb, fault.clone());
        }
    }

    pub(super) fn heal(&self) {
        self.faults.lock().unwrap().clear();
    }

    /// The paths with their queries that were asked for with `verb`.
    pub(super) fn requests(&self, verb: Verb) -> Vec<String> {
        let state = self.state();
        let asked = state.requests.iter().filter(|(asked, _)| *asked == verb);
        asked.map(|(_, path)| path.clone()).collect()
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let path = Path::of(&head.uri);
        let verb = match (&head.method, &path.name) {
            (&Method::GET, None) if path.query.contains_key("watch") => Verb::Watch,
            (&Method::GET, None) => Verb::List,
            (&Method::GET, Some(_)) => Verb::Get,
            (&Method::POST, None) => Verb::Create,
            (&Method::PUT, Some(_)) => Verb::Replace,
            other => panic!("unexpected request {other:?} {}", head.uri),
        };
        self.state().requests.push((verb, head.uri.to_string()));
        let fault = self.faults.lock().unwrap().get(&verb).cloned();
        match fault {
            Some(Fault::Refuse(code)) => return refusal(code, "as the test wants it"),
            Some(Fault::Answer(text)) => return Response::new(Body::from(text)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Mute) => {
                return Response::new(Body::from_stream(stream::pending::<
                    Result<Bytes, Infallible>,
                >()));
            }
            None => {}
        }
        match verb {
            Verb::List => self.list(&path),
            Verb::Watch => self.watch(path),
            Verb::Get => match self.get(&path.collection, &path.key()) {
                Some(object) => json_response(&object),
                None => refusal(404, "not found"),
            },
            Verb::Create => self.create(&path, &body),
            Verb::Replace => self.replace(&path, &body),
        }
    }

    fn list(&self, path: &Path) -> Response<Body> {
        let state = self.state();
        let after = path.query.get("continue").cloned().unwrap_or_default();
        let limit = path
            .query
            .get("limit")
            .map_or(usize::MAX, |limit| limit.parse().unwrap());
        let mut rest = state
            .objects
            .iter()
            .filter(|((collection, key), _)| *collection == path.collection && *key > after);
        let page: Vec<_> = rest.by_ref().take(limit).collect();
        let token = match (rest.next(), page.last()) {
            (Some(_), Some(((_, key), _))) => key.clone(),
            _ => String::new(),
        };
        json_response(&json!({
            "kind": "List", "apiVersion": "v1",
            "metadata": { "resourceVersion": state.version.to_string(), "continue": token },
            "items": page.into_iter().map(|(_, object)| object).collect::<Vec<_>>(),
        }))
    }

    fn watch(&self, path: Path) -> Response<Body> {
        let timeout = path.query["timeoutSeconds"].parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(timeout);
        let from: u64 = path.query["resourceVersion"].parse().unwrap();
        let generation = self.state().generation;
        let next = move |(server, mut from): (Self, u64)| {
            let collection = path.collection.clone();
            async move {
                let mut changed = server.changed.subscribe();
                loop {
                    changed.mark_unchanged();
                    let line = {
                        let state = server.state();
                        let event = state
                            .events
                            .iter()
                            .find(|event| event.version > from && event.collection == collection);
                        if from < state.compacted {
                            from = u64::MAX;
                            Some(json!({ "type": "ERROR", "object": status(410, "too old") }))
                        } else if let Some(event) = event {
                            from = event.version;
                            Some(json!({ "type": event.verb, "object": event.object }))
                        } else if state.generation != generation {
                            return None;
                        } else {
                            None
                        }
                    };
                    if let Some(line) = line {
                        let line = Bytes::from(format!("{line}\n"));
                        return Some((Ok::<_, Infallible>(line), (server, from)));
                    }
                    tokio::select! {
                        _ = changed.changed() => {}
                        () = tokio::time::sleep_until(deadline) => return None,
                    }
                }
            }
        };
        Response::new(Body::from_stream(stream::unfold(
            (self.clone(), from),
            next,
        )))
    }

    fn create(&self, path: &Path, body: &[u8]) -> Response<Body> {
        let mut object: Value = serde_json::from_slice(body).unwrap();
        if let Some(namespace) = &path.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let key = key(&object);
        if self.get(&path.collection, &key).is_some() {
            return refusal(409, "already exists");
        }
        self.apply(&path.collection, object);
        json_response(&self.get(&path.collection, &key).unwrap())
    }

    fn replace(&self, path: &Path, body: &[u8]) -> Response<Body> {
        let object: Value = serde_json::from_slice(body).unwrap();
        let key = path.key();
        let Some(current) = self.get(&path.collection, &key) else {
            return refusal(404, "not found");
        };
        if object["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"] {
            return refusal(409, "the object has been modified");
        }
        self.apply(&path.collection, object);
        json_response(&self.get(&path.collection, &key).unwrap())
    }
}

/// `/apis/group/version[/namespaces/x]/plural[/name]`, the collection being that without namespace and name.
struct Path {
    collection: String,
    namespace: Option<String>,
    name: Option<String>,
    query: BTreeMap<String, String>,
}

impl Path {
    fn of(uri: &Uri) -> Self {
        let parts: Vec<&str> = uri.path().trim_start_matches('/').split('/').collect();
        let prefix = if parts[0] == "api" { 2 } else { 3 };
        let (root, rest) = parts.split_at(prefix);
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
                (Some((*namespace).to_owned()), rest)
            }
            rest => (None, rest),
        };
        let query = uri.query().unwrap_or_default();
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self {
            collection: format!("/{}/{}", root.join("/"), rest[0]),
            namespace,
            name: rest.get(1).map(|name| (*name).to_owned()),
            query: pairs
                .map(|(name, value)| (name.to_owned(), value.replace("%2F", "/")))
                .collect(),
        }
    }

    fn key(&self) -> String {
        let name = self.name.as_deref().expect("a named object");
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        }
    }
}

fn key(object: &Value) -> String {
    let meta = &object["metadata"];
    let name = meta["name"].as_str().expect("a name");
    match meta["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

fn status(code: u16, message: &str) -> Value {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        _ => "InternalError",
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}

fn refusal(code: u16, message: &str) -> Response<Body> {
    let mut response = json_response(&status(code, message));
    *response.status_mut() = code.try_into().unwrap();
    response
}

fn json_response(object: &Value) -> Response<Body> {
    Response::new(Body::from(object.to_string()))
}
