//! At most one holder: a `coordination.k8s.io` Lease as a claim that can be watched.
//!
//! Clocks of different machines are never compared. What others wrote counts as renewed when we see it
//! change, and as abandoned when it has not changed, by our own monotonic clock, for as long as it
//! promised to be renewed within (Kubernetes: `Lease.spec.leaseDurationSeconds`; client-go's leader
//! election does the same). The times in the record are for people.
//!
//! A holder that cannot renew gives up `duration - renew_deadline` before anybody else may take over. That
//! is the time in which its last writes must have ended. A claim tells by itself when it is too old
//! ([`Claim::is_held`]), should this process have been stopped for a while; clients behind a [`Fence`] ask it
//! before each write. A holder that ends waits until what it has sent is answered before it gives the lease up:
//! whoever comes next must not be overtaken by it.

mod fence;

use std::{
    env, fmt,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease as Record, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

pub use self::fence::Fence;
use crate::{backoff::Jitter, telemetry::Chain};

/// The share by which waits between attempts are spread.
const SPREAD: f64 = 0.2;

/// For how long answers to what was sent are waited for before a lease is given up.
const ANSWERS: Duration = Duration::from_secs(5);

/// How long giving up a lease may take when this process ends.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Which lease, who claims it, and in which rhythm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The namespace of the Lease object.
    pub namespace: String,
    /// The name of the Lease object.
    pub name: String,
    /// Who claims it: unique among processes, restarts included. A pod's name and something random.
    pub identity: String,
    /// For how long the lease is valid after it has been renewed. Whole seconds.
    pub duration: Duration,
    /// After how long without a renewal the holder gives up. Less than `duration`.
    pub renew_deadline: Duration,
    /// The time between attempts. Less than `renew_deadline`.
    pub retry: Duration,
}

/// What is known of the lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// Nothing: not asked yet, no answer, or given up.
    #[default]
    Unknown,
    /// Somebody else holds it.
    Foreign {
        /// The identity of the holder.
        holder: String,
    },
    /// We hold it.
    Held {
        /// When this is no longer true unless it is renewed.
        until: Instant,
    },
}

/// How a claim ended without being lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was held and has been given up: somebody else may take it at once.
    Released,
    /// It was held and could not be given up: others wait until it has expired.
    Abandoned,
    /// It was never held.
    NeverHeld,
}

/// Why there is no claim, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rhythm makes no sense.
    #[error(
        "lease {name}: retry, renew deadline and duration must each be well below the next, in whole seconds"
    )]
    Rhythm {
        /// `namespace/name` of the lease.
        name: String,
    },
    /// Somebody else has taken it while we held it.
    #[error("the lease {name} was taken by {holder:?}")]
    Taken {
        /// `namespace/name` of the lease.
        name: String,
        /// The new holder; empty if it was cleared.
        holder: String,
    },
    /// We held it and could not renew it in time.
    #[error("the lease {name} could not be renewed for {} s", after.as_secs())]
    Expired {
        /// `namespace/name` of the lease.
        name: String,
        /// How long it was tried.
        after: Duration,
        /// The last error; none if the API server did not answer.
        #[source]
        source: Option<Box<kube::Error>>,
    },
}

/// A candidate for a lease.
pub struct Lease {
    api: Api<Record>,
    config: Config,
    seconds: i32,
    jitter: Jitter,
    claim: watch::Sender<Claim>,
    fence: Fence,
    /// The record of somebody else as we saw it last, and when we saw it change.
    observed: Option<(LeaseSpec, Instant)>,
}

/// What one look at the lease has brought.
enum Attempt {
    Held,
    Foreign(String),
}

// === impl Config ===

/// An identity that no other process has: the host's name, as far as the environment tells it, and
/// something random.
pub fn identity() -> String {
    let host = env::var("HOSTNAME").unwrap_or_else(|_| "localhost".to_owned());
    format!("{host}-{:016x}", RandomState::new().hash_one("identity"))
}

impl Config {
    /// The rhythm of client-go: valid for 15 s, given up after 10 s, tried every 2 s.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

// === impl Claim ===

impl Claim {
    /// Whether we hold the lease at this moment.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Held { until } if Instant::now() < *until)
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Foreign { holder } => write!(f, "held by {holder}"),
            Self::Held { .. } => f.write_str("held"),
        }
    }
}

