//! Facts about the whole controller, told at the wire: a mirror of API servers in memory, and what comes
//! to stand in them.

// The attribute tells clippy that what helps tests may panic as they do.
#[cfg(test)]
mod facts {
    mod clusters;
    mod credentials;
    mod deletions;
    mod estate;
    mod listing;
    mod restarts;
    mod standing;
    mod statuses;
    mod trust;
    mod world;
}
