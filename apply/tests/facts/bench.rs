//! A cluster, an applier on it, and what it tells.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use ferromesh_apply::{
    Answer, Applier, Desired, Handle, Kind, Label, Metrics, ObjectId, Options, Outcome, Report,
    Scope, Sight,
};
use ferromesh_runtime::backoff::Jitter;
use ferromesh_testkit::fakeapi::{self, FakeApi, Fault, Verb};
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

/// No fact takes longer on a clock that jumps ahead, unless it never comes.
const DEADLINE: Duration = Duration::from_hours(1);

pub(super) const OWNER: (&str, &str) = ("owner.networking.mesh.gloo.solo.io", "gloo-mesh");
pub(super) const PLACE: (&str, &str) = ("cluster.multicluster.solo.io", "c1");
pub(super) const US: &str = "ferromesh";
pub(super) const NS: &str = "shop";

/// What is wanted; clones share it.
#[derive(Clone, Default)]
pub(super) struct Wanted {
    desired: Arc<Mutex<BTreeMap<ObjectId, Desired>>>,
    unknown: Arc<Mutex<BTreeSet<ObjectId>>>,
}

pub(super) struct Bench {
    pub(super) api: FakeApi,
    pub(super) wanted: Wanted,
    pub(super) handle: Handle,
    reports: mpsc::Receiver<Report>,
    /// The last outcome of each object that is told.
    outcomes: BTreeMap<ObjectId, Outcome>,
    cancel: CancellationToken,
    metrics: Metrics,
}

// === kinds ===

/// What others refer to.
pub(super) fn entries() -> Kind {
    Kind::new(
        "networking.istio.io",
        "ServiceEntry",
        "serviceentries",
        &["v1", "v1beta1"],
    )
}

/// What refers to others.
pub(super) fn routes() -> Kind {
    Kind::new(
        "networking.istio.io",
        "VirtualService",
        "virtualservices",
        &["v1", "v1beta1"],
    )
}

/// The kind as the API server serves it.
pub(super) fn served(kind: &Kind) -> fakeapi::Kind {
    fakeapi::Kind::new(&kind.group, &kind.name, &kind.plural).with_list("spec.ports", "name")
}

pub(super) fn cluster() -> FakeApi {
    let api = FakeApi::new();
    api.serve(&served(&entries()));
    api.serve(&served(&routes()));
    api
}

pub(super) fn scope() -> Scope {
    Scope {
        cluster: "c1".into(),
        owner: Label::new(OWNER.0, OWNER.1),
        place: Label::new(PLACE.0, PLACE.1),
        kinds: vec![entries(), routes()],
    }
}

pub(super) fn route(name: &str) -> ObjectId {
    routes().id(NS, name)
}

pub(super) fn entry(name: &str) -> ObjectId {
    entries().id(NS, name)
}

pub(super) fn hosts(host: &str) -> Desired {
    Desired {
        spec: json!({ "hosts": [host] }),
        ..Desired::default()
    }
}

/// An object of ours as another manager than us would write it.
pub(super) fn labelled(name: &str, spec: &Value) -> Value {
    let labels = BTreeMap::from([OWNER, PLACE]);
    json!({ "metadata": { "name": name, "namespace": NS, "labels": labels }, "spec": spec })
}

/// The line of a gauge of the applier's.
pub(super) fn gauge(name: &str, count: usize) -> String {
    format!(
        "apply_{name}{{cluster=\"c1\",scope=\"{}\"}} {count}\n",
        OWNER.0
    )
}

// === impl Wanted ===

impl Wanted {
    pub(super) fn set(&self, id: &ObjectId, desired: Desired) {
        self.desired.lock().unwrap().insert(id.clone(), desired);
    }

    pub(super) fn unset(&self, id: &ObjectId) {
        self.desired.lock().unwrap().remove(id);
    }

    /// Nobody can tell of this one, or somebody can again.
    pub(super) fn set_unknown(&self, id: &ObjectId, is_unknown: bool) {
        let mut unknown = self.unknown.lock().unwrap();
        if is_unknown {
            unknown.insert(id.clone());
        } else {
            unknown.remove(id);
        }
    }

    fn ask(&self, id: &ObjectId) -> Answer {
        if self.unknown.lock().unwrap().contains(id) {
            return Answer::Unknown;
        }
        self.desired.lock().unwrap().get(id).cloned().into()
    }

    pub(super) fn ids(&self) -> Vec<ObjectId> {
        self.desired.lock().unwrap().keys().cloned().collect()
    }
}

// === impl Bench ===

impl Bench {
    /// An empty cluster.
    pub(super) fn new() -> Self {
        Self::on(cluster(), Wanted::default())
    }

    /// Starts an applier on a cluster.
    pub(super) fn on(api: FakeApi, wanted: Wanted) -> Self {
        Self::with(api, wanted, scope())
    }

    pub(super) fn with(api: FakeApi, wanted: Wanted, scope: Scope) -> Self {
        let metrics = Metrics::default();
        let source = wanted.clone();
        let source = move |id: &ObjectId| source.ask(id);
        let (applier, handle, reports) = Applier::new(
            api.client(),
            scope,
            source,
            Options::default(),
            Jitter::seeded(7),
            &metrics,
        );
        let cancel = CancellationToken::new();
        tokio::spawn(applier.run(cancel.clone()));
        Self {
            api,
            wanted,
            handle,
            reports,
            outcomes: BTreeMap::new(),
            cancel,
            metrics,
        }
    }

