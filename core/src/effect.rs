//! What a change does, in words, for whoever wants to know before it is made.
//!
//! [`rule`] is the whole answer to a change of one object: what speaks against it, and what is to
//! be said about it all the same. Whoever asks, an API server or a person with a directory of
//! files, gets the same answer, because both ask here. Nothing is translated here: everything
//! is read off the states before and after.

mod access;
mod others;
mod reference;
mod selection;
mod traffic;
mod virtual_mesh;

use crate::delta::{Delta, Effect, OutputChange, StatusKey, StatusKind};
use crate::diagnose::Finding;
use crate::judge::judge;
use crate::output::OutputKey;
use crate::state::State;

/// Outputs that are called by name before the others are counted.
const NAMED: usize = 2;

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

/// The answer to a change of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ruling {
    /// What the change makes wrong with the object. With any, it is to be refused.
    pub errors: Vec<Finding>,
    /// What is to be said about it, the most important first.
    pub remarks: Vec<Remark>,
}

/// Whether everything that a change touches has been worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The step was advanced to its end.
    Complete,
    /// The step was finished half way: what was found so far holds, the rest is not known.
    Partial,
}

impl Remark {
    fn new(weight: Weight, text: impl Into<String>) -> Self {
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
pub fn rule(delta: &Delta, subject: &StatusKey, extent: Extent) -> Ruling {
    let verdict = judge(delta, subject);
    let mut ruling = Ruling::default();
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
        ruling.remarks.extend(consequences(delta, subject));
    }
    ruling.remarks.sort_by_key(|remark| remark.weight);
    ruling
}

/// What is to be said about a change that takes one object away. Nothing speaks against that.
pub fn removal(delta: &Delta, subject: &StatusKey, extent: Extent) -> Vec<Remark> {
    if extent == Extent::Partial {
        return Vec::new();
    }
    let mut remarks = match subject.kind {
        StatusKind::VirtualMesh => virtual_mesh::farewell(delta, &subject.key),
        StatusKind::AccessPolicy
        | StatusKind::Destination
        | StatusKind::Mesh
        | StatusKind::Settings
        | StatusKind::TrafficPolicy
        | StatusKind::Workload => Vec::new(),
    };
    remarks.extend(consequences(delta, subject));
    remarks.sort_by_key(|remark| remark.weight);
    remarks
}

/// What the change means for everything but the object itself.
fn consequences(delta: &Delta, subject: &StatusKey) -> Vec<Remark> {
    let mut remarks = access::doors(delta);
    remarks.extend(others::remarks(delta, subject));
    remarks.push(outcome(delta));
    remarks
}

/// What becomes of the objects in the clusters.
fn outcome(delta: &Delta) -> Remark {
    let Effect {
        added,
        changed,
        removed,
    } = delta.effect();
    let total = added + changed + removed;
    if total == 0 {
        return Remark::new(Weight::Outcome, "changes nothing in any cluster");
    }
    let mut parts = Vec::new();
    for (count, verb) in [(added, "adds"), (changed, "changes"), (removed, "removes")] {
        if count > 0 {
            parts.push(format!("{verb} {count}"));
        }
    }
    let named: Vec<String> = delta
        .outputs()
        .map(|change| match change {
            OutputChange::Upsert(output) => called(&output.key),
            OutputChange::Delete(key) => called(&key),
        })
        .take(if total <= NAMED { total } else { NAMED - 1 })
        .collect();
    let more = total - named.len();
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    Remark::new(
        Weight::Outcome,
        format!(
            "{} {} in the clusters: {}{more}",
            parts.join(", "),
            plural(total, "object"),
            named.join(", ")
        ),
    )
}

fn called(key: &OutputKey) -> String {
    key.to_string()
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
