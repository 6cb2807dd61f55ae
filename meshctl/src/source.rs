//! Objects as people keep them in files.
//!
//! Directories are read recursively, in the order of their names; of the files in them those
//! named `*.yaml`, `*.yml` and `*.json`, and nothing whose name begins with a dot. What cannot be
//! read stands for itself: the rest is read all the same.
//!
//! In reading order: `walk` (which files there are), `served` (what API servers know of our
//! kinds).

mod served;
mod walk;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as MapEntry;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::model::{Code, Rejection};
use ferromesh_core::{Key, Kind, Object, Scope, review};
use ferromesh_crds::name::Namespace;
use serde_json::{Value, json};

use self::walk::Walk;
use crate::error::Error;

/// The largest file that is read, in bytes: more than a dump of a cluster with 10,000 pods.
const MAX_FILE: u64 = 256 << 20;

/// What stands for the standard input of this process.
const STDIN: &str = "-";

/// What came of files.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Objects, each as it came last, as `kubectl apply` would leave them.
    pub(crate) objects: BTreeMap<(Kind, Key), Located>,
    /// What could not be read.
    pub(crate) faults: Vec<Fault>,
    /// What could be read and is perhaps not meant.
    pub(crate) doubts: Vec<Doubt>,
    /// How many documents are no objects that are read.
    pub(crate) ignored: usize,
}

/// An object and the file it came from.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) file: Arc<str>,
    pub(crate) object: Object,
    /// As it is written; only of the kinds that are judged.
    pub(crate) wire: Option<Value>,
}

/// Something that could not be read.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) file: Arc<str>,
    /// What it is called, as far as that can be told.
    pub(crate) name: String,
    pub(crate) rejection: Rejection,
}

/// Something that could be read and is perhaps not meant.
#[derive(Debug)]
pub(crate) struct Doubt {
    pub(crate) file: Arc<str>,
    pub(crate) message: String,
}

/// Which cluster the files tell about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cluster<'a> {
    /// The management cluster.
    Management {
        /// The namespace of objects that name none.
        namespace: &'a Namespace,
    },
    /// The managed cluster of this name.
    Managed(&'a str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            name,
            rejection,
        } = self;
        // The root has no path, and what has no name has only a path.
        match rejection.path.as_str() {
            "." => write!(f, "{file}: {name}: {}", rejection.message),
            path if path == name => write!(f, "{file}: {rejection}"),
            _ => write!(f, "{file}: {name}: {rejection}"),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}

impl Cluster<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Management { .. } => "",
            Self::Managed(name) => name,
        }
    }

    /// Whether objects of a kind are looked for there; a kind has its meaning in one place only.
    fn has(&self, kind: Kind) -> bool {
        match (kind.scope(), self) {
            (Scope::Management, Self::Management { .. })
            | (Scope::Managed | Scope::Files, Self::Managed(_))
            | (Scope::Everywhere, _) => true,
            (Scope::Management, Self::Managed(_))
            | (Scope::Managed | Scope::Files, Self::Management { .. }) => false,
        }
    }
}

impl Reading {
    fn add(&mut self, file: &Arc<str>, part: Part, cluster: Cluster<'_>) {
        let Part {
            entry,
            wire,
            doubts,
        } = part;
        let doubt = |message| Doubt {
            file: Arc::clone(file),
            message,
        };
        match entry {
            Entry::Object(object) if cluster.has(object.kind()) => {
                self.doubts.extend(doubts.into_iter().map(doubt));
                let id = (object.kind(), object.key().clone());
                let located = Located {
                    file: Arc::clone(file),
                    object,
                    wire,
                };
                match self.objects.entry(id) {
                    MapEntry::Vacant(place) => {
                        place.insert(located);
                    }
                    MapEntry::Occupied(mut place) => {
                        let again = repetition(place.get(), &located, cluster);
                        self.doubts.extend(again.map(doubt));
                        place.insert(located);
                    }
                }
            }
            Entry::Object(_) => self.ignored += 1,
            Entry::Ignored { api_version, kind } => {
                self.ignored += 1;
                self.doubts
                    .extend(served::doubt(&api_version, &kind).map(doubt));
            }
            Entry::Unreadable { name, rejection } => self.faults.push(Fault {
                file: Arc::clone(file),
                name,
                rejection,
            }),
        }
    }
}

