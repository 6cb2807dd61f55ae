//! What tests of several rooms share. A dev-dependency only.
//!
//! In reading order:
//!
//! - [`fakeapi`]: an API server in memory, for the tests that need its protocol and not its processes.
//! - [`fleet`]: objects of fleets of any size.

pub mod fakeapi;
pub mod fleet;
