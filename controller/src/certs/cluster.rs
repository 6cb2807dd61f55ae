//! The certificates of one cluster: one task that waits for nobody else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ferromesh_hands::error::Class;
use ferromesh_hands::{Error as HandsError, Hands, Memory};
use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::issuer::{Issuer, Ledger};
use super::report::{Seen, TrustReport, TrustReports, report};
use super::root::{RootFault, Roots};
use super::wanted::{MeshKey, Wanted, WantedSet};
use super::watches::Nudge;

/// How long the look at a root, and the pass over one certificate, may take each. What is not done by then
/// the next pass does.
const PASS: Duration = Duration::from_mins(2);
/// How often everything is looked at though nothing has changed: renewals come due, watches may lie.
const RESYNC: Duration = Duration::from_mins(10);
/// How soon a pass over the same certificate follows, whatever happens in its cluster.
const PAUSE: Duration = Duration::from_millis(500);
/// Share of [`RESYNC`] by which looks are spread.
const SPREAD: f64 = 0.2;
/// The most requests of meshes that no certificate is wanted for that are kept in mind.
const MAX_STRANGERS: usize = 256;

/// What the task of one cluster works with.
pub(super) struct ClusterTask {
    pub(super) cluster: String,
    pub(super) hands: Hands,
    pub(super) issuer: Issuer,
    pub(super) roots: Roots,
    pub(super) wanted: watch::Receiver<Option<Arc<WantedSet>>>,
    /// Moves when the Secret of a root does.
    pub(super) root_changes: watch::Receiver<u64>,
    pub(super) nudges: mpsc::Receiver<Nudge>,
    pub(super) reports: watch::Sender<TrustReports>,
    pub(super) jitter: Jitter,
}

/// What is kept in mind of one certificate.
struct Watched {
    wanted: Wanted,
    memory: Memory,
    due: Instant,
    /// It is not due before.
    earliest: Instant,
    failures: ExponentialBackoff,
    not_after: Option<Timestamp>,
}

impl Watched {
    fn look_soon(&mut self) {
        self.due = self.due.min(Instant::now().max(self.earliest));
    }
}

struct Running {
    task: ClusterTask,
    watched: BTreeMap<String, Watched>,
    /// Namespaces and names of requests that nobody wants.
    strangers: BTreeSet<(String, String)>,
    ledger: Ledger,
}

impl ClusterTask {
    /// Works until `cancel` is cancelled.
    pub(super) async fn run(self, cancel: CancellationToken) {
        let running = Running {
            task: self,
            watched: BTreeMap::new(),
            strangers: BTreeSet::new(),
            ledger: Ledger::default(),
        };
        cancel.run_until_cancelled(Box::pin(running.run())).await;
    }
}

impl Running {
    async fn run(mut self) {
        self.take_wanted();
        loop {
            let next = self.watched.values().map(|watched| watched.due).min();
            let next = next.unwrap_or_else(|| Instant::now() + RESYNC);
            tokio::select! {
                changed = self.task.wanted.changed() => match changed {
                    Ok(()) => self.take_wanted(),
                    Err(_) => return,
                },
                Ok(()) = self.task.root_changes.changed() => self.look_at_all(),
                Some(nudge) = self.task.nudges.recv() => self.take(nudge),
                () = tokio::time::sleep_until(next) => {}
            }
            while let Ok(nudge) = self.task.nudges.try_recv() {
                self.take(nudge);
            }
            self.work().await;
        }
    }

