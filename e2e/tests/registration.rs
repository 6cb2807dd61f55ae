//! Registering clusters, on real API servers.
//!
//! Every fact has cluster names and namespaces of its own, so all of them can run at once on the
//! same clusters.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

#[path = "registration/estate.rs"]
mod estate;
#[path = "registration/facts.rs"]
mod facts;
