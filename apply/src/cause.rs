//! Whose consequence a write is, for those who follow a change through the process.

use std::collections::BTreeMap;

use ferromesh_runtime::telemetry::SPANS;
use tracing::Span;

use crate::object::ObjectId;

/// The most objects whose cause is kept; nobody follows so many.
const MAX: usize = 4096;

/// Spans of what led to objects being wanted. Where nobody listens there are none.
#[derive(Debug, Default)]
pub(crate) struct Causes(BTreeMap<ObjectId, Span>);

impl Causes {
    /// These are wanted because of that.
    pub(crate) fn note(&mut self, ids: &[ObjectId], cause: &Span) {
        if cause.is_disabled() {
            return;
        }
        for id in ids {
            if self.0.len() < MAX || self.0.contains_key(id) {
                self.0.insert(id.clone(), cause.clone());
            }
        }
    }

    /// What led to it has come to its end.
    pub(crate) fn forget(&mut self, id: &ObjectId) {
        if !self.0.is_empty() {
            self.0.remove(id);
        }
    }

    /// The span of a write.
    pub(crate) fn write(&self, cluster: &str, id: &ObjectId, action: &'static str) -> Span {
        let parent = self.0.get(id).and_then(Span::id);
        let (kind, namespace, name) = (&*id.kind, &*id.namespace, &*id.name);
        tracing::trace_span!(
            target: SPANS, parent: parent, "apply", action, cluster, kind, namespace, name
        )
    }
}
