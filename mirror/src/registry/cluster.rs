//! One registration: its credential, its watches, and what they tell.

use std::collections::BTreeMap;

use ferromesh_core::{Change, Key, Kind};
use ferromesh_crds::{meta::KUBECONFIG_SECRET_TYPE, name::ClusterName};
use ferromesh_runtime::{
    client::{ClientWarning, Connection},
    fingerprint::Fingerprint,
    pump::Class,
};
use kube::Client;
use tokio::{sync::watch, task::JoinHandle, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    ClusterView, Condition, Failing, Health, Origin, Spawner, Unreadable, listing::Listing,
};
use crate::pumps::Watch;

/// The most control planes of revisions in one cluster whose configuration is followed.
const MAX_REVISIONS: usize = 64;

/// A cluster from its registration until it is forgotten.
pub(super) struct Cluster {
    pub(super) origin: Origin,
    /// Whether there is a `KubernetesCluster` of its name.
    pub(super) is_declared: bool,
    /// Whether nobody was seen to delete what of its registration was gone last.
    pub(super) has_vanished: bool,
    /// What stands in the Secret of its name, if there is one with a kubeconfig.
    secret: Option<Fingerprint>,
    /// Why there is no client although there is a Secret.
    problem: Option<String>,
    server: Option<String>,
    warnings: Vec<ClientWarning>,
    client: watch::Sender<Option<Client>>,
    /// How often the client has changed.
    connection: u64,
    watches: BTreeMap<Watch, Running>,
    listing: Listing,
    /// When everything was listed last.
    listed: BTreeMap<Watch, Instant>,
    health: BTreeMap<Watch, Health>,
    unreadable: BTreeMap<Watch, Unreadable>,
    /// What its API server answered last, once it has been asked.
    answer: Option<Health>,
    probe: Option<DropGuard>,
}

/// A watch that runs.
struct Running {
    cancel: CancellationToken,
    task: JoinHandle<Vec<Key>>,
}

