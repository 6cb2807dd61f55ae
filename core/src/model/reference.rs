//! References to other objects, and where they are written.

use crate::key::Key;

/// A complete reference in a list of such.
///
/// Incomplete ones are refused and left out of the list that is kept, so each knows where it stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The object.
    pub key: Key,
    /// Position in the list as it was written.
    pub position: usize,
}
