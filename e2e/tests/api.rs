//! Our API on a real API server.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

#[path = "api/outputs.rs"]
mod outputs;
#[path = "api/preconditions.rs"]
mod preconditions;
#[path = "api/rules.rs"]
mod rules;
