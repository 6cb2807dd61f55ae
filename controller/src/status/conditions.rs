//! Conditions, with their times and in the room that a status has for them.

use ferromesh_crds::condition::{Finding, Reason, Status, Type, merge};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};

use crate::message::bounded;

/// The most bytes of a status, as JSON.
pub(super) const MAX_STATUS: usize = 8 * 1024;
/// The most bytes of a message, as JSON; where there is more to say than finds room, they become less.
const MAX_MESSAGE: usize = 1024;
/// Nobody is helped by less than this.
const LEAST_MESSAGE: usize = 64;

/// A status of these fields and conditions. Messages are shortened as far as they must be, all alike.
pub(super) fn status(fields: Map<String, Value>, mut conditions: Vec<Condition>) -> Value {
    let mut status = Value::Object(fields);
    let mut room = MAX_MESSAGE;
    loop {
        for condition in &mut conditions {
            condition.message = bounded(std::mem::take(&mut condition.message), room);
        }
        if !conditions.is_empty() {
            status["conditions"] = json!(conditions);
        }
        room /= 2;
        if room < LEAST_MESSAGE || status.to_string().len() <= MAX_STATUS {
            return status;
        }
    }
}

/// Conditions as they are to be written.
///
/// What is not known takes nothing back of what was said of the same generation: after a restart
/// everything is looked at anew, and nobody should see that.
pub(super) fn conditions(
    stored: &[Condition],
    findings: &[Finding],
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = merge(stored, findings, now);
    for (condition, finding) in conditions.iter_mut().zip(findings) {
        // That a cluster is not reached says much of a certificate, and nothing of what is written there.
        let is_new = matches!(finding.reason, Reason::Pending | Reason::Syncing);
        let is_open =
            finding.status == Status::Unknown && (is_new || finding.kind == Type::Programmed);
        let before = stored.iter().find(|before| {
            before.type_ == condition.type_
                && (before.status != Status::Unknown.as_str()
                    || is_new && before.reason == Reason::ClusterUnreachable.as_str())
                && before.observed_generation == condition.observed_generation
        });
        if let (true, Some(before)) = (is_open, before) {
            condition.clone_from(before);
        }
    }
    conditions
}

