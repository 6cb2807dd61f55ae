//! What the webhook keeps in the management cluster: its certificate, and its registration.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test cannot read, or does not expect, fails it"
)]

mod certificate;
mod registration;
mod whole;

use std::time::Duration;

use ferromesh_testkit::fakeapi::Kind;

fn secrets() -> Kind {
    Kind::new("", "Secret", "secrets")
}

/// Waits until something holds. Where Tokio's clock is paused, this costs no time.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_mins(2);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