    fn take_wanted(&mut self) {
        let wanted = self.task.wanted.borrow_and_update().clone();
        let Some(wanted) = wanted else {
            return;
        };
        let of_cluster: BTreeMap<&str, &Wanted> = wanted
            .of(&self.task.cluster)
            .map(|wanted| (wanted.mesh.as_str(), wanted))
            .collect();
        self.watched
            .retain(|mesh, _| of_cluster.contains_key(mesh.as_str()));
        self.ledger.keep(|key| wanted.get(key).is_some());
        for (mesh, wanted) in of_cluster {
            match self.watched.get_mut(mesh) {
                Some(watched) if watched.wanted == *wanted => {}
                Some(watched) => {
                    watched.wanted = wanted.clone();
                    watched.look_soon();
                }
                None => {
                    let watched = Watched {
                        wanted: wanted.clone(),
                        memory: Memory::new(self.task.jitter.fork()),
                        due: Instant::now(),
                        earliest: Instant::now(),
                        failures: ExponentialBackoff::new(
                            Schedule::default(),
                            self.task.jitter.fork(),
                        ),
                        not_after: None,
                    };
                    self.watched.insert(mesh.to_owned(), watched);
                }
            }
        }
    }

    fn take(&mut self, nudge: Nudge) {
        match nudge {
            Nudge::Certificate { name } => match self.watched.get_mut(&name) {
                Some(watched) => watched.look_soon(),
                // It may be the owner of a Secret that others share.
                None => self.look_at_all(),
            },
            Nudge::Request { namespace, name } => {
                let watched = self.watched.get_mut(&name);
                match watched.filter(|watched| watched.wanted.agent_namespace == namespace) {
                    Some(watched) => watched.look_soon(),
                    None if self.strangers.len() < MAX_STRANGERS => {
                        self.strangers.insert((namespace, name));
                    }
                    None => {}
                }
            }
            Nudge::All => self.look_at_all(),
        }
    }

    fn look_at_all(&mut self) {
        self.watched.values_mut().for_each(Watched::look_soon);
    }

    /// Does what is due now, each once.
    async fn work(&mut self) {
        let now = Instant::now();
        let due: Vec<String> = self
            .watched
            .iter()
            .filter(|(_, watched)| watched.due <= now)
            .map(|(mesh, _)| mesh.clone())
            .collect();
        for mesh in due {
            self.look_at(&mesh).await;
        }
        for (namespace, name) in std::mem::take(&mut self.strangers) {
            if let Err(error) = self
                .task
                .issuer
                .serve(&namespace, &name, None, &mut self.ledger)
                .await
            {
                let cluster = &self.task.cluster;
                tracing::debug!(cluster, namespace, name, %error, "request not answered");
            }
        }
    }

    async fn look_at(&mut self, mesh: &str) {
        let Some(watched) = self.watched.get_mut(mesh) else {
            return;
        };
        let passed = pass(&self.task, watched, &mut self.ledger).await;
        let delay = if passed.has_failed {
            watched.failures.delay()
        } else {
            let resync = self.task.jitter.spread(RESYNC, SPREAD);
            passed.again.map_or(resync, |again| again.min(resync))
        };
        let now = Instant::now();
        watched.due = now + delay;
        // What fails may itself be what changes the objects that are watched.
        watched.earliest = if passed.has_failed {
            watched.due
        } else {
            now + PAUSE
        };
        if let Some(Seen::Progress(progress)) = &passed.seen {
            watched.not_after = progress.live.as_ref().map(|live| live.not_after);
        }
        if let (Some(seen), Some(root)) = (passed.seen, passed.root) {
            let report = report(&watched.wanted, &root, &seen, watched.not_after);
            publish(
                &self.task.reports,
                &self.task.wanted,
                watched.wanted.key(),
                report,
            );
        }
    }
}

/// What one pass has shown.
struct Passed {
    /// None if nothing new is known.
    seen: Option<Seen>,
    /// None if the management cluster could not be asked.
    root: Option<Result<ferromesh_ca::bundle::RootId, RootFault>>,
    again: Option<Duration>,
    has_failed: bool,
}

