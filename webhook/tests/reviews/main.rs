//! Reviews through the router, as an API server would ask for them.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

mod admitted;
mod delta_rule;
mod http;
mod verdicts;
mod world;
