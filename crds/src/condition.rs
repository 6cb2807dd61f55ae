//! Conditions: what a status says in the vocabulary of Gateway API.
//!
//! The engine states [`Finding`]s, which know no time. [`merge`] turns them into conditions: it
//! is where a transition gets its time.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// What a condition speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// The object is valid and wins its conflicts.
    Accepted,
    /// Everything that the object refers to exists.
    ResolvedRefs,
    /// What follows from the object is written to the clusters.
    Programmed,
    /// The meshes of a virtual mesh verify each other's certificates.
    TrustReady,
    /// Everything is as it should: a registered cluster is reached and has told all it has; of any other
    /// object, every other condition is so.
    Ready,
    /// The object is wrong by itself and stays so until somebody changes it; there only where it is so.
    Stalled,
    /// A deletion of unusual size in a registered cluster waits for a person.
    MassDeleteHeld,
}

impl Type {
    /// The type as conditions write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::ResolvedRefs => "ResolvedRefs",
            Self::Programmed => "Programmed",
            Self::TrustReady => "TrustReady",
            Self::Ready => "Ready",
            Self::Stalled => "Stalled",
            Self::MassDeleteHeld => "MassDeleteHeld",
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether what a condition speaks of is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// Nobody can tell yet.
    Unknown,
}

impl Status {
    /// The status as conditions write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(is_so: bool) -> Self {
        if is_so { Self::True } else { Self::False }
    }
}

/// Why a condition has its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Everything is as it should.
    Ready,
    /// The object is accepted.
    Accepted,
    /// The object is wrong by itself.
    Invalid,
    /// An object that has precedence says otherwise.
    Conflicted,
    /// The object asks for what is not supported.
    Unsupported,
    /// Everything that the object refers to exists.
    ResolvedRefs,
    /// The object refers to what does not exist.
    TargetNotFound,
    /// What follows from the object is written.
    Programmed,
    /// It is being worked on.
    Pending,
    /// A cluster that it takes is not reached.
    ClusterUnreachable,
    /// An API server refused what follows from the object.
    ApplyFailed,
    /// An object of the same name belongs to somebody else.
    ForeignObject,
    /// Somebody else keeps changing what follows from the object.
    Contested,
    /// A certificate is being issued.
    Issuing,
    /// A certificate could not be issued.
    IssuanceFailed,
    /// A certificate authority is past its time.
    CaExpired,
    /// A mesh already has a certificate authority that is not ours.
    ForeignSigner,
    /// The certificates of all meshes chain to one root.
    Verified,
    /// A registered cluster is reached and has told all it has.
    Synced,
    /// A registered cluster has not told all it has yet.
    Syncing,
    /// A registered cluster refuses our credential.
    CredentialRejected,
    /// The Secret of a registered cluster is missing or cannot be read.
    CredentialInvalid,
    /// More would be deleted than is usual.
    TooManyDeletions,
    /// A deletion that was held has been released, or none is held.
    Released,
}

impl Reason {
    /// The reason as conditions write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Accepted => "Accepted",
            Self::Invalid => "Invalid",
            Self::Conflicted => "Conflicted",
            Self::Unsupported => "Unsupported",
            Self::ResolvedRefs => "ResolvedRefs",
            Self::TargetNotFound => "TargetNotFound",
            Self::Programmed => "Programmed",
            Self::Pending => "Pending",
            Self::ClusterUnreachable => "ClusterUnreachable",
            Self::ApplyFailed => "ApplyFailed",
            Self::ForeignObject => "ForeignObject",
            Self::Contested => "Contested",
            Self::Issuing => "Issuing",
            Self::IssuanceFailed => "IssuanceFailed",
            Self::CaExpired => "CAExpired",
            Self::ForeignSigner => "ForeignSigner",
            Self::Verified => "Verified",
            Self::Synced => "Synced",
            Self::Syncing => "Syncing",
            Self::CredentialRejected => "CredentialRejected",
            Self::CredentialInvalid => "CredentialInvalid",
            Self::TooManyDeletions => "TooManyDeletions",
            Self::Released => "Released",
        }
    }
}

/// A condition without a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it speaks of.
    pub kind: Type,
    /// Whether it is so.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// Why, for a person: counts, names and the remedy.
    pub message: String,
    /// Generation of the object that it speaks of, where there is one.
    pub observed_generation: Option<i64>,
}

/// The conditions that say `findings`, in their order.
///
/// A condition keeps the time of its last transition as long as its status stays the same, and
/// otherwise gets `now`. Of `old`, everything else is dropped: what is not found any more is not
/// said any more.
pub fn merge(old: &[Condition], findings: &[Finding], now: Timestamp) -> Vec<Condition> {
    findings
        .iter()
        .map(|finding| {
            let last_transition_time = old
                .iter()
                .find(|condition| condition.type_ == finding.kind.as_str())
                .filter(|condition| condition.status == finding.status.as_str())
                .map_or_else(
                    || Time(now),
                    |condition| condition.last_transition_time.clone(),
                );
            Condition {
                last_transition_time,
                message: finding.message.clone(),
                observed_generation: finding.observed_generation,
                reason: finding.reason.as_str().to_owned(),
                status: finding.status.as_str().to_owned(),
                type_: finding.kind.as_str().to_owned(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn accepted(status: Status, reason: Reason, message: &str) -> Finding {
        Finding {
            kind: Type::Accepted,
            status,
            reason,
            message: message.to_owned(),
            observed_generation: Some(1),
        }
    }

    #[test]
    fn a_new_condition_gets_the_time_of_now() {
        let finding = accepted(Status::True, Reason::Accepted, "");
        let merged = merge(&[], &[finding], time(7));
        assert_eq!(merged[0].type_, "Accepted");
        assert_eq!(merged[0].status, "True");
        assert_eq!(merged[0].last_transition_time, Time(time(7)));
    }

    #[test]
    fn the_time_moves_only_with_the_status() {
        let first = merge(
            &[],
            &[accepted(Status::False, Reason::Invalid, "a")],
            time(1),
        );
        let reworded = merge(
            &first,
            &[accepted(Status::False, Reason::Conflicted, "b")],
            time(2),
        );
        assert_eq!(reworded[0].last_transition_time, Time(time(1)));
        assert_eq!(
            (&*reworded[0].reason, &*reworded[0].message),
            ("Conflicted", "b")
        );
        let turned = merge(
            &reworded,
            &[accepted(Status::True, Reason::Accepted, "")],
            time(3),
        );
        assert_eq!(turned[0].last_transition_time, Time(time(3)));
    }

    #[test]
    fn what_is_not_found_any_more_is_dropped() {
        let old = merge(
            &[],
            &[accepted(Status::True, Reason::Accepted, "")],
            time(1),
        );
        assert!(merge(&old, &[], time(2)).is_empty());
    }
}
