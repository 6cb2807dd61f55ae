//! An API server in memory: discovery, list, watch, get, create, replace, delete, merge patch and
//! server-side apply with field ownership, over HTTP.
//!
//! It knows no schema: it defaults and validates nothing, every kind has a status subresource, lists are
//! atomic unless their kind says otherwise. Everything is deterministic. [`FakeApi::client`] reaches it
//! without a socket, so that a test may pause Tokio's clock; [`FakeApi::listen`] opens one.
//!
//! A test plays the rest of the world through [`FakeApi::put`], [`FakeApi::edit`] and
//! [`FakeApi::remove`], makes trouble through [`FakeApi::fail`], and asks what was asked for through
//! [`FakeApi::requests`].

mod fields;
mod http;
mod refusal;
mod request;
mod store;
mod watch;

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Request as HttpRequest, Response},
};
use futures_util::stream;
use kube::Client;
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::watch::{Receiver, Sender},
};

use self::{
    fields::Lists,
    store::{Collection, Event, Key, Mutate, Store, Target},
};
pub use self::{
    request::{Fault, Request, Verb},
    store::Snapshot,
};

/// An API server in memory. Clones share everything.
#[derive(Clone)]
pub struct FakeApi {
    store: Arc<Mutex<Store>>,
    faults: Arc<Mutex<Vec<Rule>>>,
    mutate: Arc<Mutex<Option<Arc<Mutate>>>>,
    changed: Sender<u64>,
}

/// A kind that is served.
#[derive(Clone, Debug)]
pub struct Kind {
    group: String,
    name: String,
    plural: String,
    versions: Vec<String>,
    lists: Lists,
}

/// Which requests a fault takes.
type Condition = dyn FnMut(&Request) -> bool + Send;

struct Rule {
    when: Box<Condition>,
    fault: Fault,
}

// === impl Kind ===

impl Kind {
    /// A kind in one version, `v1`.
    pub fn new(group: &str, name: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            name: name.to_owned(),
            plural: plural.to_owned(),
            versions: vec!["v1".to_owned()],
            lists: Lists::new(),
        }
    }

    /// The same in other versions, the preferred one first.
    #[must_use]
    pub fn with_versions(mut self, versions: &[&str]) -> Self {
        self.versions = versions
            .iter()
            .map(|version| (*version).to_owned())
            .collect();
        self
    }

    /// The same with a list, by its path as `spec.ports`, whose items are told apart by `key`.
    #[must_use]
    pub fn with_list(mut self, path: &str, key: &str) -> Self {
        self.lists.insert(path.to_owned(), key.to_owned());
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its resource name in a URL.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    fn collection(&self) -> Collection {
        (self.group.clone(), self.plural.clone())
    }

    fn api_version(&self) -> String {
        let version = self.versions.first().map_or("v1", String::as_str);
        match self.group.as_str() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        }
    }
}

// === impl FakeApi ===

impl Default for FakeApi {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for FakeApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeApi").finish_non_exhaustive()
    }
}

impl FakeApi {
    /// An API server that serves nothing yet.
    pub fn new() -> Self {
        // Versions below 2 are never those of an object, as with etcd.
        let server = Self {
            store: Arc::default(),
            faults: Arc::default(),
            mutate: Arc::default(),
            changed: Sender::default(),
        };
        server.store().version = 1;
        server
    }

    /// Serves a kind from now on.
    pub fn serve(&self, kind: &Kind) {
        self.store().kinds.insert(kind.collection(), kind.clone());
    }

    /// Serves a kind no longer and drops its objects, as deleting its definition does.
    pub fn stop_serving(&self, kind: &Kind) {
        for object in self.list(kind) {
            let mut store = self.store();
            let key = key(&object);
            drop(store.delete(&kind.collection(), &key, &Value::Null));
        }
        self.store().kinds.remove(&kind.collection());
        self.end_watches();
    }

