//! Keeps an eye on one kind: in which version it is served, what of ours stands.
//!
//! Objects are reduced where they arrive, so that nobody keeps one.

use std::{sync::Arc, time::Duration};

use ferromesh_runtime::{
    backoff::{ExponentialBackoff, Jitter, Schedule},
    pump::{self, Closed, NamespacedName, Observed, Sink},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
};
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    discovery,
    drift::{self, Standing},
    error::{Cause, Error},
    object::{Kind, ObjectId, Scope},
    ssa::Writer,
};

/// How often is asked whether a kind that is not served is served now. Installing Istio takes longer.
const NOT_SERVED: Duration = Duration::from_secs(15);

/// How often is asked whether a better version of a kind is served now.
const SERVED: Duration = Duration::from_mins(10);

/// What was seen of the kind of this number.
#[derive(Debug)]
pub(crate) struct Sighting {
    pub(crate) kind: usize,
    pub(crate) seen: Seen,
}

#[derive(Debug)]
pub(crate) enum Seen {
    /// It is served in this version.
    Served(Arc<str>),
    NotServed,
    /// A relist begins.
    Started,
    /// An object stands, and was changed last by somebody else if so.
    Stands(ObjectId, Standing, Option<String>),
    /// An object exists that cannot be read.
    Exists(ObjectId),
    /// An object is gone, or not ours any more.
    Gone(ObjectId),
    /// A relist is complete.
    Synced,
    Failed(Error),
    Recovered,
}

/// Looks at one kind.
pub(crate) struct Eye {
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) scope: Arc<Scope>,
    pub(crate) number: usize,
    pub(crate) sightings: mpsc::Sender<Sighting>,
    pub(crate) jitter: Jitter,
}

/// Takes what the pump sees.
#[derive(Clone)]
struct Retina {
    scope: Arc<Scope>,
    number: usize,
    sightings: mpsc::Sender<Sighting>,
    manager: String,
}

// === impl Eye ===

impl Eye {
    /// Looks until `cancel` is cancelled or nobody listens.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        cancel.run_until_cancelled(Box::pin(self.look())).await;
    }

    async fn look(mut self) -> Closed {
        let retina = Retina {
            scope: Arc::clone(&self.scope),
            number: self.number,
            sightings: self.sightings.clone(),
            manager: self.writer.manager().to_owned(),
        };
        let mut backoff = ExponentialBackoff::new(Schedule::default(), self.jitter.fork());
        loop {
            let (seen, pause) = match discovery::best_version(&self.writer, self.kind()).await {
                Ok(Some(version)) => {
                    if let Err(closed) = retina.tell(Seen::Served(Arc::clone(&version))).await {
                        return closed;
                    }
                    self.watch(&version, &retina).await;
                    // The watch says that it is not served, and discovery may take a while to say so too.
                    sleep(backoff.delay()).await;
                    continue;
                }
                Ok(None) => (Seen::NotServed, self.jitter.spread(NOT_SERVED, 0.2)),
                Err(error) => (Seen::Failed(error), backoff.delay()),
            };
            if let Err(closed) = retina.tell(seen).await {
                return closed;
            }
            sleep(pause).await;
        }
    }

    /// Watches until the kind is not served in this version any more, or in a better one too.
    async fn watch(&mut self, version: &Arc<str>, retina: &Retina) {
        let backoff = ExponentialBackoff::new(Schedule::default(), self.jitter.fork());
        let kind = self.kind();
        let resource = ApiResource {
            group: kind.group.to_string(),
            version: version.to_string(),
            api_version: kind.api_version(version),
            kind: kind.name.to_string(),
            plural: kind.plural.to_string(),
        };
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let config = pump::Config {
            labels: Some(self.scope.selector()),
            ..pump::Config::default()
        };
        let never = CancellationToken::new();
        let watching = pump::pump(api, config, retina.clone(), backoff, never);
        tokio::select! {
            _ = watching => {}
            () = self.outdated(version) => {}
        }
    }

    /// Returns when this is no longer the best version.
    async fn outdated(&self, version: &Arc<str>) {
        loop {
            sleep(SERVED).await;
            match discovery::best_version(&self.writer, self.kind()).await {
                Ok(best) if best.as_ref() != Some(version) => return,
                // Whether the API server answers is what the watch finds out.
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn kind(&self) -> &Kind {
        &self.scope.kinds[self.number]
    }
}

// === impl Retina ===

impl Retina {
    async fn tell(&self, seen: Seen) -> Result<(), Closed> {
        let sighting = Sighting {
            kind: self.number,
            seen,
        };
        self.sightings.send(sighting).await.map_err(|_| Closed)
    }

    fn kind(&self) -> &Kind {
        &self.scope.kinds[self.number]
    }

    fn id(&self, name: &NamespacedName) -> ObjectId {
        let namespace = name.namespace.as_deref().unwrap_or_default();
        self.kind().id(namespace, &name.name)
    }

    fn error(&self, error: pump::Error) -> Error {
        let action = format!("watching {}", self.kind());
        match error {
            pump::Error::Refused { status, .. } => Error::refused(action, *status, true, None),
            pump::Error::TimedOut { after, .. } => Error::Timeout { action, after },
            error => Error::Unreachable {
                action,
                cause: Cause::Watch(Box::new(error)),
            },
        }
    }
}

impl Sink<DynamicObject> for Retina {
    async fn send(&mut self, observed: Observed<DynamicObject>) -> Result<(), Closed> {
        let seen = match observed {
            Observed::Started => Seen::Started,
            Observed::Present(object) | Observed::Applied(object) => Seen::Stands(
                self.id(&NamespacedName::of(&object)),
                Standing::of(&object, &self.manager),
                drift::last_other(&object, &self.manager),
            ),
            Observed::Invalid(invalid) => Seen::Exists(self.id(&invalid.key)),
            Observed::Deleted(name) => Seen::Gone(self.id(&name)),
            Observed::Synced => Seen::Synced,
            Observed::Recovered => Seen::Recovered,
            // Discovery has to be asked again, in which this pump has no part.
            Observed::Failed(failure) if failure.error.class() == pump::Class::NotServed => {
                return Err(Closed);
            }
            Observed::Failed(failure) => Seen::Failed(self.error(failure.error)),
        };
        self.tell(seen).await
    }
}
