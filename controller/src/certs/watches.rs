//! What is watched for certificates. Only names come out of it: every pass reads the objects themselves,
//! and no Secret is kept in memory.

use std::fmt;

use ferromesh_crds::{CertificateRequest, IssuedCertificate, ObjectRef, PodBounceDirective, meta};
use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use ferromesh_runtime::pump::{self, Closed, NamespacedName, Observed, Sink};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nudge {
    /// A certificate or its directive.
    Certificate {
        /// Its name.
        name: String,
    },
    /// A request.
    Request {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Everything: a Secret has changed, or the cluster answers again, or no longer.
    All,
}

/// Watches the objects of certificates in one namespace of a cluster.
pub(super) fn certificates(
    tasks: &TaskTracker,
    client: &Client,
    namespace: &str,
    nudges: &mpsc::Sender<Nudge>,
    jitter: &mut Jitter,
    cancel: &CancellationToken,
) {
    let certificate = |key: NamespacedName| Nudge::Certificate { name: key.name };
    let request = |key: NamespacedName| Nudge::Request {
        namespace: key.namespace.unwrap_or_default(),
        name: key.name,
    };
    let mut watcher = Watcher {
        tasks,
        client,
        nudges,
        jitter,
        cancel,
    };
    watcher.start::<IssuedCertificate>(namespace, None, certificate);
    watcher.start::<PodBounceDirective>(namespace, None, certificate);
    watcher.start::<CertificateRequest>(namespace, None, request);
}

/// Watches the Secret `cacerts` in one namespace of a cluster, by its name.
pub(super) fn cacerts(
    tasks: &TaskTracker,
    client: &Client,
    namespace: &str,
    nudges: &mpsc::Sender<Nudge>,
    jitter: &mut Jitter,
    cancel: &CancellationToken,
) {
    let mut watcher = Watcher {
        tasks,
        client,
        nudges,
        jitter,
        cancel,
    };
    watcher.start::<Secret>(namespace, Some(meta::CACERTS_SECRET), |_| Nudge::All);
}

struct Watcher<'a> {
    tasks: &'a TaskTracker,
    client: &'a Client,
    nudges: &'a mpsc::Sender<Nudge>,
    jitter: &'a mut Jitter,
    cancel: &'a CancellationToken,
}

impl Watcher<'_> {
    fn start<K>(
        &mut self,
        namespace: &str,
        name: Option<&'static str>,
        nudge: fn(NamespacedName) -> Nudge,
    ) where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + fmt::Debug
            + Send
            + Sync
            + DeserializeOwned
            + 'static,
    {
        let sink = Nudger {
            nudges: self.nudges.clone(),
            only: name,
            nudge,
        };
        let api: Api<PartialObjectMeta<K>> = Api::namespaced(self.client.clone(), namespace);
        let backoff = ExponentialBackoff::new(Schedule::default(), self.jitter.fork());
        let cancel = self.cancel.clone();
        self.tasks
            .spawn(pump::pump(api, by_name(name), sink, backoff, cancel));
    }
}

/// Watches the Secret of a root of trust in the management cluster, by its name, and counts its changes.
pub(super) fn root(
    tasks: &TaskTracker,
    client: &Client,
    secret: &ObjectRef,
    changes: watch::Sender<u64>,
    jitter: &mut Jitter,
    cancel: CancellationToken,
) {
    let sink = Counter {
        only: secret.name.clone(),
        changes,
    };
    let api: Api<PartialObjectMeta<Secret>> = Api::namespaced(client.clone(), &secret.namespace);
    let backoff = ExponentialBackoff::new(Schedule::default(), jitter.fork());
    let config = by_name(Some(&secret.name));
    tasks.spawn(pump::pump(api, config, sink, backoff, cancel));
}

fn by_name<K>(name: Option<&str>) -> pump::Config<K> {
    pump::Config {
        fields: name.map(|name| format!("metadata.name={name}")),
        ..pump::Config::default()
    }
}

/// The name of what an observation is about.
fn key<K: Resource>(observed: Observed<K>) -> Option<NamespacedName> {
    match observed {
        Observed::Present(object) | Observed::Applied(object) => Some(NamespacedName::of(&object)),
        Observed::Deleted(key) => Some(key),
        Observed::Invalid(invalid) => Some(invalid.key),
        Observed::Started | Observed::Synced | Observed::Failed(_) | Observed::Recovered => None,
    }
}

struct Nudger {
    nudges: mpsc::Sender<Nudge>,
    only: Option<&'static str>,
    nudge: fn(NamespacedName) -> Nudge,
}

impl<K: Resource + Send> Sink<K> for Nudger {
    async fn send(&mut self, observed: Observed<K>) -> Result<(), Closed> {
        let nudge = match observed {
            Observed::Started => return Ok(()),
            // What vanished during a relist has no event of its own.
            Observed::Synced | Observed::Recovered => Nudge::All,
            Observed::Failed(failure) => {
                tracing::debug!(error = %failure.error, "watch for certificates fails");
                Nudge::All
            }
            seen => match key(seen) {
                Some(key) if self.only.is_none_or(|only| only == key.name) => (self.nudge)(key),
                _ => return Ok(()),
            },
        };
        self.nudges.send(nudge).await.map_err(|_| Closed)
    }
}

struct Counter {
    only: String,
    changes: watch::Sender<u64>,
}

impl<K: Resource + Send> Sink<K> for Counter {
    async fn send(&mut self, observed: Observed<K>) -> Result<(), Closed> {
        if key(observed).is_some_and(|key| key.name == self.only) {
            self.changes
                .send_modify(|count| *count = count.wrapping_add(1));
        }
        Ok(())
    }
}
