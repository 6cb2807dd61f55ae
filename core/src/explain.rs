//! Why one object is as it is, and how much there is of everything: for whoever looks into a process.
//!
//! What is told here are names, findings and what is to be written; of an object that was read nothing but
//! that it was, so that no Secret can be told. Lists are bounded, and what finds no room is counted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ferromesh_istio as istio;
use serde::Serialize;
use serde_json::Value;

use crate::delta::{StatusKey, StatusKind};
use crate::diagnose::Finding;
use crate::key::Key;
use crate::kinds::Kind;
use crate::layer::Source;
use crate::output::{OutputKey, OutputKind};
use crate::record::{Bound, Record};
use crate::report::ReportedOutput;
use crate::state::State;

/// The most entries of one list.
const MAX_ENTRIES: usize = 100;

/// How many objects there are, by cluster (empty for the management cluster) and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Those that were read.
    pub objects: BTreeMap<Arc<str>, BTreeMap<&'static str, usize>>,
    /// Those that are to stand.
    pub outputs: BTreeMap<Arc<str>, BTreeMap<&'static str, usize>>,
}

/// Which object is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    kind: Asked,
    key: Key,
}

/// A kind by all that it is here: read, told of in a status, written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    name: &'static str,
    input: Option<Kind>,
    status: Option<StatusKind>,
    output: Option<OutputKind>,
}

/// A kind that nothing is known of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kind {kind:?} is not one that is read or written; there are {}", kinds().join(", "))]
pub struct UnknownKind {
    /// What was asked for.
    pub kind: String,
}

/// Why an object is as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The object.
    pub object: Reference,
    /// Whether an object of this name was read; none for kinds that are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_read: Option<bool>,
    /// Whether its kind has been listed in its cluster; none for kinds that are not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_listed: Option<bool>,
    /// What discovery found it as: objects of a cluster, the first of which has the name.
    #[serde(skip_serializing_if = "Bounded::is_empty")]
    pub sources: Bounded<Reference>,
    /// What discovery takes it for.
    #[serde(skip_serializing_if = "Bounded::is_empty")]
    pub found: Bounded<Reference>,
    /// Policies that select it, in the order in which they are applied; those of which it takes a subset
    /// have no errors here.
    #[serde(skip_serializing_if = "Bounded::is_empty")]
    pub policies: Bounded<Part>,
    /// Destinations that it selects or federates.
    #[serde(skip_serializing_if = "Bounded::is_empty")]
    pub destinations: Bounded<Part>,
    /// What has a part in it.
    #[serde(skip_serializing_if = "Bounded::is_empty")]
    pub contributors: Bounded<Reference>,
    /// What is made of it, or with a part of it.
    #[serde(skip_serializing_if = "Bounded::is_empty")]
    pub outputs: Bounded<Reference>,
    /// How it is to stand; none where it is not to be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<ReportedOutput>,
    /// What its status is to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Bounded::is_empty")]
    pub findings: Bounded<String>,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Reference {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its cluster, empty for the management cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
}

/// A policy on a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The other one of the two.
    #[serde(flatten)]
    pub object: Reference,
    /// Whether it has a part in the outputs there.
    pub is_applied: bool,
    /// What is wrong there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// As much of a list as there is room for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bounded<T> {
    /// The first entries.
    pub first: Vec<T>,
    /// How many more there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

// === impl Bounded ===

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self {
            first: Vec::new(),
            omitted: 0,
        }
    }
}

impl<T> Bounded<T> {
    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}

impl<T> FromIterator<T> for Bounded<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut entries = entries.into_iter();
        Self {
            first: entries.by_ref().take(MAX_ENTRIES).collect(),
            omitted: entries.count(),
        }
    }
}

// === impl Reference ===

impl Reference {
    fn new(kind: &'static str, key: &Key) -> Self {
        Self {
            kind,
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
            cluster: key.cluster().to_owned(),
        }
    }

    fn output(key: &OutputKey) -> Self {
        Self {
            kind: key.kind.name(),
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            cluster: key.cluster.to_string(),
        }
    }
}

impl From<&Source> for Reference {
    fn from(source: &Source) -> Self {
        Self::new(source.kind.name(), &source.key)
    }
}

impl From<&StatusKey> for Reference {
    fn from(of: &StatusKey) -> Self {
        Self::new(of.kind.name(), &of.key)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)?;
        if !self.cluster.is_empty() {
            write!(f, " on {}", self.cluster)?;
        }
        Ok(())
    }
}

// === impl Part ===

