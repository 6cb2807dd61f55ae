//! What a change that has been worked out does, in words.
//!
//! [`rule`] says what speaks against a change of one object, and what is to be said about it all
//! the same. Nothing is translated here: everything is read off the states before and after.

mod absent;
mod access;
mod others;
mod reference;
mod selection;
mod traffic;
mod virtual_mesh;

use crate::delta::{Delta, Effect, StatusKey, StatusKind};
use crate::diagnose::{self, Finding};
use crate::judge::{is_unknown, judge};
use crate::state::State;

/// How long a remark about outputs may be, in bytes: as many of them are called by name as that
/// allows, and the others are counted.
const MAX_OUTCOME: usize = 120;

/// One thing to say about a change that is let through.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remark {
    /// How much it matters.
    pub weight: Weight,
    /// What is to be said, as one sentence without a full stop.
    pub text: String,
}

/// How much a remark matters, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// It was written, and nothing that is stored says it.
    Dropped,
    /// Something that the object asks for is not there, or nobody knows whether it is.
    Unresolved,
    /// It reaches further, or less far, than its author may have meant.
    Reach,
    /// Other objects lose by it.
    Loss,
    /// What becomes of the clusters.
    Outcome,
    /// Worth knowing.
    Hint,
}

/// What a change of one object comes to.
#[derive(Debug, Default)]
pub(crate) struct Ruling {
    /// What the change makes wrong with the object. With any, it is to be refused.
    pub(crate) errors: Vec<Finding>,
    /// What is to be said about it, the most important first.
    pub(crate) remarks: Vec<Remark>,
    /// What becomes of the objects in the clusters, as far as it has been worked out.
    pub(crate) effect: Effect,
}

/// Whether everything that a change touches has been worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The step was advanced to its end.
    Complete,
    /// The step was finished half way: what was found so far holds, the rest is not known.
    Partial,
}

impl Remark {
    pub(crate) fn new(weight: Weight, text: impl Into<String>) -> Self {
        Self {
            weight,
            text: text.into(),
        }
    }
}

/// Rules on a change that creates or changes one object.
///
/// An error that was there before is none, nor is one of another object. A reference that leads
/// nowhere is a remark instead where that is allowed: by the settings, or by a label on the
/// object's namespace.
pub(crate) fn rule(delta: &Delta, subject: &StatusKey, extent: Extent) -> Ruling {
    let mut verdict = judge(delta, subject);
    for finding in absent(delta, subject) {
        let mut told = verdict.errors.iter().chain(&verdict.unknown);
        if told.any(|told| told.code == finding.code && told.path == finding.path) {
            continue;
        }
        if is_unknown(&delta.after, &finding) {
            verdict.unknown.push(finding);
        } else {
            verdict.errors.push(finding);
        }
    }
    let mut ruling = Ruling {
        effect: verdict.effect,
        ..Ruling::default()
    };
    for finding in verdict.errors {
        if reference::stood_before(&delta.before, subject, &finding) {
            continue;
        }
        match reference::excuse(&delta.after, subject, &finding) {
            Some(remark) => ruling.remarks.push(remark),
            None => ruling.errors.push(finding),
        }
    }
    ruling
        .remarks
        .extend(verdict.unknown.iter().map(reference::unknown));
    ruling.errors.extend(virtual_mesh::taken(delta, subject));
    if extent == Extent::Complete {
        let after = &delta.after;
        ruling.remarks.extend(match subject.kind {
            StatusKind::TrafficPolicy => traffic::remarks(after, &subject.key),
            StatusKind::AccessPolicy => access::remarks(after, &subject.key),
            StatusKind::VirtualMesh => virtual_mesh::remarks(delta, &subject.key),
            StatusKind::Settings => settings(after, subject),
            StatusKind::Destination | StatusKind::Mesh | StatusKind::Workload => Vec::new(),
        });
        ruling
            .remarks
            .extend(consequences(delta, subject, verdict.effect));
    }
    ruling.remarks.sort_by_key(|remark| remark.weight);
    ruling
}

/// What the object asks for now, and has not asked for in vain before.
fn absent(delta: &Delta, subject: &StatusKey) -> Vec<Finding> {
    let [before, after] =
        [&delta.before, &delta.after].map(|state| absent::findings(state, subject));
    diagnose::brought(&before, &after)
}

/// Rules on a change that takes one object away. Nothing speaks against that.
pub(crate) fn removal(delta: &Delta, subject: &StatusKey) -> Ruling {
    let effect = delta.effect();
    let mut remarks = match subject.kind {
        StatusKind::VirtualMesh => virtual_mesh::farewell(delta, &subject.key),
        StatusKind::AccessPolicy
        | StatusKind::Destination
        | StatusKind::Mesh
        | StatusKind::Settings
        | StatusKind::TrafficPolicy
        | StatusKind::Workload => Vec::new(),
    };
    remarks.extend(consequences(delta, subject, effect));
    remarks.sort_by_key(|remark| remark.weight);
    Ruling {
        errors: Vec::new(),
        remarks,
        effect,
    }
}

/// What the change means for everything but the object itself.
fn consequences(delta: &Delta, subject: &StatusKey, effect: Effect) -> Vec<Remark> {
    let mut remarks = access::doors(delta);
    remarks.extend(others::remarks(delta, subject));
    remarks.push(outcome(delta, effect));
    remarks
}

/// What becomes of the objects in the clusters.
fn outcome(delta: &Delta, effect: Effect) -> Remark {
    let Effect {
        added,
        changed,
        removed,
    } = effect;
    let total = added + changed + removed;
    if total == 0 {
        return Remark::new(Weight::Outcome, "changes nothing in any cluster");
    }
    let parts: Vec<_> = [(added, "adds"), (changed, "changes"), (removed, "removes")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, verb)| format!("{verb} {count}"))
        .collect();
    let heading = format!("{} {}: ", parts.join(", "), plural(total, "object"));
    let mut names: Vec<String> = Vec::new();
    let mut length = heading.len();
    for name in delta.names() {
        let name = name.to_string();
        length += name.len() + ", ".len();
        let is_last = names.len() + 1 == total;
        let room_for_count = if is_last {
            0
        } else {
            " and 1000000 more".len()
        };
        if !names.is_empty() && length + room_for_count > MAX_OUTCOME {
            break;
        }
        names.push(name);
    }
    let more = match total.saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!("{heading}{}{more}", names.join(", "));
    Remark::new(Weight::Outcome, text)
}

/// Settings stand under one name; others are stored and not read.
fn settings(after: &State, subject: &StatusKey) -> Vec<Remark> {
    let read = after.options().settings();
    if subject.key == read {
        return Vec::new();
    }
    vec![Remark::new(
        Weight::Reach,
        format!(
            "these settings are not read: those that hold are {}/{}",
            read.namespace(),
            read.name()
        ),
    )]
}

/// A noun for so many things.
fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        noun.to_owned()
    } else {
        format!("{noun}s")
    }
}

/// So many things.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {}", plural(count, noun))
}
