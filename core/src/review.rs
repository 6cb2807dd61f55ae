//! What is to be said of a change before it is made: the whole answer.
//!
//! Whoever asks, an API server or a person with a directory of files, gets the same answer,
//! because both ask here. A change is tried on a copy of the state, in slices of bounded work, and
//! what it would make wrong with the object itself speaks against it. What was wrong before never
//! does, nor does what is wrong with another object, nor what is not known; a change of metadata
//! or status alone is never refused, and neither is a deletion.
//!
//! In reading order: `candidate` (what somebody wants), `errors` (what is wrong with an object by itself), `pruned` (fields that an
//! API server drops), [`canonical()`] (what is rewritten before it is judged), `schema` (what these
//! two look at), `lines` (remarks as warnings that fit).

mod author;
mod candidate;
mod canonical;
mod errors;
mod lines;
mod pruned;
mod schema;

use std::collections::BTreeSet;
use std::{fmt, mem};

pub use self::author::author;
pub use self::candidate::{Candidate, Intent, judged};
pub use self::canonical::{Replacement, canonical};
use crate::change::Change;
use crate::delta::{Delta, Effect, StatusKey};
use crate::diagnose::{Code, Finding};
use crate::effect::{self, Extent};
pub use crate::effect::{Remark, Weight};
use crate::kinds::Object;
use crate::model::Rejection;
use crate::state::{State, Step};

/// Makes ready what every review needs. Otherwise the first one does, which takes tens of milliseconds.
pub fn prepare() {
    schema::prepare();
}

/// The answer to a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What speaks against it: with any, it is refused.
    pub denials: Vec<Denial>,
    /// What is to be said about it, the most important first. Of what a refused change would do
    /// nothing is said.
    pub remarks: Vec<Remark>,
    /// Whether everything was worked out. What was not speaks against nothing.
    pub is_complete: bool,
    /// What becomes of the objects in the clusters.
    pub effect: Effect,
}

/// One reason of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The field; none where it is not one alone.
    pub path: Option<String>,
    /// Sort of trouble.
    pub code: Code,
    /// What is wrong and, where it is not plain, what to do about it.
    pub message: String,
}

/// A change that is being tried.
#[derive(Debug)]
pub struct Review {
    candidate: Candidate,
    errors: errors::Own,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// The object has not been read, and this is the world as it is.
    Unread(State),
    /// There is nothing to work out.
    Settled(Outcome),
    /// The object is made to be as it is said to be now, where what was seen of it is older.
    Rewind(Box<Step>, Change),
    /// The change is made.
    Trial(Box<Step>, Extent),
}

impl Phase {
    /// The change is made, of which nothing is worked out yet.
    fn trial(state: State, change: Change) -> Self {
        Self::Trial(Box::new(Step::new(state, [change])), Extent::Partial)
    }
}

// === impl Review ===

impl Review {
    /// Begins to try a change of the world as `state` has it. Nothing is looked at yet.
    pub fn new(state: &State, candidate: Candidate) -> Self {
        let phase = match candidate.settled() {
            Some(outcome) => Phase::Settled(outcome),
            None => Phase::Unread(state.clone()),
        };
        Self {
            candidate,
            errors: errors::Own::default(),
            phase,
        }
    }

    /// Reads the object, and finds what is wrong with it by itself.
    fn read(&mut self, state: State) -> Phase {
        let Self {
            candidate, errors, ..
        } = self;
        let read = |object| candidate.kind.read(object, "");
        let (old, new) = match &candidate.intent {
            Intent::Create(new) => (None, Some(read(new))),
            Intent::Update { old, new } => (Some(read(old)), Some(read(new))),
            Intent::Delete(old) => (Some(read(old)), None),
        };
        let new = match new.transpose() {
            Ok(new) => new,
            Err(rejection) => {
                // Stored in this shape already, by an older schema perhaps.
                let is_old = old.is_some_and(|old| old.err().as_ref() == Some(&rejection));
                return Phase::Settled(unreadable(&rejection, is_old, candidate.dropped()));
            }
        };
        let old = old.and_then(Result::ok);
        *errors = errors::Own::of(new.as_ref(), old.as_ref());
        let key = &candidate.subject.key;
        let turn = |object: Option<Object>| match object {
            Some(object) => Change::Upsert(object),
            None => Change::Remove(candidate.kind, key.clone()),
        };
        if state.snapshot().get(candidate.kind, key) == old {
            Phase::trial(state, turn(new))
        } else {
            Phase::Rewind(Box::new(Step::new(state, [turn(old)])), turn(new))
        }
    }

    /// Works out at most `fuel` things, each of bounded size; says whether everything is done.
    pub fn advance(&mut self, fuel: usize) -> bool {
        let phase = mem::replace(&mut self.phase, Phase::Settled(Outcome::nothing()));
        let is_done;
        (self.phase, is_done) = match phase {
            Phase::Unread(state) => {
                let phase = self.read(state);
                let is_done = matches!(phase, Phase::Settled(_));
                (phase, is_done)
            }
            Phase::Settled(outcome) => (Phase::Settled(outcome), true),
            Phase::Rewind(mut step, change) => {
                let phase = if step.advance(fuel) {
                    let (state, _) = step.finish();
                    Phase::trial(state, change)
                } else {
                    Phase::Rewind(step, change)
                };
                (phase, false)
            }
            Phase::Trial(mut step, _) => {
                let is_done = step.advance(fuel);
                let extent = if is_done {
                    Extent::Complete
                } else {
                    Extent::Partial
                };
                (Phase::Trial(step, extent), is_done)
            }
        };
        is_done
    }

