//! The registration: what API servers are told to ask, kept as it is to be.
//!
//! One replica writes it, the holder of the lease. Whatever somebody else changes in it, or
//! deletes, is put back. To see whether API servers really ask, and by which form of the
//! registration, an object that is always refused is given to one of them for trial; the refusal
//! names the form. That is what lets a new CA sign (see [`certificate`](crate::certificate)).
//!
//! # Break-glass
//!
//! When the webhook stands in the way and must go at once, one command switches it off, whether
//! or not any replica of this server still runs:
//!
//! ```text
//! kubectl patch validatingwebhookconfigurations ferromesh --type=merge -p \
//!   '{"metadata":{"annotations":{"admission.mesh.gloo.solo.io/break-glass":"why"}},"webhooks":[]}'
//! ```
//!
//! From then on nothing is judged, and the server says so, in its log and by its metrics, until
//! the annotation is taken away:
//!
//! ```text
//! kubectl annotate validatingwebhookconfigurations ferromesh admission.mesh.gloo.solo.io/break-glass-
//! ```
//!
//! Deleting the object is not the way: a deletion is taken for an accident and put right.

mod endpoint;
mod half;
mod wanted;

use std::time::Duration;

use ferromesh_crds::TrafficPolicy;
use ferromesh_crds::TrafficPolicySpec;
use ferromesh_crds::meta::FIELD_MANAGER;
use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use ferromesh_runtime::lease::Claim;
use ferromesh_runtime::telemetry::Chain;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::PostParams;
use kube::runtime::utils::Backoff;
use kube::{Api, Client};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::endpoint::{Endpoint, NotAUrl, Url};
use self::half::{Configuration, Half, observe};
use crate::certificate::Bundle;
use crate::metrics::Metrics;
use crate::respond;
use crate::review::SELF_TEST_ANNOTATION;

/// Annotation on the registration, whose value says why: it is switched off.
pub const BREAK_GLASS_ANNOTATION: &str = "admission.mesh.gloo.solo.io/break-glass";

/// How often it is said that the registration is switched off.
const REMINDER: Duration = Duration::from_mins(5);

/// How long somebody else's change is left alone.
const SETTLING: Duration = Duration::from_millis(200);
/// How long API servers may take to hear of a new registration before that is worth a word.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is registered, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The name of both configurations.
    pub name: String,
    /// Our namespace: objects for trial are given to it, and it marks what is ours.
    pub namespace: String,
    /// Where API servers find the webhook.
    pub endpoint: Endpoint,
    /// How often it is tested whether API servers ask.
    pub test_period: Duration,
}

impl Options {
    /// The usual name, tested every minute.
    pub fn new(namespace: impl Into<String>, endpoint: Endpoint) -> Self {
        Self {
            name: "ferromesh".to_owned(),
            namespace: namespace.into(),
            endpoint,
            test_period: Duration::from_mins(1),
        }
    }
}

/// How the registration stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Not looked at yet.
    #[default]
    Unknown,
    /// Another replica is to write it.
    Following,
    /// It is written, and no API server has been seen to ask by it.
    Written,
    /// API servers ask by it.
    InUse,
    /// It was switched off: nothing is judged.
    BrokenGlass {
        /// Why, as whoever did it wrote.
        reason: String,
    },
}