impl Cluster {
    /// A cluster of which nothing is known.
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            is_declared: false,
            has_vanished: false,
            secret: None,
            problem: None,
            server: None,
            warnings: Vec::new(),
            client: watch::Sender::new(None),
            connection: 0,
            watches: BTreeMap::new(),
            listing: Listing::default(),
            listed: BTreeMap::new(),
            health: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            answer: None,
            probe: None,
        }
    }

    /// Why no cluster can have this name.
    pub(super) fn fault(&self) -> Option<String> {
        let name = self.origin.cluster.parse::<ClusterName>();
        name.err().map(|fault| fault.to_string())
    }

    /// Whether anything says that it is registered.
    pub(super) fn is_registered(&self) -> bool {
        self.is_declared || self.secret.is_some()
    }

    /// Begins to follow it, as soon as there is a client.
    pub(super) fn follow(&mut self, watches: Vec<Watch>, spawner: &mut Spawner) {
        self.listing = Listing::new(watches.iter().cloned());
        for watch in watches {
            self.open(watch, spawner);
        }
        let client = self.client.subscribe();
        self.probe = Some(spawner.probe(&self.origin, client));
    }

    /// Ends all its watches. Nothing comes from them any more.
    pub(super) async fn end(self) {
        for running in self.watches.values() {
            running.cancel.cancel();
        }
        for running in self.watches.into_values() {
            running.end().await;
        }
    }

    // Its credential.

    /// Whether its Secret has this content.
    pub(super) fn has_secret(&self, content: Fingerprint) -> bool {
        self.secret == Some(content)
    }

    /// By which it is reached now.
    pub(super) fn client(&self) -> Option<Client> {
        self.client.borrow().clone()
    }

    /// It is reached by this client, which needs no Secret.
    pub(super) fn reach(&mut self, client: Client) {
        self.change_client(Some(client));
    }

    /// Its Secret has another content. What is followed goes on where it was, by the new client.
    pub(super) fn accept(&mut self, content: Fingerprint, connection: Result<Connection, String>) {
        self.secret = Some(content);
        match connection {
            Ok(Connection {
                client,
                server,
                warnings,
                ..
            }) => {
                self.change_client(Some(client));
                self.server = Some(server);
                self.warnings = warnings;
            }
            Err(problem) => {
                self.change_client(None);
                self.problem = Some(problem);
            }
        }
    }

    /// Its Secret is gone. What was read stands.
    pub(super) fn lose_secret(&mut self) {
        if self.secret.take().is_some() {
            self.change_client(None);
        }
    }

    /// What was known of the last connection says nothing of the next.
    fn change_client(&mut self, client: Option<Client>) {
        self.problem = None;
        self.server = None;
        self.warnings = Vec::new();
        self.health.clear();
        self.answer = None;
        self.connection += 1;
        self.client.send_replace(client);
    }

    // Its watches.

    /// Follows something more, because of what was seen.
    pub(super) fn want(&mut self, watch: Watch, spawner: &mut Spawner) {
        if self.watches.contains_key(&watch) {
            return;
        }
        let revisions = self.watches.keys().filter(|watch| watch.is_presumed());
        if revisions.count() >= MAX_REVISIONS {
            tracing::warn!(
                cluster = &*self.origin.cluster,
                limit = MAX_REVISIONS,
                "too many control planes: the configuration of one is not followed"
            );
            return;
        }
        self.listing.add(watch.clone());
        self.open(watch, spawner);
    }

    /// Follows something no longer; returns what of the state goes with it.
    pub(super) async fn drop_watch(&mut self, watch: &Watch) -> Vec<Change> {
        let Some(running) = self.watches.remove(watch) else {
            return Vec::new();
        };
        running.cancel.cancel();
        let known = running.end().await;
        self.listed.remove(watch);
        self.health.remove(watch);
        self.unreadable.remove(watch);
        self.listing.finish(watch);
        let gone = |key| Change::Remove(watch.kind, key);
        known.into_iter().map(gone).collect()
    }

    fn open(&mut self, watch: Watch, spawner: &mut Spawner) {
        let cancel = spawner.token();
        let client = self.client.subscribe();
        let task = spawner.spawn(&self.origin, watch.clone(), client, cancel.clone());
        self.watches.insert(watch, Running { cancel, task });
    }

    // What its watches tell.

    /// A watch has listed everything, for the first time or once more.
    pub(super) fn listed(&mut self, watch: &Watch) {
        self.listing.finish(watch);
        self.listed.insert(watch.clone(), Instant::now());
    }

    /// Kinds of which everything has been listed, each of them once.
    pub(super) fn complete(&mut self) -> Vec<Kind> {
        self.listing.complete()
    }

    /// Whether a kind has been listed.
    pub(super) fn has_listed(&self, kind: Kind) -> bool {
        self.listing.has_told(kind)
    }

    /// How a watch fares.
    pub(super) fn fares(&mut self, watch: Watch, health: Health) {
        if !self.watches.contains_key(&watch) || self.client.borrow().is_none() {
            return;
        }
        if is_excused(&watch, &health) {
            self.listing.finish(&watch);
        }
        self.health.insert(watch, health);
    }

    /// What the API server answers when it is asked. Watches that did not notice that it was gone may have
    /// missed something: they are made again when it is back.
    pub(super) fn answers(&mut self, health: Health) {
        let Some(client) = self.client() else {
            return;
        };
        let was_silent = self
            .answer
            .as_ref()
            .and_then(Health::failing)
            .is_some_and(|failing| failing.class == Class::Unreachable);
        if was_silent && health == Health::Good {
            self.client.send_replace(Some(client));
        }
        self.answer = Some(health);
    }

    /// Which objects a watch cannot read.
    pub(super) fn cannot_read(&mut self, watch: Watch, unreadable: Unreadable) {
        if unreadable.count == 0 {
            self.unreadable.remove(&watch);
        } else {
            self.unreadable.insert(watch, unreadable);
        }
    }

    // How it fares.

    /// The cluster as others see it. `namespace` is our own, `before` what they saw last.
    pub(super) fn view(
        &self,
        namespace: &str,
        are_secrets_listed: bool,
        before: Option<&ClusterView>,
    ) -> ClusterView {
        let client = self.client();
        let is_management = self.origin.cluster.is_empty();
        let fault = self.fault().filter(|_| !is_management);
        let condition = match (fault.or_else(|| self.problem.clone()), &client) {
            (Some(problem), _) => Condition::CredentialInvalid(problem),
            (None, Some(_)) => Condition::of(self.vital()),
            (None, None) if are_secrets_listed => Condition::CredentialInvalid(format!(
                "Secret {namespace}/{} of type {KUBECONFIG_SECRET_TYPE} is missing",
                self.origin.cluster
            )),
            (None, None) => Condition::Pending,
        };
        let failing = self.failing();
        let since = match before {
            Some(before) if before.condition.as_str() == condition.as_str() => before.since,
            _ => self
                .vital()
                .filter_map(Health::failing)
                .map(|failing| failing.since)
                .min()
                .unwrap_or_else(Instant::now),
        };
        let mut listed: BTreeMap<Kind, Instant> = BTreeMap::new();
        for (watch, at) in &self.listed {
            let oldest = listed.entry(watch.kind).or_insert(*at);
            *oldest = (*oldest).min(*at);
        }
        let mut unreadable: BTreeMap<Kind, Unreadable> = BTreeMap::new();
        for (watch, more) in &self.unreadable {
            let all = unreadable.entry(watch.kind).or_default();
            all.count += more.count;
            all.first.extend(more.first.iter().cloned());
        }
        ClusterView {
            client,
            server: self.server.clone(),
            warnings: self.warnings.clone(),
            is_declared: self.is_declared,
            condition,
            since,
            listed,
            failing,
            unreadable,
            connection: self.connection,
        }
    }

    /// How the watches fare that count, and what the API server answers.
    fn vital(&self) -> impl Iterator<Item = &Health> + Clone {
        let vital = |(watch, health): &(&Watch, &Health)| !is_excused(watch, health);
        let watches = self.health.iter().filter(vital).map(|(_, health)| health);
        watches.chain(
            self.answer
                .iter()
                .filter(|answer| answer.failing().is_some()),
        )
    }

    fn failing(&self) -> BTreeMap<Kind, Failing> {
        let failing = self
            .health
            .iter()
            .filter_map(|(watch, health)| Some((watch.kind, health.failing()?.clone())));
        failing.collect()
    }
}

/// Whether it does not matter that a watch fails.
///
/// A configuration that we may not read counts as one that is not there: anybody who can make a Deployment
/// can name it like a control plane, and must not be able to keep a cluster from being complete.
fn is_excused(watch: &Watch, health: &Health) -> bool {
    let is_refused = health
        .failing()
        .is_some_and(|failing| matches!(failing.class, Class::Forbidden | Class::NotServed));
    watch.is_presumed() && is_refused
}

impl Running {
    /// What it knew to exist. It has been told to end.
    async fn end(self) -> Vec<Key> {
        // One that panicked knows nothing.
        self.task.await.unwrap_or_default()
    }
}
