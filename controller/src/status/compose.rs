//! What a status is to say: what the engine says of an object, and what became of it in the clusters.

use std::collections::BTreeMap;

use ferromesh_core::{Kind, State, StatusKey, StatusKind};
use ferromesh_crds::ObjectRef;
use ferromesh_crds::condition::{Finding, Reason, Status, Type};
use ferromesh_crds::meta::RELEASE_MASS_DELETE_ANNOTATION;
use ferromesh_mirror::{ClusterView, Clusters, Condition};
use serde_json::{Map, Value};

use super::stored::Subject;
use crate::certs::{TrustReports, WantedSet};
use crate::outputs::Target;
use crate::programmed::Programmed;
use crate::trust;

/// So many kinds are named that have not been listed.
const MAX_KINDS: usize = 5;

/// A status without the times of its conditions.
pub(crate) struct Composed {
    pub(super) fields: Map<String, Value>,
    pub(super) findings: Vec<Finding>,
}

/// A mass delete that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// How many objects would be deleted.
    pub(crate) would_delete: usize,
    /// Of how many.
    pub(crate) owned: usize,
}

/// Everything that statuses are made of.
pub(crate) struct View<'a> {
    pub(crate) state: &'a State,
    pub(crate) clusters: &'a Clusters,
    pub(crate) programmed: &'a Programmed,
    pub(crate) wanted: Option<&'a WantedSet>,
    pub(crate) trust: &'a TrustReports,
    pub(crate) holds: &'a BTreeMap<Target, Hold>,
}

impl View<'_> {
    /// What a status is to say; none where there is nothing to say of an object.
    pub(super) fn status(&self, subject: &Subject) -> Option<Composed> {
        match subject {
            Subject::Object(key) => self.object(key),
            Subject::Cluster(key) => {
                let view = self.clusters.get(key.name())?;
                Some(Composed {
                    fields: Map::new(),
                    findings: self.cluster(key.namespace(), key.name(), view),
                })
            }
        }
    }

    fn object(&self, key: &StatusKey) -> Option<Composed> {
        let status = self.state.status(key)?;
        let Ok(Value::Object(fields)) = serde_json::to_value(&status.body) else {
            return None;
        };
        let mut findings = status.conditions;
        let generation = findings.first().and_then(|it| it.observed_generation);
        let is_programmed = match key.kind {
            StatusKind::AccessPolicy | StatusKind::TrafficPolicy | StatusKind::VirtualMesh => true,
            StatusKind::Destination
            | StatusKind::Mesh
            | StatusKind::Settings
            | StatusKind::Workload => false,
        };
        if is_programmed {
            findings.push(self.programmed.finding(key, generation, self.clusters));
        }
        if key.kind == StatusKind::VirtualMesh {
            let virtual_mesh = ObjectRef {
                name: key.key.name().to_owned(),
                namespace: key.key.namespace().to_owned(),
            };
            let wanted = self.wanted;
            findings.extend(
                wanted.and_then(|wanted| {
                    trust::finding(&virtual_mesh, wanted, self.trust, generation)
                }),
            );
        }
        Some(Composed { fields, findings })
    }

    fn cluster(&self, namespace: &str, cluster: &str, view: &ClusterView) -> Vec<Finding> {
        let finding = |kind, status, reason, message| Finding {
            kind,
            status,
            reason,
            message,
            observed_generation: None,
        };
        let (status, reason, message) = self.ready(cluster, view);
        let ready = finding(Type::Ready, status, reason, message);
        let holds: Vec<_> = [
            Target::Pushed(cluster.into()),
            Target::Discovered(cluster.into()),
        ]
        .into_iter()
        .filter_map(|target| Some((self.holds.get(&target)?, target)))
        .collect();
        let told: Vec<_> = holds
            .iter()
            .map(|(Hold { would_delete, owned }, target)| {
                format!(
                    "{would_delete} of {owned} objects would be deleted of {target}: if that is \
                     meant, kubectl annotate kubernetescluster -n {namespace} {cluster} \
                     {RELEASE_MASS_DELETE_ANNOTATION}={would_delete}"
                )
            })
            .collect();
        let held = if told.is_empty() {
            let nothing = "no deletion is held".to_owned();
            finding(
                Type::MassDeleteHeld,
                Status::False,
                Reason::Released,
                nothing,
            )
        } else {
            let reason = Reason::TooManyDeletions;
            finding(Type::MassDeleteHeld, Status::True, reason, told.join("; "))
        };
        vec![ready, held]
    }

    fn ready(&self, cluster: &str, view: &ClusterView) -> (Status, Reason, String) {
        match &view.condition {
            Condition::Pending => (
                Status::Unknown,
                Reason::Pending,
                "its API server has not answered yet".to_owned(),
            ),
            Condition::CredentialInvalid(why) => {
                (Status::False, Reason::CredentialInvalid, why.clone())
            }
            Condition::CredentialRejected(why) => (
                Status::False,
                Reason::CredentialRejected,
                format!("{why}: register the cluster again"),
            ),
            Condition::Unreachable(why) => (
                Status::False,
                Reason::ClusterUnreachable,
                format!("{why}: what is known of the cluster stays as it is"),
            ),
            Condition::Refusing(why) => (
                Status::False,
                Reason::Syncing,
                format!(
                    "not every kind can be followed: {why}: register the cluster again to renew its rights"
                ),
            ),
            Condition::Connected if self.state.is_complete(cluster) => {
                (Status::True, Reason::Synced, unreadable(view))
            }
            Condition::Connected => (
                Status::Unknown,
                Reason::Syncing,
                format!("not listed yet: {}", names(self.state.unsynced(cluster))),
            ),
        }
    }
}

fn names(kinds: impl Iterator<Item = Kind>) -> String {
    let all: Vec<_> = kinds.map(Kind::name).collect();
    let first: Vec<_> = all.iter().take(MAX_KINDS).copied().collect();
    let first = first.join(", ");
    match all.len().checked_sub(MAX_KINDS) {
        Some(more @ 1..) => format!("{first} and {more} more"),
        _ => first,
    }
}

/// Objects that cannot be read, for those who wonder why they are not found.
fn unreadable(view: &ClusterView) -> String {
    let told = view.unreadable.iter().map(|(kind, unreadable)| {
        let first = unreadable.first.first();
        let first =
            first.map(|(key, why)| format!(", as {}/{}: {why}", key.namespace(), key.name()));
        format!(
            "{} {} cannot be read{}",
            unreadable.count,
            kind.name(),
            first.unwrap_or_default()
        )
    });
    let mut message = told.collect::<Vec<_>>().join("; ");
    message.truncate(message.floor_char_boundary(1024));
    message
}
