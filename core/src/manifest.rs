//! Manifests: objects as people keep them in files.

use serde_json::Value;
use serde_saphyr::{RenderOptions, SnippetMode, UserMessageFormatter};

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
        match document {
            Ok(value) => read_value(&value, cluster, &mut entries),
            Err(rejection) => entries.push(Entry::unreadable(rejection)),
        }
    }
    entries
}

/// The YAML or JSON documents of a text, but for those that hold nothing. What is wrong with one
/// is told by its line in the text.
pub fn documents(text: &str) -> impl Iterator<Item = Result<Value, Rejection>> {
    let documents = separate(text).map(|(line, document)| parse(line, document));
    documents.filter(|document| !matches!(document, Ok(Value::Null)))
}

impl Entry {
    /// A document that is no object.
    pub fn unreadable(rejection: Rejection) -> Self {
        Self::Unreadable {
            name: "document".to_owned(),
            rejection,
        }
    }
}

/// Reads a document that came as JSON.
pub fn read_value(value: &Value, cluster: &str, entries: &mut Vec<Entry>) {
    let objects = objects(value).into_iter();
    entries.extend(objects.map(|object| read_object(object, cluster)));
}

/// What a document stands for: itself or, where it is a list, what is in it.
pub fn objects(value: &Value) -> Vec<&Value> {
    let kind = value.get("kind").and_then(Value::as_str);
    let is_list = kind.is_some_and(|kind| kind.ends_with("List"));
    match value.get("items").and_then(Value::as_array) {
        Some(items) if is_list => items.iter().flat_map(objects).collect(),
        _ => vec![value],
    }
}

/// Reads one object, which is no list.
pub fn read_object(value: &Value, cluster: &str) -> Entry {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let known = Kind::ALL
        .iter()
        .find(|it| it.name() == kind && it.group() == group);
    let Some(known) = known else {
        return Entry::Ignored {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        };
    };
    match known.read(value, cluster) {
        Ok(object) => Entry::Object(object),
        Err(rejection) => Entry::Unreadable {
            name: name(value),
            rejection,
        },
    }
}

/// What an object is called: `TrafficPolicy gloo-mesh/simple`.
pub fn name(value: &Value) -> String {
    let text = |pointer: &str| {
        let text = value.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default()
    };
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    match text("/metadata/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

/// Parses a document that begins in `line`.
fn parse(line: usize, document: &str) -> Result<Value, Rejection> {
    let wrong = |code, message| Rejection {
        path: "document".to_owned(),
        code,
        message,
    };
    if document.len() > MAX_DOCUMENT {
        let message = format!("line {line}: is larger than {MAX_DOCUMENT} bytes");
        return Err(wrong(Code::TooLarge, message));
    }
    if document
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
    {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(document).map_err(|error| {
        let mut options = RenderOptions::default();
        options.snippets = SnippetMode::Off;
        options.formatter = &UserMessageFormatter;
        options.line_offset = u64::try_from(line - 1).unwrap_or_default();
        wrong(Code::Invalid, error.render_with_options(options))
    })
}

/// Takes a text apart at the lines that separate YAML documents. Lines are counted from 1.
fn separate(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = Some((1, text));
    std::iter::from_fn(move || {
        let (first, text) = rest?;
        let mut at = 0;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let bare = line.trim_end();
            if bare == "---" || bare.starts_with("--- ") {
                rest = Some((first + number + 1, &text[at + line.len()..]));
                return Some((first, &text[..at]));
            }
            at += line.len();
        }
        rest = None;
        Some((first, text))
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
    fn a_broken_document_is_told_by_its_line_in_the_text() {
        let long = "x".repeat(MAX_DOCUMENT + 1);
        let text = format!("kind: Service\n---\n# two\nkind: [\n---\nlong: {long}\n");
        let told: Vec<_> = documents(&text)
            .filter_map(Result::err)
            .map(|rejection| rejection.message)
            .collect();
        assert!(told[0].contains("line 4, column 7"), "{told:?}");
        assert!(!told[0].contains('\n'), "{told:?}");
        assert_eq!(told[1], "line 6: is larger than 4194304 bytes");
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

    #[test]
    fn an_object_whose_name_no_api_server_stores_is_refused() {
        for field in ["name", "namespace"] {
            let named = |name: String| {
                format!("apiVersion: v1\nkind: Pod\nmetadata: {{{field}: {name}}}\n")
            };
            let [Entry::Object(_)] = &*read(&named("x".repeat(253)), "c1") else {
                panic!("is not one object");
            };
            let [Entry::Unreadable { rejection, .. }] = &*read(&named("x".repeat(254)), "c1")
            else {
                panic!("is not one unreadable object");
            };
            assert_eq!(rejection.path, format!("metadata.{field}"));
        }
    }
}
