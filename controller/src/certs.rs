//! Certificates, seen from the management cluster: who is to have which, and who signs.
//!
//! Roots live here and nowhere else. For a cluster that the server reaches itself, the cluster's side of
//! a certificate ([`ferromesh_hands`]) runs here, too, with the cluster's own client.
//!
//! Each cluster has a task of its own, which asks that cluster and the management cluster and waits for
//! nobody else. All writes carry preconditions, so two replicas that believe to be the only one for a
//! moment do no harm.
//!
//! In reading order:
//!
//! - [`wanted`]: which certificates meshes are to have.
//! - [`sources`]: time, keys and serial numbers.
//! - [`root`]: roots, made once or given by the user.
//! - [`issuer`]: answers requests as policy says.
//! - [`report`]: what it means for a virtual mesh.
//! - `watches`, `cluster`: when to look, and one cluster's task.
//! - [`error`]: what an API server refused.

mod cluster;
pub mod error;
pub mod issuer;
pub mod report;
pub mod root;
pub mod sources;
pub mod wanted;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferromesh_crds::condition::{Reason, Status};
use ferromesh_crds::{ObjectRef, meta};
use ferromesh_hands::Hands;
use ferromesh_runtime::backoff::Jitter;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::report::{TrustReport, TrustReports};
pub use self::sources::Sources;
pub use self::wanted::{MeshKey, RootSource, Wanted, WantedSet};

use self::cluster::ClusterTask;
use self::issuer::Issuer;
use self::root::Roots;

/// Nudges that wait for a cluster's task; a watch that has more to say waits.
const NUDGES: usize = 64;

/// A cluster that can be asked.
#[derive(Clone)]
pub struct Cluster {
    /// Its client.
    pub client: Client,
    /// Another number means another client.
    pub connection: u64,
}

/// Keeps the certificates of all meshes of virtual meshes.
pub struct CertificateController {
    management: Client,
    roots: Roots,
    sources: Sources,
    jitter: Jitter,
}

/// What a [`CertificateController`] is told while it runs.
pub struct Inputs {
    /// All certificates that are wanted; none until all inputs have synced. A set is always complete.
    pub wanted: watch::Receiver<Option<Arc<WantedSet>>>,
    /// The clusters that can be asked, by name.
    pub clusters: watch::Receiver<Arc<BTreeMap<String, Cluster>>>,
}

impl CertificateController {
    /// Keeps generated roots in `namespace` of the management cluster.
    pub fn new(management: Client, namespace: String, sources: Sources, jitter: Jitter) -> Self {
        Self {
            roots: Roots::new(management.clone(), namespace, sources.clone()),
            management,
            sources,
            jitter,
        }
    }

    /// Works until `cancel` is cancelled, and reports on each mesh whenever there is something new to
    /// say. To be run by the lease holder.
    pub async fn run(
        self,
        inputs: Inputs,
        reports: watch::Sender<TrustReports>,
        cancel: CancellationToken,
    ) {
        let running = Running {
            wanted: inputs.wanted.clone(),
            root_changes: watch::Sender::default(),
            tasks: TaskTracker::new(),
            clusters: BTreeMap::new(),
            roots: BTreeMap::new(),
            reports,
            cancel: cancel.clone(),
            controller: self,
        };
        let tasks = running.tasks.clone();
        cancel.run_until_cancelled(running.follow(inputs)).await;
        tasks.close();
        tasks.wait().await;
    }
}

struct Running {
    controller: CertificateController,
    wanted: watch::Receiver<Option<Arc<WantedSet>>>,
    root_changes: watch::Sender<u64>,
    tasks: TaskTracker,
    clusters: BTreeMap<String, Started>,
    /// Roots that are watched.
    roots: BTreeMap<ObjectRef, CancellationToken>,
    reports: watch::Sender<TrustReports>,
    cancel: CancellationToken,
}

/// The task of one cluster.
struct Started {
    plan: Plan,
    cancel: CancellationToken,
}

/// What the task of a cluster was started for; anything else takes another task.
#[derive(Clone, PartialEq)]
struct Plan {
    connection: u64,
    agent_namespaces: BTreeSet<String>,
    control_plane_namespaces: BTreeSet<String>,
}

impl Running {
    async fn follow(mut self, mut inputs: Inputs) {
        loop {
            let wanted = inputs.wanted.borrow_and_update().clone();
            let clusters = inputs.clusters.borrow_and_update().clone();
            if let Some(wanted) = wanted {
                self.keep_roots(&wanted);
                self.keep_clusters(&wanted, &clusters);
                self.keep_reports(&wanted, &clusters);
            }
            let changed = tokio::select! {
                changed = inputs.wanted.changed() => changed,
                changed = inputs.clusters.changed() => changed,
            };
            if changed.is_err() {
                // Whoever told us what is wanted is gone: what runs goes on until it is cancelled.
                std::future::pending::<()>().await;
            }
        }
    }

