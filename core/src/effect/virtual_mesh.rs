//! What a virtual mesh does.

use super::{Remark, Weight, access, counted};
use crate::delta::{Delta, StatusKey, StatusKind};
use crate::diagnose::{Code, Finding};
use crate::key::Key;
use crate::state::State;
use crate::table::Set;

/// Meshes that the change would take from another virtual mesh. Between two that claim a mesh the
/// lower key decides, so the loser would be one that is live and that nobody has touched.
pub(super) fn taken(delta: &Delta, subject: &StatusKey) -> Vec<Finding> {
    if subject.kind != StatusKind::VirtualMesh {
        return Vec::new();
    }
    let after = &delta.after.estate().virtual_meshes;
    let Some(mine) = after.get(&subject.key).filter(|mine| mine.is_applied) else {
        return Vec::new();
    };
    let before = &delta.before.estate().virtual_meshes;
    before
        .iter()
        .filter(|(other, standing)| **other != subject.key && standing.is_applied)
        .filter(|(other, _)| after.get(*other).is_some_and(|now| !now.is_applied))
        .flat_map(|(other, standing)| standing.members.keys().map(move |mesh| (other, mesh)))
        .filter_map(|(other, mesh)| Some((other, mesh, mine.members.get(mesh)?)))
        .map(|(other, mesh, member)| {
            let text = format!(
                "Includes a Mesh ({mesh}) that already is grouped in a VirtualMesh ({other}); take it out there first"
            );
            Finding::about(Code::Conflicted, other, text).at(member.path())
        })
        .collect()
}

pub(super) fn remarks(delta: &Delta, key: &Key) -> Vec<Remark> {
    let state = &delta.after;
    let Some(standing) = state.estate().virtual_meshes.get(key) else {
        return Vec::new();
    };
    let virtual_mesh = &standing.virtual_mesh;
    let mut remarks = Vec::new();
    if virtual_mesh.meshes.is_empty() {
        remarks.push(Remark::new(
            Weight::Reach,
            "spec.meshes is empty: groups nothing",
        ));
    }
    for member in standing.members.values() {
        remarks.extend(
            member
                .warnings
                .iter()
                .map(|finding| Remark::new(Weight::Unresolved, finding.to_string())),
        );
    }
    remarks.push(Remark::new(
        Weight::Outcome,
        format!(
            "groups {}, federates {} of {}",
            plural_meshes(standing.members.len()),
            federated(state, key),
            counted(state.destinations().len(), "destination")
        ),
    ));
    let has_peers = virtual_mesh.meshes.len() > 1;
    if has_peers && virtual_mesh.federation.selectors.is_empty() {
        remarks.push(Remark::new(
            Weight::Reach,
            "spec.federation.selectors is empty: no mesh sees another's services; `[{}]` federates all",
        ));
    }
    match &virtual_mesh.trust {
        None if has_peers => remarks.push(Remark::new(
            Weight::Reach,
            "spec.mtlsConfig is not set: calls between meshes fail unless they share a root already",
        )),
        Some(trust) if !trust.restart_pods => remarks.push(Remark::new(
            Weight::Hint,
            "spec.mtlsConfig.autoRestartPods is off: pods keep old certificates until restarted",
        )),
        Some(_) | None => {}
    }
    remarks.extend(access::newly_sealed(delta));
    remarks
}

/// What a virtual mesh leaves behind.
pub(super) fn farewell(delta: &Delta, key: &Key) -> Vec<Remark> {
    let before = &delta.before;
    let Some(standing) = before.estate().virtual_meshes.get(key) else {
        return Vec::new();
    };
    let mut remarks = vec![Remark::new(
        Weight::Reach,
        format!(
            "leaves {} without each other: {} are federated no more",
            plural_meshes(standing.members.len()),
            counted(federated(before, key), "destination")
        ),
    )];
    if standing.virtual_mesh.trust.is_some() {
        remarks.push(Remark::new(
            Weight::Hint,
            "the certificate authorities of its meshes stay as they are",
        ));
    }
    remarks
}

fn federated(state: &State, key: &Key) -> usize {
    state.graph.federated.get(key).map_or(0, Set::len)
}

fn plural_meshes(count: usize) -> String {
    if count == 1 {
        "1 mesh".to_owned()
    } else {
        format!("{count} meshes")
    }
}
