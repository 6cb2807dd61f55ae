//! Which clusters are registered, by which client they are reached, and how they fare.
//!
//! A cluster is registered by a kubeconfig Secret of its name or by a `KubernetesCluster` of its name, both
//! in our own namespace; it is forgotten when both are gone. With the `KubernetesCluster` alone it cannot
//! be reached, and what was read stands. One task owns the registrations; the watches tell it what they see.

mod cluster;
mod condition;
mod inquiry;
mod listing;
mod probe;
mod spawner;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use ferromesh_core::{Change, Kind};
use ferromesh_crds::meta::KUBECONFIG_KEY;
use ferromesh_runtime::{fingerprint::Fingerprint, shutdown::Shutdown, telemetry::Chain};
use kube::Client;
use tokio::sync::mpsc;

pub(crate) use self::condition::Health;
pub use self::condition::{ClusterView, Clusters, Condition, Failing, Unreadable};
use self::{cluster::Cluster, inquiry::Inquiries, spawner::Spawner};
use tracing::Span;

use crate::{Options, handle::Shared, ingest::Kubeconfig, pumps::Watch, writer::Seen};

/// Events that wait for the registry before watches slow down.
const EVENTS: usize = 256;
/// Events that are taken before the clusters are published again.
const BURST: usize = 1024;

/// The kinds that register clusters.
const REGISTRATIONS: [Kind; 2] = [Kind::KubernetesCluster, Kind::Secret];

/// A registration of a cluster. A cluster that is registered again is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its name, empty for the management cluster.
    pub(crate) cluster: Arc<str>,
    pub(crate) id: u64,
}

/// What the registry is told.
#[derive(Debug)]
pub(crate) enum Event {
    /// A Secret of our own namespace is there, with a kubeconfig.
    Credential {
        name: String,
        kubeconfig: Kubeconfig,
    },
    /// It is gone, or has none.
    NoCredential { name: String, has_vanished: bool },
    /// A `KubernetesCluster` is there.
    Declared { name: String },
    /// It is gone.
    NotDeclared { name: String, has_vanished: bool },
    /// An object of this kind, which discovery has stored, names this cluster.
    Named { name: String, kind: Kind },
    /// Nothing registers this cluster, which was asked for.
    NotRegistered { name: String },
    /// A watch has something to tell.
    News(Origin, News),
}

/// What a watch has to tell of itself or of its objects.
#[derive(Debug)]
pub(crate) enum News {
    /// Everything has been listed, for the first time or once more.
    Listed(Watch),
    /// It fares well, or it does not.
    Health(Watch, Health),
    /// Another watch is needed because of what it has seen, or no longer.
    Wanted(Watch, bool),
    /// Objects that cannot be read, or not in full, have come or gone.
    Unreadable(Watch, Unreadable),
    /// The API server answers, or it does not.
    Probed(Health),
}

/// Owns the registrations.
pub(crate) struct Registry {
    options: Options,
    namespace: Arc<str>,
    shared: Arc<Shared>,
    changes: mpsc::Sender<Seen>,
    events: mpsc::Receiver<Event>,
    spawner: Spawner,
    management: Cluster,
    clusters: BTreeMap<Arc<str>, Cluster>,
    next_id: u64,
    published: Clusters,
    /// Clusters of which something else is so than what was published; the management cluster is empty.
    stale: BTreeSet<Arc<str>>,
    /// Clusters that stored objects name and no registration is known of.
    unknown: Inquiries,
}

// === impl Registry ===

