//! Status of a virtual mesh.

use ferromesh_crds as crds;
use ferromesh_crds::approval::ApprovalStatus;

use super::{Body, Budget, Status, conditions, message, state};
use crate::diagnose::{Code, Finding};
use crate::estate::Standing;
use crate::graph::PolicyKey;
use crate::key::Key;
use crate::kinds::Kind;
use crate::model::virtual_mesh::Root;
use crate::state::State;
use crate::table::Set;

pub(super) fn status(state_now: &State, key: &Key) -> Option<Status> {
    let standing = state_now.graph.estate.virtual_meshes.get(key)?;
    let virtual_mesh = &standing.virtual_mesh;
    let mut budget = Budget::new();
    let findings = findings(state_now, key);
    let own = own_findings(state_now, standing);
    let errors = budget.messages(&own);
    let members = standing.members.iter().filter(|_| standing.is_applied);
    let (bad, good): (Vec<_>, Vec<_>) = members.partition(|(_, member)| !member.errors.is_empty());
    let meshes = budget.entries(
        bad.into_iter().chain(good).map(|(mesh, member)| {
            let entry = ApprovalStatus {
                acceptance_order: 0,
                state: state(member.errors.is_empty()),
                errors: member.errors.iter().map(message).collect(),
                warnings: member.warnings.iter().map(message).collect(),
            };
            (mesh.clone(), entry)
        }),
        0,
    );
    let graph = &state_now.graph;
    let faulty = graph.faults.get(&fault_key(key));
    let federated = graph.federated.get(key).into_iter().flat_map(Set::iter);
    let others = federated.filter(|it| !faulty.is_some_and(|faulty| faulty.contains(*it)));
    let destinations = budget.entries(
        faulty
            .into_iter()
            .flat_map(Set::iter)
            .chain(others)
            .map(|destination| {
                let errors = federation_errors(state_now, destination);
                let entry = ApprovalStatus {
                    state: state(errors.is_empty()),
                    errors: errors.iter().map(message).collect(),
                    ..ApprovalStatus::default()
                };
                (destination.clone(), entry)
            }),
        0,
    );
    let body = Body::VirtualMesh(crds::VirtualMeshStatus {
        observed_generation: virtual_mesh.generation,
        state: state(findings.is_empty()),
        errors,
        meshes,
        destinations,
        omitted: budget.omitted(),
        conditions: Vec::new(),
    });
    Some(Status {
        body,
        conditions: conditions(&findings, virtual_mesh.generation),
    })
}

pub(super) fn findings(state: &State, key: &Key) -> Vec<Finding> {
    let Some(standing) = state.graph.estate.virtual_meshes.get(key) else {
        return Vec::new();
    };
    let mut findings = own_findings(state, standing);
    let faulty = state
        .graph
        .faults
        .get(&fault_key(key))
        .into_iter()
        .flat_map(Set::iter);
    for destination in faulty {
        findings.extend(
            federation_errors(state, destination)
                .into_iter()
                .map(|finding| finding.on(destination)),
        );
    }
    findings
}

/// What is wrong with the virtual mesh as a whole, and with its meshes.
fn own_findings(state: &State, standing: &Standing) -> Vec<Finding> {
    let mut findings = standing.findings.clone();
    findings.extend(missing_root(state, standing));
    let members = standing.members.values().filter(|_| standing.is_applied);
    findings.extend(members.flat_map(|member| member.errors.iter().cloned()));
    findings
}

/// A root that users provide must be there. Before every Secret has been listed, nobody knows.
fn missing_root(state: &State, standing: &Standing) -> Option<Finding> {
    let trust = standing.virtual_mesh.trust.as_ref()?;
    let Root::Secret(key) = &trust.root else {
        return None;
    };
    let wrong = |code, text: &str| {
        let text = format!(
            "root certificate authority: Secret {}/{} {text}",
            key.namespace(),
            key.name()
        );
        let path = "spec.mtlsConfig.shared.rootCertificateAuthority.secret";
        Some(Finding::about(code, key, text).at(path))
    };
    match state.snapshot.secrets.get(key) {
        None if state.is_synced("", Kind::Secret) => wrong(Code::NotFound, "not found"),
        None => None,
        Some(secret) if !secret.has_certificate || !secret.has_key => {
            wrong(Code::Invalid, "needs the keys root-cert.pem and key.pem")
        }
        Some(secret) => secret
            .findings
            .first()
            .and_then(|it| wrong(it.code, &it.message)),
    }
}

fn federation_errors(state: &State, destination: &Key) -> Vec<Finding> {
    let record = state.graph.records.get(destination);
    let federation = record.and_then(|record| record.federation.as_ref());
    federation
        .map(|federation| federation.errors.to_vec())
        .unwrap_or_default()
}

fn fault_key(virtual_mesh: &Key) -> PolicyKey {
    PolicyKey {
        kind: Kind::VirtualMesh,
        key: virtual_mesh.clone(),
    }
}
