//! Facts about how a process lives, told at the wire: sockets, signals, files, an API server.

// The attribute tells clippy that what helps tests may panic as they do.
#[cfg(test)]
mod facts {
    mod admin;
    mod apiserver;
    mod client;
    mod delegate;
    mod lease;
    mod pump;
    mod serve;
    mod shutdown;
    mod tls;
    mod versions;
    mod wire;
}
