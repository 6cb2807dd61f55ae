//! A state as one document: every output and every status, in a fixed order.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::output::{Output, OutputKind, Spec};
use crate::state::State;

/// Everything that comes of a state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Objects as they are to stand in clusters, by cluster, kind, namespace and name.
    pub outputs: Vec<ReportedOutput>,
    /// Statuses, by kind, namespace and name.
    pub statuses: Vec<ReportedStatus>,
}

/// An output as a document shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedOutput {
    /// The cluster, empty for the management cluster.
    pub cluster: String,
    /// Group and newest version.
    pub api_version: String,
    /// The kind.
    pub kind: &'static str,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// The spec.
    pub spec: Spec,
}

/// A status as a document shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportedStatus {
    /// The kind.
    pub kind: &'static str,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The status.
    pub status: Value,
}

impl Report {
    /// What policies and virtual meshes come to, with every status.
    pub fn translation(state: &State) -> Self {
        let mut statuses: Vec<_> = state
            .statuses()
            .filter_map(|key| {
                Some(ReportedStatus {
                    kind: key.kind.name(),
                    namespace: key.key.namespace().to_owned(),
                    name: key.key.name().to_owned(),
                    status: state.status(&key)?.to_json(),
                })
            })
            .collect();
        statuses.sort_by(|left, right| {
            (left.kind, &left.namespace, &left.name).cmp(&(
                right.kind,
                &right.namespace,
                &right.name,
            ))
        });
        Self {
            outputs: outputs(state, |kind| !is_found(kind)),
            statuses,
        }
    }

    /// What discovery finds.
    pub fn discovery(state: &State) -> Self {
        Self {
            outputs: outputs(state, is_found),
            statuses: Vec::new(),
        }
    }
}

fn is_found(kind: OutputKind) -> bool {
    match kind {
        OutputKind::Mesh | OutputKind::Workload | OutputKind::Destination => true,
        OutputKind::Istio(_) | OutputKind::IssuedCertificate | OutputKind::PodBounceDirective => {
            false
        }
    }
}

fn outputs(state: &State, is_wanted: impl Fn(OutputKind) -> bool) -> Vec<ReportedOutput> {
    let mut outputs: Vec<_> = state
        .outputs()
        .filter(|output| is_wanted(output.key.kind))
        .map(ReportedOutput::from)
        .collect();
    outputs.sort_by(|left, right| left.sort_key().cmp(&right.sort_key()));
    outputs
}

impl ReportedOutput {
    fn sort_key(&self) -> (&str, &str, &str, &str) {
        (&self.cluster, self.kind, &self.namespace, &self.name)
    }
}

impl From<Output> for ReportedOutput {
    fn from(output: Output) -> Self {
        let Output {
            key,
            labels,
            annotations,
            spec,
        } = output;
        let version = key.kind.versions().first().copied().unwrap_or_default();
        Self {
            cluster: key.cluster.to_string(),
            api_version: format!("{}/{version}", key.kind.group()),
            kind: key.kind.name(),
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            labels,
            annotations,
            spec,
        }
    }
}
