//! Keys, requests, `cacerts` and restarts in one cluster.
//!
//! What happens here happens in the cluster that signs with the result: in the server for a cluster
//! that it reaches, in the agent for a cluster that it does not. A private key is made here, is stored
//! in its own cluster and goes nowhere else. What a certificate says is decided elsewhere: of the
//! cluster's own objects, nobody but this cluster believes anything.
//!
//! What may not enter: who wants a certificate and why, roots and their keys, other clusters.
//!
//! Everything is decided by two functions without I/O, [`state::decide`] and [`restart::step`], from
//! what the API server says now. Nothing is remembered: a process that dies between any two actions
//! leaves something from which the next one goes on. `cacerts` is written complete and verified or not
//! at all, is never deleted, and a CA in it that is not ours is never overwritten.
//!
//! In reading order:
//!
//! - [`mark`]: the labels and annotations by which our objects are known.
//! - [`sealed`]: a Secret that cannot be printed.
//! - [`terms`]: what an `IssuedCertificate` asks for.
//! - [`key`], [`request`], [`cacerts`]: the three objects of a certificate, made and read.
//! - [`renewal`]: when a certificate has lived long enough.
//! - [`state`]: what to do next, and what the status says.
//! - [`restart`]: which pods to restart next.
//! - [`perform`]: looks, decides and acts.
//! - [`error`]: what an API server refused.

pub mod cacerts;
pub mod error;
pub mod key;
pub mod mark;
pub mod perform;
pub mod renewal;
pub mod request;
pub mod restart;
pub mod sealed;
pub mod state;
pub mod terms;

pub use crate::error::Error;
pub use crate::perform::{Hands, Memory, Progress, Sources};
