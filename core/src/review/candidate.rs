//! A change that somebody wants to make.

use serde_json::Value;

use super::{Outcome, Remark, pruned};
use crate::delta::{StatusKey, StatusKind};
use crate::key::Key;
use crate::kinds::Kind;

/// A change of one object that somebody wants to make.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub(super) kind: Kind,
    pub(super) subject: StatusKey,
    pub(super) intent: Intent,
}

/// What is to become of an object, in its wire form.
#[derive(Clone, Debug)]
pub enum Intent {
    /// It is created in this form.
    Create(Value),
    /// It takes another form.
    Update {
        /// As it is.
        old: Value,
        /// As it is to be.
        new: Value,
    },
    /// It is taken away; this is what it was.
    Delete(Value),
}

/// The kind of this name, if its objects are judged.
pub fn judged(group: &str, kind: &str) -> Option<Kind> {
    let mut all = [
        Kind::TrafficPolicy,
        Kind::AccessPolicy,
        Kind::VirtualMesh,
        Kind::Settings,
    ]
    .into_iter();
    all.find(|known| known.name() == kind && known.group() == group)
}

impl Candidate {
    /// A change of an object of `kind`; none if its objects are not judged.
    pub fn new(kind: Kind, intent: Intent) -> Option<Self> {
        judged(&kind.group(), kind.name())?;
        let status_kind = StatusKind::ALL
            .into_iter()
            .find(|known| known.name() == kind.name())?;
        let meta = |field| intent.object().get("metadata")?.get(field)?.as_str();
        let key = Key::local(
            meta("name").unwrap_or_default(),
            meta("namespace").unwrap_or_default(),
        );
        Some(Self {
            kind,
            subject: StatusKey {
                kind: status_kind,
                key,
            },
            intent,
        })
    }

    /// The object.
    pub fn subject(&self) -> &StatusKey {
        &self.subject
    }

    /// What is to become of it.
    pub fn intent(&self) -> &Intent {
        &self.intent
    }

    /// The answer, where nothing has to be worked out for it: nothing but metadata or status
    /// changes, or the object is on its way out and has only its finalizers left to lose.
    pub fn settled(&self) -> Option<Outcome> {
        let Intent::Update { old, new } = &self.intent else {
            return None;
        };
        let is_going = new
            .pointer("/metadata/deletionTimestamp")
            .is_some_and(|it| !it.is_null());
        (is_going || says_the_same(old, new)).then(|| Outcome {
            remarks: self.dropped(),
            is_complete: true,
            ..Outcome::nothing()
        })
    }

    /// What is to be said about fields that an API server drops, or has dropped already.
    pub(super) fn dropped(&self) -> Vec<Remark> {
        match &self.intent {
            Intent::Create(new) => pruned::remarks(self.kind, new, None),
            Intent::Update { old, new } => pruned::remarks(self.kind, new, Some(old)),
            Intent::Delete(_) => Vec::new(),
        }
    }
}

impl Intent {
    /// The object, in the form that it is to have or has had.
    fn object(&self) -> &Value {
        match self {
            Self::Create(object) | Self::Update { new: object, .. } | Self::Delete(object) => {
                object
            }
        }
    }
}

/// Whether two forms of an object differ in nothing but metadata and status.
pub(super) fn says_the_same(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return false;
    };
    let names = old.keys().chain(new.keys());
    names
        .filter(|name| is_said_by_people(name))
        .all(|name| old.get(name) == new.get(name))
}

/// Whether a field of an object says what somebody wants, and not which object it is or how it
/// fares.
pub(super) fn is_said_by_people(field: &str) -> bool {
    !matches!(field, "metadata" | "status" | "apiVersion" | "kind")
}
