//! From what a step has changed to the appliers of the clusters.
//!
//! A registered cluster has two appliers: one writes to it what was made of policies and virtual meshes,
//! the other writes to the management cluster what was found in it. Neither waits for the others.

mod source;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ferromesh_apply::{Applier, Handle, Metrics, ObjectId, Options, Report};
use ferromesh_core::{OutputSet, State};
use ferromesh_mirror::{self as mirror, Clusters};
use ferromesh_runtime::backoff::Jitter;
use kube::Client;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::target::Target;
use self::{
    source::{Wanted, is_ready},
    target::id,
};

/// After so long an applier that knows all it needs has looked for what is to be deleted.
///
/// It says nothing of having found nothing; looking takes it milliseconds.
const LOOK: Duration = Duration::from_secs(2);

/// What an applier tells, and which one it is of those that have had its place.
pub(crate) struct Told {
    pub(crate) target: Target,
    serial: u64,
    pub(crate) report: Report,
}

/// The appliers, and what each of them has been told.
pub(crate) struct Outputs {
    mirror: mirror::Handle,
    management: Client,
    owner: String,
    metrics: Metrics,
    jitter: Jitter,
    reports: mpsc::Sender<Told>,
    appliers: BTreeMap<Target, Running>,
    serial: u64,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

struct Running {
    handle: Handle,
    serial: u64,
    /// The connection that it works with; another one takes another applier.
    connection: u64,
    cancel: CancellationToken,
    /// What was known when it was told that its set is complete.
    complete: Option<Known>,
    is_synced: bool,
    /// When it will have looked for what is to be deleted.
    looked: Option<Instant>,
}

/// What makes it known of objects whether they are wanted, and why they are not.
#[derive(Clone, PartialEq)]
struct Known {
    /// Registered clusters that have not told all they have.
    silent: BTreeSet<Arc<str>>,
    deregistered: BTreeSet<Arc<str>>,
}

/// How an applier is reached, and by which connection.
struct Reach {
    client: Client,
    connection: u64,
}

impl Outputs {
    pub(crate) fn new(
        mirror: mirror::Handle,
        management: Client,
        metrics: Metrics,
        jitter: Jitter,
        reports: mpsc::Sender<Told>,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            owner: mirror.state().options().namespace.clone(),
            mirror,
            management,
            metrics,
            jitter,
            reports,
            appliers: BTreeMap::new(),
            serial: 0,
            tasks: TaskTracker::new(),
            cancel,
        }
    }

    /// Starts appliers that are missing and ends those whose cluster cannot be asked any more. Those that
    /// were started have been told nothing yet.
    ///
    /// To be called once the management cluster has told all it has: what is made of a part of the policies
    /// must not be written.
    pub(crate) fn keep(&mut self, state: &State, clusters: &Clusters) -> BTreeSet<Target> {
        let wanted = self.wanted(state, clusters);
        self.appliers.retain(|target, running| {
            let reach = wanted.get(target);
            let is_kept = reach.is_some_and(|reach| reach.connection == running.connection);
            if !is_kept {
                running.cancel.cancel();
            }
            is_kept
        });
        let mut started = BTreeSet::new();
        for (target, reach) in wanted {
            if self.appliers.contains_key(&target) {
                continue;
            }
            let running = self.start(&target, reach);
            self.appliers.insert(target.clone(), running);
            started.insert(target);
        }
        started
    }

    fn wanted(&self, state: &State, clusters: &Clusters) -> BTreeMap<Target, Reach> {
        let mut wanted = BTreeMap::new();
        let discovered = || Reach {
            client: self.management.clone(),
            connection: 0,
        };
        for (cluster, view) in clusters.iter() {
            wanted.insert(Target::Discovered(cluster.into()), discovered());
            if let Some(client) = &view.client {
                let reach = Reach {
                    client: client.clone(),
                    connection: view.connection(),
                };
                wanted.insert(Target::Pushed(cluster.into()), reach);
            }
        }
        for cluster in left_behind(state, clusters) {
            wanted.insert(Target::Discovered(cluster), discovered());
        }
        wanted
    }

    fn start(&mut self, target: &Target, reach: Reach) -> Running {
        let cancel = self.cancel.child_token();
        self.serial += 1;
        let serial = self.serial;
        let source = Wanted {
            mirror: self.mirror.clone(),
            target: target.clone(),
        };
        let (applier, handle, mut told) = Applier::new(
            reach.client,
            target.scope(&self.owner),
            source,
            Options::default(),
            self.jitter.fork(),
            &self.metrics,
        );
        self.tasks.spawn(applier.run(cancel.clone()));
        let (reports, origin) = (self.reports.clone(), target.clone());
        self.tasks.spawn(async move {
            while let Some(report) = told.recv().await {
                let told = Told {
                    target: origin.clone(),
                    serial,
                    report,
                };
                if reports.send(told).await.is_err() {
                    break;
                }
            }
        });
        Running {
            handle,
            serial,
            connection: reach.connection,
            cancel,
            complete: None,
            is_synced: false,
            looked: None,
        }
    }

