//! Why something is not done.

use serde_json::{Value, json};

use super::fields::Conflicts;

/// Why something is not done: a code and a message, and the causes where there are some.
pub(super) struct Refusal {
    code: u16,
    message: String,
    details: Value,
}

// === impl Refusal ===

impl Refusal {
    pub(super) fn new(code: u16, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
            details: Value::Null,
        }
    }

    pub(super) fn not_found() -> Self {
        Self {
            details: json!({ "kind": "objects", "name": "it" }),
            ..Self::new(404, "not found")
        }
    }

    /// The `Status` that says so.
    pub(super) fn status(&self) -> Value {
        let reason = match self.code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            422 => "Invalid",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "InternalError",
        };
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": reason, "code": self.code,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

impl From<Conflicts> for Refusal {
    fn from(Conflicts(conflicts): Conflicts) -> Self {
        let cause = |(manager, field): (String, String)| json!({ "reason": "FieldManagerConflict", "message": format!("conflict with {manager:?}"), "field": field });
        let causes: Vec<_> = conflicts.into_iter().map(cause).collect();
        Self {
            details: json!({ "causes": causes }),
            ..Self::new(409, "Apply failed with conflicts")
        }
    }
}
