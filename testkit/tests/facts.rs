//! Facts about the API server in memory: what it has in common with a real one (Kubernetes 1.36).

// The attribute tells clippy that what helps tests may panic as they do.
#[cfg(test)]
mod facts {
    mod apply;
    mod protocol;
}
