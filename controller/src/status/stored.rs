//! What stands in the statuses of the management cluster.

use ferromesh_apply::ssa::Address;
use ferromesh_core::{Key, StatusKey, StatusKind};
use ferromesh_crds as crds;
use ferromesh_crds::condition::Type;
use ferromesh_crds::meta;
use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use ferromesh_runtime::fingerprint::Fingerprint;
use ferromesh_runtime::pump::{self, Closed, NamespacedName, Observed, Relist, Sink};
use ferromesh_runtime::telemetry::Chain;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Sightings that wait before watches slow down.
const SIGHTINGS: usize = 256;

/// An object whose status is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// A registered cluster. It comes first: of all statuses it is the one that explains others.
    Cluster(Key),
    /// An object that the engine says something of.
    Object(StatusKey),
}

/// A kind whose status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SubjectKind {
    Cluster,
    Object(StatusKind),
}

/// What stands in a status.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Of the fields that we write.
    pub(super) status: Fingerprint,
    pub(super) conditions: Vec<Condition>,
    /// The annotation of a registered cluster by which a mass delete is released.
    pub(super) release: Option<String>,
    /// Resource versions of one kind grow (Kubernetes, since 1.35 by contract and before that in fact).
    version: Option<u64>,
}

/// What a watch has seen.
pub(crate) struct Sighting {
    pub(super) kind: SubjectKind,
    observed: Observed<DynamicObject>,
}

/// Which objects of a kind are there.
#[derive(Default)]
pub(super) struct Watched(Relist<NamespacedName>);

// === impl Subject ===

impl Subject {
    pub(crate) fn kind(&self) -> SubjectKind {
        match self {
            Self::Cluster(_) => SubjectKind::Cluster,
            Self::Object(key) => SubjectKind::Object(key.kind),
        }
    }

    pub(crate) fn key(&self) -> &Key {
        match self {
            Self::Cluster(key) => key,
            Self::Object(key) => &key.key,
        }
    }

    /// Where the object is.
    pub(crate) fn address(&self) -> Address {
        let resource = self.kind().resource();
        let key = self.key();
        Address {
            group: resource.group,
            version: resource.version,
            plural: resource.plural,
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
        }
    }

    fn new(kind: SubjectKind, name: &NamespacedName) -> Self {
        let key = Key::local(&name.name, name.namespace.as_deref().unwrap_or_default());
        match kind {
            SubjectKind::Cluster => Self::Cluster(key),
            SubjectKind::Object(kind) => Self::Object(StatusKey { kind, key }),
        }
    }
}

// === impl SubjectKind ===

impl SubjectKind {
    fn all() -> impl Iterator<Item = Self> {
        let objects = StatusKind::ALL.into_iter().map(Self::Object);
        std::iter::once(Self::Cluster).chain(objects)
    }

    /// The kind's name in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "KubernetesCluster",
            Self::Object(kind) => kind.name(),
        }
    }

    pub(super) fn resource(self) -> ApiResource {
        match self {
            Self::Cluster => ApiResource::erase::<crds::KubernetesCluster>(&()),
            Self::Object(kind) => match kind {
                StatusKind::AccessPolicy => ApiResource::erase::<crds::AccessPolicy>(&()),
                StatusKind::Destination => ApiResource::erase::<crds::Destination>(&()),
                StatusKind::Mesh => ApiResource::erase::<crds::Mesh>(&()),
                StatusKind::Settings => ApiResource::erase::<crds::Settings>(&()),
                StatusKind::TrafficPolicy => ApiResource::erase::<crds::TrafficPolicy>(&()),
                StatusKind::VirtualMesh => ApiResource::erase::<crds::VirtualMesh>(&()),
                StatusKind::Workload => ApiResource::erase::<crds::Workload>(&()),
            },
        }
    }

    /// Whether only those of our own namespace count.
    fn is_ours_alone(self) -> bool {
        matches!(self, Self::Cluster | Self::Object(StatusKind::Settings))
    }
}

// === impl Stored ===

impl Stored {
    pub(super) fn of(kind: SubjectKind, object: &DynamicObject) -> Self {
        let status = object.data.get("status").unwrap_or(&Value::Null);
        let conditions = status.get("conditions").cloned().unwrap_or_default();
        let annotations = object.metadata.annotations.as_ref();
        let version = object.metadata.resource_version.as_ref();
        Self {
            status: fingerprint(kind, status),
            // Conditions that are none are replaced.
            conditions: serde_json::from_value(conditions).unwrap_or_default(),
            release: annotations
                .and_then(|it| it.get(meta::RELEASE_MASS_DELETE_ANNOTATION))
                .filter(|_| kind == SubjectKind::Cluster)
                .cloned(),
            version: version.and_then(|version| version.parse().ok()),
        }
    }

    /// Whether the other is an earlier state of the same object.
    pub(super) fn is_newer_than(&self, other: &Self) -> bool {
        self.version.is_some() && self.version > other.version
    }

    /// From now on any other state counts as newer.
    pub(super) fn forget_version(&mut self) {
        self.version = None;
    }
}

/// Of the fields that we write.
pub(super) fn fingerprint(kind: SubjectKind, status: &Value) -> Fingerprint {
    // Maps are sorted, so equal values have equal texts.
    Fingerprint::of([ours(kind, status).to_string().as_bytes()])
}