impl Registry {
    /// Begins to follow the management cluster.
    pub(crate) fn new(
        options: Options,
        management: Client,
        changes: mpsc::Sender<Seen>,
        shared: Arc<Shared>,
        shutdown: &Shutdown,
    ) -> Self {
        let namespace: Arc<str> = options.engine.namespace.as_str().into();
        let (told, events) = mpsc::channel(EVENTS);
        let mut spawner = Spawner {
            namespace: Arc::clone(&namespace),
            shared: Arc::clone(&shared),
            changes: changes.clone(),
            events: told,
            shutdown: shutdown.clone(),
            jitter: options.jitter.clone(),
            watch_timeout: options.watch_timeout,
        };
        let mut cluster = Cluster::new(Origin {
            cluster: "".into(),
            id: 0,
        });
        cluster.reach(management);
        cluster.follow(Watch::of("", &namespace), &mut spawner);
        Self {
            options,
            namespace,
            shared,
            changes,
            events,
            spawner,
            management: cluster,
            clusters: BTreeMap::new(),
            next_id: 1,
            published: Clusters::default(),
            stale: BTreeSet::from(["".into()]),
            unknown: Inquiries::default(),
        }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            self.publish();
            let mut next = self.events.recv().await;
            for _ in 0..BURST {
                let Some(event) = next else { break };
                self.take(event).await;
                next = self.events.try_recv().ok();
            }
        }
    }

    async fn take(&mut self, event: Event) {
        match event {
            Event::Credential { name, kubeconfig } => self.accept(&name, &kubeconfig),
            Event::NoCredential { name, has_vanished } => {
                if let Some(cluster) = self.clusters.get_mut(name.as_str()) {
                    cluster.lose_secret();
                    cluster.has_vanished = has_vanished;
                    self.settle(&name).await;
                }
            }
            Event::Declared { name } => self.entry(&name).is_declared = true,
            Event::NotDeclared { name, has_vanished } => {
                if let Some(cluster) = self.clusters.get_mut(name.as_str()) {
                    cluster.is_declared = false;
                    cluster.has_vanished = has_vanished;
                    self.settle(&name).await;
                }
            }
            Event::Named { name, kind } => self.wonder(name, kind),
            Event::NotRegistered { name } => {
                // Something may have registered it since.
                if let Some((cluster, is_late)) = self.unknown.end(&name) {
                    self.forget(cluster, is_late).await;
                }
            }
            Event::News(origin, news) => self.hear(&origin, news).await,
        }
    }

    /// The registration of this name, which is new if there was none.
    fn entry(&mut self, name: &str) -> &mut Cluster {
        let name: Arc<str> = name.into();
        self.stale.insert(Arc::clone(&name));
        self.unknown.end(&name);
        self.clusters.entry(Arc::clone(&name)).or_insert_with(|| {
            let id = self.next_id;
            self.next_id += 1;
            let mut cluster = Cluster::new(Origin { cluster: name, id });
            tracing::info!(cluster = &*cluster.origin.cluster, "cluster registered");
            // Under another name its objects could not be told from those of other clusters.
            if cluster.fault().is_none() {
                let watches = Watch::of(&cluster.origin.cluster, &self.namespace);
                cluster.follow(watches, &mut self.spawner);
            }
            cluster
        })
    }

    fn accept(&mut self, name: &str, kubeconfig: &Kubeconfig) {
        let Kubeconfig(bytes) = kubeconfig;
        let content = Fingerprint::of([bytes.as_slice()]);
        let cluster = self.entry(name);
        if cluster.has_secret(content) {
            return;
        }
        let connection = if let Some(fault) = cluster.fault() {
            Err(fault)
        } else if bytes.is_empty() {
            Err(format!(
                "Secret {}/{name} has no key `{KUBECONFIG_KEY}`",
                self.namespace
            ))
        } else {
            let made = (self.options.connect)(bytes, &self.options.client);
            made.map_err(|error| Chain(&error).to_string())
        };
        for warning in connection.iter().flat_map(|made| &made.warnings) {
            tracing::warn!(cluster = name, "{warning}");
        }
        self.entry(name).accept(content, connection);
    }

    /// Forgets a cluster that nothing registers any more, once it is known that nothing does.
    async fn settle(&mut self, name: &str) {
        self.stale.insert(name.into());
        if !self.are_registrations_listed() {
            return;
        }
        let is_registered = self.clusters.get(name).is_none_or(Cluster::is_registered);
        if is_registered {
            return;
        }
        if let Some((cluster, gone)) = self.clusters.remove_entry(name) {
            let has_vanished = gone.has_vanished;
            gone.end().await;
            self.forget(cluster, has_vanished).await;
        }
    }

    async fn forget(&self, cluster: Arc<str>, has_vanished: bool) {
        let name = &*cluster;
        tracing::info!(
            cluster = name,
            has_vanished,
            "cluster is registered no more"
        );
        let forget = Change::Forget {
            cluster,
            has_vanished,
        };
        self.send(vec![forget]).await;
    }

    /// A stored object names a cluster. Unless that is registered, it was deregistered while nobody looked; or, if
    /// the object was not there at the start, its registration was lost, as when a backup is restored that is older
    /// than it, and somebody who did not know yet has stored the object once more.
    fn wonder(&mut self, name: String, kind: Kind) {
        if self.clusters.contains_key(name.as_str()) {
            return;
        }
        self.unknown.note(name, self.management.has_listed(kind));
        self.inquire();
    }

    /// Asks for the registrations of clusters that stored objects name, once the watches have shown what they can.
    fn inquire(&mut self) {
        if self.are_registrations_listed()
            && let Some(client) = self.management.client()
        {
            self.unknown.ask(&client, &mut self.spawner);
        }
    }

    async fn hear(&mut self, origin: &Origin, news: News) {
        self.stale.insert(Arc::clone(&origin.cluster));
        let cluster = match &*origin.cluster {
            "" => &mut self.management,
            name => match self.clusters.get_mut(name) {
                Some(cluster) if cluster.origin == *origin => cluster,
                // It was said before the cluster was forgotten.
                _ => return,
            },
        };
        match news {
            News::Listed(watch) => cluster.listed(&watch),
            News::Health(watch, health) => cluster.fares(watch, health),
            News::Unreadable(watch, unreadable) => cluster.cannot_read(watch, unreadable),
            News::Probed(health) => cluster.answers(health),
            News::Wanted(watch, true) => cluster.want(watch, &mut self.spawner),
            News::Wanted(watch, false) => {
                let gone = cluster.drop_watch(&watch).await;
                if !gone.is_empty() {
                    self.send(gone).await;
                }
            }
        }
        self.tell(origin).await;
    }

    /// Tells the writer of kinds that have been listed.
    async fn tell(&mut self, origin: &Origin) {
        let is_management = origin.cluster.is_empty();
        let cluster = match self.clusters.get_mut(&origin.cluster) {
            _ if is_management => &mut self.management,
            Some(cluster) => cluster,
            None => return,
        };
        let kinds = cluster.complete();
        if kinds.is_empty() {
            return;
        }
        let is_about_registrations = |kind: &Kind| REGISTRATIONS.contains(kind);
        if is_management && kinds.iter().any(is_about_registrations) {
            let names: Vec<_> = self.clusters.keys().cloned().collect();
            for name in names {
                self.settle(&name).await;
            }
            self.inquire();
        }
        // Whoever learns that the management cluster is complete finds the clusters that it registers.
        self.publish();
        let synced = kinds.into_iter().map(|kind| Change::Synced {
            cluster: Arc::clone(&origin.cluster),
            kind,
        });
        self.send(synced.collect()).await;
    }

    fn are_registrations_listed(&self) -> bool {
        REGISTRATIONS
            .iter()
            .all(|kind| self.management.has_listed(*kind))
    }

    async fn send(&self, changes: Vec<Change>) {
        // The writer ends only with everything else.
        let cause = Span::none();
        let sent = self.changes.send(Seen { changes, cause }).await;
        sent.unwrap_or_default();
    }

    fn publish(&mut self) {
        let are_secrets_listed = self.management.has_listed(Kind::Secret);
        let mut is_other = false;
        for name in mem::take(&mut self.stale) {
            let cluster = match self.clusters.get(&name) {
                _ if name.is_empty() => &self.management,
                Some(cluster) => cluster,
                None => {
                    is_other |= self.published.registered.remove(&name).is_some();
                    continue;
                }
            };
            let before = match &*name {
                "" => Some(self.published.management()),
                name => self.published.get(name),
            };
            let view = cluster.view(&self.namespace, are_secrets_listed, before);
            if before.is_some_and(|before| before.is_like(&view)) {
                continue;
            }
            log(&name, &view, before);
            is_other = true;
            if name.is_empty() {
                self.published.management = Arc::new(view);
            } else {
                self.published.registered.insert(name, Arc::new(view));
            }
        }
        if is_other {
            self.shared.publish_clusters(self.published.clone());
        }
    }
}

