//! What an applier tells.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

use crate::{
    error::Error,
    object::{Kind, Label, ObjectId},
};

/// Something that an applier tells. Of what a slow listener has not heard yet, the newest counts.
#[derive(Debug)]
pub enum Report {
    /// What has become of an object.
    Object {
        /// Which one.
        id: ObjectId,
        /// What has become of it.
        outcome: Outcome,
    },
    /// Whether a kind can be seen, and so be written.
    Kind {
        /// Which one.
        kind: Kind,
        /// Whether it can.
        sight: Sight,
    },
    /// Every kind has been listed, or is not served. Told once.
    Synced,
    /// A mass delete is held until it is released. Told again when the numbers change.
    Held {
        /// How many objects would be deleted.
        would_delete: usize,
        /// How many objects are ours.
        owned: usize,
    },
    /// No mass delete is held any more.
    Released,
}

/// What has become of an object.
#[derive(Debug)]
pub enum Outcome {
    /// It was written.
    Applied,
    /// It stood as it is wanted already.
    Unchanged,
    /// Nothing of ours stands under this name any more; finalizers may keep it for a while.
    Deleted,
    /// An object of this name is not ours and was left alone. Once it is gone, or carries the label, it is
    /// written without further ado.
    Foreign {
        /// The label that would make it ours.
        owner: Label,
    },
    /// It was written, and somebody else keeps making something else of it. It is written again, ever less
    /// often.
    Contested {
        /// The field manager that did so last, as far as the object tells.
        by: Option<String>,
        /// The path of a field that a webhook has changed on the way in. It is not fought over.
        field: Option<String>,
    },
    /// It was not written, or not deleted, and will be tried again.
    Failed(Error),
}

/// Whether a kind can be seen.
#[derive(Debug)]
pub enum Sight {
    /// It has been listed and is being watched.
    Watched,
    /// The cluster does not serve it in a version that is known here.
    NotServed,
    /// It cannot be listed or watched now. What was known of it still counts.
    Failing(Error),
}

/// What has not been told yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    order: VecDeque<Subject>,
    reports: BTreeMap<Subject, Report>,
}

/// Of each the newest report counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Object(ObjectId),
    Kind(Kind),
    Synced,
    Hold,
}

// === impl Outcome ===

impl Outcome {
    /// The variant, for a metric label.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::Deleted => "deleted",
            Self::Foreign { .. } => "foreign",
            Self::Contested { .. } => "contested",
            Self::Failed(error) => error.as_str(),
        }
    }
}

/// For statuses and logs. Of a failure the cause is not included.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied => f.write_str("written"),
            Self::Unchanged => f.write_str("unchanged"),
            Self::Deleted => f.write_str("deleted"),
            Self::Foreign { owner } => write!(
                f,
                "an object of this name exists and is not ours: rename or delete it, or label it {owner} to hand it over"
            ),
            Self::Contested { by, field } => match (by, field) {
                (_, Some(field)) => write!(
                    f,
                    "a webhook or the API server changes {field}: exempt the object from it"
                ),
                (Some(by), None) => write!(f, "{by} keeps changing it: keep {by} from it"),
                (None, None) => {
                    f.write_str("somebody keeps changing or deleting it: keep them from it")
                }
            },
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

// === impl Outbox ===

impl Outbox {
    pub(crate) fn push(&mut self, report: Report) {
        let subject = match &report {
            Report::Object { id, .. } => Subject::Object(id.clone()),
            Report::Kind { kind, .. } => Subject::Kind(kind.clone()),
            Report::Synced => Subject::Synced,
            Report::Held { .. } | Report::Released => Subject::Hold,
        };
        if self.reports.insert(subject.clone(), report).is_none() {
            self.order.push_back(subject);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Report> {
        let subject = self.order.pop_front()?;
        self.reports.remove(&subject)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
