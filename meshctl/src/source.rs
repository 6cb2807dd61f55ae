//! Objects as people keep them in files.
//!
//! Directories are read recursively, in the order of their names; of the files in them those
//! named `*.yaml`, `*.yml` and `*.json`, and nothing whose name begins with a dot. What cannot be
//! read stands for itself: the rest is read all the same.
//!
//! In reading order: `walk` (which files there are), `part` (what a file holds), `served` (what
//! API servers know of our kinds), `place` (where something stands).

mod part;
mod place;
mod served;
mod walk;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use ferromesh_core::model::Rejection;
use ferromesh_core::{Key, Kind, Object, Scope, manifest};
use ferromesh_crds::name::Namespace;
use serde_json::Value;

use self::part::{Part, Sort};
pub(crate) use self::place::Place;
use self::walk::Walk;
use crate::error::Error;

/// What stands for the standard input of this process.
pub(crate) const STDIN: &str = "-";

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

/// An object and where it stands.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) place: Place,
    pub(crate) object: Object,
    /// As it is written; only of the kinds that are judged.
    pub(crate) wire: Option<Value>,
}

/// Something that could not be read.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) place: Place,
    /// What it is called, as far as that can be told.
    pub(crate) object: Option<String>,
    /// The field; none where it is not one alone.
    pub(crate) field: Option<String>,
    pub(crate) message: String,
    /// What to do about it, where the message does not say so.
    pub(crate) remedy: Option<String>,
}

/// Something that could be read and is perhaps not meant.
#[derive(Debug)]
pub(crate) struct Doubt {
    pub(crate) place: Place,
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

impl Fault {
    /// Something that has no name of its own.
    fn nameless(place: Place, message: String) -> Self {
        Self {
            place,
            object: None,
            field: None,
            message,
            remedy: None,
        }
    }

    /// An object that cannot be read.
    fn of(place: Place, object: &Value, rejection: Rejection, remedy: Option<String>) -> Self {
        let kind = object.get("kind").and_then(Value::as_str);
        let name = object.pointer("/metadata/name");
        let has_name = name.is_some_and(|name| !name.is_null() && name != "");
        Self {
            place,
            object: if has_name {
                Some(manifest::name(object).trim_start().to_owned())
            } else {
                kind.map(str::to_owned)
            },
            // The object itself has no path.
            field: Some(rejection.path).filter(|path| path != "."),
            message: rejection.message,
            remedy,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            object,
            field,
            message,
            remedy,
        } = self;
        write!(f, "{place}: ")?;
        for part in [object, field].into_iter().flatten() {
            write!(f, "{part}: ")?;
        }
        f.write_str(message)?;
        match remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
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
    fn add(&mut self, part: Part, cluster: Cluster<'_>) {
        let Part { place, sort } = part;
        match sort {
            Sort::Object {
                object,
                wire,
                doubt,
            } => {
                self.doubts.extend(doubt.map(|message| Doubt {
                    place: place.clone(),
                    message,
                }));
                let id = (object.kind(), object.key().clone());
                let located = Located {
                    place,
                    object,
                    wire,
                };
                match self.objects.entry(id) {
                    Entry::Vacant(entry) => {
                        entry.insert(located);
                    }
                    Entry::Occupied(mut entry) => {
                        let again = repetition(entry.get(), &located, cluster);
                        self.doubts.extend(again.map(|message| Doubt {
                            place: located.place.clone(),
                            message,
                        }));
                        entry.insert(located);
                    }
                }
            }
            Sort::Ignored { doubt } => {
                self.ignored += 1;
                self.doubts
                    .extend(doubt.map(|message| Doubt { place, message }));
            }
            Sort::Fault(fault) => self.faults.push(fault),
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
    let remedy = if is_same {
        "with the same content: remove one of them"
    } else {
        "and differently: the last one counts, remove the other"
    };
    Some(format!(
        "{} {name} stands in {} too, {remedy}",
        last.object.kind().name(),
        first.place
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
            slot.get_or_init(|| part::all(path, cluster));
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
    for part in read.into_iter().filter_map(OnceLock::into_inner).flatten() {
        reading.add(part, cluster);
    }
    let faults = faults.into_iter();
    reading
        .faults
        .extend(faults.map(|(path, problem)| Fault::nameless(Place::file(shown(&path)), problem)));
    reading.doubts.extend(empty.iter().map(|path| Doubt {
        place: Place::file(shown(path)),
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
