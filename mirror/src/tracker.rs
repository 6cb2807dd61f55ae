//! What one watch knows to exist, and what follows from what it sees.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use ferromesh_core::{Change, Key, Kind, Object};
use ferromesh_runtime::{
    pump::{Class, Failure, NamespacedName, Relist},
    telemetry::{Chain, SPANS},
};
use tracing::Span;

use crate::{
    ingest::Taken,
    metrics::Counters,
    pumps::{Watch, configuration},
    registry::{Event, Failing, Health, News, Origin, Unreadable},
};

/// The longest reason that is kept, in bytes.
const MAX_REASON: usize = 512;
/// The most objects of one watch that are shown because they cannot be read.
const SHOWN: usize = 8;

/// What follows from what a watch has seen.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// For the writer.
    Changes(Vec<Change>),
    /// For the registry.
    Event(Event),
}

/// What one watch knows to exist. It outlives the connections by which the watch is made, so that what
/// has vanished between two of them is noticed, and what has not stays.
pub(crate) struct Tracker {
    origin: Origin,
    watch: Watch,
    /// Our own namespace in the management cluster.
    namespace: Arc<str>,
    counters: Counters,
    relist: Relist<Key>,
    unreadable: BTreeMap<Key, String>,
    /// Clusters that objects of discovery have named.
    named: BTreeSet<Arc<str>>,
    /// What was told last of how the watch fares.
    told: Option<Result<(), Class>>,
    outcomes: VecDeque<Outcome>,
}

// === impl Tracker ===

impl Tracker {
    pub(crate) fn new(
        origin: Origin,
        watch: Watch,
        namespace: Arc<str>,
        counters: Counters,
    ) -> Self {
        Self {
            origin,
            watch,
            namespace,
            counters,
            relist: Relist::new(),
            unreadable: BTreeMap::new(),
            named: BTreeSet::new(),
            told: None,
            outcomes: VecDeque::new(),
        }
    }

    pub(crate) fn cluster(&self) -> &str {
        &self.origin.cluster
    }

    /// What follows next. It stays until it is taken, whatever becomes of the watch.
    pub(crate) fn outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Whether something follows that has not been taken.
    pub(crate) fn next_is_change(&self) -> Option<bool> {
        let next = self.outcomes.front()?;
        Some(matches!(next, Outcome::Changes(_)))
    }

    /// The span of all that follows from changes.
    pub(crate) fn cause(&self, changes: &[Change]) -> Span {
        let cluster = self.cluster();
        let kind = self.watch.kind.name();
        let first = changes.first().and_then(|change| match change {
            Change::Upsert(object) => Some(object.key()),
            Change::Remove(_, key) | Change::Vanish(_, key) => Some(key),
            Change::Synced { .. } | Change::Forget { .. } => None,
        });
        let object = first.map(Key::as_str).unwrap_or_default();
        let cause =
            tracing::trace_span!(target: SPANS, parent: None, "change", cluster, kind, object);
        tracing::trace_span!(target: SPANS, parent: &cause, "watch", changes = changes.len())
            .in_scope(|| ());
        cause
    }