/// What conditions come to, for those who wait for an object whatever its kind: tools for `GitOps` know
/// `Ready` and `Stalled` (kstatus), and take an object without them for one that is all right.
///
/// What is wrong with an object by itself is not waited for. `findings` are those of the first conditions,
/// in their order.
pub(super) fn sum(conditions: &[Condition], findings: &[Finding]) -> Vec<Finding> {
    let is_by_itself = |finding: &&Finding| {
        finding.kind == Type::Accepted
            && finding.status == Status::False
            && matches!(finding.reason, Reason::Invalid | Reason::Unsupported)
    };
    let lacking = |status: Status| {
        let mut conditions = conditions.iter().zip(findings);
        conditions.find(|(condition, _)| condition.status == status.as_str())
    };
    let say = |kind, status, reason, message| Finding {
        kind,
        status,
        reason,
        message,
        observed_generation: conditions.first().and_then(|it| it.observed_generation),
    };
    let mut sum = Vec::new();
    for status in [Status::False, Status::Unknown] {
        if let Some((condition, finding)) = lacking(status) {
            let message = format!("{}: {}", finding.kind, condition.message);
            sum.push(say(Type::Ready, status, finding.reason, message));
            break;
        }
    }
    if sum.is_empty() {
        let message = "everything is as it should".to_owned();
        sum.push(say(Type::Ready, Status::True, Reason::Ready, message));
    }
    if let Some(finding) = findings.iter().find(is_by_itself) {
        let message = finding.message.clone();
        sum.push(say(Type::Stalled, Status::True, finding.reason, message));
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The most bytes that the engine fills with lists.
    const LISTS: usize = 6_500;

    fn programmed(status: Status, reason: Reason, generation: i64) -> Finding {
        Finding {
            kind: Type::Programmed,
            status,
            reason,
            message: reason.as_str().to_owned(),
            observed_generation: Some(generation),
        }
    }

    fn after(first: &Finding, then: &Finding) -> Condition {
        let now = Timestamp::UNIX_EPOCH;
        let stored = conditions(&[], std::slice::from_ref(first), now);
        conditions(&stored, std::slice::from_ref(then), now).remove(0)
    }

    proptest! {
        #[test]
        fn a_status_is_never_too_large(
            lists in 0..LISTS,
            messages in vec("[a\"\\\\\u{1}ü🙂]{0,1200}", 6),
            generation in any::<i64>(),
        ) {
            let kinds = [
                Type::Accepted, Type::ResolvedRefs, Type::Programmed, Type::TrustReady, Type::Ready,
                Type::Stalled,
            ];
            let findings = kinds.into_iter().zip(messages).map(|(kind, message)| Finding {
                kind,
                status: Status::Unknown,
                reason: Reason::ClusterUnreachable,
                message,
                observed_generation: Some(generation),
            });
            let findings: Vec<_> = findings.collect();
            let fields = json!({
                "observedGeneration": generation,
                "state": "ACCEPTED",
                "destinations": "x".repeat(lists),
                "omitted": i64::MAX,
            });
            let Value::Object(fields) = fields else {
                unreachable!("an object");
            };
            let stored = conditions(&[], &findings, Timestamp::MAX);
            let told = status(fields.clone(), stored.clone());
            let size = told.to_string().len();
            prop_assert!(size <= MAX_STATUS, "{}", size);
            // Something is left to read, and saying the same again changes nothing.
            let left: Vec<Condition> = serde_json::from_value(told["conditions"].clone()).unwrap();
            for (left, whole) in left.iter().zip(&stored) {
                prop_assert!(left.message.len() >= whole.message.len().min(LEAST_MESSAGE / 6));
            }
            let again = conditions(&left, &findings, Timestamp::MAX);
            prop_assert_eq!(status(fields, again), told);
        }
    }

    #[test]
    fn a_message_that_somebody_wrote_is_not_kept_in_full() {
        let mut stored = conditions(
            &[],
            &[programmed(Status::False, Reason::ApplyFailed, 1)],
            Timestamp::UNIX_EPOCH,
        );
        stored[0].message = "x".repeat(32 * 1024);
        let pending = programmed(Status::Unknown, Reason::Pending, 1);
        let kept = conditions(&stored, &[pending], Timestamp::UNIX_EPOCH);
        let told = status(Map::new(), kept).to_string();
        assert!(told.len() < 2 * MAX_MESSAGE, "{}", told.len());
    }

    #[test]
    fn what_is_not_known_yet_takes_nothing_back() {
        let written = programmed(Status::True, Reason::Programmed, 1);
        let pending = programmed(Status::Unknown, Reason::Pending, 1);
        assert_eq!(after(&written, &pending).status, "True");
    }

    #[test]
    fn another_generation_is_not_written_because_the_last_one_was() {
        let written = programmed(Status::True, Reason::Programmed, 1);
        let pending = programmed(Status::Unknown, Reason::Pending, 2);
        assert_eq!(after(&written, &pending).status, "Unknown");
    }

    #[test]
    fn what_was_wrong_stays_so_until_something_is_known() {
        let foreign = programmed(Status::False, Reason::ForeignObject, 1);
        let pending = programmed(Status::Unknown, Reason::Pending, 1);
        assert_eq!(after(&foreign, &pending).reason, "ForeignObject");
        let unreached = programmed(Status::Unknown, Reason::ClusterUnreachable, 1);
        assert_eq!(after(&foreign, &unreached).reason, "ForeignObject");
        let other = programmed(Status::Unknown, Reason::Pending, 2);
        assert_eq!(after(&foreign, &other).reason, "Pending");
    }

    #[test]
    fn who_has_not_been_asked_again_is_still_unreachable() {
        let unreached = programmed(Status::Unknown, Reason::ClusterUnreachable, 1);
        let pending = programmed(Status::Unknown, Reason::Pending, 1);
        assert_eq!(after(&unreached, &pending).reason, "ClusterUnreachable");
        assert_eq!(after(&pending, &unreached).reason, "ClusterUnreachable");
    }

    #[test]
    fn what_is_known_to_be_wrong_is_said() {
        let written = programmed(Status::True, Reason::Programmed, 1);
        let failed = programmed(Status::False, Reason::ApplyFailed, 1);
        assert_eq!(after(&written, &failed).reason, "ApplyFailed");
    }

    /// `Ready` and `Stalled`, of these findings.
    fn summed(findings: &[Finding]) -> Vec<(&'static str, &'static str, String)> {
        let conditions = conditions(&[], findings, Timestamp::UNIX_EPOCH);
        let sum = sum(&conditions, findings).into_iter();
        let told = |it: Finding| (it.kind.as_str(), it.status.as_str(), it.message);
        sum.map(told).collect()
    }

    fn accepted(status: Status, reason: Reason) -> Finding {
        Finding {
            kind: Type::Accepted,
            ..programmed(status, reason, 1)
        }
    }

    #[test]
    fn an_object_is_ready_when_everything_is_so() {
        let written = programmed(Status::True, Reason::Programmed, 1);
        let taken = accepted(Status::True, Reason::Accepted);
        let ready = ("Ready", "True", "everything is as it should".to_owned());
        assert_eq!(summed(&[taken.clone(), written]), [ready]);
        let pending = programmed(Status::Unknown, Reason::Pending, 1);
        let waiting = ("Ready", "Unknown", "Programmed: Pending".to_owned());
        assert_eq!(summed(&[taken, pending]), [waiting]);
    }

    #[test]
    fn what_is_wrong_by_itself_is_not_waited_for_and_what_may_heal_is() {
        let pending = programmed(Status::Unknown, Reason::Pending, 1);
        for (reason, is_stalled) in [
            (Reason::Invalid, true),
            (Reason::Unsupported, true),
            (Reason::TargetNotFound, false),
            (Reason::Conflicted, false),
            (Reason::Pending, false),
        ] {
            let sum = summed(&[accepted(Status::False, reason), pending.clone()]);
            assert_eq!(sum[0].0, "Ready");
            assert_eq!(sum[0].1, "False", "{sum:?}");
            assert_eq!(sum.len() == 2, is_stalled, "{reason:?}: {sum:?}");
        }
    }
}
