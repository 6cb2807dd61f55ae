//! From a request to the answer, in a given time.

use std::time::Instant;

use ferromesh_core::review::{Candidate, Intent, Outcome, Review, judged};
use kube_core::DynamicObject;
use kube_core::admission::{AdmissionRequest, Operation};
use serde_json::Value;

/// Things that are worked out before the clock is looked at again; each takes some microseconds.
const FUEL: usize = 64;

/// Annotation on an object that the webhook refuses whatever it says: who asks an API server to
/// store one, for trial, learns whether the webhook is called.
pub(crate) const SELF_TEST_ANNOTATION: &str = "admission.mesh.gloo.solo.io/self-test";

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// There is nothing to judge.
    Passed,
    /// It was judged.
    Judged(Outcome),
    /// There was no turn for it, and it is let through all the same.
    Unjudged,
    /// There was no turn for it: whoever asked may ask again.
    Busy,
    /// The request was made to see whether it comes here.
    SelfTest,
}

/// What a request asks for, taken out of it; none where there is nothing to judge.
pub(crate) fn candidate(request: &mut AdmissionRequest<DynamicObject>) -> Option<Candidate> {
    let kind = judged(&request.kind.group, &request.kind.kind)?;
    let sub_resource = request.sub_resource.as_deref();
    if sub_resource.is_some_and(|name| !name.is_empty()) {
        return None;
    }
    let (new, old) = (request.object.take(), request.old_object.take());
    let namespace = request.namespace.as_deref().unwrap_or_default();
    let name = &request.name;
    let json = |object: Option<DynamicObject>| {
        let mut object = object?;
        // The name of an object that asks for a generated one is made up later.
        let generated = object.metadata.generate_name.clone().unwrap_or_default();
        let meta = &mut object.metadata;
        meta.managed_fields = None;
        meta.name.get_or_insert_with(|| {
            if name.is_empty() {
                generated
            } else {
                name.clone()
            }
        });
        meta.namespace.get_or_insert_with(|| namespace.to_owned());
        serde_json::to_value(object).ok()
    };
    let intent = match request.operation {
        Operation::Create => Intent::Create(json(new)?),
        Operation::Update => Intent::Update {
            old: json(old)?,
            new: json(new)?,
        },
        Operation::Delete => Intent::Delete(json(old)?),
        Operation::Connect => return None,
    };
    Candidate::new(kind, intent)
}

/// The answer, where the world need not be looked at for it.
pub(crate) fn answer_at_once(candidate: &Candidate) -> Option<Verdict> {
    match candidate.intent() {
        Intent::Create(new) | Intent::Update { new, .. } if is_self_test(new) => {
            Some(Verdict::SelfTest)
        }
        Intent::Create(_) | Intent::Update { .. } | Intent::Delete(_) => {
            candidate.settled().map(Verdict::Judged)
        }
    }
}

/// Works on a review until it is time; says whether everything is done. The object is read in any case.
pub(crate) fn advance(review: &mut Review, until: Instant) -> bool {
    let mut is_done = review.advance(0);
    while !is_done && Instant::now() < until {
        is_done = review.advance(FUEL);
    }
    is_done
}

fn is_self_test(object: &Value) -> bool {
    object
        .get("metadata")
        .and_then(|meta| meta.get("annotations"))
        .is_some_and(|annotations| annotations.get(SELF_TEST_ANNOTATION).is_some())
}
