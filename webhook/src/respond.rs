//! Answers in the form that API servers read.

use kube_core::DynamicObject;
use kube_core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use kube_core::response::{Status, StatusCause, StatusDetails};

use ferromesh_core::Code;
use ferromesh_core::review::{Denial, Outcome};

use crate::review::Verdict;

/// Most reasons of a refusal that are told; the others are counted.
const MAX_CAUSES: usize = 16;
/// Most bytes of one text of an answer.
const MAX_TEXT: usize = 600;
/// The field of what is not wrong with one field alone.
const WHOLE: &str = "spec";
/// After how many seconds a client that found no turn is asked to come back.
pub(crate) const RETRY_AFTER: u32 = 1;

/// What is said about a change that nobody has looked at.
const UNJUDGED: &str = "too many reviews at a time: what this changes was not worked out";

/// The answer to a validating review. `registration` names the form of the registration that
/// the request came by, for whoever tests it.
pub(crate) fn respond(
    request: &AdmissionRequest<DynamicObject>,
    verdict: Verdict,
    registration: &str,
) -> AdmissionReview<DynamicObject> {
    let mut response = AdmissionResponse::from(request);
    match verdict {
        Verdict::Passed => {}
        Verdict::Judged(outcome) => {
            let warnings = outcome.warnings();
            response.warnings = (!warnings.is_empty()).then_some(warnings);
            if !outcome.is_allowed() {
                response.allowed = false;
                response.result = invalid(request, &outcome);
            }
        }
        Verdict::Unjudged => response.warnings = Some(vec![UNJUDGED.to_owned()]),
        Verdict::Busy => {
            response.allowed = false;
            response.result = Status::failure(
                "too many reviews at a time; this one was not judged",
                "TooManyRequests",
            )
            .with_code(429)
            .with_details(StatusDetails {
                retry_after_seconds: RETRY_AFTER,
                ..details(request)
            });
        }
        Verdict::SelfTest => {
            response.allowed = false;
            response.result = Status::failure(&self_test(registration), "Forbidden").with_code(403);
        }
    }
    response.into_review()
}

/// What the refusal of a self-test says.
pub(crate) const SELF_TEST: &str = "this object tests whether the webhook is called, and it is";

/// What it says when it came by this form of the registration.
pub(crate) fn self_test(registration: &str) -> String {
    format!("{SELF_TEST} [registration {registration}]")
}

fn details(request: &AdmissionRequest<DynamicObject>) -> StatusDetails {
    StatusDetails {
        name: request.name.clone(),
        group: request.kind.group.clone(),
        kind: request.kind.kind.clone(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

/// `kubectl` shows the causes, field by field; others show the message.
fn invalid(request: &AdmissionRequest<DynamicObject>, outcome: &Outcome) -> Status {
    let told = outcome.denials.iter().take(MAX_CAUSES).map(cause);
    let more = outcome.denials.len().saturating_sub(MAX_CAUSES);
    let more = (more > 0).then(|| remark(WHOLE.to_owned(), format!("{more} more errors")));
    let remedies = outcome.remedies();
    let remedies = remedies.map(|(denial, remedy)| remark(field(denial), remedy.to_owned()));
    let causes: Vec<_> = told.chain(more).chain(remedies).collect();
    let message = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect::<Vec<_>>()
        .join("; ");
    Status::failure(&message, "Invalid")
        .with_code(422)
        .with_details(StatusDetails {
            causes,
            ..details(request)
        })
}

fn cause(denial: &Denial) -> StatusCause {
    StatusCause {
        reason: reason(denial.code).to_owned(),
        ..remark(field(denial), denial.message.clone())
    }
}

fn field(denial: &Denial) -> String {
    denial.path.clone().unwrap_or_else(|| WHOLE.to_owned())
}

/// What is said about a field, without a reason.
fn remark(field: String, message: String) -> StatusCause {
    StatusCause {
        reason: String::new(),
        message: shortened(message),
        field: shortened(field),
    }
}

/// Sorts of causes that Kubernetes has names for (`CauseType` in apimachinery).
fn reason(code: Code) -> &'static str {
    match code {
        Code::Invalid => "FieldValueInvalid",
        Code::Required => "FieldValueRequired",
        Code::Unsupported => "FieldValueNotSupported",
        Code::TooLarge => "FieldValueTooMany",
        Code::NotFound | Code::NotReady => "FieldValueNotFound",
        Code::Conflicted => "FieldValueForbidden",
    }
}

/// A text that may repeat what was sent, at a length that can be read.
pub(crate) fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push('…');
    }
    text
}