/// What is to be said about an object that stands in two places. Dumps of a cluster may overlap.
fn repetition(first: &Located, last: &Located, cluster: Cluster<'_>) -> Option<String> {
    let is_same = first.object == last.object;
    if is_same && matches!(cluster, Cluster::Managed(_)) {
        return None;
    }
    let key = last.object.key();
    let name = match key.namespace() {
        "" => key.name().to_owned(),
        namespace => format!("{namespace}/{}", key.name()),
    };
    let place = if first.file == last.file {
        "stands there twice".to_owned()
    } else {
        format!("stands in {} too", first.file)
    };
    let remedy = if is_same {
        "with the same content: remove one of them"
    } else {
        "and differently: the last one counts, remove the other"
    };
    Some(format!(
        "{} {name} {place}, {remedy}",
        last.object.kind().name()
    ))
}

/// Reads what `paths` lead to; `-` is stdin. Only a path that leads nowhere is an error.
pub(crate) fn read(paths: &[PathBuf], cluster: Cluster<'_>) -> Result<Reading, Error> {
    let mut walk = Walk::default();
    for path in paths {
        walk.find(path)?;
    }
    let Walk {
        files,
        faults,
        empty,
        ..
    } = walk;
    let read: Vec<OnceLock<Vec<Part>>> = files.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let (Some(path), Some(slot)) = (files.get(at), read.get(at))
        {
            slot.get_or_init(|| parts(path, cluster));
        }
    };
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 1..workers.min(files.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut reading = Reading::default();
    for (path, parts) in files.iter().zip(read) {
        let file = shown(path);
        for part in parts.into_inner().unwrap_or_default() {
            reading.add(&file, part, cluster);
        }
    }
    for (path, problem) in faults {
        reading.add(&shown(&path), Part::unreadable(problem), cluster);
    }
    reading.doubts.extend(empty.iter().map(|path| Doubt {
        file: shown(path),
        message: "holds no *.yaml, *.yml or *.json".to_owned(),
    }));
    Ok(reading)
}

/// A path, for a person.
fn shown(path: &Path) -> Arc<str> {
    match path.to_str() {
        Some(STDIN) => "stdin".into(),
        _ => path.display().to_string().into(),
    }
}

/// A part of a file.
struct Part {
    entry: Entry,
    wire: Option<Value>,
    doubts: Vec<String>,
}

impl Part {
    fn new(entry: Entry) -> Self {
        Self {
            entry,
            wire: None,
            doubts: Vec::new(),
        }
    }

    /// A file or directory that cannot be read.
    fn unreadable(problem: String) -> Self {
        Self::new(Entry::Unreadable {
            name: "file".to_owned(),
            rejection: Rejection {
                path: "file".to_owned(),
                code: Code::Invalid,
                message: problem,
            },
        })
    }

    /// One object.
    fn object(value: &Value, cluster: Cluster<'_>) -> Self {
        if let Some(rejection) = served::refusal(value) {
            let name = manifest::name(value);
            return Self::new(Entry::Unreadable { name, rejection });
        }
        let mut part = Self::new(manifest::read_object(value, cluster.name()));
        let Entry::Object(object) = &part.entry else {
            return part;
        };
        let kind = object.kind();
        let mut wire = review::judged(&kind.group(), kind.name()).map(|_| value.clone());
        if let Cluster::Management { namespace } = cluster
            && object.key().namespace().is_empty()
            && is_namespaced(kind)
        {
            let mut value = wire.unwrap_or_else(|| value.clone());
            value["metadata"]["namespace"] = json!(namespace.as_str());
            part.doubts.push(format!(
                "{} {} has no namespace and is taken for one of {namespace}: write metadata.namespace",
                kind.name(),
                object.key().name(),
            ));
            part.entry = manifest::read_object(&value, cluster.name());
            wire = Some(value);
        }
        part.wire = wire;
        part
    }
}

/// What a file holds.
fn parts(path: &Path, cluster: Cluster<'_>) -> Vec<Part> {
    let text = match text(path) {
        Ok(text) => text,
        Err(problem) => return vec![Part::unreadable(problem)],
    };
    let mut parts = Vec::new();
    let mut add = |document| match document {
        Ok(value) => {
            let objects = manifest::objects(&value).into_iter();
            parts.extend(objects.map(|object| Part::object(object, cluster)));
        }
        Err(rejection) => parts.push(Part::new(Entry::unreadable(rejection))),
    };
    match json_values(&text) {
        Some(values) => values.into_iter().map(Ok).for_each(&mut add),
        None => manifest::documents(&text).for_each(&mut add),
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

fn is_namespaced(kind: Kind) -> bool {
    !matches!(kind, Kind::Namespace | Kind::Node)
}
