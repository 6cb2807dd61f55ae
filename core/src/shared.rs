//! A value that clones hold in common until one of them changes it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value that all clones hold in common. Whoever changes one has its own from then on.
///
/// A state is dozens of tables. To clone each of them alone takes an atomic count each, and where several
/// threads try changes at once, those counts are what they wait for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shared<T>(Arc<T>);

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}
