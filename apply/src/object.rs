//! The words of this room: kinds, objects, what makes an object ours.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::{Map, Value, json};

/// A kind of object, and in which versions its desired objects are valid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The API group.
    pub group: Arc<str>,
    /// The name, as in `kind: VirtualService`.
    pub name: Arc<str>,
    /// The resource name in a URL.
    pub plural: Arc<str>,
    /// The versions that the specs are valid for, best first.
    pub versions: Vec<Arc<str>>,
}

/// Which object of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The API group.
    pub group: Arc<str>,
    /// The name of the kind.
    pub kind: Arc<str>,
    /// The namespace; empty if the kind is cluster-scoped.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

/// An object as it is to stand in the cluster. The labels of the [`Scope`] are added to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// Its place among the objects of its kind: those of a lower rank are written first and deleted last.
    pub rank: u8,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its spec.
    pub spec: Value,
}

/// A label that an object must carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its key.
    pub key: String,
    /// Its value, which may be empty.
    pub value: String,
}

/// What one applier is in charge of. Several scopes may share a cluster.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The cluster, for logs and metrics.
    pub cluster: Arc<str>,
    /// Who carries this label is ours; who does not is never changed nor deleted.
    pub owner: Label,
    /// Only ours that carry this label too are watched, and deleted when nobody wants them. It separates
    /// scopes that lie in one cluster. On what is written it is set.
    pub place: Label,
    /// What is written: kinds that others refer to come before those that refer to them.
    pub kinds: Vec<Kind>,
}

/// Whether an object is wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is, and this is how it is to stand.
    Wanted(Desired),
    /// It is not: once the set is complete, it is deleted.
    Unwanted,
    /// It is not, and a person has taken away what it was made of: no mass delete holds it.
    Forsaken,
    /// Nobody can tell yet: what stands is left as it is.
    Unknown,
}

/// Where desired objects come from. A closure from an id to an `Option<Desired>` is one.
///
/// Asked when it is an object's turn, on the applier's task: an answer takes microseconds and does not
/// block.
pub trait Source: Send + 'static {
    /// Whether the object is wanted.
    fn ask(&self, id: &ObjectId) -> Answer;
}

impl<F, A> Source for F
where
    F: Fn(&ObjectId) -> A + Send + 'static,
    A: Into<Answer>,
{
    fn ask(&self, id: &ObjectId) -> Answer {
        self(id).into()
    }
}

impl From<Option<Desired>> for Answer {
    fn from(desired: Option<Desired>) -> Self {
        desired.map_or(Self::Unwanted, Self::Wanted)
    }
}

// === impl Kind ===

impl Kind {
    /// A kind whose desired objects are valid in `versions`, best first.
    pub fn new(group: &str, name: &str, plural: &str, versions: &[&str]) -> Self {
        Self {
            group: group.into(),
            name: name.into(),
            plural: plural.into(),
            versions: versions.iter().map(|version| (*version).into()).collect(),
        }
    }

    /// The object of this name.
    pub fn id(&self, namespace: &str, name: &str) -> ObjectId {
        ObjectId {
            group: Arc::clone(&self.group),
            kind: Arc::clone(&self.name),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// `apiVersion` of its objects in `version`.
    pub(crate) fn api_version(&self, version: &str) -> String {
        match &*self.group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        }
    }

    /// Whether an object is of this kind.
    pub(crate) fn is_of(&self, id: &ObjectId) -> bool {
        self.group == id.group && self.name == id.kind
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        match &*self.group {
            "" => Ok(()),
            group => write!(f, ".{group}"),
        }
    }
}

// === impl ObjectId ===

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

// === impl Label ===

impl Label {
    /// A label.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
        }
    }

    /// Whether it is among `labels`.
    pub(crate) fn is_on(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        labels.and_then(|labels| labels.get(&self.key)) == Some(&self.value)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

// === impl Scope ===

impl Scope {
    /// Selects what is watched.
    pub(crate) fn selector(&self) -> String {
        format!("{},{}", self.owner, self.place)
    }

    /// The position of an object's kind.
    pub(crate) fn position(&self, id: &ObjectId) -> Option<usize> {
        self.kinds.iter().position(|kind| kind.is_of(id))
    }

    /// Sets the labels of the scope.
    pub(crate) fn stamp(&self, desired: &mut Desired) {
        for Label { key, value } in [&self.owner, &self.place] {
            desired.labels.insert(key.clone(), value.clone());
        }
    }
}

// === impl Desired ===

impl Desired {
    /// The object as it is sent, without what tells which state it is to replace.
    pub(crate) fn body(&self, kind: &Kind, version: &str, id: &ObjectId) -> Value {
        let mut meta = Map::from_iter([("name".to_owned(), json!(id.name))]);
        if !id.namespace.is_empty() {
            meta.insert("namespace".to_owned(), json!(id.namespace));
        }
        for (field, map) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if !map.is_empty() {
                meta.insert(field.to_owned(), json!(map));
            }
        }
        let mut body = json!({
            "apiVersion": kind.api_version(version), "kind": kind.name, "metadata": meta,
        });
        if !self.spec.is_null() {
            body["spec"] = self.spec.clone();
        }
        body
    }
}
