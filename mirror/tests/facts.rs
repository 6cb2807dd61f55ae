//! Facts about the mirror, told at the wire: API servers in memory, and what comes of what they hold.

// The attribute tells clippy that what helps tests may panic as they do.
#[cfg(test)]
mod facts {
    mod credentials;
    mod following;
    mod publishing;
    mod readiness;
    mod registration;
    mod secrets;
    mod unreadable;
    mod world;
}
