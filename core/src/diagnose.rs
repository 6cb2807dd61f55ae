//! What is to be said about objects: findings are values, never failures.

use std::collections::BTreeMap;
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
    /// The field, as one would write it: `spec.policy.retries`; none where it is not one alone.
    pub path: Option<String>,
    /// The destination on which it is so; none where it is so everywhere.
    pub place: Option<Key>,
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
            path: None,
            place: None,
            message: message.into(),
            about: None,
        }
    }

    /// Says something about this object and another.
    pub fn about(code: Code, about: &Key, message: impl Into<String>) -> Self {
        Self {
            about: Some(about.clone()),
            ..Self::new(code, message)
        }
    }

    /// The same, of the field at `path`.
    #[must_use]
    pub fn at(self, path: impl Into<String>) -> Self {
        Self {
            path: Some(path.into()),
            ..self
        }
    }

    /// The same, on one destination.
    #[must_use]
    pub fn on(self, destination: &Key) -> Self {
        Self {
            place: Some(destination.clone()),
            ..self
        }
    }

    /// What is wrong and on which destination, without the field.
    pub fn text(&self) -> String {
        match &self.place {
            Some(place) => format!("on {place}: {}", self.message),
            None => self.message.clone(),
        }
    }

    /// Whether both say the same. An entry that is put into a list moves those after it, and with
    /// them the paths of what is wrong with them: positions do not count. Where another object is
    /// meant, it does not count either by which field.
    pub(crate) fn repeats(&self, other: &Self) -> bool {
        self.essence() == other.essence()
    }

    fn essence(&self) -> (Code, Option<String>, Option<&Key>, &str) {
        let is_alone = self.place.is_none() && self.about.is_none();
        let path = self.path.as_deref().filter(|_| is_alone);
        let path = path.map(without_positions);
        (self.code, path, self.place.as_ref(), &self.message)
    }
}

/// Those of the findings `after` a change that it has brought: a finding stands for one of those
/// that it repeats, and no more.
pub(crate) fn brought(before: &[Finding], after: &[Finding]) -> Vec<Finding> {
    let mut known: BTreeMap<_, usize> = BTreeMap::new();
    for finding in before {
        *known.entry(finding.essence()).or_default() += 1;
    }
    let mut brought = Vec::new();
    for finding in after {
        match known.get_mut(&finding.essence()) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => brought.push(finding.clone()),
        }
    }
    brought
}

/// A path without the positions in it: `spec.meshes[]`.
fn without_positions(path: &str) -> String {
    let mut bare = String::with_capacity(path.len());
    let mut is_position = false;
    for letter in path.chars() {
        is_position = (is_position || letter == '[') && letter != ']';
        if !is_position {
            bare.push(letter);
        }
    }
    bare
}

impl From<&Rejection> for Finding {
    fn from(rejection: &Rejection) -> Self {
        Self::new(rejection.code, &rejection.message).at(&rejection.path)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.text())
    }
}
