//! The one task that hears of changes and tells everybody else. It waits for nobody: what takes time is
//! done by others, who report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferromesh_apply::Report;
use ferromesh_core::{Delta, Key, OutputKind, OutputSet, State, StatusKey, StatusKind};
use ferromesh_crds::meta::RELEASE_MASS_DELETE_ANNOTATION;
use ferromesh_mirror::{Clusters, Deltas, Handle};
use ferromesh_runtime::telemetry::Chain;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Controller;
use crate::certs::{self, CertificateController, Inputs, Sources, TrustReports, WantedSet};
use crate::credentials::Credentials;
use crate::outputs::{Outputs, Target};
use crate::programmed::{Programmed, Trouble};
use crate::status::{Hold, Sighting, Statuses, Subject, View};
use crate::trust;

/// Reports that wait before appliers keep them to themselves.
const REPORTS: usize = 1024;

/// Clusters that certificates can be kept in.
type Askable = Arc<BTreeMap<String, certs::Cluster>>;

pub(crate) struct Reconciler {
    mirror: Handle,
    sources: Sources,
    outputs: Outputs,
    programmed: Programmed,
    statuses: Statuses,
    holds: BTreeMap<Target, Hold>,
    reports: mpsc::Receiver<(Target, Report)>,
    sightings: mpsc::Receiver<Sighting>,
    clusters: watch::Receiver<u64>,
    wanted: watch::Sender<Option<Arc<WantedSet>>>,
    askable: watch::Sender<Askable>,
    trust: watch::Receiver<TrustReports>,
    /// Clusters that were registered when they were looked at last.
    registered: BTreeSet<Arc<str>>,
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
        let namespace = mirror.state().options().namespace.clone();
        let tasks = TaskTracker::new();
        let (reporter, reports) = mpsc::channel(REPORTS);
        let outputs = Outputs::new(
            mirror.clone(),
            management.clone(),
            metrics,
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
            now: Arc::clone(&sources.now),
            jitter,
        };
        tasks.spawn(credentials.run(cancel.clone()));
        Self {
            clusters: mirror.clusters_revision(),
            mirror,
            sources,
            outputs,
            programmed: Programmed::default(),
            statuses,
            holds: BTreeMap::new(),
            reports,
            sightings,
            wanted,
            askable,
            trust,
            registered: BTreeSet::new(),
            tasks,
        }
    }

    /// Works until the mirror ends.
    pub(crate) async fn work(&mut self, deltas: &mut Deltas) {
        self.clusters.mark_unchanged();
        self.follow_clusters();
        loop {
            let due = self.statuses.due();
            tokio::select! {
                delta = deltas.next() => match delta {
                    Some(delta) => self.take(&delta),
                    None => return,
                },
                Ok(()) = self.clusters.changed() => self.follow_clusters(),
                Some((target, report)) = self.reports.recv() => self.hear(target, report),
                Ok(()) = self.trust.changed() => self.touch_virtual_meshes(),
                Some(sighting) = self.sightings.recv() => self.see(sighting),
                written = self.statuses.ended() => {
                    if let Some(written) = written {
                        self.statuses.take(written);
                    }
                }
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.write_statuses();
                }
            }
        }
    }

    /// Waits until nothing works any more; everything has been cancelled.
    pub(crate) async fn end(self) {
        drop(self.reports);
        self.outputs.end().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Something differs.
    fn take(&mut self, delta: &Delta) {
        let state = delta.after();
        let sets = delta.output_sets();
        for set in &sets {
            self.expect(set, None);
        }
        self.outputs.tell(&sets, None);
        self.statuses.touch_all(delta.statuses());
        let is_about_certificates = |set: &OutputSet| {
            let mut keys = set.keys.iter();
            keys.any(|key| key.kind == OutputKind::IssuedCertificate)
        };
        let is_about_meshes =
            |key: &StatusKey| matches!(key.kind, StatusKind::Mesh | StatusKind::VirtualMesh);
        if self.wanted.borrow().is_none()
            || sets.iter().any(is_about_certificates)
            || delta.statuses().any(is_about_meshes)
        {
            self.want_certificates(state);
        }
        let clusters = self.mirror.clusters();
        let before = delta.before();
        for cluster in &self.registered {
            if before.is_complete(cluster) != state.is_complete(cluster)
                || before.unsynced(cluster).count() != state.unsynced(cluster).count()
            {
                self.statuses.touch(subject(state, cluster));
            }
        }
        if !before.is_complete("") && state.is_complete("") {
            // What is left of clusters that are registered no more is known from here on.
            self.follow_clusters();
        }
        self.outputs.complete(state, &clusters);
    }

    /// Clusters were registered, deregistered, or fare otherwise.
    fn follow_clusters(&mut self) {
        let (state, clusters) = (self.mirror.state(), self.mirror.clusters());
        let registered: BTreeSet<Arc<str>> = clusters.iter().map(|(name, _)| name.into()).collect();
        for gone in self.registered.difference(&registered) {
            let concerned = self.programmed.forget(gone);
            self.statuses.touch_all(&concerned);
            self.holds.remove(&Target::Pushed(Arc::clone(gone)));
        }
        let started = self.outputs.keep(&state, &clusters);
        if !started.is_empty() {
            self.tell_all(&state, &started);
        }
        self.holds
            .retain(|target, _| self.outputs.has(target) && !started.contains(target));
        for cluster in &registered {
            self.statuses.touch(subject(&state, cluster));
            let concerned: Vec<_> = self.programmed.concerned(cluster).cloned().collect();
            self.statuses.touch_all(&concerned);
        }
        self.registered = registered;
        self.offer(&clusters);
        self.want_certificates(&state);
        self.outputs.complete(&state, &clusters);
    }

    /// Tells appliers that were started everything there is.
    fn tell_all(&mut self, state: &State, started: &BTreeSet<Target>) {
        let mut sets: Vec<_> = state.output_sets().collect();
        for set in &sets {
            self.expect(set, Some(started));
        }
        // Nobody wants them, and the last applier may not have come to delete them.
        let unfinished = started.iter().filter_map(|target| match target {
            Target::Pushed(cluster) => Some(self.programmed.unfinished(cluster)),
            Target::Discovered(_) => None,
        });
        sets.extend(unfinished.map(|keys| OutputSet {
            keys,
            ..OutputSet::default()
        }));
        self.outputs.tell(&sets, Some(started));
    }

    /// Outputs are to be written, or deleted; those of `among` alone, if there is such a set.
    fn expect(&mut self, set: &OutputSet, among: Option<&BTreeSet<Target>>) {
        let registered = &self.registered;
        let keys = set.keys.iter().filter(|key| match among {
            Some(among) => among.contains(&Target::of(key, set.discovered_in.as_ref())),
            // What is to stand in a cluster that is registered no more is nobody's business.
            None => registered.contains(&key.cluster),
        });
        self.programmed.expect(keys, &set.parents);
    }

    /// An applier has something to tell.
    fn hear(&mut self, target: Target, report: Report) {
        match report {
            Report::Object { id, outcome } => {
                let Some(key) = target.key(&id) else {
                    return;
                };
                if let Some(trouble) = Trouble::of(&outcome) {
                    let (cluster, error) = (&**target.cluster(), &trouble.text);
                    tracing::warn!(cluster, %key, error, "an object does not stand as it should");
                }
                let mirror = &self.mirror;
                let parents = || mirror.state().parents(&key);
                let concerned = self.programmed.take(&key, &outcome, parents);
                self.statuses.touch_all(&concerned);
            }
            Report::Kind { kind, sight } => {
                tracing::debug!(%target, %kind, ?sight, "kind");
            }
            Report::Synced => tracing::debug!(%target, "everything listed"),
            Report::Held {
                would_delete,
                owned,
            } => {
                tracing::error!(%target, would_delete, owned, "a mass delete is held");
                let hold = Hold {
                    would_delete,
                    owned,
                };
                let cluster = Arc::clone(target.cluster());
                self.holds.insert(target, hold);
                self.look_for_release(&cluster);
            }
            Report::Released => {
                let cluster = Arc::clone(target.cluster());
                self.holds.remove(&target);
                self.statuses.touch(subject(&self.mirror.state(), &cluster));
            }
        }
    }

    /// The status of an object was seen.
    fn see(&mut self, sighting: Sighting) {
        if let Some(Subject::Cluster(key)) = self.statuses.see(sighting) {
            self.look_for_release(key.name());
        }
    }

    /// Lets a mass delete go ahead if a person has said so: the annotation names how many objects that
    /// person has been told of. It is taken away, for it does not stand for the next time.
    fn look_for_release(&mut self, cluster: &str) {
        let subject = subject(&self.mirror.state(), cluster);
        let released = self.statuses.release(&subject);
        let released = released.and_then(|count| count.trim().parse::<usize>().ok());
        let targets = [
            Target::Pushed(cluster.into()),
            Target::Discovered(cluster.into()),
        ];
        for target in targets {
            let hold = self.holds.get(&target);
            if hold.is_some_and(|hold| Some(hold.would_delete) == released) {
                tracing::warn!(%target, would_delete = released, "a mass delete is released");
                self.outputs.release(&target);
                self.take_annotation_away(&subject);
            }
        }
        self.statuses.touch(subject);
    }

    fn take_annotation_away(&self, subject: &Subject) {
        let writer = self.statuses.writer().clone();
        let (address, key) = (subject.address(), subject.key().clone());
        self.tasks.spawn(async move {
            let patch = json!({
                "metadata": { "annotations": { RELEASE_MASS_DELETE_ANNOTATION: null } },
            });
            if let Err(error) = writer.merge(&address, &patch).await {
                let error = Chain(&error);
                tracing::warn!(%key, %error, "the annotation of a release could not be removed");
            }
        });
    }

    /// Tells the certificate controller which clusters it can ask.
    fn offer(&self, clusters: &Clusters) {
        let askable = clusters.iter().filter_map(|(name, view)| {
            let cluster = certs::Cluster {
                client: view.client.clone()?,
                connection: view.connection(),
            };
            Some((name.to_owned(), cluster))
        });
        let offered: BTreeMap<_, _> = askable.collect();
        self.askable.send_if_modified(|askable| {
            let connections = |it: &BTreeMap<String, certs::Cluster>| -> Vec<(String, u64)> {
                let each = it.iter();
                each.map(|(name, cluster)| (name.clone(), cluster.connection))
                    .collect()
            };
            let differs = connections(askable) != connections(&offered);
            if differs {
                *askable = Arc::new(offered);
            }
            differs
        });
    }

    /// Tells the certificate controller what is wanted.
    fn want_certificates(&mut self, state: &State) {
        let wanted = trust::wanted(state);
        let differs = self.wanted.send_if_modified(|last| {
            let differs = last.as_deref() != wanted.as_ref();
            if differs {
                *last = wanted.map(Arc::new);
            }
            differs
        });
        if differs {
            self.touch_virtual_meshes();
        }
    }

    fn touch_virtual_meshes(&mut self) {
        let state = self.mirror.state();
        let virtual_meshes: Vec<_> = state
            .snapshot()
            .virtual_meshes
            .keys()
            .map(|key| StatusKey {
                kind: StatusKind::VirtualMesh,
                key: key.clone(),
            })
            .collect();
        self.statuses.touch_all(&virtual_meshes);
    }

    /// Writes statuses that differ, once everything is known that they are made of.
    fn write_statuses(&mut self) {
        let (state, clusters) = (self.mirror.state(), self.mirror.clusters());
        if !state.is_complete("") {
            self.statuses.wait();
            return;
        }
        let wanted = self.wanted.borrow().clone();
        let trust = self.trust.borrow();
        let view = View {
            state: &state,
            clusters: &clusters,
            programmed: &self.programmed,
            wanted: wanted.as_deref(),
            trust: &trust,
            holds: &self.holds,
        };
        self.statuses.work(&view, (self.sources.now)());
    }
}

/// The object of a registered cluster.
fn subject(state: &State, cluster: &str) -> Subject {
    Subject::Cluster(Key::local(cluster, &state.options().namespace))
}