/// Takes one certificate as far as it goes.
async fn pass(task: &ClusterTask, watched: &mut Watched, ledger: &mut Ledger) -> Passed {
    let root = match tokio::time::timeout(PASS, task.roots.root(&watched.wanted)).await {
        Ok(Ok(root)) => Some(Ok(root.id())),
        Ok(Err(RootFault::Api(error))) if error.is_transient() => {
            let cluster = &task.cluster;
            tracing::warn!(
                cluster,
                error = error.text(),
                "root of trust cannot be read"
            );
            None
        }
        Ok(Err(fault)) => Some(Err(fault)),
        Err(_) => None,
    };
    // Nothing is signed while nobody knows of the root.
    let may_sign = root.is_some();
    let side = cluster_side(task, watched, may_sign.then_some(ledger));
    let side = tokio::time::timeout(PASS, side).await;
    let ClusterSide {
        seen,
        again,
        has_failed,
    } = side.unwrap_or_else(|_| ClusterSide {
        seen: Some(Seen::Unreachable(format!(
            "it did not answer within {} s",
            PASS.as_secs()
        ))),
        again: None,
        has_failed: true,
    });
    Passed {
        seen,
        again,
        has_failed: has_failed || root.is_none(),
        root,
    }
}

/// What one pass over the objects in a cluster has shown.
struct ClusterSide {
    seen: Option<Seen>,
    again: Option<Duration>,
    has_failed: bool,
}

/// The cluster's own part, then the answer to its request, and its own part again.
async fn cluster_side(
    task: &ClusterTask,
    watched: &mut Watched,
    ledger: Option<&mut Ledger>,
) -> ClusterSide {
    let wanted = &watched.wanted;
    let (namespace, mesh) = (&wanted.agent_namespace, &wanted.mesh);
    let memory = &mut watched.memory;
    let mut answer_failed = false;
    let mut seen = task.hands.reconcile(namespace, mesh, memory).await;
    if let (Ok(_), Some(ledger)) = (&seen, ledger) {
        let served = task.issuer.serve(namespace, mesh, Some(wanted), ledger);
        match served.await {
            Ok(true) => seen = task.hands.reconcile(namespace, mesh, memory).await,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(cluster = task.cluster, mesh, %error, "request not answered");
                answer_failed = true;
            }
        }
    }
    match seen {
        Ok(None) => ClusterSide {
            seen: Some(Seen::Nothing),
            again: None,
            has_failed: answer_failed,
        },
        Ok(Some(progress)) => {
            if let Some(repair) = &progress.repaired {
                let by = repair.by.as_deref().unwrap_or("unknown");
                tracing::warn!(
                    cluster = task.cluster,
                    mesh,
                    by,
                    "cacerts was edited, and put right"
                );
            }
            ClusterSide {
                again: progress.again,
                seen: Some(Seen::Progress(Box::new(progress))),
                has_failed: answer_failed,
            }
        }
        Err(error) => ClusterSide {
            seen: seen_error(task, mesh, &error),
            again: None,
            has_failed: true,
        },
    }
}

fn seen_error(task: &ClusterTask, mesh: &str, error: &HandsError) -> Option<Seen> {
    let text = error.text();
    tracing::warn!(
        cluster = task.cluster,
        mesh,
        error = text,
        "certificate pass failed"
    );
    match error.class() {
        Class::Transient => None,
        Class::Unreachable => Some(Seen::Unreachable(text)),
        Class::Refused => Some(Seen::Refused(text)),
    }
}

/// Publishes a report if it says something new, of a mesh that a certificate is still wanted for.
pub(super) fn publish(
    reports: &watch::Sender<TrustReports>,
    wanted: &watch::Receiver<Option<Arc<WantedSet>>>,
    mesh: MeshKey,
    report: TrustReport,
) {
    reports.send_if_modified(|reports| {
        let wanted = wanted.borrow().clone();
        let is_wanted = wanted.is_some_and(|wanted| {
            let wanted = wanted.get(&mesh);
            wanted.is_some_and(|wanted| wanted.virtual_mesh == report.wanted.virtual_mesh)
        });
        let is_new = is_wanted && reports.get(&mesh) != Some(&report);
        if is_new {
            reports.insert(mesh, report);
        }
        is_new
    });
}
