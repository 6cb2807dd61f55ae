//! Renews the credentials by which clusters are reached, long before they expire.
//!
//! A renewed credential comes back as another client of the mirror, and with it the task begins anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ferromesh_core::{Key, Kind, State};
use ferromesh_crds::meta;
use ferromesh_crds::name::ClusterName;
use ferromesh_mirror::Handle;
use ferromesh_registration::credential::{Account, Renewal, Validity, renew};
use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use ferromesh_runtime::telemetry::Chain;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::metrics::{CredentialMeter, Metrics};

/// How long a credential is left alone at most: the clock may be set, and the Secret changed.
const LOOK: Duration = Duration::from_hours(1);
/// How soon a renewal may follow another: a token may be granted for so short a time, or by a clock so far
/// from ours, that the next renewal is due at once.
const PAUSE: Duration = Duration::from_mins(1);
/// The share by which looks are spread.
const SPREAD: f64 = 0.2;
/// Attempts that fail come ever less often, down to this.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Renews the credentials of all registered clusters.
pub(crate) struct Credentials {
    pub(crate) mirror: Handle,
    pub(crate) management: Client,
    pub(crate) metrics: Metrics,
    pub(crate) now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pub(crate) jitter: Jitter,
}

/// The credential of one cluster.
struct Task {
    cluster: ClusterName,
    mirror: Handle,
    secrets: Api<Secret>,
    management: Client,
    remote: Client,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    jitter: Jitter,
    meter: CredentialMeter,
    /// Before it looks for the first time.
    pause: Duration,
}

impl Credentials {
    /// Works until `cancel` is cancelled.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        let tasks = TaskTracker::new();
        let mut clusters = self.mirror.clusters_revision();
        let mut running: BTreeMap<String, (u64, CancellationToken)> = BTreeMap::new();
        let mut known: BTreeSet<String> = BTreeSet::new();
        loop {
            let view = self.mirror.clusters();
            running.retain(|name, (connection, cancel)| {
                let view = view.get(name).filter(|view| view.client.is_some());
                let is_kept = view.is_some_and(|view| view.connection() == *connection);
                if !is_kept {
                    cancel.cancel();
                }
                is_kept
            });
            for (name, view) in view.iter() {
                let Some(client) = view.client.as_ref().filter(|_| !running.contains_key(name))
                else {
                    continue;
                };
                // Another client may well be there because the credential has just been renewed.
                let pause = if known.contains(name) {
                    PAUSE
                } else {
                    Duration::ZERO
                };
                let Some(task) = self.task(name, client, pause) else {
                    continue;
                };
                known.insert(name.to_owned());
                let cancel = cancel.child_token();
                running.insert(name.to_owned(), (view.connection(), cancel.clone()));
                tasks.spawn(async move { cancel.run_until_cancelled(task.run()).await });
            }
            let changed = cancel.run_until_cancelled(clusters.changed()).await;
            if !matches!(changed, Some(Ok(()))) {
                break;
            }
        }
        for (_, cancel) in running.values() {
            cancel.cancel();
        }
        tasks.close();
        tasks.wait().await;
    }

    fn task(&mut self, name: &str, remote: &Client, pause: Duration) -> Option<Task> {
        let namespace = self.mirror.state().options().namespace.clone();
        Some(Task {
            cluster: name.parse().ok()?,
            mirror: self.mirror.clone(),
            secrets: Api::namespaced(self.management.clone(), &namespace),
            management: self.management.clone(),
            remote: remote.clone(),
            now: Arc::clone(&self.now),
            jitter: self.jitter.fork(),
            meter: self.metrics.credential(name),
            pause,
        })
    }
}

/// Where the account of a registration is. None while that is not known.
fn account(state: &State, cluster: &ClusterName) -> Option<Account> {
    let key = Key::local(cluster.as_str(), &state.options().namespace);
    let registered = state.snapshot().clusters.get(&key);
    if registered.is_none() && !state.is_synced("", Kind::KubernetesCluster) {
        return None;
    }
    let namespace = registered.map(|cluster| cluster.namespace.as_str());
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    Some(Account {
        cluster: cluster.clone(),
        remote_namespace: namespace.unwrap_or(meta::DEFAULT_NAMESPACE).parse().ok()?,
        management_namespace: state.options().namespace.parse().ok()?,
    })
}

impl Task {
    async fn run(mut self) {
        let schedule = Schedule {
            longest: LONGEST_PAUSE,
            ..Schedule::default()
        };
        let mut backoff = ExponentialBackoff::new(schedule, self.jitter.fork());
        loop {
            tokio::time::sleep(self.pause).await;
            self.pause = match self.look().await {
                Some(pause) => self.jitter.spread(pause.clamp(PAUSE, LOOK), SPREAD),
                None => backoff.delay(),
            };
        }
    }

    /// Renews the credential if that is due; returns when to look again, and none after a failure.
    async fn look(&self) -> Option<Duration> {
        let cluster = self.cluster.as_str();
        let secret = match self.secrets.get_opt(cluster).await {
            Ok(secret) => secret,
            Err(error) => {
                let error = Chain(&error);
                tracing::warn!(cluster, %error, "the credential of a cluster cannot be looked at");
                return None;
            }
        };
        let Some(validity) = secret.as_ref().and_then(Validity::of) else {
            return Some(LOOK);
        };
        self.meter.expires(validity.expires);
        let now = (self.now)();
        if !validity.is_renewal_due(now) {
            return Some(until(validity, now));
        }
        let account = account(&self.mirror.state(), &self.cluster)?;
        let lifetime = validity.expires.duration_since(validity.issued);
        let renewal = renew(
            &self.management,
            &self.remote,
            &account,
            lifetime.unsigned_abs(),
        );
        match renewal.await {
            Ok(Renewal::Renewed(validity)) => {
                let expires = validity.expires;
                self.meter.expires(expires);
                tracing::info!(cluster, %expires, "credential renewed");
                Some(until(validity, now))
            }
            Ok(Renewal::NeverExpires | Renewal::Deregistered) => Some(LOOK),
            Err(error) => {
                let expires = validity.expires;
                let error = Chain(&error);
                tracing::warn!(cluster, %expires, %error, "a credential could not be renewed");
                None
            }
        }
    }
}

/// How long the credential may be left alone.
fn until(validity: Validity, now: Timestamp) -> Duration {
    let left = validity.renewal().duration_since(now);
    left.try_into().unwrap_or_default()
}
