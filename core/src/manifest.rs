//! Manifests: objects as people keep them in files.

use serde_json::Value;

use crate::diagnose::Code;
use crate::kinds::{Kind, Object};
use crate::model::Rejection;

/// Largest document that is read, in bytes: more than an API server stores as one object.
const MAX_DOCUMENT: usize = 4 << 20;

/// One object of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// An object of a kind that is read.
    Object(Object),
    /// An object of another kind.
    Ignored {
        /// Its API version, empty where it has none.
        api_version: String,
        /// Its kind, empty where it has none.
        kind: String,
    },
    /// Something that is no object, or not of the shape of its kind.
    Unreadable {
        /// What it is called, as far as that can be told: `TrafficPolicy gloo-mesh/simple`.
        name: String,
        /// Why.
        rejection: Rejection,
    },
}

/// Reads the YAML or JSON documents of a text as objects of `cluster`, empty for the management
/// cluster. Lists are taken apart. A document that cannot be read stands for itself: the others
/// are read all the same.
pub fn read(text: &str, cluster: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for document in documents(text) {
        match parse(document) {
            Ok(Value::Null) => {}
            Ok(value) => read_value(&value, cluster, &mut entries),
            Err(rejection) => {
                entries.push(Entry::Unreadable {
                    name: "document".to_owned(),
                    rejection,
                });
            }
        }
    }
    entries
}

/// Reads one object that came as JSON.
pub fn read_value(value: &Value, cluster: &str, entries: &mut Vec<Entry>) {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if let (true, Some(items)) = (
        kind.ends_with("List"),
        value.get("items").and_then(Value::as_array),
    ) {
        for item in items {
            read_value(item, cluster, entries);
        }
        return;
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let Some(known) = Kind::ALL
        .iter()
        .find(|it| it.name() == kind && it.group() == group)
    else {
        entries.push(Entry::Ignored {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        });
        return;
    };
    entries.push(match known.read(value, cluster) {
        Ok(object) => Entry::Object(object),
        Err(rejection) => {
            let meta = |field: &str| {
                value
                    .pointer(&format!("/metadata/{field}"))
                    .and_then(Value::as_str)
            };
            let name = format!(
                "{kind} {}/{}",
                meta("namespace").unwrap_or_default(),
                meta("name").unwrap_or_default()
            );
            Entry::Unreadable { name, rejection }
        }
    });
}

fn parse(document: &str) -> Result<Value, Rejection> {
    let wrong = |code, message| Rejection {
        path: "document".to_owned(),
        code,
        message,
    };
    if document.len() > MAX_DOCUMENT {
        let message = format!("is larger than {MAX_DOCUMENT} bytes");
        return Err(wrong(Code::TooLarge, message));
    }
    if document
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
    {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(document).map_err(|error| wrong(Code::Invalid, error.to_string()))
}

/// Takes a text apart at the lines that separate YAML documents.
fn documents(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let bare = line.trim_end();
            if bare == "---" || bare.starts_with("--- ") {
                rest = Some(&text[at + line.len()..]);
                return Some(&text[..at]);
            }
            at += line.len();
        }
        rest = None;
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_document_leaves_its_neighbours_alone() {
        let text = "\
kind: Service
apiVersion: v1
metadata: {name: a, namespace: shop}
---
kind: [
---
# nothing
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: other}
--- # the last
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}}
";
        let entries = read(text, "c1");
        let kinds: Vec<_> = entries
            .iter()
            .map(|entry| match entry {
                Entry::Object(object) => format!("{} {}", object.kind().name(), object.key()),
                Entry::Ignored { kind, .. } => format!("ignored {kind}"),
                Entry::Unreadable { name, .. } => format!("unreadable {name}"),
            })
            .collect();
        assert_eq!(
            kinds,
            [
                "Service a.shop.c1",
                "unreadable document",
                "ignored Service",
                "Node n1..c1"
            ]
        );
    }

    #[test]
    fn an_object_of_the_wrong_shape_is_named_with_the_field() {
        let text = "
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: simple, namespace: gloo-mesh}
spec: {policy: {retries: {attempts: many}}}
";
        let [Entry::Unreadable { name, rejection }] = &*read(text, "") else {
            panic!("is not one unreadable object");
        };
        assert_eq!(name, "TrafficPolicy gloo-mesh/simple");
        assert_eq!(rejection.path, "spec.policy.retries.attempts");
    }
}
