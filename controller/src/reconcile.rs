//! The one task that hears of changes and tells everybody else. It waits for nobody: what takes time is
//! done by others, who report.
//!
//! In reading order:
//!
//! - here: from what has changed to those who write it.
//! - `reports`: from what they report to statuses.
//! - `certificates`: the same for certificates.

mod certificates;
mod reports;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferromesh_core::{Delta, Key, OutputKind, OutputSet, State, StatusKey, StatusKind};
use ferromesh_mirror::{Clusters, Deltas, Handle};
use ferromesh_runtime::telemetry::SPANS;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Controller;
use crate::certs::{self, CertificateController, Inputs, Sources, TrustReports, WantedSet};
use crate::credentials::Credentials;
use crate::holds::Holds;
use crate::metrics::Metrics;
use crate::outputs::{Outputs, Target, Told};
use crate::programmed::{Cause, Programmed, is_unreached};
use crate::status::{Sighting, Statuses, Subject, View};

/// Reports that wait before appliers keep them to themselves.
const REPORTS: usize = 1024;

/// Clusters that certificates can be kept in.
type Askable = Arc<BTreeMap<String, certs::Cluster>>;

pub(crate) struct Reconciler {
    mirror: Handle,
    /// As far as changes have been taken in: what is said of objects must not be newer than what is known to
    /// follow from them.
    state: State,
    /// Whether the management cluster has told all it has. Before that nothing is written.
    has_begun: bool,
    sources: Sources,
    outputs: Outputs,
    programmed: Programmed,
    statuses: Statuses,
    holds: Holds,
    reports: mpsc::Receiver<Told>,
    sightings: mpsc::Receiver<Sighting>,
    clusters: watch::Receiver<u64>,
    wanted: watch::Sender<Option<Arc<WantedSet>>>,
    askable: watch::Sender<Askable>,
    trust: watch::Receiver<TrustReports>,
    metrics: Metrics,
    /// Clusters that were registered when they were looked at last, and whether nothing could be written to
    /// them.
    registered: BTreeMap<Arc<str>, bool>,
    tasks: TaskTracker,
}

impl Reconciler {
    pub(crate) fn start(controller: Controller, cancel: &CancellationToken) -> Self {
        let Controller {
            management,
            mirror,
            metrics,
            sources,
            mut jitter,
        } = controller;
        let state = State::clone(&mirror.state());
        let namespace = state.options().namespace.clone();
        let holds = Holds::new(jitter.fork());
        let tasks = TaskTracker::new();
        let (reporter, reports) = mpsc::channel(REPORTS);
        let outputs = Outputs::new(
            mirror.clone(),
            management.clone(),
            metrics.apply.clone(),
            jitter.fork(),
            reporter,
            cancel.clone(),
        );
        let (statuses, sightings) =
            Statuses::start(&management, &namespace, jitter.fork(), &tasks, cancel);
        let wanted = watch::Sender::default();
        let askable = watch::Sender::default();
        let (trust_reporter, trust) = watch::channel(TrustReports::default());
        let certificates = CertificateController::new(
            management.clone(),
            namespace,
            sources.clone(),
            jitter.fork(),
        );
        let inputs = Inputs {
            wanted: wanted.subscribe(),
            clusters: askable.subscribe(),
        };
        tasks.spawn(certificates.run(inputs, trust_reporter, cancel.clone()));
        let credentials = Credentials {
            mirror: mirror.clone(),
            management,
            metrics: metrics.clone(),
            now: Arc::clone(&sources.now),
            jitter,
        };
        tasks.spawn(credentials.run(cancel.clone()));
        Self {
            clusters: mirror.clusters_revision(),
            mirror,
            state,
            has_begun: false,
            sources,
            outputs,
            programmed: Programmed::default(),
            statuses,
            holds,
            reports,
            sightings,
            wanted,
            askable,
            trust,
            metrics,
            registered: BTreeMap::new(),
            tasks,
        }
    }

