//! What is told while something is done.

use ferromesh_crds::name::Namespace;
use ferromesh_runtime::client::ClientWarning;

use crate::{
    credential::Validity,
    object::{Reference, Side},
};

/// Something that happened. It never carries anything of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An object is as planned.
    Applied {
        /// Where.
        side: Side,
        /// Which.
        object: Reference,
        /// What that took.
        change: Change,
    },
    /// An object was left as it is.
    Kept {
        /// Where.
        side: Side,
        /// Which.
        object: Reference,
        /// Why.
        reason: &'static str,
    },
    /// An object was deleted.
    Deleted {
        /// Where.
        side: Side,
        /// Which.
        object: Reference,
    },
    /// The remote cluster gave a token.
    CredentialIssued {
        /// From when to when it is valid; none if it does not expire.
        validity: Option<Validity>,
    },
    /// Something that is allowed, and is perhaps not meant.
    Warning(Warning),
}

/// What it took to make an object as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was made.
    Created,
    /// It was changed.
    Changed,
    /// Nothing.
    Unchanged,
}

/// Something that is allowed, and is perhaps not meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The connection of the management plane is weaker than it could be.
    #[error("{0}")]
    Connection(ClientWarning),
    /// The stored address means whichever machine asks.
    #[error(
        "the management plane is told to reach the remote cluster at {server}, which means the machine that it runs on itself: give --api-server-address unless that is right"
    )]
    LocalAddress {
        /// The address.
        server: String,
    },
    /// The remote cluster is the management cluster.
    #[error("the remote cluster is the management cluster itself: is that the right context?")]
    SameCluster,
    /// The remote cluster is registered under another name, too.
    #[error(
        "the remote cluster is registered as {other}, too: everything in it is discovered twice, and the two registrations undo each other's work; deregister one of them"
    )]
    RegisteredTwice {
        /// The other name.
        other: String,
    },
    /// No rights were given in a namespace of istiod, for it does not exist.
    #[error(
        "namespace {namespace} does not exist in the remote cluster: once Istio is installed there, register the cluster again, so that its certificate authority can be written"
    )]
    NoIstioNamespace {
        /// The namespace.
        namespace: Namespace,
    },
    /// The remote cluster was not asked.
    #[error(
        "the remote cluster was left as it is: should it come back, deregister it again to take away the account and its rights"
    )]
    RemoteUntouched,
}
