//! What a tool for `GitOps` takes an object for, by the rules that Flux, Argo CD's sync of hooks, Helm and
//! `kpt` share (kstatus of `sigs.k8s.io/cli-utils`, for kinds that it does not know by name).

use kube::api::DynamicObject;
use serde_json::Value;

/// How far an object has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is as it is to be: nobody waits for it any more.
    Current,
    /// It is waited for.
    InProgress,
    /// It is waited for in vain.
    Failed,
    /// It is being deleted.
    Terminating,
}

/// How far an object has come.
pub fn progress(object: &DynamicObject) -> Progress {
    if object.metadata.deletion_timestamp.is_some() {
        return Progress::Terminating;
    }
    let status = &object.data["status"];
    let observed = status["observedGeneration"].as_i64();
    if observed.is_some() && observed != object.metadata.generation {
        return Progress::InProgress;
    }
    let conditions = status["conditions"].as_array();
    let status_of = |kind: &str| -> Option<&Value> {
        let mut conditions = conditions?.iter();
        let condition = conditions.find(|condition| condition["type"] == kind)?;
        Some(&condition["status"])
    };
    if status_of("Reconciling").is_some_and(|status| status == "True") {
        return Progress::InProgress;
    }
    if status_of("Stalled").is_some_and(|status| status == "True") {
        return Progress::Failed;
    }
    match status_of("Ready") {
        Some(status) if status != "True" => Progress::InProgress,
        // An object that says nothing counts as one that is all right.
        Some(_) | None => Progress::Current,
    }
}
