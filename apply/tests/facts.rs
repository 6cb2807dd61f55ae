//! Facts about what an applier does to a cluster, told at the wire.

// The attribute tells clippy that what helps tests may panic as they do.
#[cfg(test)]
mod facts {
    mod bench;
    mod convergence;
    mod drift;
    mod foreign;
    mod order;
    mod prune;
    mod single;
    mod trouble;
    mod unanswered;
    mod writing;
}
