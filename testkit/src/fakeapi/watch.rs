//! Watches: what has happened since a version, and then what happens.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::Response,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    FakeApi,
    http::Place,
    refusal::Refusal,
    store::{Collection, Event, Store},
};

pub(super) struct Watch {
    server: FakeApi,
    generation: u64,
    collection: Collection,
    api_version: String,
    namespace: String,
    selector: String,
    from: u64,
    deadline: Instant,
}

/// What there is to say.
enum Next {
    Line(Value),
    Nothing,
    End,
}

impl Watch {
    /// The answer to a request for a watch.
    pub(super) fn open(
        server: &FakeApi,
        store: &Store,
        place: &Place,
        query: &BTreeMap<String, String>,
    ) -> Response<Body> {
        let number = |name: &str| query.get(name).and_then(|text| text.parse::<u64>().ok());
        let timeout = Duration::from_secs(number("timeoutSeconds").unwrap_or(290));
        let watch = Self {
            server: server.clone(),
            generation: store.generation,
            collection: place.collection.clone(),
            api_version: place.api_version.clone(),
            namespace: place.namespace.clone(),
            selector: query.get("labelSelector").cloned().unwrap_or_default(),
            from: number("resourceVersion").unwrap_or(0),
            deadline: Instant::now() + timeout,
        };
        Response::new(Body::from_stream(stream::unfold(watch, Self::next)))
    }

    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let mut changed = self.server.changes();
        loop {
            changed.mark_unchanged();
            match self.look() {
                Next::Line(line) => return Some((Ok(Bytes::from(format!("{line}\n"))), self)),
                Next::End => return None,
                Next::Nothing => {}
            }
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep_until(self.deadline) => return None,
            }
        }
    }

    fn look(&mut self) -> Next {
        let server = self.server.clone();
        let store = server.store();
        if self.from < store.compacted {
            self.from = u64::MAX;
            let status = Refusal::new(410, "too old resource version").status();
            return Next::Line(json!({ "type": "ERROR", "object": status }));
        }
        let next = store
            .events
            .partition_point(|event| event.version <= self.from);
        for event in &store.events[next..] {
            self.from = event.version;
            if let Some(line) = self.line(event) {
                return Next::Line(line);
            }
        }
        if store.generation == self.generation {
            Next::Nothing
        } else {
            Next::End
        }
    }

    fn line(&self, event: &Event) -> Option<Value> {
        if event.collection != self.collection {
            return None;
        }
        let is_seen = |object: &Option<Value>| {
            object
                .as_ref()
                .is_some_and(|object| self.is_selected(object))
        };
        let is_bookmark = event.before.is_none() && event.after.is_none();
        let (verb, object) = match (is_seen(&event.before), is_seen(&event.after)) {
            (false, true) => ("ADDED", &event.after),
            (true, true) => ("MODIFIED", &event.after),
            (true, false) if event.after.is_some() => ("DELETED", &event.after),
            (true, false) => ("DELETED", &event.before),
            (false, false) if is_bookmark => ("BOOKMARK", &None),
            (false, false) => return None,
        };
        let mut object = object.clone().unwrap_or_else(|| json!({ "metadata": {} }));
        object["apiVersion"] = json!(self.api_version);
        object["metadata"]["resourceVersion"] = json!(event.version.to_string());
        Some(json!({ "type": verb, "object": object }))
    }

    fn is_selected(&self, object: &Value) -> bool {
        let is_here =
            self.namespace.is_empty() || object["metadata"]["namespace"] == *self.namespace;
        is_here && matches(&self.selector, object)
    }
}

/// `a=b,c!=d,e,!f`, as far as tests use it.
pub(super) fn matches(selector: &str, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    let mut terms = selector.split(',').filter(|term| !term.is_empty());
    terms.all(|term| match term.split_once('=') {
        Some((name, value)) => match name.strip_suffix('!') {
            Some(name) => labels[name] != *value,
            None => labels[name.trim_end_matches('=')] == *value.trim_start_matches('='),
        },
        None => match term.strip_prefix('!') {
            Some(name) => labels[name].is_null(),
            None => !labels[term].is_null(),
        },
    })
}