    /// Tells the appliers what differs; those of `among` alone, if there is such a set.
    pub(crate) fn tell(&self, sets: &[OutputSet], among: Option<&BTreeSet<Target>>) {
        let mut told: BTreeMap<(Target, bool), Vec<ObjectId>> = BTreeMap::new();
        for set in sets {
            for key in &set.keys {
                let target = Target::of(key, set.discovered_in.as_ref());
                if among.is_none_or(|among| among.contains(&target)) {
                    let ids = told.entry((target, set.is_by_hand)).or_default();
                    ids.push(id(key));
                }
            }
        }
        for ((target, is_by_hand), ids) in told {
            let Some(running) = self.appliers.get(&target) else {
                continue;
            };
            if is_by_hand {
                running.handle.explicit(ids);
            } else {
                running.handle.want(ids);
            }
        }
    }

    /// Tells an applier once more of one object.
    pub(crate) fn tell_again(&self, target: &Target, id: ObjectId) {
        if let Some(running) = self.appliers.get(target) {
            running.handle.want([id]);
        }
    }

    /// Tells the appliers that know of everything that is wanted that they do: those that did not, and
    /// all of them when it is known of more objects whether they are wanted, or why not. Returns whom it was told.
    pub(crate) fn complete(
        &mut self,
        state: &State,
        clusters: &Clusters,
        now: Instant,
    ) -> Vec<Target> {
        let silent = clusters
            .iter()
            .filter(|(cluster, _)| !state.is_complete(cluster));
        let known = Known {
            silent: silent.map(|(cluster, _)| cluster.into()).collect(),
            deregistered: state.deregistered().cloned().collect(),
        };
        let mut told = Vec::new();
        for (target, running) in &mut self.appliers {
            if running.complete.as_ref() != Some(&known) && is_ready(state, target) {
                running.complete = Some(known.clone());
                running.handle.complete();
                running.note(now);
                told.push(target.clone());
            }
        }
        told
    }

    /// Whether what was told comes from the applier that works now.
    pub(crate) fn is_current(&self, told: &Told) -> bool {
        let running = self.appliers.get(&told.target);
        running.is_some_and(|running| running.serial == told.serial)
    }

    /// An applier knows what stands.
    pub(crate) fn synced(&mut self, target: &Target, now: Instant) {
        if let Some(running) = self.appliers.get_mut(target) {
            running.is_synced = true;
            running.note(now);
        }
    }

    /// Whether an applier has looked for what is to be deleted.
    pub(crate) fn has_looked(&self, target: &Target, now: Instant) -> bool {
        let running = self.appliers.get(target);
        running.is_some_and(|running| running.looked.is_some_and(|looked| looked <= now))
    }

    /// When the next applier will have looked.
    pub(crate) fn next_look(&self, now: Instant) -> Option<Instant> {
        let looked = self.appliers.values().filter_map(|running| running.looked);
        looked.filter(|looked| *looked > now).min()
    }

    /// Lets a mass delete go ahead that is held.
    pub(crate) fn release(&self, target: &Target) {
        if let Some(running) = self.appliers.get(target) {
            running.handle.release();
        }
    }

    /// Whether there is an applier.
    pub(crate) fn has(&self, target: &Target) -> bool {
        self.appliers.contains_key(target)
    }

    /// Waits until everything that works here has ended; it has been cancelled.
    pub(crate) async fn end(self) {
        drop(self.reports);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Running {
    /// It looks for what is to be deleted as soon as it knows what stands and what is wanted.
    fn note(&mut self, now: Instant) {
        if self.is_synced && self.complete.is_some() {
            self.looked.get_or_insert(now + LOOK);
        }
    }
}

/// Clusters that are registered no more, and of which something is still stored.
fn left_behind(state: &State, clusters: &Clusters) -> BTreeSet<Arc<str>> {
    let snapshot = state.snapshot();
    let meshes = snapshot.meshes.values().map(|it| &it.discovered_in);
    let workloads = snapshot.workloads.values().map(|it| &it.discovered_in);
    let destinations = snapshot.destinations.values().map(|it| &it.discovered_in);
    let mut left: BTreeSet<_> = meshes.chain(workloads).chain(destinations).collect();
    left.retain(|cluster| !cluster.is_empty() && clusters.get(cluster).is_none());
    left.into_iter().cloned().collect()
}
