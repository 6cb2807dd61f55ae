//! Why an API server could not be asked, and who must act.

use std::time::Duration;

use kube::core::Status;

/// Why an API server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It answered with a refusal.
    #[error("the API server refused {path}")]
    Refused {
        /// The path that was asked for.
        path: String,
        /// Its own words.
        #[source]
        status: Box<Status>,
    },
    /// It could not be reached, or the connection broke.
    #[error("asking the API server for {path}")]
    Transport {
        /// The path that was asked for.
        path: String,
        /// What the client said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The connection broke within an answer.
    #[error("reading the answer of the API server for {path}")]
    Broken {
        /// The path that was asked for.
        path: String,
        /// What the connection said.
        #[source]
        source: std::io::Error,
    },
    /// It did not answer in time.
    #[error("the API server did not answer for {path} within {} s", after.as_secs())]
    TimedOut {
        /// The path that was asked for.
        path: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// It ended a watch at once.
    #[error("the API server ended the watch of {path} as soon as it had begun")]
    ShortWatch {
        /// The path that was asked for.
        path: String,
    },
    /// It answered with something else than Kubernetes would.
    #[error("the answer for {path} is not one of a Kubernetes API server; is the address right?")]
    Malformed {
        /// The path that was asked for.
        path: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A list without `metadata.resourceVersion`, so that no watch can follow.
    #[error("the list of {path} has no resourceVersion; can it be watched?")]
    NoResourceVersion {
        /// The path that was asked for.
        path: String,
    },
    /// An answer, or one event, is larger than we take.
    #[error("the answer for {path} is larger than {limit} bytes; a smaller page size may help")]
    TooLarge {
        /// The path that was asked for.
        path: String,
        /// The limit in bytes.
        limit: u64,
    },
}

/// What kind of failure it is: who must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// 401: the credential is not valid, or no longer.
    Unauthorized,
    /// 403: the credential is valid and may not do this.
    Forbidden,
    /// 404 or 405: the API server does not serve this kind, or not for watching.
    NotServed,
    /// No answer, a broken one, or one that it cannot answer now (408, 429, 5xx).
    Unreachable,
    /// Something else.
    Other,
}

impl Class {
    /// A word for a metric label or a reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotServed => "not_served",
            Self::Unreachable => "unreachable",
            Self::Other => "other",
        }
    }
}

impl Error {
    /// What kind of failure this is.
    pub fn class(&self) -> Class {
        match self {
            Self::Refused { status, .. } => match status.code {
                401 => Class::Unauthorized,
                403 => Class::Forbidden,
                404 | 405 => Class::NotServed,
                408 | 429 | 500.. => Class::Unreachable,
                _ => Class::Other,
            },
            Self::Transport { source, .. } => match source.as_ref() {
                kube::Error::Auth(_) => Class::Unauthorized,
                kube::Error::HyperError(_)
                | kube::Error::Service(_)
                | kube::Error::ReadEvents(_) => Class::Unreachable,
                _ => Class::Other,
            },
            Self::Broken { .. } | Self::TimedOut { .. } | Self::ShortWatch { .. } => {
                Class::Unreachable
            }
            Self::Malformed { .. } | Self::NoResourceVersion { .. } | Self::TooLarge { .. } => {
                Class::Other
            }
        }
    }

    /// 410: the resource version, or the page of a list, is too old to go on from.
    pub(super) fn is_expired(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if status.code == 410)
    }
}
