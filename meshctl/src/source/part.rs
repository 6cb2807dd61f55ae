//! What a file holds: objects, what is none, and what cannot be read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ferromesh_core::model::{Code, Rejection};
use ferromesh_core::{Kind, Object, manifest, review};
use serde_json::{Value, json};

use super::{Cluster, Fault, Place, STDIN, served, shown};

/// The largest file that is read, in bytes: more than a dump of a cluster with 10,000 pods.
pub(super) const MAX_FILE: u64 = 256 << 20;
/// The most objects of a file that are read: more than there is room for in it, were they all of
/// the size of the smallest Service.
const MAX_PARTS: usize = 1_000_000;

/// A part of a file: a document, or an item where that is a list.
pub(super) struct Part {
    pub(super) place: Place,
    pub(super) sort: Sort,
}

/// What a part is.
pub(super) enum Sort {
    /// An object that is read.
    Object {
        object: Object,
        /// As it is written; only of the kinds that are judged.
        wire: Option<Value>,
        /// What is perhaps not meant.
        doubt: Option<String>,
    },
    /// Nothing that is read.
    Ignored {
        /// What is perhaps not meant.
        doubt: Option<String>,
    },
    /// Something that cannot be read.
    Fault(Fault),
}

/// Why an object cannot be read.
struct Refusal {
    rejection: Rejection,
    /// What to do about it, where the message does not say so.
    remedy: Option<String>,
}

/// Everything that a file holds.
pub(super) fn all(path: &Path, cluster: Cluster<'_>) -> Vec<Part> {
    let file = Place::file(shown(path));
    let text = match text(path) {
        Ok(text) => text,
        Err(problem) => return vec![Part::fault(Fault::nameless(file, problem))],
    };
    let documents: &mut dyn Iterator<Item = _> = match json_values(&text) {
        Some(values) => &mut values.into_iter().map(Ok),
        None => &mut manifest::documents(&text),
    };
    let mut documents = documents.zip(1..).peekable();
    let mut parts = Vec::new();
    while let Some((document, number)) = documents.next() {
        let is_only = number == 1 && documents.peek().is_none();
        let place = if is_only {
            file.clone()
        } else {
            file.document(number)
        };
        match document {
            Ok(document) => Part::add(document, &place, cluster, &mut parts),
            Err(Rejection { code, message, .. }) => {
                let is_large = code == Code::TooLarge;
                parts.push(Part::fault(Fault {
                    remedy: is_large
                        .then(|| "write it as JSON, or as several documents".to_owned()),
                    ..Fault::nameless(place, message)
                }));
            }
        }
        if parts.len() > MAX_PARTS {
            parts.truncate(MAX_PARTS);
            let problem = format!("holds more than {MAX_PARTS} objects: split it");
            parts.push(Part::fault(Fault::nameless(file, problem)));
            break;
        }
    }
    parts
}

/// Reads a file, if it is a text of bounded size.
fn text(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = if path == Path::new(STDIN) {
        io::stdin().take(MAX_FILE + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
    };
    let size = read.map_err(|error| error.to_string())?;
    if u64::try_from(size).is_ok_and(|size| size > MAX_FILE) {
        return Err(format!("is larger than {} MiB: split it", MAX_FILE >> 20));
    }
    String::from_utf8(bytes).map_err(|_| "is no text in UTF-8".to_owned())
}

/// Parses a text that is JSON throughout. What is dumped from a large cluster is, and is one list.
fn json_values(text: &str) -> Option<Vec<Value>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let values = serde_json::Deserializer::from_str(text).into_iter();
    values.collect::<Result<_, _>>().ok()
}

// === impl Part ===

impl Part {
    fn fault(fault: Fault) -> Self {
        Self {
            place: fault.place.clone(),
            sort: Sort::Fault(fault),
        }
    }

    /// Adds what a document stands for: itself or, where it is a list, what is in it.
    fn add(mut document: Value, place: &Place, cluster: Cluster<'_>, parts: &mut Vec<Self>) {
        complete(&mut document);
        reported(&mut document, cluster);
        match &*manifest::objects(&document) {
            [object] if std::ptr::eq(*object, &raw const document) => {
                parts.push(Self::object(object, place.clone(), cluster));
            }
            items => {
                let items = items.iter().take(MAX_PARTS + 1).zip(1..);
                parts.extend(items.map(|(item, at)| Self::object(item, place.item(at), cluster)));
            }
        }
    }

    fn object(object: &Value, place: Place, cluster: Cluster<'_>) -> Self {
        match Sort::of(object, cluster) {
            Ok(sort) => Self { place, sort },
            Err(Refusal { rejection, remedy }) => {
                Self::fault(Fault::of(place, object, rejection, remedy))
            }
        }
    }
}