    /// What it knows to exist.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Key> {
        self.relist.known().iter()
    }

    /// Another connection is used from now on: how the last one fared says nothing.
    pub(crate) fn reconnect(&mut self) {
        self.told = None;
    }

    /// A list begins.
    pub(crate) fn start(&mut self) {
        self.relist.start();
        self.thrive();
    }

    /// An object is there.
    pub(crate) fn present(&mut self, taken: Taken) {
        let Taken {
            object,
            left_out,
            kubeconfig,
        } = taken;
        let key = object.key().clone();
        self.counters.present.inc();
        self.report(&key, left_out);
        match &object {
            Object::KubernetesCluster(_) => self.declare(&key),
            Object::Secret(_) if self.is_ours(&key) => {
                let name = key.name().to_owned();
                self.event(match kubeconfig {
                    Some(kubeconfig) => Event::Credential { name, kubeconfig },
                    // Somebody has made something else of it.
                    None => Event::NoCredential {
                        name,
                        has_vanished: false,
                    },
                });
            }
            Object::Deployment(deployment) => {
                self.want(&key, deployment.istiod().is_some());
            }
            Object::Mesh(mesh) => self.name(&mesh.discovered_in),
            Object::Workload(workload) => self.name(&workload.discovered_in),
            Object::Destination(destination) => self.name(&destination.discovered_in),
            _ => {}
        }
        self.relist.insert(key);
        self.change(vec![Change::Upsert(object)]);
    }

    /// An object is there and says nothing that could be read: what it said before holds no longer.
    pub(crate) fn unreadable(&mut self, name: &NamespacedName, reason: String) {
        let key = self.key(name);
        self.report(&key, Some(reason));
        if self.watch.kind == Kind::KubernetesCluster {
            self.declare(&key);
        }
        self.relist.insert(key.clone());
        self.change(vec![Change::Vanish(self.watch.kind, key)]);
    }

    /// An object is gone.
    pub(crate) fn gone(&mut self, name: &NamespacedName) {
        let key = self.key(name);
        if self.relist.remove(&key) {
            self.remove(&key, false);
            self.change(vec![Change::Remove(self.watch.kind, key)]);
        }
    }

    /// A list is complete: what it has not shown is gone.
    pub(crate) fn finish(&mut self) {
        let vanished = self.relist.finish();
        for key in &vanished {
            self.remove(key, true);
        }
        if !vanished.is_empty() {
            let kind = self.watch.kind;
            let vanished = vanished.into_iter();
            self.change(vanished.map(|key| Change::Vanish(kind, key)).collect());
        }
        self.news(News::Listed(self.watch.clone()));
    }

    /// The API server answers.
    pub(crate) fn thrive(&mut self) {
        if self.told.replace(Ok(())) != Some(Ok(())) {
            self.news(News::Health(self.watch.clone(), Health::Good));
        }
    }

    /// The API server cannot be asked.
    pub(crate) fn fail(&mut self, failure: &Failure) {
        let class = failure.error.class();
        if self.told.replace(Err(class)) != Some(Err(class)) {
            let health = Health::Failing(Failing {
                class,
                since: failure.since,
                reason: bounded(Chain(&failure.error).to_string()),
            });
            self.news(News::Health(self.watch.clone(), health));
        }
    }

    fn remove(&mut self, key: &Key, has_vanished: bool) {
        self.counters.gone.inc();
        self.report(key, None);
        let name = key.name().to_owned();
        match self.watch.kind {
            Kind::KubernetesCluster => self.event(Event::NotDeclared { name, has_vanished }),
            Kind::Secret if self.is_ours(key) => {
                self.event(Event::NoCredential { name, has_vanished });
            }
            Kind::Deployment => self.want(key, false),
            _ => {}
        }
    }

    /// Whether an object of the management cluster is in our own namespace.
    fn is_ours(&self, key: &Key) -> bool {
        key.cluster().is_empty() && key.namespace() == &*self.namespace
    }

    fn declare(&mut self, key: &Key) {
        let name = key.name().to_owned();
        self.event(Event::Declared { name });
    }

    /// An object of discovery names a cluster. What is registered later and not any more is told otherwise.
    fn name(&mut self, cluster: &Arc<str>) {
        if !cluster.is_empty() && self.named.insert(Arc::clone(cluster)) {
            let (name, kind) = (cluster.to_string(), self.watch.kind);
            self.event(Event::Named { name, kind });
        }
    }

    /// The configuration of a control plane is wanted, or no longer.
    fn want(&mut self, deployment: &Key, is_wanted: bool) {
        if let Some(watch) = configuration(deployment) {
            self.news(News::Wanted(watch, is_wanted));
        }
    }

    fn report(&mut self, key: &Key, reason: Option<String>) {
        match reason.map(bounded) {
            Some(reason) => {
                self.counters.unreadable.inc();
                if self.unreadable.get(key) == Some(&reason) {
                    return;
                }
                tracing::warn!(
                    cluster = key.cluster(),
                    kind = self.watch.kind.name(),
                    namespace = key.namespace(),
                    name = key.name(),
                    error = reason,
                    "an object cannot be read, or not all of it"
                );
                self.unreadable.insert(key.clone(), reason);
            }
            None if self.unreadable.remove(key).is_some() => {}
            None => return,
        }
        let first = self.unreadable.iter().take(SHOWN);
        let unreadable = Unreadable {
            count: self.unreadable.len(),
            first: first
                .map(|(key, reason)| (key.clone(), reason.clone()))
                .collect(),
        };
        self.news(News::Unreadable(self.watch.clone(), unreadable));
    }

    fn key(&self, name: &NamespacedName) -> Key {
        let namespace = name.namespace.as_deref().unwrap_or_default();
        Key::new(&name.name, namespace, self.cluster())
    }

    fn news(&mut self, news: News) {
        self.event(Event::News(self.origin.clone(), news));
    }

    fn event(&mut self, event: Event) {
        self.outcomes.push_back(Outcome::Event(event));
    }

    fn change(&mut self, changes: Vec<Change>) {
        self.outcomes.push_back(Outcome::Changes(changes));
    }
}

/// A reason that is not longer than what is kept.
pub(crate) fn bounded(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(MAX_REASON));
    reason
}

#[cfg(test)]
mod tests {
    use ferromesh_core::{Input, model::KubernetesCluster};
    use k8s_openapi::api::core::v1::Service;
    use tokio::time::Instant;

    use super::*;
    use crate::{metrics::Metrics, pumps::Place};

    fn watch(kind: Kind) -> Watch {
        Watch {
            kind,
            place: Place::Everywhere,
        }
    }

    fn tracker(kind: Kind, cluster: &str) -> Tracker {
        let origin = Origin {
            cluster: cluster.into(),
            id: 1,
        };
        let counters = Metrics::default().counters(kind);
        Tracker::new(origin, watch(kind), "gloo-mesh".into(), counters)
    }

    fn name(name: &str) -> NamespacedName {
        NamespacedName {
            namespace: Some("shop".into()),
            name: name.into(),
        }
    }

