//! Facts about registrations, told by plans and at the wire.

// The attribute tells clippy that what helps tests may panic as they do.
#[cfg(test)]
mod facts {
    mod deregister;
    mod estate;
    mod given;
    mod kubeconfig;
    mod list;
    mod plan;
    mod register;
    mod renew;
    mod right;
    mod validity;
}