/// Tells when a cluster fares otherwise than before.
fn log(name: &str, view: &ClusterView, before: Option<&ClusterView>) {
    let condition = view.condition.as_str();
    if before.is_some_and(|before| before.condition.as_str() == condition) {
        return;
    }
    if let Some(error) = view.condition.reason() {
        tracing::warn!(cluster = name, condition, error, "a cluster is failing");
    } else {
        tracing::info!(cluster = name, condition, "a cluster has another condition");
    }
}

#[cfg(test)]
mod tests {
    use ferromesh_core::State;
    use ferromesh_testkit::fakeapi::FakeApi;

    use super::*;

    #[tokio::test]
    async fn what_an_earlier_registration_tells_late_says_nothing_of_a_later_one() {
        let shutdown = Shutdown::new();
        let (changes, mut received) = mpsc::channel(64);
        let shared = Arc::new(Shared::new(State::default()));
        let management = FakeApi::new().client();
        let options = Options::default();
        let mut registry = Registry::new(options, management, changes, shared, &shutdown);
        let later = registry.entry("east").origin.clone();
        let earlier = Origin {
            id: later.id - 1,
            ..later.clone()
        };
        for origin in [&earlier, &later] {
            for watch in Watch::of("east", &registry.namespace.clone()) {
                assert!(
                    received.try_recv().is_err(),
                    "nothing was told of {origin:?}"
                );
                registry.hear(origin, News::Listed(watch)).await;
                while *origin == later && received.try_recv().is_ok() {}
            }
        }
        let east = &registry.clusters["east"];
        assert!(east.has_listed(Kind::Pod));
        shutdown.token().cancel();
    }
}
