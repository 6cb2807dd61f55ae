//! Why one pass over a certificate did not come to its end.

use ferromesh_runtime::telemetry::Chain;

/// Why one pass over a certificate did not come to its end. Nothing is half done: the next pass goes
/// on from what is there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or could not be asked.
    #[error("{doing} {object}")]
    Api {
        /// What was being done.
        doing: &'static str,
        /// To which object.
        object: String,
        /// What the API server or the client said.
        #[source]
        source: Box<kube::Error>,
    },
    /// No key, or nothing signed with it.
    #[error("making the key or the request of {object}")]
    Key {
        /// Of which certificate.
        object: String,
        /// Why.
        #[source]
        source: ferromesh_ca::Error,
    },
    /// Somebody else changes the same objects all the time.
    #[error(
        "{object} changes faster than it can be written{}: find out who writes it and stop that",
        .by.as_ref().map(|by| format!(" (last by {by:?})")).unwrap_or_default()
    )]
    Contended {
        /// Which certificate.
        object: String,
        /// The field manager that wrote last, if it is known.
        by: Option<String>,
    },
    /// The process ends.
    #[error("making the key of {object} was interrupted")]
    Interrupted {
        /// Of which certificate.
        object: String,
    },
}

/// Who must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Another attempt may do.
    Transient,
    /// The API server does not answer.
    Unreachable,
    /// Somebody must change something: rights, a quota, an admission policy, a namespace that is missing.
    Refused,
}

impl Error {
    pub(crate) fn api(doing: &'static str, object: impl Into<String>, source: kube::Error) -> Self {
        Self::Api {
            doing,
            object: object.into(),
            source: Box::new(source),
        }
    }

    /// The status code with which the API server refused.
    fn code(&self) -> Option<u16> {
        match self {
            Self::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether somebody else was faster.
    pub(crate) fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the object has changed since it was read, or is gone.
    pub(crate) fn is_late(&self) -> bool {
        matches!(self.code(), Some(404 | 409))
    }

    /// Who must act.
    pub fn class(&self) -> Class {
        match (self, self.code()) {
            (_, Some(401 | 408 | 429 | 500..)) => Class::Unreachable,
            (_, Some(409)) => Class::Transient,
            (_, Some(_)) | (Self::Contended { .. }, _) => Class::Refused,
            (Self::Api { source, .. }, None) => match source.as_ref() {
                kube::Error::SerdeError(_) => Class::Refused,
                _ => Class::Unreachable,
            },
            (Self::Key { .. } | Self::Interrupted { .. }, _) => Class::Transient,
        }
    }

    /// The error and its causes, for a status or a log line. Nothing secret is in it: what a parser
    /// says of an answer that it cannot read is left out, for it may quote a Secret.
    pub fn text(&self) -> String {
        match self {
            Self::Api { source, .. } if matches!(**source, kube::Error::SerdeError(_)) => {
                format!("{self}: the answer is not what its kind should be")
            }
            _ => Chain(self).to_string(),
        }
    }
}