    fn keep_roots(&mut self, wanted: &WantedSet) {
        let namespace = self.controller.roots.namespace().to_owned();
        let secrets: BTreeSet<ObjectRef> = wanted
            .iter()
            .map(|(_, wanted)| root::secret(wanted, &namespace))
            .collect();
        self.roots.retain(|secret, cancel| {
            let is_kept = secrets.contains(secret);
            if !is_kept {
                cancel.cancel();
            }
            is_kept
        });
        for secret in secrets {
            if self.roots.contains_key(&secret) {
                continue;
            }
            let cancel = self.cancel.child_token();
            watches::root(
                &self.tasks,
                &self.controller.management,
                &secret,
                self.root_changes.clone(),
                &mut self.controller.jitter,
                cancel.clone(),
            );
            self.roots.insert(secret, cancel);
        }
    }

    fn keep_clusters(&mut self, wanted: &WantedSet, clusters: &BTreeMap<String, Cluster>) {
        let plan = |name: &str| {
            let cluster = clusters.get(name)?;
            Some(Plan {
                connection: cluster.connection,
                agent_namespaces: wanted
                    .of(name)
                    .map(|wanted| wanted.agent_namespace.clone())
                    .collect(),
                control_plane_namespaces: wanted
                    .of(name)
                    .map(|wanted| wanted.control_plane_namespace.clone())
                    .collect(),
            })
        };
        let names = wanted.clusters();
        self.clusters.retain(|name, started| {
            let is_kept =
                names.contains(name.as_str()) && plan(name).as_ref() == Some(&started.plan);
            if !is_kept {
                started.cancel.cancel();
            }
            is_kept
        });
        for name in names {
            if self.clusters.contains_key(name) {
                continue;
            }
            if let (Some(plan), Some(cluster)) = (plan(name), clusters.get(name)) {
                let cancel = self.start(name, &cluster.client, &plan);
                self.clusters
                    .insert(name.to_owned(), Started { plan, cancel });
            }
        }
    }

    fn start(&mut self, name: &str, client: &Client, plan: &Plan) -> CancellationToken {
        let cancel = self.cancel.child_token();
        let (nudges, receiver) = mpsc::channel(NUDGES);
        let jitter = &mut self.controller.jitter;
        for namespace in &plan.agent_namespaces {
            watches::certificates(&self.tasks, client, namespace, &nudges, jitter, &cancel);
        }
        for namespace in &plan.control_plane_namespaces {
            watches::cacerts(&self.tasks, client, namespace, &nudges, jitter, &cancel);
        }
        let sources = &self.controller.sources;
        let roots = &self.controller.roots;
        let task = ClusterTask {
            cluster: name.to_owned(),
            hands: Hands::new(client.clone(), meta::FIELD_MANAGER, sources.hands()),
            issuer: Issuer::new(client.clone(), roots.clone(), sources.clone()),
            roots: roots.clone(),
            wanted: self.wanted.clone(),
            root_changes: self.root_changes.subscribe(),
            nudges: receiver,
            reports: self.reports.clone(),
            jitter: jitter.fork(),
        };
        self.tasks.spawn(task.run(cancel.clone()));
        cancel
    }

    /// Meshes that nobody wants a certificate for have no report; those in clusters that cannot be asked
    /// say so.
    fn keep_reports(&self, wanted: &WantedSet, clusters: &BTreeMap<String, Cluster>) {
        self.reports.send_if_modified(|reports| {
            let before = reports.len();
            reports.retain(|mesh, report| {
                let wanted = wanted.get(mesh);
                wanted.is_some_and(|wanted| wanted.virtual_mesh == report.wanted.virtual_mesh)
            });
            before != reports.len()
        });
        for (mesh, wanted) in wanted.iter() {
            if clusters.contains_key(&mesh.cluster) {
                continue;
            }
            let last = self.reports.borrow().get(mesh).and_then(|it| it.not_after);
            let report = TrustReport {
                wanted: wanted.clone(),
                state: Status::Unknown,
                reason: Reason::ClusterUnreachable,
                message: format!(
                    "there is no connection to cluster {}: what it has stays",
                    mesh.cluster
                ),
                not_after: last,
            };
            cluster::publish(&self.reports, &self.wanted, mesh.clone(), report);
        }
    }
}
