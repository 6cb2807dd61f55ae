//! One watch per cluster and kind, made from the engine's list of kinds.

use std::{sync::Arc, time::Duration};

use ferromesh_core::{Input, Key, Kind, State, for_each_kind};
use ferromesh_runtime::{
    backoff::ExponentialBackoff,
    pump::{Closed, Config, Observed, Sink, pump},
    shutdown::Shutdown,
};
use kube::{Api, Client, Resource};
use tokio::{
    select,
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::{
    ingest::{Partial, prune, take},
    registry::Event,
    tracker::{Outcome, Tracker},
    writer::Seen,
};

/// Types of Secrets that are no root's, and that are many or large.
///
/// A selector of fields cannot ask for a key of the data, nor for one of several types, but it can leave
/// types out.
const ROOT_CANDIDATES: &str = "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token,\
    type!=kubernetes.io/dockerconfigjson,type!=kubernetes.io/dockercfg,\
    type!=bootstrap.kubernetes.io/token";

/// The Deployments of Istio's control planes are named so, those of a revision `istiod-<revision>`.
const CONTROL_PLANE: &str = "istiod";
/// The `ConfigMap` of a mesh's configuration, that of a revision is `istio-<revision>`.
const CONFIGURATION: &str = "istio";

/// What one pump follows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Watch {
    pub(crate) kind: Kind,
    pub(crate) place: Place,
}

