//! Answers admission reviews.
//!
//! What API servers ask before they store one of our objects is answered here from a copy of the
//! state, and from nothing else: no API server is called during a review, nothing is written, and
//! a request for trial gets the same answer as one in earnest.
//!
//! What may not enter: a rule. Whether an object is right, and what it does, is said by the
//! engine, which the command line asks too; here is decided how it is told, in which time, and
//! what happens when there is none.
//!
//! In reading order:
//! - `router`: the two routes, and what they may cost.
//! - `review`: from a request to the answer, in a given time; `respond`: the answer as an API
//!   server reads it.
//! - [`certificate`]: the certificate that is served, and the CA that signs it.
//! - [`register`]: what API servers are told to ask, and how to switch it off.
//! - `readiness`: when reviews can be answered.
//! - `metrics`: what is counted; `args`: the flags; `webhook`: all of it put together.

mod args;
pub mod certificate;
mod metrics;
mod readiness;
pub mod register;
mod respond;
mod review;
mod router;
mod webhook;

pub use args::WebhookArgs;
pub use metrics::Metrics;
pub use router::{Limits, router};
pub use webhook::{Running, Webhook};
