//! Certificates, from the management cluster's side.

// The attribute tells clippy that what helps tests may panic as they do.
#[cfg(test)]
mod certs {
    mod driving;
    mod fleet;
    mod issuing;
    mod reporting;
    mod roots;
}