/// Which objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// All of them.
    Everywhere,
    /// Those of a namespace.
    Namespace(Arc<str>),
    /// Those that a selector of fields admits.
    Fields(&'static str),
    /// Those of this name in every namespace.
    Name(&'static str),
    /// One.
    Object { namespace: Arc<str>, name: Arc<str> },
}

/// What a watch needs beside what it follows.
pub(crate) struct Feed {
    pub(crate) tracker: Tracker,
    pub(crate) changes: mpsc::Sender<Seen>,
    pub(crate) events: mpsc::Sender<Event>,
}

/// By which connection, and until when, a watch is made.
pub(crate) struct Line {
    /// Where there is none, nothing is seen, and nothing is forgotten.
    pub(crate) client: watch::Receiver<Option<Client>>,
    pub(crate) watch_timeout: Duration,
    pub(crate) backoff: ExponentialBackoff,
    pub(crate) cancel: CancellationToken,
}

// === impl Watch ===

impl Watch {
    /// The watches of a cluster, empty for the management cluster. `namespace` is our own.
    pub(crate) fn of(cluster: &str, namespace: &Arc<str>) -> Vec<Self> {
        let nothing = State::default();
        let kinds = nothing.unsynced(cluster);
        kinds
            .map(|kind| Self {
                kind,
                place: Place::of(kind, namespace),
            })
            .collect()
    }

    /// Whether it is there because of another object, which need not mean what it seems to.
    pub(crate) fn is_presumed(&self) -> bool {
        matches!(self.place, Place::Object { .. })
    }
}

/// The configuration of the control plane that a Deployment of this name would be, where it is not watched
/// in any case.
///
/// The rights of a registration do not go further: they name the one object in the whole cluster, and
/// hold for all in the namespaces of Istio.
pub(crate) fn configuration(deployment: &Key) -> Option<Watch> {
    let revision = deployment.name().strip_prefix(CONTROL_PLANE)?;
    revision.strip_prefix('-')?;
    Some(Watch {
        kind: Kind::ConfigMap,
        place: Place::Object {
            namespace: deployment.namespace().into(),
            name: format!("{CONFIGURATION}{revision}").into(),
        },
    })
}

// === impl Place ===

impl Place {
    fn of(kind: Kind, namespace: &Arc<str>) -> Self {
        match kind {
            Kind::KubernetesCluster | Kind::Settings => Self::Namespace(Arc::clone(namespace)),
            Kind::Secret => Self::Fields(ROOT_CANDIDATES),
            Kind::ConfigMap => Self::Name(CONFIGURATION),
            _ => Self::Everywhere,
        }
    }

    fn namespace(&self) -> Option<&str> {
        match self {
            Self::Namespace(namespace) | Self::Object { namespace, .. } => Some(namespace),
            Self::Everywhere | Self::Fields(_) | Self::Name(_) => None,
        }
    }

    fn fields(&self) -> Option<String> {
        match self {
            Self::Everywhere | Self::Namespace(_) => None,
            Self::Fields(fields) => Some((*fields).to_owned()),
            Self::Name(name) => Some(format!("metadata.name={name}")),
            Self::Object { name, .. } => Some(format!("metadata.name={name}")),
        }
    }
}

// === impl Feed ===

macro_rules! spawns {
    ($($kind:ident, $table:ident: $parsed:ty, $scope:ident, $wire:ty => $parse:expr;)*) => {
        /// Follows what the watch names until the line is cut. Returns what it knew to exist then.
        pub(crate) fn spawn(feed: Feed, watch: Watch, line: Line, shutdown: &Shutdown) -> JoinHandle<Vec<Key>> {
            match watch.kind {
                $(Kind::$kind => shutdown.spawn(follow::<$wire>(feed, watch.place, line)),)*
            }
        }
    };
}

for_each_kind!(spawns);

async fn follow<W>(mut feed: Feed, place: Place, mut line: Line) -> Vec<Key>
where
    W: Input + Resource<DynamicType = ()> + Send + 'static,
{
    loop {
        feed.tracker.reconnect();
        let connected = line.client.borrow_and_update().clone();
        let Line {
            client,
            watch_timeout,
            backoff,
            cancel,
        } = &mut line;
        let watched = async {
            let Some(client) = connected else {
                cancel.cancelled().await;
                return;
            };
            let api: Api<Partial<W>> = match place.namespace() {
                Some(namespace) => Api::namespaced_with(client, namespace, &()),
                None => Api::all_with(client, &()),
            };
            let config = Config {
                fields: place.fields(),
                watch_timeout: *watch_timeout,
                prune: prune::<W>,
                ..Config::default()
            };
            pump(api, config, &mut feed, backoff.clone(), cancel.clone()).await;
        };
        select! {
            // A pump ends when it is told to, or when nobody takes what it sees.
            () = watched => break,
            changed = client.changed() => if changed.is_err() { break },
        }
    }
    feed.tracker.known().cloned().collect()
}

impl<W> Sink<Partial<W>> for &mut Feed
where
    W: Input + Resource<DynamicType = ()> + Send + 'static,
{
    async fn send(&mut self, observed: Observed<Partial<W>>) -> Result<(), Closed> {
        let tracker = &mut self.tracker;
        match observed {
            Observed::Started => tracker.start(),
            Observed::Present(object) | Observed::Applied(object) => {
                let taken = take(object, tracker.cluster());
                tracker.present(taken);
            }
            Observed::Synced => tracker.finish(),
            Observed::Deleted(name) => tracker.gone(&name),
            Observed::Invalid(invalid) => tracker.unreadable(&invalid.key, invalid.error),
            Observed::Failed(failure) => tracker.fail(&failure),
            Observed::Recovered => tracker.thrive(),
        }
        self.flush().await
    }
}

impl Feed {
    /// Hands over what follows. What has not been taken when this is dropped is handed over the next time.
    async fn flush(&mut self) -> Result<(), Closed> {
        while let Some(is_change) = self.tracker.next_is_change() {
            if is_change {
                let place = self.changes.reserve().await.map_err(|_| Closed)?;
                if let Some(Outcome::Changes(changes)) = self.tracker.outcome() {
                    let cause = self.tracker.cause(&changes);
                    place.send(Seen { changes, cause });
                }
            } else {
                let place = self.events.reserve().await.map_err(|_| Closed)?;
                if let Some(Outcome::Event(event)) = self.tracker.outcome() {
                    place.send(event);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ferromesh_core::Change;
    use ferromesh_runtime::pump::NamespacedName;
    use k8s_openapi::api::core::v1::Service;
    use tokio::time::timeout;

    use super::*;
    use crate::{metrics::Metrics, registry::Origin};

    fn service(name: &str) -> Partial<Service> {
        let mut object = Service::default();
        object.metadata.name = Some(name.into());
        Partial {
            object,
            left_out: Vec::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_cut_off_while_it_is_handed_over_is_handed_over_later() {
        let watch = Watch {
            kind: Kind::Service,
            place: Place::Everywhere,
        };
        let origin = Origin {
            cluster: "east".into(),
            id: 1,
        };
        let counters = Metrics::default().counters(Kind::Service);
        let (changes, mut received) = mpsc::channel(1);
        let (events, _told) = mpsc::channel(8);
        let mut feed = Feed {
            tracker: Tracker::new(origin, watch, "gloo-mesh".into(), counters),
            changes,
            events,
        };
        let mut sink = &mut feed;
        sink.send(Observed::Present(service("a"))).await.unwrap();
        let gone = Observed::<Partial<Service>>::Deleted(NamespacedName {
            namespace: None,
            name: "a".into(),
        });
        let cut_off = timeout(Duration::from_secs(1), sink.send(gone)).await;
        assert!(cut_off.is_err(), "nobody takes what is handed over");

        let mut taken = received.recv().await.unwrap().changes;
        let next = sink.send(Observed::<Partial<Service>>::Recovered);
        let (handed_over, more) = tokio::join!(next, received.recv());
        handed_over.unwrap();
        taken.extend(more.unwrap().changes);
        let [Change::Upsert(_), Change::Remove(Kind::Service, key)] = &*taken else {
            panic!("there, and gone: {taken:?}");
        };
        assert_eq!(key.as_str(), "a..east");
    }

    #[test]
    fn only_a_revision_has_a_configuration_of_its_own() {
        let of = |name: &str| configuration(&Key::new(name, "istio-system", "east"));
        assert_eq!(of("istiod"), None);
        assert_eq!(of("istiodx"), None);
        assert_eq!(of("web"), None);
        let place = Place::Object {
            namespace: "istio-system".into(),
            name: "istio-1-29".into(),
        };
        assert_eq!(of("istiod-1-29").unwrap().place, place);
    }
}
