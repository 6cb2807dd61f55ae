//! What `meshctl` does, seen from outside: the binary is run, on files and on API servers
//! in memory.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

#[path = "facts/bench.rs"]
mod bench;
#[path = "facts/check.rs"]
mod check;
#[path = "facts/cluster.rs"]
mod cluster;
#[path = "facts/describe.rs"]
mod describe;
#[path = "facts/discover.rs"]
mod discover;
#[path = "facts/files.rs"]
mod files;
#[path = "facts/get.rs"]
mod get;
#[path = "facts/manual.rs"]
mod manual;
#[path = "facts/server.rs"]
mod server;
#[path = "facts/translate.rs"]
mod translate;
#[path = "facts/usage.rs"]
mod usage;
#[path = "facts/validate.rs"]
mod validate;
