//! The life of a certificate in one cluster.

// The attribute tells clippy that what helps tests may panic as they do.
#[cfg(test)]
mod facts {
    mod cluster;
    mod crashes;
    mod deciding;
    mod disturbances;
    mod restarting;
    mod wire;
    mod world;
}
