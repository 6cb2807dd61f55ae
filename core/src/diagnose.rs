//! What is to be said about objects: findings are values, never failures.

use std::fmt;

use crate::key::Key;
use crate::model::Rejection;

/// Sorts of trouble. A name here is one that a person could act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// A value is not one that the field can have.
    Invalid,
    /// A field must be set.
    Required,
    /// A field is known, but what it asks for is not built, or not for this sort of mesh.
    Unsupported,
    /// An object asks for more than can be handled.
    TooLarge,
    /// A reference leads to nothing.
    NotFound,
    /// Another object holds what this one wants.
    Conflicted,
    /// Something that others are to provide is not there yet.
    NotReady,
}

/// One thing to say about an object, wherever it applies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Sort of trouble.
    pub code: Code,
    /// What is wrong and, where it is not plain, what to do about it.
    pub message: String,
    /// The object that a reference failed to find, or that holds what was wanted.
    pub about: Option<Key>,
}

impl Finding {
    /// Says something that concerns the object alone.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            about: None,
        }
    }

    /// Says something about this object and another.
    pub fn about(code: Code, about: &Key, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            about: Some(about.clone()),
        }
    }
}

impl From<&Rejection> for Finding {
    fn from(rejection: &Rejection) -> Self {
        Self::new(rejection.code, rejection.to_string())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