    /// Works until the mirror ends.
    pub(crate) async fn work(&mut self, deltas: &mut Deltas) {
        self.clusters.mark_unchanged();
        self.begin();
        loop {
            let now = Instant::now();
            let due = self.statuses.due().filter(|_| self.has_begun);
            let look = self.outputs.next_look(now);
            tokio::select! {
                delta = deltas.next() => match delta {
                    Some(delta) => {
                        let cause = deltas.cause();
                        let span = tracing::trace_span!(target: SPANS, parent: &cause, "reconcile");
                        span.in_scope(|| self.take(&delta));
                    }
                    None => return,
                },
                Ok(()) = self.clusters.changed() => self.follow_clusters(),
                Some(told) = self.reports.recv() => self.hear(told),
                Ok(()) = self.trust.changed() => self.trust(),
                Some(sighting) = self.sightings.recv() => self.see(sighting),
                written = self.statuses.ended() => {
                    if let Some(written) = written {
                        self.statuses.take(written);
                    }
                }
                taken = self.holds.taken() => {
                    if let Some(taking) = taken {
                        for target in self.holds.release(&taking) {
                            self.outputs.release(&target);
                        }
                        self.look_for_release(&taking.cluster);
                    }
                }
                () = sleep_until(due.unwrap_or(now)), if due.is_some() => self.write_statuses(),
                () = sleep_until(look.unwrap_or(now)), if look.is_some() => self.touch_clusters(),
            }
        }
    }