    fn taken(name: &str) -> Taken {
        let mut service = Service::default();
        service.metadata.name = Some(name.into());
        service.metadata.namespace = Some("shop".into());
        Taken {
            object: service.parse("east"),
            left_out: None,
            kubeconfig: None,
        }
    }

    /// What follows, in a few words.
    fn told(tracker: &mut Tracker) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(outcome) = tracker.outcome() {
            match outcome {
                Outcome::Changes(changes) => {
                    told.extend(changes.iter().map(|change| match change {
                        Change::Upsert(object) => format!("upsert {}", object.key().name()),
                        Change::Remove(_, key) => format!("remove {}", key.name()),
                        Change::Vanish(_, key) => format!("vanish {}", key.name()),
                        _ => panic!("a watch says nothing else: {change:?}"),
                    }));
                }
                Outcome::Event(Event::News(_, news)) => told.push(match news {
                    News::Listed(_) => "listed".into(),
                    News::Health(_, Health::Good) => "good".into(),
                    News::Health(_, Health::Failing(failing)) => failing.class.as_str().into(),
                    News::Wanted(_, is_wanted) => format!("wanted {is_wanted}"),
                    News::Unreadable(_, unreadable) => format!("{} unreadable", unreadable.count),
                    News::Probed(_) => panic!("a watch asks nothing: {news:?}"),
                }),
                Outcome::Event(Event::Declared { name }) => told.push(format!("{name} declared")),
                Outcome::Event(Event::NotDeclared { name, has_vanished }) => {
                    let how = if has_vanished { "vanished" } else { "deleted" };
                    told.push(format!("{name} {how}"));
                }
                Outcome::Event(event) => panic!("unexpected: {event:?}"),
            }
        }
        told
    }

    fn failure(class: Class) -> Failure {
        let error = match class {
            Class::Unreachable => ferromesh_runtime::pump::Error::ShortWatch { path: "/".into() },
            _ => ferromesh_runtime::pump::Error::NoResourceVersion { path: "/".into() },
        };
        assert_eq!(error.class(), class);
        Failure {
            error,
            since: Instant::now(),
        }
    }

    #[test]
    fn what_vanishes_between_two_connections_is_removed_and_nothing_else() {
        let mut tracker = tracker(Kind::Service, "east");
        tracker.start();
        for name in ["a", "b"] {
            tracker.present(taken(name));
        }
        tracker.finish();
        let first = ["good", "upsert a", "upsert b", "listed"];
        assert_eq!(told(&mut tracker), first);

        tracker.reconnect();
        tracker.start();
        tracker.present(taken("b"));
        tracker.finish();
        assert_eq!(
            told(&mut tracker),
            ["good", "upsert b", "vanish a", "listed"]
        );
    }

    #[test]
    fn what_could_not_be_handed_over_is_kept() {
        let mut tracker = tracker(Kind::Service, "east");
        tracker.start();
        tracker.present(taken("a"));
        tracker.gone(&name("a"));
        tracker.reconnect();
        tracker.start();
        tracker.finish();
        assert_eq!(
            told(&mut tracker),
            ["good", "upsert a", "remove a", "good", "listed"]
        );
    }

    #[test]
    fn an_unreadable_object_takes_the_place_of_the_one_it_was() {
        let mut tracker = tracker(Kind::Service, "east");
        tracker.start();
        tracker.present(taken("a"));
        tracker.finish();
        tracker.unreadable(&name("a"), "no shape at all".into());
        tracker.unreadable(&name("a"), "no shape at all".into());
        tracker.present(taken("a"));
        tracker.unreadable(&name("a"), "no shape at all".into());
        tracker.gone(&name("a"));
        assert_eq!(
            told(&mut tracker)[3..],
            [
                "1 unreadable",
                "vanish a",
                "vanish a",
                "0 unreadable",
                "upsert a",
                "1 unreadable",
                "vanish a",
                "0 unreadable",
                "remove a",
            ]
        );
    }

    #[test]
    fn a_declaration_that_cannot_be_read_is_one() {
        let mut tracker = tracker(Kind::KubernetesCluster, "");
        tracker.unreadable(&name("east"), "no shape at all".into());
        tracker.gone(&name("east"));
        assert_eq!(
            told(&mut tracker),
            [
                "1 unreadable",
                "east declared",
                "vanish east",
                "0 unreadable",
                "east deleted",
                "remove east",
            ]
        );
        let declared = KubernetesCluster::parse(&ferromesh_crds::KubernetesCluster::default());
        assert!(declared.key.cluster().is_empty());
    }

    #[tokio::test]
    async fn a_failure_that_goes_on_is_told_once() {
        let mut tracker = tracker(Kind::Service, "east");
        for _ in 0..3 {
            tracker.fail(&failure(Class::Unreachable));
        }
        tracker.fail(&failure(Class::Other));
        for _ in 0..3 {
            tracker.thrive();
        }
        tracker.reconnect();
        tracker.fail(&failure(Class::Other));
        assert_eq!(
            told(&mut tracker),
            ["unreachable", "other", "good", "other"]
        );
    }
}