/// Why the registration is not as it is to be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("reading the {kind} {name}")]
    Read {
        /// The kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// It cannot be written.
    #[error("writing the {kind} {name}")]
    Write {
        /// The kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// Somebody else has one of that name.
    #[error(
        "the {kind} {name} belongs to another management plane, or to nobody: delete it, or give ours another name"
    )]
    Foreign {
        /// The kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// An API server has stored the object that is always refused, or would have.
    #[error("the self-test was let through: the API server does not ask the webhook")]
    NotAsked,
    /// An API server asks, but by an older form of the registration.
    #[error("the self-test was refused by an older form of the registration")]
    Outdated,
    /// It could not be tested.
    #[error("giving the API server an object for trial")]
    Test(#[source] Box<kube::Error>),
}

impl Error {
    /// Whether it is written as it is to be, and API servers have not been seen to ask by it.
    fn is_about_asking(&self) -> bool {
        match self {
            Self::NotAsked | Self::Outdated | Self::Test(_) => true,
            Self::Read { .. } | Self::Write { .. } | Self::Foreign { .. } => false,
        }
    }
}

/// Keeps the registration.
pub struct Keeper {
    client: Client,
    options: Options,
    bundle: watch::Receiver<Option<Bundle>>,
    claim: watch::Receiver<Claim>,
    in_use: watch::Sender<Option<String>>,
    standing: watch::Sender<Standing>,
    metrics: Metrics,
}

impl Keeper {
    /// Keeps what `options` say, believing `bundle`, as long as `claim` is held.
    ///
    /// `in_use` is told the mark of the bundle by which an API server was seen to ask.
    pub fn new(
        client: Client,
        options: Options,
        bundle: watch::Receiver<Option<Bundle>>,
        claim: watch::Receiver<Claim>,
        in_use: watch::Sender<Option<String>>,
        metrics: Metrics,
    ) -> Self {
        Self {
            client,
            options,
            bundle,
            claim,
            in_use,
            standing: watch::Sender::default(),
            metrics,
        }
    }

    /// How the registration stands, as it changes.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Keeps the registration until `cancel`. Start it once the webhook serves: from then on what
    /// cannot be judged cannot be stored.
    ///
    /// What is registered stays when this ends: other replicas answer.
    pub async fn run(self, mut jitter: Jitter, cancel: CancellationToken) {
        let (tick, ticks) = mpsc::channel(1);
        let (client, name) = (self.client.clone(), self.options.name.clone());
        let backoff =
            |jitter: &mut Jitter| ExponentialBackoff::new(Schedule::default(), jitter.fork());
        tokio::join!(
            observe::<ValidatingWebhookConfiguration>(
                client.clone(),
                &name,
                tick.clone(),
                backoff(&mut jitter),
                cancel.clone(),
            ),
            observe::<MutatingWebhookConfiguration>(
                client,
                &name,
                tick,
                backoff(&mut jitter),
                cancel.clone(),
            ),
            self.keep(ticks, backoff(&mut jitter), cancel),
        );
    }

    async fn keep(
        mut self,
        mut ticks: mpsc::Receiver<()>,
        mut backoff: ExponentialBackoff,
        cancel: CancellationToken,
    ) {
        let mut complaint = Complaint::default();
        let mut reminded: Option<Instant> = None;
        loop {
            let round = tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                round = self.round() => round,
            };
            let pause = match round {
                Ok(standing) => {
                    complaint = Complaint::default();
                    backoff.reset();
                    self.remind(&standing, &mut reminded);
                    self.tell(standing);
                    self.options.test_period
                }
                Err(error) => {
                    self.metrics.has_passed_self_test.set(0);
                    if error.is_about_asking() {
                        self.tell(Standing::Written);
                    }
                    complaint.make(&error);
                    backoff.delay()
                }
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                Ok(()) = self.bundle.changed() => {}
                Ok(()) = self.claim.changed() => {}
                // Whoever changes it again and again is not answered at once.
                Some(()) = ticks.recv() => tokio::time::sleep(SETTLING).await,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Looks at the registration once, and does what is to be done.
    async fn round(&mut self) -> Result<Standing, Error> {
        let Some(bundle) = self.bundle.borrow_and_update().clone() else {
            return Ok(Standing::Unknown);
        };
        let is_held = self.claim.borrow_and_update().is_held();
        let validating = Half::<ValidatingWebhookConfiguration>::new(&self.client, &self.options);
        let mutating = Half::<MutatingWebhookConfiguration>::new(&self.client, &self.options);
        let (first, second) = (validating.read().await?, mutating.read().await?);
        let metas = [
            first.as_ref().map(|it| &it.metadata),
            second.as_ref().map(|it| &it.metadata),
        ];
        let reason = metas.into_iter().flatten().find_map(wanted::break_glass);
        if let Some(reason) = reason.map(str::to_owned) {
            if is_held && first.is_some_and(|it| it.is_loud()) {
                validating.silence().await?;
            }
            if is_held && second.is_some_and(|it| it.is_loud()) {
                mutating.silence().await?;
            }
            return Ok(Standing::BrokenGlass { reason });
        }
        if !is_held {
            return Ok(Standing::Following);
        }
        validating
            .write(&wanted::validating(&self.options, &bundle))
            .await?;
        mutating
            .write(&wanted::mutating(&self.options, &bundle))
            .await?;
        self.test(&bundle.mark).await?;
        self.in_use.send_if_modified(|current| {
            let is_new = current.as_ref() != Some(&bundle.mark);
            *current = Some(bundle.mark.clone());
            is_new
        });
        Ok(Standing::InUse)
    }

    /// Gives an API server an object that is always refused, for trial, and reads by which form
    /// of the registration it was.
    async fn test(&self, mark: &str) -> Result<(), Error> {
        let mut object = TrafficPolicy::new("ferromesh-self-test", TrafficPolicySpec::default());
        object.metadata.annotations =
            Some([(SELF_TEST_ANNOTATION.to_owned(), String::new())].into());
        let params = PostParams {
            dry_run: true,
            field_manager: Some(FIELD_MANAGER.to_owned()),
        };
        let api: Api<TrafficPolicy> = Api::namespaced(self.client.clone(), &self.options.namespace);
        match api.create(&params, &object).await {
            Ok(_) => Err(Error::NotAsked),
            Err(kube::Error::Api(status)) if status.message.contains(&respond::self_test(mark)) => {
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.message.contains(respond::SELF_TEST) => {
                Err(Error::Outdated)
            }
            Err(source) => Err(Error::Test(Box::new(source))),
        }
    }

    fn tell(&self, standing: Standing) {
        self.metrics.is_registered.set(match standing {
            Standing::Following | Standing::Written | Standing::InUse => 1,
            Standing::Unknown | Standing::BrokenGlass { .. } => 0,
        });
        self.metrics
            .has_passed_self_test
            .set(i64::from(standing == Standing::InUse));
        self.standing.send_if_modified(|current| {
            let is_new = *current != standing;
            if is_new {
                tracing::info!(before = ?current, now = ?standing, "registration of the webhook");
                *current = standing;
            }
            is_new
        });
    }

    /// Says again and again that nothing is judged.
    fn remind(&self, standing: &Standing, reminded: &mut Option<Instant>) {
        let Standing::BrokenGlass { reason } = standing else {
            *reminded = None;
            return;
        };
        if reminded.is_some_and(|at| at.elapsed() < REMINDER) {
            return;
        }
        *reminded = Some(Instant::now());
        tracing::warn!(
            reason,
            name = self.options.name,
            "admission is switched off by break-glass: nothing is judged before it is stored; \
             remove the annotation {BREAK_GLASS_ANNOTATION} to switch it on"
        );
    }
}

/// What goes wrong again and again, said once.
#[derive(Default)]
struct Complaint {
    since: Option<Instant>,
    text: String,
}

impl Complaint {
    /// A registration that was just written is not known to every API server at once: that is
    /// not worth a word yet.
    fn make(&mut self, error: &Error) {
        let since = *self.since.get_or_insert_with(Instant::now);
        let text = Chain(error).to_string();
        if text == self.text || (error.is_about_asking() && since.elapsed() < PATIENCE) {
            return;
        }
        let error = error as &dyn std::error::Error;
        tracing::warn!(error, "the webhook is not registered as it is to be");
        self.text = text;
    }
}
