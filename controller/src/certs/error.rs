//! What an API server refused.

use ferromesh_runtime::telemetry::Chain;

/// An API server refused, or could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("{doing} {object}")]
pub struct ApiError {
    doing: &'static str,
    object: String,
    #[source]
    source: Box<kube::Error>,
}

impl ApiError {
    pub(super) fn new(doing: &'static str, object: impl Into<String>, source: kube::Error) -> Self {
        Self {
            doing,
            object: object.into(),
            source: Box::new(source),
        }
    }

    /// Whether another attempt may do without anybody's help.
    pub fn is_transient(&self) -> bool {
        match self.source.as_ref() {
            kube::Error::Api(status) => matches!(status.code, 401 | 408 | 409 | 429 | 500..),
            kube::Error::SerdeError(_) => false,
            _ => true,
        }
    }

    /// The error and its causes, for a status or a log line. What a parser says of an answer that it
    /// cannot read is left out, for it may quote a Secret.
    pub fn text(&self) -> String {
        match self.source.as_ref() {
            kube::Error::SerdeError(_) => {
                format!("{self}: the answer is not what its kind should be")
            }
            _ => Chain(self).to_string(),
        }
    }
}
