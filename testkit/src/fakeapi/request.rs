//! What is asked for, and what happens instead.

use std::time::Duration;

use axum::http::Uri;
use serde_json::Value;

/// What was asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// What was to be done.
    pub verb: Verb,
    /// Path and query.
    pub uri: String,
    /// Resource name of the kind; empty for discovery.
    pub plural: String,
    /// Namespace, empty if the path has none.
    pub namespace: String,
    /// Name of the object, empty for collections.
    pub name: String,
    /// What was sent; null if nothing.
    pub body: Value,
}

/// What a request is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the verb of its name")]
pub enum Verb {
    Discover,
    List,
    Watch,
    Get,
    Create,
    Replace,
    Apply,
    Merge,
    Delete,
}

/// What happens to a request instead of what it asks for.
#[derive(Clone, Debug)]
pub enum Fault {
    /// A `Status` of this code.
    Refuse {
        /// The HTTP status.
        code: u16,
        /// The header `Retry-After`, in whole seconds.
        retry_after: Option<Duration>,
    },
    /// This `Status`, under its own code.
    Status(Value),
    /// A 200 with this body.
    Answer(&'static str),
    /// No answer.
    Hang,
    /// For watches: an answer that says nothing, not even that it is over.
    Mute,
    /// The connection breaks before anything is done.
    Break,
    /// It is done, and the connection breaks before the answer.
    LoseAnswer,
    /// It is done, and there is no answer.
    WithholdAnswer,
}

// === impl Verb ===

impl Verb {
    /// Whether it may change something.
    pub fn is_write(self) -> bool {
        match self {
            Self::Discover | Self::List | Self::Watch | Self::Get => false,
            Self::Create | Self::Replace | Self::Apply | Self::Merge | Self::Delete => true,
        }
    }
}

// === impl Fault ===

impl Fault {
    /// A `Status` of this code.
    pub fn refuse(code: u16) -> Self {
        Self::Refuse {
            code,
            retry_after: None,
        }
    }
}

// === impl Request ===

impl Request {
    pub(super) fn new(verb: Verb, uri: &Uri, body: Value) -> Self {
        Self {
            verb,
            uri: uri.to_string(),
            plural: String::new(),
            namespace: String::new(),
            name: String::new(),
            body,
        }
    }
}
