//! What is wrong with an object by itself.

use std::collections::BTreeMap;
use std::fmt;

use super::labels;
pub use crate::diagnose::Code;

/// One thing that an object's author has to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The field, as one would write it: `spec.policy.retries.attempts`.
    pub path: String,
    /// What sort of trouble it is.
    pub code: Code,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Most rejections of one object that are kept one by one; the others are counted.
const MAX_REJECTIONS: usize = 1_000;

/// Collects rejections while an object is parsed.
#[derive(Debug, Default)]
pub(super) struct Door {
    rejections: Vec<Rejection>,
    more: usize,
}

impl Door {
    /// Refuses the field at `path`.
    pub(super) fn refuse(
        &mut self,
        path: impl fmt::Display,
        code: Code,
        message: impl Into<String>,
    ) {
        if self.rejections.len() == MAX_REJECTIONS {
            self.more += 1;
            return;
        }
        self.rejections.push(Rejection {
            path: path.to_string(),
            code,
            message: message.into(),
        });
    }

    /// Refuses a field that is known and not built yet, where it `is_set`.
    pub(super) fn not_supported(&mut self, path: impl fmt::Display, is_set: bool) {
        if is_set {
            self.refuse(
                path,
                Code::Unsupported,
                "not supported yet; remove the field",
            );
        }
    }

    /// Refuses a list that is longer than `limit`.
    pub(super) fn limit(&mut self, path: impl fmt::Display, len: usize, limit: usize) -> bool {
        let fits = len <= limit;
        if !fits {
            self.refuse(
                path,
                Code::TooLarge,
                format!("has {len} entries, at most {limit} are handled; split the object"),
            );
        }
        fits
    }

    /// Refuses labels that no pod can have, as Istio would.
    pub(super) fn labels(&mut self, path: impl fmt::Display, labels: &BTreeMap<String, String>) {
        if let Some(label) = labels::impossible(labels) {
            self.refuse(
                path,
                Code::Invalid,
                format!(
                    "`{label}` is not a label: keys and values are up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at either end; a value may be empty, and a DNS name and `/` stand before a key"
                ),
            );
        }
    }

    /// Ends the parsing.
    pub(super) fn close(self) -> Vec<Rejection> {
        let mut rejections = self.rejections;
        if self.more > 0 {
            rejections.push(Rejection {
                path: "spec".to_owned(),
                code: Code::TooLarge,
                message: format!("{} more errors; correct those that are told", self.more),
            });
        }
        rejections
    }
}
