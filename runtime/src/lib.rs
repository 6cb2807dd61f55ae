//! How a process lives: arguments, telemetry, readiness, shutdown, serving, clients, leases, watches.
//!
//! Everything here does I/O and knows Kubernetes as a protocol. No word of what the product is about
//! may enter: a reader of this crate cannot tell what its callers are for. There is no global state and
//! no global randomness; clocks are Tokio's, so that tests may pause them.
//!
//! In reading order:
//!
//! - [`args`]: argument structs that every binary flattens.
//! - [`telemetry`]: logs, and how an error is written into them.
//! - [`ready`]: what the process still waits for.
//! - [`shutdown`]: first signal drains, second aborts.
//! - [`admin`]: `/healthz`, `/readyz`, `/metrics`, `/log`.
//! - [`delegate`]: who may look into the process, as the API server says.
//! - [`tls`]: the credential a server shows, and how it is replaced.
//! - [`serve`]: HTTPS and HTTP serving with limits and graceful drain.
//! - [`fingerprint`]: has this content changed?
//! - [`client`]: clients of API servers, from here or from bytes that are not trusted.
//! - [`backoff`]: delays between attempts, with jitter from a passed generator.
//! - [`beside`]: work that takes long.
//! - [`lease`]: at most one holder, as a claim that can be watched.
//! - [`pump`]: list and watch one kind of one API server.

pub mod admin;
pub mod args;
pub mod backoff;
pub mod beside;
pub mod client;
pub mod delegate;
pub mod fingerprint;
pub mod lease;
pub mod pump;
pub mod ready;
pub mod serve;
pub mod shutdown;
pub mod telemetry;
pub mod tls;
