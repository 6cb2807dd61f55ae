//! What can happen to the inputs.

use std::sync::Arc;

use crate::key::Key;
use crate::kinds::{Kind, Object};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// An object is there, in this form.
    Upsert(Object),
    /// An object was deleted.
    Remove(Kind, Key),
    /// An object is gone, or says nothing that can be read, and nobody was seen to delete it: it may be that an
    /// API server was restored from a backup.
    Vanish(Kind, Key),
    /// Everything of a kind in a cluster (empty for the management cluster) has been listed.
    Synced {
        /// The cluster.
        cluster: Arc<str>,
        /// The kind.
        kind: Kind,
    },
    /// A cluster is registered no more: what was read there, and what was found, is gone.
    Forget {
        /// The cluster.
        cluster: Arc<str>,
        /// Whether its registration is gone and nobody was seen to delete it, as with [`Vanish`](Self::Vanish).
        has_vanished: bool,
    },
}
