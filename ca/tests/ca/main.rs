//! The certificate authority through its public doors.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "functions that tests share are tests too"
)]

mod cacerts;
mod fixtures;
mod hostile;
mod issuing;
mod keys;
mod lint;
mod requests;
mod unshown;
mod verifying;
