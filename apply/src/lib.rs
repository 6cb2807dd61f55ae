//! Makes one cluster equal to a set of opaque desired objects.
//!
//! What is wanted comes from a [`Source`]; this room may not decide it, and reads no spec. It writes by
//! server-side apply, deletes what is ours and no longer wanted once it has been told that the set is
//! complete, and puts right what others change. Nothing here waits for another cluster.
//!
//! In reading order:
//!
//! - `object`: kinds, objects, what makes an object ours, where desired objects come from.
//! - `error`: what an API server says when it does not do what it is asked to.
//! - [`ssa`]: requests about one object, also for those who write single objects themselves.
//! - `fields`: who has set which field of an object.
//! - `drift`: whether an object stands as it is wanted.
//! - `write`: makes one object stand, or not, without touching one that is not ours.
//! - `queue`: whose turn it is.
//! - `gate`: leaves a cluster alone that cannot answer.
//! - `inventory`: what stands, and what was wanted.
//! - `prune`: what is to be deleted, and when that is held.
//! - `contest`: how to deal with somebody who keeps changing an object.
//! - `discovery`, `watch`: an eye on each kind.
//! - `cause`: whose consequence a write is.
//! - `report`: what an applier tells.
//! - `metrics`: what is counted.
//! - `applier`: the task that puts all of this together, and its handle.

mod applier;
mod cause;
mod contest;
mod discovery;
mod drift;
mod error;
mod fields;
mod gate;
mod inventory;
mod metrics;
mod object;
mod prune;
mod queue;
mod report;
pub mod ssa;
mod watch;
mod write;

pub use self::{
    applier::{Applier, Handle, Options},
    error::{Cause, Error},
    metrics::{Metrics, Standing},
    object::{Answer, Desired, Kind, Label, ObjectId, Scope, Source},
    report::{Outcome, Report, Sight},
};
