//! What a status is to say: what the engine says of an object, and what became of it in the clusters.

use ferromesh_core::{Kind, State, StatusKey, StatusKind};
use ferromesh_crds::ObjectRef;
use ferromesh_crds::condition::{Finding, Reason, Status, Type};
use ferromesh_crds::meta::RELEASE_MASS_DELETE_ANNOTATION;
use ferromesh_mirror::{ClusterView, Clusters, Condition};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as k8s;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::conditions;
use super::stored::Subject;
use crate::certs::{TrustReports, WantedSet};
use crate::holds::{Hold, Holds};
use crate::message::bounded;
use crate::outputs::{Outputs, Target};
use crate::programmed::Programmed;
use crate::trust;

/// So many kinds are named that have not been listed.
const MAX_KINDS: usize = 5;

/// The most bytes that is told of objects that cannot be read.
const MAX_UNREADABLE: usize = 1024;

/// A status without the times of its conditions.
pub(crate) struct Composed {
    fields: Map<String, Value>,
    findings: Vec<Finding>,
    /// Whether the conditions are to be told as one, too.
    is_summed_up: bool,
}

impl Composed {
    /// The status over what was said before, with the times of its conditions.
    pub(super) fn over(self, stored: &[k8s::Condition], now: Timestamp) -> Value {
        let mut conditions = conditions::conditions(stored, &self.findings, now);
        if self.is_summed_up {
            let sum = conditions::sum(&conditions, &self.findings);
            conditions.extend(conditions::conditions(stored, &sum, now));
        }
        conditions::status(self.fields, conditions)
    }
}

/// Everything that statuses are made of.
pub(crate) struct View<'a> {
    pub(crate) state: &'a State,
    pub(crate) clusters: &'a Clusters,
    pub(crate) programmed: &'a Programmed,
    pub(crate) wanted: Option<&'a WantedSet>,
    pub(crate) trust: &'a TrustReports,
    pub(crate) holds: &'a Holds,
    pub(crate) outputs: &'a Outputs,
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
                    is_summed_up: false,
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
            let mut programmed = self.programmed.finding(key, generation, self.clusters);
            let is_refused = findings
                .iter()
                .any(|it| it.kind == Type::Accepted && it.status == Status::False);
            if is_refused && programmed.status == Status::True {
                "what is accepted of it is written".clone_into(&mut programmed.message);
            }
            findings.push(programmed);
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
        Some(Composed {
            fields,
            findings,
            is_summed_up: is_programmed || key.kind == StatusKind::Settings,
        })
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
        let (status, reason, message) = self.held(namespace, cluster);
        let held = finding(Type::MassDeleteHeld, status, reason, message);
        vec![ready, held]
    }

    fn held(&self, namespace: &str, cluster: &str) -> (Status, Reason, String) {
        let targets = Target::all(&cluster.into());
        let told = targets.iter().filter_map(|target| {
            let Hold {
                would_delete,
                owned,
            } = self.holds.get(target)?;
            Some(format!(
                "{would_delete} of {owned} objects would be deleted of {target}: if that is \
                 meant, kubectl annotate kubernetescluster -n {namespace} {cluster} \
                 {RELEASE_MASS_DELETE_ANNOTATION}={would_delete}"
            ))
        });
        let told: Vec<_> = told.collect();
        let now = Instant::now();
        if !told.is_empty() {
            (Status::True, Reason::TooManyDeletions, told.join("; "))
        } else if targets
            .iter()
            .all(|target| self.outputs.has_looked(target, now))
        {
            let nothing = "no deletion is held".to_owned();
            (Status::False, Reason::Released, nothing)
        } else {
            let unknown = "nobody has looked yet for what is to be deleted".to_owned();
            (Status::Unknown, Reason::Syncing, unknown)
        }
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
                let unreadable = unreadable(view);
                let message = if unreadable.is_empty() {
                    "everything in it is known".to_owned()
                } else {
                    unreadable
                };
                (Status::True, Reason::Synced, message)
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
    bounded(told.collect::<Vec<_>>().join("; "), MAX_UNREADABLE)
}