    /// From now on the watches show nothing.
    pub(super) async fn blind(&mut self) {
        self.api
            .fail(Fault::Mute, |request| request.verb == Verb::Watch);
        self.api.end_watches();
        self.pass(Duration::from_secs(5)).await;
    }

    /// The metrics as text.
    pub(super) fn metrics(&self) -> String {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    /// Ends the applier.
    pub(super) fn stop(&self) {
        self.cancel.cancel();
    }

    /// How many requests of this verb there were.
    pub(super) fn count(&self, verb: Verb) -> usize {
        let requests = self.api.requests();
        requests
            .iter()
            .filter(|request| request.verb == verb)
            .count()
    }

    /// Ends the applier and starts another one.
    pub(super) fn restarted(self) -> Self {
        self.stop();
        self.api.forget_requests();
        Self::on(self.api.clone(), self.wanted.clone())
    }

    pub(super) fn want(&self, id: &ObjectId, desired: Desired) {
        self.wanted.set(id, desired);
        self.handle.want([id.clone()]);
    }

    pub(super) fn unwant(&self, id: &ObjectId) {
        self.wanted.unset(id);
        self.handle.want([id.clone()]);
    }

    /// Everything that is wanted stands, and nothing else.
    pub(super) async fn complete(&mut self) {
        self.handle.want(self.wanted.ids());
        self.handle.complete();
        self.until("everything stands as it is wanted", Self::is_equal)
            .await;
    }

    /// The next report.
    pub(super) async fn report(&mut self) -> Report {
        let report = tokio::time::timeout(DEADLINE, self.reports.recv()).await;
        report.expect("a report comes").expect("the applier runs")
    }

    /// Waits for a report that `pick` picks.
    pub(super) async fn hears<T>(&mut self, mut pick: impl FnMut(&Report) -> Option<T>) -> T {
        let deadline = Instant::now() + DEADLINE;
        loop {
            assert!(Instant::now() < deadline, "it is never told");
            let report = self.report().await;
            if let Some(picked) = pick(&report) {
                return picked;
            }
        }
    }

    /// Waits until an object has such an outcome.
    pub(super) async fn becomes(&mut self, id: &ObjectId, is: fn(&Outcome) -> bool) {
        self.hears(|report| match report {
            Report::Object { id: of, outcome } if of == id && is(outcome) => Some(()),
            _ => None,
        })
        .await;
    }

    /// Waits for the next outcome of an object.
    pub(super) async fn outcome(&mut self, id: &ObjectId) -> Outcome {
        let deadline = Instant::now() + DEADLINE;
        loop {
            assert!(Instant::now() < deadline, "{id} has no outcome");
            if let Report::Object { id: of, outcome } = self.report().await
                && of == *id
            {
                return outcome;
            }
        }
    }

    pub(super) async fn synced(&mut self) {
        self.hears(|report| matches!(report, Report::Synced).then_some(()))
            .await;
    }

    /// Waits until a kind is seen as it `is`.
    pub(super) async fn sees(&mut self, kind: &Kind, is: fn(&Sight) -> bool) {
        let kind = kind.clone();
        self.hears(|report| match report {
            Report::Kind { kind: of, sight } if *of == kind && is(sight) => Some(()),
            _ => None,
        })
        .await;
    }

    /// Waits until something is so, while reports are taken in.
    pub(super) async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        self.take_in();
        while !is_so(self) {
            assert!(began.elapsed() < DEADLINE, "never so: {what}");
            let pause = (began.elapsed() / 20).max(Duration::from_millis(20));
            tokio::time::sleep(pause).await;
            self.take_in();
        }
    }

    fn take_in(&mut self) {
        while let Ok(report) = self.reports.try_recv() {
            if let Report::Object { id, outcome } = report {
                self.outcomes.insert(id, outcome);
            }
        }
    }

    /// Lets some time pass in which everything that is due happens.
    pub(super) async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            tokio::time::sleep(time / 100).await;
            self.take_in();
        }
    }

    /// The last outcome that was taken in of an object.
    pub(super) fn last(&self, id: &ObjectId) -> Option<&Outcome> {
        self.outcomes.get(id)
    }

    pub(super) fn stored(&self, id: &ObjectId) -> Option<Value> {
        let kind = scope()
            .kinds
            .into_iter()
            .find(|kind| kind.name == id.kind)?;
        self.api.get(&served(&kind), &id.namespace, &id.name)
    }

    pub(super) fn spec(&self, id: &ObjectId) -> Value {
        self.stored(id)
            .map(|object| object["spec"].clone())
            .unwrap_or_default()
    }

    /// Whether what stands with our labels is what is wanted.
    pub(super) fn is_equal(&self) -> bool {
        let mut standing = BTreeMap::new();
        for kind in scope().kinds {
            for object in self.api.list(&served(&kind)) {
                let meta = &object["metadata"];
                let text = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
                if meta["labels"][OWNER.0] == OWNER.1 && meta["labels"][PLACE.0] == PLACE.1 {
                    let id = kind.id(&text("namespace"), &text("name"));
                    standing.insert(id, object["spec"].clone());
                }
            }
        }
        let wanted = self.wanted.desired.lock().unwrap();
        let wanted = wanted
            .iter()
            .map(|(id, desired)| (id.clone(), desired.spec.clone()));
        standing == wanted.collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop();
    }
}