/// The part of a status that is ours: others have conditions of their own, and in the status of a
/// registered cluster fields.
pub(super) fn ours(kind: SubjectKind, status: &Value) -> Value {
    let mut ours = match (kind, status) {
        (SubjectKind::Object(_), Value::Object(fields)) => fields.clone(),
        _ => Map::new(),
    };
    let conditions = status.get("conditions").and_then(Value::as_array);
    if let Some(conditions) = conditions {
        let own = conditions.iter().filter(|it| is_own(&it["type"]));
        let mut own: Vec<_> = own.cloned().collect();
        own.sort_by_cached_key(|it| it["type"].to_string());
        ours.insert("conditions".to_owned(), Value::Array(own));
    }
    Value::Object(ours)
}

/// Whether a condition of this type is ours.
pub(super) fn is_own(condition: &Value) -> bool {
    [
        Type::Accepted,
        Type::ResolvedRefs,
        Type::Programmed,
        Type::TrustReady,
        Type::Ready,
        Type::Stalled,
        Type::MassDeleteHeld,
    ]
    .iter()
    .any(|kind| *condition == kind.as_str())
}

// === impl Sighting ===

impl Sighting {
    /// Whether everything of the kind is about to be shown.
    pub(super) fn begins_relist(&self) -> bool {
        matches!(self.observed, Observed::Started)
    }
}

// === impl Watched ===

impl Watched {
    /// What was seen, if it is there, and what is there no more.
    pub(super) fn take(&mut self, sighting: Sighting) -> (Option<(Subject, Stored)>, Vec<Subject>) {
        let Sighting { kind, observed } = sighting;
        let gone = self.0.follow(&observed);
        let gone = gone.iter().map(|name| Subject::new(kind, name)).collect();
        let seen = match observed {
            Observed::Present(object) | Observed::Applied(object) => {
                let subject = Subject::new(kind, &NamespacedName::of(&object));
                Some((subject, Stored::of(kind, &object)))
            }
            Observed::Failed(failure) => {
                let error = Chain(&failure.error);
                tracing::warn!(kind = kind.name(), %error, "statuses cannot be watched");
                None
            }
            Observed::Started
            | Observed::Synced
            | Observed::Deleted(_)
            | Observed::Invalid(_)
            | Observed::Recovered => None,
        };
        (seen, gone)
    }
}

/// Names the kind of what a watch sees.
struct Tagged {
    kind: SubjectKind,
    sightings: mpsc::Sender<Sighting>,
}

impl Sink<DynamicObject> for Tagged {
    async fn send(&mut self, observed: Observed<DynamicObject>) -> Result<(), Closed> {
        let kind = self.kind;
        let sent = self.sightings.send(Sighting { kind, observed }).await;
        sent.map_err(|_| Closed)
    }
}

/// Watches the statuses of all kinds.
pub(super) fn watch(
    client: &Client,
    namespace: &str,
    jitter: &mut Jitter,
    tasks: &TaskTracker,
    cancel: &CancellationToken,
) -> mpsc::Receiver<Sighting> {
    let (sightings, seen) = mpsc::channel(SIGHTINGS);
    for kind in SubjectKind::all() {
        let resource = kind.resource();
        let api = if kind.is_ours_alone() {
            Api::namespaced_with(client.clone(), namespace, &resource)
        } else {
            Api::all_with(client.clone(), &resource)
        };
        let config = pump::Config {
            prune: keep_status,
            ..pump::Config::default()
        };
        let sink = Tagged {
            kind,
            sightings: sightings.clone(),
        };
        let backoff = ExponentialBackoff::new(Schedule::default(), jitter.fork());
        let cancel = cancel.clone();
        tasks.spawn(pump::pump(api, config, sink, backoff, cancel));
    }
    seen
}

fn keep_status(object: &mut DynamicObject) {
    object.metadata.managed_fields = None;
    object.metadata.labels = None;
    let status = object.data.get_mut("status").map(Value::take);
    object.data = Value::Object(Map::from_iter(
        status.map(|status| ("status".to_owned(), status)),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_write_in_the_status_of_a_cluster_is_no_difference() {
        let ours = serde_json::json!({ "conditions": [{ "type": "Ready" }] });
        let both = serde_json::json!({ "conditions": [{ "type": "Ready" }], "namespace": "mesh" });
        assert_eq!(
            fingerprint(SubjectKind::Cluster, &ours),
            fingerprint(SubjectKind::Cluster, &both)
        );
        let policy = SubjectKind::Object(StatusKind::TrafficPolicy);
        assert_ne!(fingerprint(policy, &ours), fingerprint(policy, &both));
    }

    #[test]
    fn conditions_of_others_and_their_order_are_no_difference() {
        let condition = |kind: &str| serde_json::json!({ "type": kind });
        let ours =
            serde_json::json!({ "conditions": [condition("Programmed"), condition("Accepted")] });
        let both = serde_json::json!({
            "conditions": [condition("Accepted"), condition("Synced"), condition("Programmed")],
        });
        let policy = SubjectKind::Object(StatusKind::TrafficPolicy);
        assert_eq!(fingerprint(policy, &ours), fingerprint(policy, &both));
        let less = serde_json::json!({ "conditions": [condition("Accepted")] });
        assert_ne!(fingerprint(policy, &ours), fingerprint(policy, &less));
    }
}
