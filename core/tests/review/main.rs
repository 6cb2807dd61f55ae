//! What is said about a change before it is made.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "what a test cannot read, or does not expect, fails it"
)]

mod answers;
mod effects;
mod fields;
mod references;
mod world;