    /// Waits until nothing works any more; everything has been cancelled.
    pub(crate) async fn end(self) {
        drop(self.reports);
        self.statuses.end().await;
        self.holds.stop().await;
        self.outputs.end().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Begins to work once the management cluster has told all it has: what follows from a part of the
    /// policies must not be written.
    fn begin(&mut self) {
        if !self.has_begun && self.state.is_complete("") {
            self.has_begun = true;
            self.follow_clusters();
        }
    }

    /// Something differs.
    fn take(&mut self, delta: &Delta) {
        self.state = delta.after().clone();
        self.statuses.touch_all(delta.statuses());
        if !self.has_begun {
            return self.begin();
        }
        let sets = delta.output_sets();
        for set in &sets {
            self.expect(set, None);
        }
        self.outputs.tell(&sets, None);
        let is_about_certificates = |set: &OutputSet| {
            let mut keys = set.keys.iter();
            keys.any(|key| key.kind == OutputKind::IssuedCertificate)
        };
        let is_about_meshes =
            |key: &StatusKey| matches!(key.kind, StatusKind::Mesh | StatusKind::VirtualMesh);
        if sets.iter().any(is_about_certificates) || delta.statuses().any(is_about_meshes) {
            self.want_certificates();
        }
        let (before, after) = (delta.before(), delta.after());
        for cluster in self.registered.keys() {
            let was_complete = before.is_complete(cluster);
            if was_complete != after.is_complete(cluster)
                || (!was_complete
                    && before.unsynced(cluster).count() != after.unsynced(cluster).count())
            {
                self.statuses.touch(subject(after, cluster));
            }
        }
        if self.is_left_behind(delta) {
            return self.follow_clusters();
        }
        self.complete(&self.mirror.clusters());
    }

    /// Whether something is stored of a cluster that is registered no more, and nobody is there to delete it:
    /// it was being written when its cluster was deregistered, and has come to stand after that.
    fn is_left_behind(&self, delta: &Delta) -> bool {
        let snapshot = delta.after().snapshot();
        delta.statuses().any(|StatusKey { kind, key }| {
            let cluster = match kind {
                StatusKind::Mesh => snapshot.meshes.get(key).map(|it| &it.discovered_in),
                StatusKind::Workload => snapshot.workloads.get(key).map(|it| &it.discovered_in),
                StatusKind::Destination => {
                    let stored = snapshot.destinations.get(key);
                    stored.map(|it| &it.discovered_in)
                }
                StatusKind::AccessPolicy
                | StatusKind::Settings
                | StatusKind::TrafficPolicy
                | StatusKind::VirtualMesh => None,
            };
            cluster.is_some_and(|cluster| {
                let target = Target::Discovered(Arc::clone(cluster));
                let is_known = self.registered.contains_key(cluster) || self.outputs.has(&target);
                !cluster.is_empty() && !is_known
            })
        })
    }

    /// Clusters were registered, deregistered, or fare otherwise.
    fn follow_clusters(&mut self) {
        if !self.has_begun {
            return;
        }
        // What has been stepped and not been taken yet comes again, as a change.
        let (state, clusters) = (self.mirror.state(), self.mirror.clusters());
        let registered: BTreeMap<Arc<str>, bool> = clusters
            .iter()
            .map(|(name, _)| (name.into(), is_unreached(&clusters, name)))
            .collect();
        let before = std::mem::replace(&mut self.registered, registered);
        for gone in before.keys() {
            if !self.registered.contains_key(gone) {
                let concerned = self.programmed.forget(gone);
                self.statuses.touch_all(&concerned);
            }
        }
        let mut begun: Vec<_> = self.outputs.keep(&state, &clusters).into_iter().collect();
        let holds = &mut self.holds;
        holds.retain(|target| self.outputs.has(target) && !begun.contains(target));
        // Nobody writes to a cluster that cannot be reached, and its objects are waited for all the same.
        let come = self.registered.keys();
        let come = come.filter(|name| !before.contains_key(*name));
        begun.extend(come.map(|name| Target::Pushed(Arc::clone(name))));
        if !begun.is_empty() {
            self.tell_all(&state, &begun.into_iter().collect());
        }
        for (cluster, is_unreached) in &self.registered {
            if before.get(cluster) != Some(is_unreached) {
                let waiting: Vec<_> = self.programmed.waiting(cluster).cloned().collect();
                self.statuses.touch_all(&waiting);
            }
        }
        self.touch_clusters();
        self.offer(&clusters);
        self.want_certificates();
        self.complete(&clusters);
    }

    /// Tells those who begin everything there is.
    fn tell_all(&mut self, state: &State, begun: &BTreeSet<Target>) {
        let unfinished: Vec<_> = begun
            .iter()
            .filter_map(|target| match target {
                Target::Pushed(cluster) => Some(self.programmed.begin(cluster)),
                Target::Discovered(_) => None,
            })
            .flatten()
            .collect();
        let mut sets: Vec<_> = state.output_sets().collect();
        for set in &sets {
            self.expect(set, Some(begun));
        }
        // Nobody wants them, and whoever wrote there last may not have come to delete them.
        sets.push(OutputSet {
            keys: unfinished,
            ..OutputSet::default()
        });
        self.outputs.tell(&sets, Some(begun));
    }

    /// Outputs are to be written, or deleted; those of `begun` alone, if there is such a set, and then because
    /// that has just begun.
    fn expect(&mut self, set: &OutputSet, begun: Option<&BTreeSet<Target>>) {
        if set.discovered_in.is_some() {
            return;
        }
        let registered = &self.registered;
        let keys = set.keys.iter().filter(|key| match begun {
            Some(begun) => begun.contains(&Target::of(key, None)),
            // What is to stand in a cluster that is registered no more is nobody's business.
            None => registered.contains_key(&key.cluster),
        });
        let cause = match begun {
            Some(_) => Cause::Begun,
            None => Cause::Changed,
        };
        let parents = present(&self.state, &set.parents);
        let clusters = self.mirror.clusters();
        let concerned = self.programmed.expect(keys, &parents, cause, &clusters);
        self.statuses.touch_all(&concerned);
    }

    /// Tells appliers that they know of all that is wanted. What they had been told and nobody could tell of
    /// then, they are told again.
    fn complete(&mut self, clusters: &Clusters) {
        let now = Instant::now();
        let told = self.outputs.complete(&self.mirror.state(), clusters, now);
        let unfinished = told.iter().filter_map(|target| match target {
            Target::Pushed(cluster) => Some(OutputSet {
                keys: self.programmed.unfinished(cluster),
                ..OutputSet::default()
            }),
            Target::Discovered(_) => None,
        });
        self.outputs.tell(&unfinished.collect::<Vec<_>>(), None);
    }

    fn touch_clusters(&mut self) {
        for cluster in self.registered.keys() {
            self.statuses.touch(subject(&self.state, cluster));
        }
    }

    /// Writes statuses that differ.
    fn write_statuses(&mut self) {
        let clusters = self.mirror.clusters();
        let wanted = self.wanted.borrow().clone();
        let trust = self.trust.borrow();
        let view = View {
            state: &self.state,
            clusters: &clusters,
            programmed: &self.programmed,
            wanted: wanted.as_deref(),
            trust: &trust,
            holds: &self.holds,
            outputs: &self.outputs,
        };
        self.statuses.work(&view, (self.sources.now)());
    }
}

/// The object of a registered cluster.
fn subject(state: &State, cluster: &str) -> Subject {
    Subject::Cluster(Key::local(cluster, &state.options().namespace))
}

/// Those of an object's parents that there are: nobody reads what becomes of the objects of others.
fn present(state: &State, parents: &Arc<[StatusKey]>) -> Arc<[StatusKey]> {
    let snapshot = state.snapshot();
    let is_there = |parent: &StatusKey| match parent.kind {
        StatusKind::AccessPolicy => snapshot.access_policies.contains_key(&parent.key),
        StatusKind::TrafficPolicy => snapshot.traffic_policies.contains_key(&parent.key),
        StatusKind::VirtualMesh => snapshot.virtual_meshes.contains_key(&parent.key),
        StatusKind::Destination
        | StatusKind::Mesh
        | StatusKind::Settings
        | StatusKind::Workload => true,
    };
    if parents.iter().all(is_there) {
        return Arc::clone(parents);
    }
    parents.iter().filter(|it| is_there(it)).cloned().collect()
}
