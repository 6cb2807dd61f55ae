//! Objects in, objects out: the one pure function that webhook, controller and command line share.
//!
//! [`State::step`] takes changes of objects in and says which outputs and statuses differ. It is
//! a function of its arguments: no clock, no randomness, no I/O, no locks. What comes out depends
//! on the objects alone, never on the order in which they came; a restart gives the same.
//!
//! What may not enter: a Kubernetes client, an async runtime, time, logging, hash maps (their
//! order would leak into outputs).
//!
//! Reading order: [`key`], [`kinds`] (the list of kinds, written once), [`model`] (the parsers),
//! [`change`], [`state`] (the step), [`graph`](self) (what has been worked out, and from what),
//! [`layer`] and [`discover`](self) (what there is), [`estate`] (what holds for whole meshes),
//! [`federate`], [`record`] (what one destination becomes), [`translate`], [`own`] (who set a
//! field), [`output`], [`delta`], [`status`], [`diagnose`], [`mod@judge`], [`effect`](self) (a
//! change in words); at the doors [`manifest`], [`review`], [`report`] and [`explain`]; below them
//! all [`table`], `shared`, [`index`] and [`naming`].

pub mod change;
pub mod delta;
pub mod diagnose;
mod discover;
mod effect;
pub mod estate;
pub mod explain;
pub mod federate;
mod graph;
pub mod index;
pub mod judge;
pub mod key;
pub mod kinds;
pub mod layer;
mod lookup;
pub mod manifest;
pub mod model;
pub mod naming;
pub mod output;
pub mod own;
pub mod record;
pub mod report;
pub mod review;
mod shared;
pub mod state;
pub mod status;
pub mod table;
pub mod translate;

pub use change::Change;
pub use delta::{Delta, OutputChange, StatusKey, StatusKind};
pub use diagnose::{Code, Finding};
pub use judge::{Verdict, judge};
pub use key::Key;
pub use kinds::{Input, Kind, Object, Scope};
pub use lookup::OutputSet;
pub use output::{Output, OutputKey, OutputKind, Spec};
pub use state::{Options, State, Step};
pub use status::Status;
