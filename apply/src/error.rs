//! Why an object does not stand as it should: what the API server, or the way to it, said.

use std::time::Duration;

use ferromesh_runtime::pump;
use kube::core::Status;

/// Why a request was not done. `action` says what was tried, as `applying VirtualService a/b`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else changes the object at the same time, or has set fields that were to be respected.
    #[error("{action}: somebody else writes the same object")]
    Conflict {
        /// What was tried.
        action: String,
        /// The words of the API server.
        #[source]
        status: Box<Status>,
    },
    /// 401 or 403: the credential is not valid, or may not do this.
    #[error(
        "{action}: the credential does not allow it; register the cluster again to renew its rights"
    )]
    Forbidden {
        /// What was tried.
        action: String,
        /// The words of the API server.
        #[source]
        status: Box<Status>,
    },
    /// The API server, or a webhook in front of it, does not accept the object. A field that is not
    /// declared there belongs to a newer version of the kind.
    #[error("{action}: the API server does not accept the object")]
    Invalid {
        /// What was tried.
        action: String,
        /// The words of the API server.
        #[source]
        status: Box<Status>,
    },
    /// There is no such object, or its namespace does not exist or is going away.
    #[error("{action}: it, or its namespace, does not exist")]
    NotFound {
        /// What was tried.
        action: String,
        /// The words of the API server.
        #[source]
        status: Box<Status>,
    },
    /// The API server does not serve the kind, or in none of the versions that we know.
    #[error(
        "{action}: the cluster serves the kind in no version that is known here; are its definitions installed?"
    )]
    NotServed {
        /// What was tried.
        action: String,
    },
    /// 429: the API server has too much to do.
    #[error("{action}: the API server asks to be asked less often")]
    Throttled {
        /// What was tried.
        action: String,
        /// How long it wants to be left alone, if it says so.
        after: Option<Duration>,
    },
    /// The API server cannot be reached, or cannot answer now.
    #[error("{action}: the API server is not reached or cannot answer")]
    Unreachable {
        /// What was tried.
        action: String,
        /// Why.
        #[source]
        cause: Cause,
    },
    /// The API server did not answer in time.
    #[error("{action}: no answer within {} s", after.as_secs())]
    Timeout {
        /// What was tried.
        action: String,
        /// How long it was waited for.
        after: Duration,
    },
}

/// Why an API server is not reached or cannot answer.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum Cause {
    /// It answered with a 5xx.
    Status(#[from] Box<Status>),
    /// The client could not send the request, or not read the answer.
    Client(#[from] Box<kube::Error>),
    /// A watch failed.
    Watch(#[from] Box<pump::Error>),
}

/// How the trouble of one object, or of a whole cluster, is waited out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// It may be over in a moment.
    Moment,
    /// Somebody has to do something.
    Somebody,
    /// The cluster is to be left alone, for this long if it says so.
    Cluster(Option<Duration>),
    /// The kind has to be served.
    Kind,
}

/// `reason` of a cause with which API servers refuse what is created in a namespace that is going away.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// Server-side apply says so, under code 500, of a field that the schema does not know or of a value of
/// another type (Kubernetes: `structuredMergeManager.Apply`).
const NOT_OF_THE_TYPE: &str = "failed to create typed patch object";

// === impl Error ===

impl Error {
    /// The variant, for a metric label or a reason.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "conflict",
            Self::Forbidden { .. } => "forbidden",
            Self::Invalid { .. } => "invalid",
            Self::NotFound { .. } => "not_found",
            Self::NotServed { .. } => "not_served",
            Self::Throttled { .. } => "throttled",
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout { .. } => "timeout",
        }
    }

    /// The error that a refusal is. `is_status` tells whether the body was a `Status` at all.
    pub(crate) fn refused(
        action: String,
        status: Status,
        is_status: bool,
        after: Option<Duration>,
    ) -> Self {
        let is_terminating = status.details.iter().flat_map(|details| &details.causes);
        let is_terminating = { is_terminating }.any(|cause| cause.reason == NAMESPACE_TERMINATING);
        let code = status.code;
        let is_mistyped = status.message.starts_with(NOT_OF_THE_TYPE);
        let status = status.boxed();
        match code {
            401 | 403 if !is_terminating => Self::Forbidden { action, status },
            403 => Self::NotFound { action, status },
            404 if is_status && status.details.is_some() => Self::NotFound { action, status },
            404 | 405 => Self::NotServed { action },
            409 => Self::Conflict { action, status },
            429 => Self::Throttled { action, after },
            500 if is_mistyped => Self::Invalid { action, status },
            408 | 500.. => Self::Unreachable {
                action,
                cause: Cause::Status(status),
            },
            _ => Self::Invalid { action, status },
        }
    }

    /// How this is waited out.
    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            // A webhook that fails for one kind gives a 500; of these two all objects suffer.
            Self::Unreachable {
                cause: Cause::Status(status),
                ..
            } if matches!(status.code, 503 | 504) => Remedy::Cluster(None),
            Self::Conflict { .. }
            | Self::Unreachable {
                cause: Cause::Status(_),
                ..
            } => Remedy::Moment,
            Self::Forbidden { .. } | Self::Invalid { .. } | Self::NotFound { .. } => {
                Remedy::Somebody
            }
            Self::NotServed { .. } => Remedy::Kind,
            Self::Throttled { after, .. } => Remedy::Cluster(*after),
            Self::Unreachable { .. } | Self::Timeout { .. } => Remedy::Cluster(None),
        }
    }
}
