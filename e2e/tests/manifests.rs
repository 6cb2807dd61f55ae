//! What is installed, and what is shipped beside it.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

#[path = "manifests/documents.rs"]
mod documents;
#[path = "manifests/helm.rs"]
mod helm;
#[path = "manifests/objects.rs"]
mod objects;
#[path = "manifests/rights.rs"]
mod rights;