    /// A client that needs no socket.
    pub fn client(&self) -> Client {
        let server = self.clone();
        let answer = move |request: HttpRequest<kube::client::Body>| {
            let server = server.clone();
            async move { server.answer(request.map(Body::new)).await }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    /// Answers on a port of the loopback interface as well, for as long as the runtime lives.
    pub async fn listen(&self) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let server = self.clone();
        let routes = Router::new().fallback(move |request: HttpRequest<Body>| {
            let server = server.clone();
            async move {
                let answered = server.answer(request).await;
                answered.unwrap_or_else(|error| {
                    // A body that fails breaks the connection.
                    let broken = stream::iter([Err::<Bytes, _>(error)]);
                    Response::new(Body::from_stream(broken))
                })
            }
        });
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(address)
    }

    /// Creates or replaces an object and its status, as `manager` without server-side apply.
    pub fn put(&self, manager: &str, kind: &Kind, object: &Value) -> Value {
        let collection = kind.collection();
        let key = key(object);
        let mut store = self.store();
        let target = target(kind, &collection, &key, manager);
        let mut object = object.clone();
        if let Some(fields) = object["metadata"].as_object_mut() {
            fields.remove("resourceVersion");
            fields.remove("managedFields");
        }
        let put = match store.get(&collection, &key) {
            Some(_) => store.replace(&target, &object, None),
            None => store.create(&target, &object, None),
        };
        let status = Target {
            subresource: "status",
            ..target
        };
        let put = put.and_then(|_| store.replace(&status, &object, None));
        drop(store);
        self.tell_watchers();
        put.unwrap_or_default()
    }

    /// Changes an object as `manager` without server-side apply. Nothing happens if there is none.
    pub fn edit(
        &self,
        manager: &str,
        kind: &Kind,
        namespace: &str,
        name: &str,
        edit: impl FnOnce(&mut Value),
    ) {
        if let Some(mut object) = self.get(kind, namespace, name) {
            edit(&mut object);
            self.put(manager, kind, &object);
        }
    }

    /// Deletes an object. Nothing happens if there is none.
    pub fn remove(&self, kind: &Kind, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        drop(self.store().delete(&kind.collection(), &key, &Value::Null));
        self.tell_watchers();
    }

    /// Forgets who set which field of an object, as backup tools do.
    pub fn forget_managers(&self, kind: &Kind, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        self.store().forget_managers(&kind.collection(), &key);
        self.tell_watchers();
    }

    /// One object.
    pub fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Value> {
        let key = (namespace.to_owned(), name.to_owned());
        self.store().get(&kind.collection(), &key)
    }

    /// Every object of a kind.
    pub fn list(&self, kind: &Kind) -> Vec<Value> {
        let objects = self.store().list(&kind.collection());
        objects.into_iter().map(|(_, object)| object).collect()
    }

    /// Changes every object that a request writes, before it is stored, as a webhook would.
    pub fn mutate(&self, mutate: impl Fn(&mut Value) + Send + Sync + 'static) {
        *self.mutate.lock().expect(UNPOISONED) = Some(Arc::new(mutate));
    }

    /// From now on requests of which `when` is true meet this fault. Earlier faults come first.
    pub fn fail(&self, fault: Fault, when: impl FnMut(&Request) -> bool + Send + 'static) {
        self.faults.lock().expect(UNPOISONED).push(Rule {
            when: Box::new(when),
            fault,
        });
    }

    /// The next `count` requests of which `when` is true meet this fault.
    pub fn fail_times(
        &self,
        count: usize,
        fault: Fault,
        mut when: impl FnMut(&Request) -> bool + Send + 'static,
    ) {
        let mut left = count;
        self.fail(fault, move |request| {
            let is_met = left > 0 && when(request);
            left -= usize::from(is_met);
            is_met
        });
    }

    /// No more faults and no more mutation. Requests that hang go on hanging.
    pub fn heal(&self) {
        self.faults.lock().expect(UNPOISONED).clear();
        *self.mutate.lock().expect(UNPOISONED) = None;
    }

    /// Everything that was asked for, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.store().requests.clone()
    }

    /// What was asked for that may change something, in order.
    pub fn writes(&self) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.verb.is_write());
        requests
    }

    /// Forgets what was asked for so far.
    pub fn forget_requests(&self) {
        self.store().requests.clear();
    }

    /// Forgets all events, so that older watches cannot go on, and ends them.
    pub fn compact(&self) {
        let mut store = self.store();
        store.version += 1;
        store.compacted = store.version;
        store.events.clear();
        drop(store);
        self.end_watches();
    }

    /// Ends all watches.
    pub fn end_watches(&self) {
        self.store().generation += 1;
        self.tell_watchers();
    }

    /// Sends a bookmark of a new version to those who watch a kind.
    pub fn bookmark(&self, kind: &Kind) {
        let mut store = self.store();
        store.version += 1;
        let event = Event {
            version: store.version,
            collection: kind.collection(),
            before: None,
            after: None,
        };
        store.events.push(event);
        drop(store);
        self.tell_watchers();
    }

    /// What is stored now.
    pub fn snapshot(&self) -> Snapshot {
        self.store().snapshot()
    }

    /// Goes back to what was stored then, and ends all watches. Versions go back as well, as they do where
    /// etcd is restored without `--bump-revision`: a watch from a later version is silent until it has
    /// been reached again.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.store().restore(snapshot);
        self.tell_watchers();
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().expect(UNPOISONED)
    }

    fn tell_watchers(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn changes(&self) -> Receiver<u64> {
        self.changed.subscribe()
    }

    fn fault(&self, request: &Request) -> Option<Fault> {
        let mut rules = self.faults.lock().expect(UNPOISONED);
        let rule = rules
            .iter_mut()
            .find_map(|rule| (rule.when)(request).then_some(&rule.fault));
        rule.cloned()
    }

    fn mutation(&self) -> Option<Arc<Mutate>> {
        self.mutate.lock().expect(UNPOISONED).clone()
    }
}

const UNPOISONED: &str = "nobody panics while holding this lock";

fn key(object: &Value) -> Key {
    let meta = &object["metadata"];
    let text = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

fn target<'a>(
    kind: &Kind,
    collection: &'a Collection,
    key: &'a Key,
    manager: &'a str,
) -> Target<'a> {
    Target {
        collection,
        key,
        api_version: kind.api_version(),
        manager,
        subresource: "",
    }
}