// === impl Lease ===

impl Lease {
    /// A candidate that does nothing until it [runs](Self::run).
    pub fn new(client: Client, config: Config, jitter: Jitter) -> Result<Self, Error> {
        let seconds = i32::try_from(config.duration.as_secs())
            .ok()
            .filter(|seconds| *seconds > 0);
        let is_ordered = config.retry.mul_f64(1.0 + SPREAD) < config.renew_deadline
            && config.renew_deadline < config.duration
            && config.duration.subsec_nanos() == 0
            && !config.retry.is_zero();
        let (Some(seconds), true) = (seconds, is_ordered) else {
            return Err(Error::Rhythm {
                name: format!("{}/{}", config.namespace, config.name),
            });
        };
        let claim = watch::Sender::default();
        Ok(Self {
            fence: Fence::new(claim.subscribe()),
            api: Api::namespaced(client, &config.namespace),
            config,
            seconds,
            jitter,
            claim,
            observed: None,
        })
    }

    /// The claim as it changes. A renewal is no change: the value is newer, but nobody is woken.
    pub fn claim(&self) -> watch::Receiver<Claim> {
        self.claim.subscribe()
    }

    /// What lets writes through while it is held.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Claims the lease, and renews it until `cancel`; then gives it up, once everything is answered that was sent
    /// through its [`Fence`]. What is not answered in time may still take effect: the lease is left to expire.
    ///
    /// Cancel it after everything that writes in the name of the claim has ended. An error means that the
    /// claim was held and is lost: whoever wrote in its name must stop.
    pub async fn run(mut self, cancel: CancellationToken) -> Result<Ended, Error> {
        let Some(acquired) = cancel.run_until_cancelled(self.acquire()).await else {
            return Ok(Ended::NeverHeld);
        };
        tracing::info!(lease = %self.name(), "lease acquired");
        let kept = cancel.run_until_cancelled(self.keep(acquired)).await;
        if let Some(lost) = kept {
            self.announce(Claim::Unknown);
            return Err(lost);
        }
        let answered = tokio::time::timeout(ANSWERS, self.fence.answered()).await;
        self.announce(Claim::Unknown);
        if answered.is_ok() {
            return Ok(self.release().await);
        }
        let lease = self.name();
        tracing::warn!(%lease, "the lease is left to expire: what was written last is not answered");
        Ok(Ended::Abandoned)
    }

    fn name(&self) -> String {
        format!("{}/{}", self.config.namespace, self.config.name)
    }

    fn announce(&self, claim: Claim) {
        self.claim.send_if_modified(|current| {
            let is_renewal = matches!(
                (&*current, &claim),
                (Claim::Held { .. }, Claim::Held { .. })
            );
            let is_change = *current != claim && !is_renewal;
            *current = claim;
            is_change
        });
    }

    fn announce_held(&self, since: Instant) {
        let until = since + self.config.renew_deadline;
        self.announce(Claim::Held { until });
    }

    /// Returns once the lease is held, with the moment from which it counts.
    async fn acquire(&mut self) -> Instant {
        let mut complaint = String::new();
        loop {
            let began = Instant::now();
            let attempt = tokio::time::timeout(self.config.renew_deadline, self.attempt()).await;
            let problem = match attempt {
                Ok(Ok(Attempt::Held)) => {
                    self.announce_held(began);
                    return began;
                }
                Ok(Ok(Attempt::Foreign(holder))) => {
                    self.announce(Claim::Foreign { holder });
                    None
                }
                Ok(Err(error)) => Some(Chain(&error).to_string()),
                Err(_) => Some(String::from("the API server does not answer")),
            };
            if let Some(error) = problem {
                self.announce(Claim::Unknown);
                if error != complaint {
                    tracing::warn!(lease = %self.name(), error, "cannot claim the lease");
                    complaint = error;
                }
            }
            tokio::time::sleep(self.jitter.spread(self.config.retry, SPREAD)).await;
        }
    }