impl Part {
    fn policy<P>(kind: &'static str, key: &Key, bound: &Bound<P>) -> Self {
        Self::new(kind, key, bound.is_applied, &bound.errors)
    }

    fn new(kind: &'static str, key: &Key, is_applied: bool, errors: &[Finding]) -> Self {
        Self {
            object: Reference::new(kind, key),
            is_applied,
            errors: told(errors).first,
        }
    }
}

fn told(findings: &[Finding]) -> Bounded<String> {
    findings.iter().map(ToString::to_string).collect()
}

// === impl Question ===

/// Every kind that is written.
fn output_kinds() -> impl Iterator<Item = OutputKind> {
    let istio = istio::Kind::ALL.into_iter().map(OutputKind::Istio);
    istio.chain([
        OutputKind::IssuedCertificate,
        OutputKind::PodBounceDirective,
        OutputKind::Mesh,
        OutputKind::Workload,
        OutputKind::Destination,
    ])
}

/// The name of every kind that can be asked about.
fn kinds() -> Vec<&'static str> {
    let read = Kind::ALL.iter().map(|kind| kind.name());
    let written = output_kinds().map(OutputKind::name);
    let mut kinds: Vec<_> = read.chain(written).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

impl Question {
    /// Asks about an object of a cluster; `cluster` is empty for the management cluster.
    pub fn new(
        kind: &str,
        namespace: &str,
        name: &str,
        cluster: &str,
    ) -> Result<Self, UnknownKind> {
        let input = Kind::ALL.iter().copied().find(|it| it.name() == kind);
        let status = StatusKind::ALL.into_iter().find(|it| it.name() == kind);
        let output = output_kinds().find(|it| it.name() == kind);
        let known = input.map(Kind::name).or(output.map(OutputKind::name));
        Ok(Self {
            kind: Asked {
                name: known.ok_or_else(|| UnknownKind {
                    kind: kind.to_owned(),
                })?,
                input,
                status,
                output,
            },
            key: Key::new(name, namespace, cluster),
        })
    }
}

// === impl State ===

