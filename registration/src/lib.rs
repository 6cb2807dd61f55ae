//! What a registered cluster consists of: makes, renews and removes it.
//!
//! A cluster is registered by objects on two sides. In the remote cluster: a `ServiceAccount` with the
//! least rights that the management plane needs there. In the management cluster: a Secret with a
//! kubeconfig of that account, and a `KubernetesCluster`. Nothing here knows what the management plane does
//! with them, nothing prints, and nothing is written but what a [`Plan`] shows beforehand.
//!
//! In reading order:
//!
//! - [`right`]: what the management plane may do in a remote cluster, and why.
//! - [`object`]: an object of a registration, where it belongs and whose it is.
//! - [`kubeconfig`]: how the management plane reaches the API server of a remote cluster.
//! - [`plan`]: from a [`Registration`] to all its objects.
//! - [`credential`]: the token of the account, how long it lives, and how it is renewed.
//! - [`progress`]: what is told while something is done.
//! - [`mod@register`], [`mod@deregister`], [`mod@list`]: what a person asks for.
//! - `account`: what is taken away in the remote cluster.
//! - `door`, [`error`]: requests to one of the two sides, and how they fail.

mod account;
mod door;

pub mod credential;
pub mod deregister;
pub mod error;
pub mod kubeconfig;
pub mod list;
pub mod object;
pub mod plan;
pub mod progress;
pub mod register;
pub mod right;

pub use self::{
    credential::{Account, CredentialKind, Renewal, Validity, renew},
    deregister::{Deregistration, deregister},
    error::Error,
    kubeconfig::{Address, ApiServer},
    list::{RegisteredCluster, list},
    object::{Reference, Side},
    plan::{Plan, Registration},
    progress::Event,
    register::register,
};