    /// Renews the lease until it is lost.
    async fn keep(&mut self, mut renewed: Instant) -> Error {
        let mut last_error = None;
        loop {
            let deadline = renewed + self.config.renew_deadline;
            let next = Instant::now() + self.jitter.spread(self.config.retry, SPREAD);
            tokio::time::sleep_until(next.min(deadline)).await;
            let began = Instant::now();
            match tokio::time::timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Attempt::Held)) => {
                    renewed = began;
                    last_error = None;
                    self.announce_held(began);
                }
                Ok(Ok(Attempt::Foreign(holder))) => {
                    return Error::Taken {
                        name: self.name(),
                        holder,
                    };
                }
                Ok(Err(error)) => {
                    tracing::warn!(lease = %self.name(), error = %Chain(&error), "cannot renew the lease");
                    last_error = Some(Box::new(error));
                }
                Err(_) => {}
            }
            if Instant::now() >= renewed + self.config.renew_deadline {
                return Error::Expired {
                    name: self.name(),
                    after: self.config.renew_deadline,
                    source: last_error,
                };
            }
        }
    }

    /// Looks at the lease and takes or renews it if it is ours or free.
    async fn attempt(&mut self) -> Result<Attempt, kube::Error> {
        let Some(record) = self.api.get_opt(&self.config.name).await? else {
            let record = Record {
                metadata: ObjectMeta {
                    name: Some(self.config.name.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(self.ours(&LeaseSpec::default())),
            };
            self.api.create(&PostParams::default(), &record).await?;
            return Ok(Attempt::Held);
        };
        let spec = record.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let is_ours = holder == self.config.identity;
        let was_ours = matches!(*self.claim.borrow(), Claim::Held { .. });
        if !is_ours && (was_ours || !self.is_free(&spec)) {
            return Ok(Attempt::Foreign(holder));
        }
        // The resource version makes this fail if anybody else was faster.
        let renewed = Record {
            spec: Some(self.ours(&spec)),
            ..record
        };
        self.api
            .replace(&self.config.name, &PostParams::default(), &renewed)
            .await?;
        self.observed = None;
        Ok(Attempt::Held)
    }

    /// Whether nobody holds the lease, or its holder has been silent for as long as it promised not to be.
    fn is_free(&mut self, spec: &LeaseSpec) -> bool {
        if spec.holder_identity.as_deref().is_none_or(str::is_empty) {
            return true;
        }
        let now = Instant::now();
        let since = match &self.observed {
            Some((seen, since)) if seen == spec => *since,
            _ => {
                self.observed = Some((spec.clone(), now));
                now
            }
        };
        let promised = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        let promised = promised.map_or(self.config.duration, Duration::from_secs);
        now.saturating_duration_since(since) >= promised
    }

    /// The record that makes the lease ours, or keeps it so.
    fn ours(&self, current: &LeaseSpec) -> LeaseSpec {
        let now = Some(MicroTime(Timestamp::now()));
        let is_ours = current.holder_identity.as_ref() == Some(&self.config.identity);
        let transitions = current.lease_transitions.unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: Some(self.seconds),
            acquire_time: if is_ours {
                current.acquire_time.clone()
            } else {
                now.clone()
            },
            renew_time: now,
            lease_transitions: Some(if is_ours {
                transitions
            } else {
                transitions.saturating_add(1)
            }),
            ..current.clone()
        }
    }

    async fn release(&self) -> Ended {
        match tokio::time::timeout(RELEASE_TIMEOUT, self.try_release()).await {
            Ok(Ok(())) => {
                tracing::info!(lease = %self.name(), "lease released");
                return Ended::Released;
            }
            Ok(Err(error)) => {
                tracing::warn!(lease = %self.name(), error = %Chain(&error), "cannot release the lease");
            }
            Err(_) => tracing::warn!(lease = %self.name(), "cannot release the lease: no answer"),
        }
        Ended::Abandoned
    }

    async fn try_release(&self) -> Result<(), kube::Error> {
        let Some(mut record) = self.api.get_opt(&self.config.name).await? else {
            return Ok(());
        };
        match &mut record.spec {
            Some(spec) if spec.holder_identity.as_ref() == Some(&self.config.identity) => {
                spec.holder_identity = None;
                spec.lease_duration_seconds = Some(1);
                spec.renew_time = Some(MicroTime(Timestamp::now()));
            }
            _ => return Ok(()),
        }
        self.api
            .replace(&self.config.name, &PostParams::default(), &record)
            .await?;
        Ok(())
    }
}
