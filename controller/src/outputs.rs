//! From what a step has changed to the appliers of the clusters.
//!
//! A registered cluster has two appliers: one writes to it what was made of policies and virtual meshes,
//! the other writes to the management cluster what was found in it. Neither waits for the others.

mod source;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferromesh_apply::{Applier, Handle, Metrics, ObjectId, Options, Report};
use ferromesh_core::{OutputSet, State};
use ferromesh_mirror::{self as mirror, Clusters};
use ferromesh_runtime::backoff::Jitter;
use kube::Client;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::target::Target;
use self::{
    source::{Wanted, is_ready},
    target::id,
};

/// The appliers, and what each of them has been told.
pub(crate) struct Outputs {
    mirror: mirror::Handle,
    management: Client,
    owner: String,
    metrics: Metrics,
    jitter: Jitter,
    reports: mpsc::Sender<(Target, Report)>,
    appliers: BTreeMap<Target, Running>,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

struct Running {
    handle: Handle,
    /// The connection that it works with; another one takes another applier.
    connection: u64,
    cancel: CancellationToken,
    /// How many clusters had told all they have when it was told that its set is complete.
    complete_at: Option<usize>,
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
        reports: mpsc::Sender<(Target, Report)>,
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
            tasks: TaskTracker::new(),
            cancel,
        }
    }

    /// Starts appliers that are missing and ends those whose cluster cannot be asked any more. Those that
    /// were started have been told nothing yet.
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
        if state.is_complete("") {
            for cluster in left_behind(state, clusters) {
                wanted.insert(Target::Discovered(cluster), discovered());
            }
        }
        wanted
    }

    fn start(&mut self, target: &Target, reach: Reach) -> Running {
        let cancel = self.cancel.child_token();
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
                if reports.send((origin.clone(), report)).await.is_err() {
                    break;
                }
            }
        });
        Running {
            handle,
            connection: reach.connection,
            cancel,
            complete_at: None,
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

    /// Tells the appliers that know of everything that is wanted that they do: those that did not, and
    /// all of them when another cluster has told all it has.
    pub(crate) fn complete(&mut self, state: &State, clusters: &Clusters) {
        let known = clusters.iter();
        let known = known
            .filter(|(cluster, _)| state.is_complete(cluster))
            .count();
        for (target, running) in &mut self.appliers {
            if running.complete_at != Some(known) && is_ready(state, target) {
                running.complete_at = Some(known);
                running.handle.complete();
            }
        }
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
