//! Judging a change by what it would do.

use crate::delta::{Delta, Effect, StatusKey};
use crate::diagnose::{self, Code, Finding};
use crate::key::Key;
use crate::state::State;

/// What a change would mean for the object that is changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// What would be wrong with it that is not wrong already.
    pub errors: Vec<Finding>,
    /// What could not be judged: something is not known yet.
    pub unknown: Vec<Finding>,
    /// What the change would do.
    pub effect: Effect,
}

/// Judges a change of one object by the states before and after.
///
/// Only what the change makes wrong with the object itself counts: what was wrong before never
/// does, nor does what is wrong with another object. A reference into a cluster of which not
/// everything has been listed is not wrong, but unknown.
pub fn judge(delta: &Delta, subject: &StatusKey) -> Verdict {
    let [before, after] = [&delta.before, &delta.after].map(|state| state.findings(subject));
    let mut verdict = Verdict {
        effect: delta.effect(),
        ..Verdict::default()
    };
    for finding in diagnose::brought(&before, &after) {
        if is_unknown(&delta.after, &finding) {
            verdict.unknown.push(finding);
        } else {
            verdict.errors.push(finding);
        }
    }
    verdict
}

/// Whether a finding may come of what has not been listed yet.
pub(crate) fn is_unknown(state: &State, finding: &Finding) -> bool {
    let Some(about) = finding
        .about
        .as_ref()
        .filter(|_| finding.code == Code::NotFound)
    else {
        return false;
    };
    let cluster = about.cluster();
    let registered = state
        .snapshot
        .clusters
        .contains_key(&Key::local(cluster, &state.options.namespace));
    !cluster.is_empty() && registered && state.awaits(cluster)
}