    /// The answer, by what has been worked out so far. What it takes to put it into words grows
    /// with what the change touches.
    pub fn finish(self) -> Outcome {
        let Self {
            candidate,
            errors,
            phase,
        } = self;
        let (delta, extent) = match phase {
            Phase::Settled(outcome) => return outcome,
            Phase::Unread(_) | Phase::Rewind(..) => (None, Extent::Partial),
            Phase::Trial(step, extent) => (Some(step.finish().1), extent),
        };
        match candidate.intent {
            Intent::Create(_) | Intent::Update { .. } => {
                change(delta.as_ref(), extent, &candidate, errors)
            }
            Intent::Delete(_) => removal(delta.as_ref(), extent, &candidate.subject),
        }
    }
}

/// The answer to a change that creates or changes an object.
fn change(
    delta: Option<&Delta>,
    extent: Extent,
    candidate: &Candidate,
    errors: errors::Own,
) -> Outcome {
    let ruling = delta
        .map(|delta| effect::rule(delta, &candidate.subject, extent))
        .unwrap_or_default();
    let errors::Own { new, told } = errors;
    let found = ruling.errors.into_iter();
    let found = found.filter(|finding| !told.contains(finding));
    let denials: Vec<_> = new.into_iter().chain(found).map(Denial::from).collect();
    let mut remarks = candidate.dropped();
    if denials.is_empty() {
        remarks.extend(ruling.remarks);
        if extent == Extent::Partial {
            let what = "whether this fits other objects, and what it changes; see its status";
            remarks.push(unfinished(what));
        }
        remarks.sort_by_key(|remark| remark.weight);
    }
    Outcome {
        denials,
        remarks,
        is_complete: extent == Extent::Complete,
        effect: ruling.effect,
    }
}

/// The answer to a deletion.
fn removal(delta: Option<&Delta>, extent: Extent, subject: &StatusKey) -> Outcome {
    match delta.filter(|_| extent == Extent::Complete) {
        Some(delta) => {
            let ruling = effect::removal(delta, subject);
            Outcome {
                denials: Vec::new(),
                remarks: ruling.remarks,
                is_complete: true,
                effect: ruling.effect,
            }
        }
        None => Outcome {
            remarks: vec![unfinished("what this changes")],
            ..Outcome::nothing()
        },
    }
}

/// The answer where the object has not the shape of its kind. One that was stored like that
/// before, and has not become worse, is let through.
fn unreadable(rejection: &Rejection, is_old: bool, mut remarks: Vec<Remark>) -> Outcome {
    let mut denials = Vec::new();
    if is_old {
        let text = format!("still cannot be read and has no effect: {rejection}");
        remarks.push(Remark::new(Weight::Reach, text));
    } else {
        denials.push(Denial::from(Finding::from(rejection)));
    }
    Outcome {
        denials,
        remarks,
        is_complete: true,
        ..Outcome::nothing()
    }
}

fn unfinished(what: &str) -> Remark {
    let text = format!("there was no time to work out {what}");
    Remark::new(Weight::Unresolved, text)
}

// === impl Outcome ===

impl Outcome {
    /// Nothing is known, and nothing speaks against it.
    fn nothing() -> Self {
        Self {
            denials: Vec::new(),
            remarks: Vec::new(),
            is_complete: false,
            effect: Effect::default(),
        }
    }

    /// Whether the change is let through.
    pub fn is_allowed(&self) -> bool {
        self.denials.is_empty()
    }

    /// The remarks as an API client shows them: in lines of at most 120 characters and 2 KiB in
    /// all, as many as there is room for.
    pub fn warnings(&self) -> Vec<String> {
        lines::fit(self.remarks.iter().map(|remark| remark.text.as_str()))
    }

    /// What to do about the denials: each advice once, with the first denial that it is good for.
    pub fn remedies(&self) -> impl Iterator<Item = (&Denial, &'static str)> {
        let mut told = BTreeSet::new();
        let denials = self.denials.iter();
        let all = denials.filter_map(|denial| Some((denial, denial.remedy()?)));
        all.filter(move |(_, remedy)| told.insert(*remedy))
    }
}

// === impl Denial ===

impl Denial {
    /// What to do about it, where the message does not say so.
    pub fn remedy(&self) -> Option<&'static str> {
        match self.code {
            Code::NotFound => Some(
                "create what is missing first, or correct the reference; to let it through, \
                 set spec.admission.unresolvedReferences of the Settings to Warn",
            ),
            Code::Conflicted => {
                Some("change or delete one of the two, or let them select different things")
            }
            Code::Invalid
            | Code::Required
            | Code::Unsupported
            | Code::TooLarge
            | Code::NotReady => None,
        }
    }
}

impl From<Finding> for Denial {
    fn from(finding: Finding) -> Self {
        Self {
            message: finding.text(),
            code: finding.code,
            path: finding.path,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{path}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
