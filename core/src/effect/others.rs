//! What a change means for objects that nobody touched.

use super::{Remark, Weight, counted, plural, reference};
use crate::delta::{Delta, StatusKey, StatusKind};
use crate::diagnose::{self, Code, Finding};

/// Objects that are called by name before the others are counted.
const NAMED: usize = 3;

/// Objects that lose by the change, and objects that gain.
pub(super) fn remarks(delta: &Delta, subject: &StatusKey) -> Vec<Remark> {
    let mut losers: Vec<(&StatusKey, Finding)> = Vec::new();
    let mut winners = 0;
    for other in delta.statuses() {
        let is_written_by_people = match other.kind {
            StatusKind::AccessPolicy | StatusKind::TrafficPolicy | StatusKind::VirtualMesh => true,
            StatusKind::Destination
            | StatusKind::Mesh
            | StatusKind::Settings
            | StatusKind::Workload => false,
        };
        if !is_written_by_people || other == subject {
            continue;
        }
        let before = delta.before.findings(other);
        let after = delta.after.findings(other);
        if after.is_empty() {
            winners += usize::from(!before.is_empty());
            continue;
        }
        let mut new = diagnose::brought(&before, &after).into_iter();
        let new = new.find(|finding| !reference::stood_before(&delta.before, other, finding));
        losers.extend(new.map(|finding| (other, finding)));
    }
    let mut remarks: Vec<_> = losers
        .iter()
        .take(NAMED)
        .map(|(other, finding)| lost(subject, other, finding))
        .collect();
    let more = losers.len().saturating_sub(NAMED);
    if more > 0 {
        remarks.push(Remark::new(
            Weight::Loss,
            format!(
                "{more} more {} will not be accepted",
                plural(more, "object")
            ),
        ));
    }
    if winners > 0 {
        remarks.push(Remark::new(
            Weight::Hint,
            format!(
                "{} that had errors will be accepted",
                counted(winners, "object")
            ),
        ));
    }
    remarks
}

fn lost(subject: &StatusKey, other: &StatusKey, finding: &Finding) -> Remark {
    let name = format!(
        "{} {}/{}",
        other.kind,
        other.key.namespace(),
        other.key.name()
    );
    let is_rival = finding.code == Code::Conflicted && finding.about.as_ref() == Some(&subject.key);
    let text = if is_rival {
        // Who holds it now is the object under review: that much need not be repeated.
        let place = finding.place.iter().map(|place| format!(" on {place}"));
        let field = finding.path.iter().map(|path| format!(": {path}"));
        let what: String = place.chain(field).collect();
        format!("wins over {name}{what}")
    } else {
        format!("breaks {name}: {finding}")
    };
    Remark::new(Weight::Loss, text)
}