/// Items of a list of one kind need not say what they are: the list does.
fn complete(document: &mut Value) {
    let text = |field| document.get(field).and_then(Value::as_str);
    let Some(kind) = text("kind").and_then(|kind| kind.strip_suffix("List")) else {
        return;
    };
    if kind.is_empty() {
        return;
    }
    let (kind, api_version) = (json!(kind), json!(text("apiVersion")));
    let items = document.get_mut("items").and_then(Value::as_array_mut);
    for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
        if !item.contains_key("kind") && !item.contains_key("apiVersion") {
            item.insert("kind".to_owned(), kind.clone());
            item.insert("apiVersion".to_owned(), api_version.clone());
        }
    }
}

/// What `discover` and `translate` write is read as a list of those of its objects that belong to
/// the cluster: what one command finds another can go on from.
fn reported(document: &mut Value, cluster: Cluster<'_>) {
    let is_report = document.as_object().is_some_and(|members| {
        let lists = ["outputs", "statuses"].map(|name| members.get(name));
        members.len() == lists.len() && lists.into_iter().flatten().all(Value::is_array)
    });
    let outputs = document.get_mut("outputs").and_then(Value::as_array_mut);
    let Some(outputs) = outputs.filter(|_| is_report) else {
        return;
    };
    outputs.retain(|output| output["cluster"] == cluster.name());
    let items: Vec<_> = outputs
        .iter_mut()
        .map(|output| {
            let mut take = |member| output.get_mut(member).map(Value::take);
            json!({
                "apiVersion": take("apiVersion"),
                "kind": take("kind"),
                "metadata": {
                    "namespace": take("namespace"),
                    "name": take("name"),
                    "labels": take("labels"),
                    "annotations": take("annotations"),
                },
                "spec": take("spec"),
            })
        })
        .collect();
    *document = json!({"apiVersion": "v1", "kind": "List", "items": items});
}

// === impl Sort ===

impl Sort {
    /// What an object is, and why it cannot be read.
    fn of(object: &Value, cluster: Cluster<'_>) -> Result<Self, Refusal> {
        let mut doubt = match cluster {
            Cluster::Management { .. } => served::look(object)?,
            Cluster::Managed(_) => None,
        };
        let Some(kind) = kind(object).filter(|kind| cluster.has(*kind)) else {
            return Ok(Self::Ignored { doubt });
        };
        served::check_name(kind, object)?;
        let mut placed = None;
        if let Cluster::Management { namespace } = cluster
            && is_namespaced(kind)
            && !has_namespace(object)
        {
            doubt = Some(format!(
                "{} has no namespace and is taken for one of {namespace}: write metadata.namespace",
                manifest::name(object),
            ));
            let object = placed.insert(object.clone());
            object["metadata"]["namespace"] = json!(namespace.as_str());
        }
        let wire = placed.as_ref().unwrap_or(object);
        Ok(Self::Object {
            object: kind
                .read(wire, cluster.name())
                .map_err(|rejection| Refusal::of_shape(kind, rejection))?,
            wire: review::judged(&kind.group(), kind.name()).map(|_| wire.clone()),
            doubt,
        })
    }
}

// === impl Refusal ===

impl Refusal {
    /// Of an object that has not the shape of its kind.
    fn of_shape(kind: Kind, rejection: Rejection) -> Self {
        // What looks like a number or a truth value is one, in YAML.
        let remedy = if rejection.message.ends_with("expected a string") {
            "write it in quotes".to_owned()
        } else {
            let path = match &*rejection.path {
                "." => String::new(),
                path => format!(".{}", without_positions(path)),
            };
            let kind = kind.name().to_lowercase();
            format!("see `kubectl explain {kind}{path}`")
        };
        Self {
            rejection,
            remedy: Some(remedy),
        }
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self {
            rejection,
            remedy: None,
        }
    }
}

/// A path without the positions of items: what is said of one is said of all.
fn without_positions(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |path, part| {
        let rest = part.split_once(']').map_or("", |(_, rest)| rest);
        path + rest
    })
}

/// The kind of an object, if it is one that is read anywhere.
fn kind(object: &Value) -> Option<Kind> {
    let text = |field| object.get(field).and_then(Value::as_str);
    let (api_version, name) = (text("apiVersion")?, text("kind")?);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let mut all = Kind::ALL.iter().copied();
    all.find(|kind| kind.name() == name && kind.group() == group)
}

fn is_namespaced(kind: Kind) -> bool {
    !matches!(kind, Kind::Namespace | Kind::Node)
}

fn has_namespace(object: &Value) -> bool {
    let namespace = object.pointer("/metadata/namespace");
    namespace.is_some_and(|namespace| !namespace.is_null() && namespace != "")
}
