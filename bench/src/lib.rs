//! What is measured: fleets, as states, and the changes of them that are timed.

pub mod edit;
pub mod world;