impl State {
    /// How much there is of everything.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for kind in Kind::ALL {
            for key in self.snapshot.keys(*kind) {
                count(&mut counts.objects, key.cluster(), kind.name());
            }
        }
        for key in self.output_sets().flat_map(|set| set.keys) {
            count(&mut counts.outputs, &key.cluster, key.kind.name());
        }
        counts
    }

    /// Why an object is as it is, as far as it is known.
    pub fn explain(&self, question: &Question) -> Explanation {
        let Question { kind, key } = question;
        let of = |kind| StatusKey {
            kind,
            key: key.clone(),
        };
        let status = kind.status.map(of);
        let output = kind.output.map(|kind| OutputKey {
            cluster: key.cluster().into(),
            kind,
            namespace: key.namespace().into(),
            name: key.name().into(),
        });
        let findings = status.as_ref().map(|of| self.findings(of));
        let record = self.record(key).filter(|_| is_destination(kind));
        let outputs = match (record, &status) {
            (Some(_), _) => self.outputs_of_destination(key),
            (None, Some(of)) => self.outputs_with(of),
            (None, None) => Bounded::default(),
        };
        Explanation {
            object: Reference::new(kind.name, key),
            is_read: kind
                .input
                .map(|kind| self.snapshot.get(kind, key).is_some()),
            is_listed: kind.input.map(|kind| self.is_synced(key.cluster(), kind)),
            sources: self.sources(kind.output, key),
            found: kind
                .input
                .map(|kind| self.found_of(kind, key))
                .unwrap_or_default(),
            policies: record
                .map(|record| self.policies(key, record))
                .unwrap_or_default(),
            destinations: status.as_ref().map(|of| self.bound(of)).unwrap_or_default(),
            contributors: output
                .iter()
                .flat_map(|key| self.parents(key).to_vec())
                .map(|parent| Reference::from(&parent))
                .collect(),
            outputs,
            desired: output
                .and_then(|key| self.output(&key))
                .map(ReportedOutput::from),
            status: status
                .and_then(|of| self.status(&of))
                .map(|status| status.to_json()),
            findings: told(&findings.unwrap_or_default()),
        }
    }

    /// What something that was found was found as.
    fn sources(&self, kind: Option<OutputKind>, key: &Key) -> Bounded<Reference> {
        let (meshes, workloads, destinations) = self.discovered();
        let refer = |sources: Vec<&Source>| sources.into_iter().map(Reference::from).collect();
        match kind {
            Some(OutputKind::Mesh) => refer(meshes.sources_of(key).collect()),
            Some(OutputKind::Workload) => refer(workloads.sources_of(key).collect()),
            Some(OutputKind::Destination) => refer(destinations.sources_of(key).collect()),
            Some(
                OutputKind::Istio(_)
                | OutputKind::IssuedCertificate
                | OutputKind::PodBounceDirective,
            )
            | None => Bounded::default(),
        }
    }

    /// What an object of a cluster was found as.
    fn found_of(&self, kind: Kind, key: &Key) -> Bounded<Reference> {
        let (meshes, workloads, destinations) = self.discovered();
        let source = Source {
            kind,
            key: key.clone(),
        };
        let mesh = meshes.found_as(&source);
        let mesh = mesh.map(|it| Reference::new("Mesh", &it.key));
        let workload = workloads.found_as(&source);
        let workload = workload.map(|it| Reference::new("Workload", &it.key));
        let destination = destinations.found_as(&source);
        let destination = destination.map(|it| Reference::new("Destination", &it.key));
        mesh.into_iter()
            .chain(workload)
            .chain(destination)
            .collect()
    }

    /// What people ask of a destination.
    fn policies(&self, key: &Key, record: &Record) -> Bounded<Part> {
        let traffic = record.traffic_policies.iter();
        let traffic = traffic.map(|it| Part::policy("TrafficPolicy", &it.policy.key, it));
        let subsets = self.subsets(key).into_iter();
        let subsets = subsets
            .flat_map(|subsets| subsets.policies())
            .filter(|policy| {
                let mut bound = record.traffic_policies.iter();
                bound.all(|bound| bound.policy.key != policy.key)
            })
            .map(|policy| Part::new("TrafficPolicy", &policy.key, true, &[]));
        let access = record.access_policies.iter();
        let access = access.map(|it| Part::policy("AccessPolicy", &it.policy.key, it));
        let federation = record.federation.iter();
        let federation = federation.map(|it| Part::new("VirtualMesh", &it.virtual_mesh, true, &[]));
        traffic
            .chain(subsets)
            .chain(access)
            .chain(federation)
            .collect()
    }

    /// The destinations that a policy selects, or that a virtual mesh federates.
    fn bound(&self, of: &StatusKey) -> Bounded<Part> {
        fn on<P>(destination: &Key, bound: &Bound<P>) -> Part {
            Part::policy("Destination", destination, bound)
        }
        let records = self.graph.records.iter();
        let part = |(key, record): (&Key, &Arc<Record>)| match of.kind {
            StatusKind::TrafficPolicy => {
                let mut bound = record.traffic_policies.iter();
                let bound = bound.find(|bound| bound.policy.key == of.key)?;
                Some(on(key, bound))
            }
            StatusKind::AccessPolicy => {
                let mut bound = record.access_policies.iter();
                let bound = bound.find(|bound| bound.policy.key == of.key)?;
                Some(on(key, bound))
            }
            StatusKind::VirtualMesh => {
                let federation = record.federation.as_ref()?;
                let is_it = federation.virtual_mesh == of.key;
                is_it.then(|| Part::new("Destination", key, true, &[]))
            }
            StatusKind::Destination
            | StatusKind::Mesh
            | StatusKind::Settings
            | StatusKind::Workload => None,
        };
        records.filter_map(part).collect()
    }

    fn outputs_of_destination(&self, key: &Key) -> Bounded<Reference> {
        let translated = self.translated(key).into_iter();
        let keys = translated.flat_map(|translated| {
            let slots = translated.slots();
            slots.filter_map(move |slot| translated.key(slot))
        });
        keys.map(|key| Reference::output(&key)).collect()
    }

    /// Outputs in which a policy or a virtual mesh has a part.
    fn outputs_with(&self, of: &StatusKey) -> Bounded<Reference> {
        let sets = self.output_sets();
        sets.filter(|set| set.parents.contains(of))
            .flat_map(|set| set.keys)
            .map(|key| Reference::output(&key))
            .collect()
    }
}

fn is_destination(kind: &Asked) -> bool {
    kind.status == Some(StatusKind::Destination)
}

fn count(
    counts: &mut BTreeMap<Arc<str>, BTreeMap<&'static str, usize>>,
    cluster: &str,
    kind: &'static str,
) {
    // A cluster has many objects.
    let of_cluster = match counts.get_mut(cluster) {
        Some(of_cluster) => of_cluster,
        None => counts.entry(cluster.into()).or_default(),
    };
    *of_cluster.entry(kind).or_default() += 1;
}
