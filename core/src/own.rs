//! Who set a field: the first writer wins, a second with another value is told so.

use crate::diagnose::{Code, Finding};
use crate::key::Key;

/// A field that one policy may set.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<T>(Option<(T, Key)>);

impl<T> Default for Field<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialEq> Field<T> {
    /// Sets the field, if the policy asks for a value.
    ///
    /// A value that is there already is no conflict, and stays with whoever wrote it. What is claimed has a
    /// name and is written at a path.
    pub(crate) fn claim(
        &mut self,
        (feature, path): (&str, &str),
        value: Option<T>,
        policy: &Key,
    ) -> Result<(), Finding> {
        match (&self.0, value) {
            (_, None) => Ok(()),
            (None, Some(value)) => {
                self.0 = Some((value, policy.clone()));
                Ok(())
            }
            (Some((current, _)), Some(value)) if *current == value => Ok(()),
            (Some((_, owner)), Some(_)) => {
                let conflict = Finding::about(
                    Code::Conflicted,
                    owner,
                    format!(
                        "{feature}: already owned by TrafficPolicy {owner}, which sets another value for the same requests; make the values equal, narrow one policy's matchers, or remove the field from one"
                    ),
                );
                Err(conflict.at(path))
            }
        }
    }
}

impl<T> Field<T> {
    /// The value, if one was set.
    pub fn value(&self) -> Option<&T> {
        self.0.as_ref().map(|(value, _)| value)
    }

    /// The policy that set it.
    pub fn owner(&self) -> Option<&Key> {
        self.0.as_ref().map(|(_, owner)| owner)
    }

    /// Whether nobody set it.
    pub fn is_free(&self) -> bool {
        self.0.is_none()
    }
}
