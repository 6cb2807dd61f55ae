//! Looks, decides and acts, again and again until there is nothing to do.
//!
//! Each look asks the API server itself, never a cache: what was written is what is read back. A pass
//! is bounded and does not sleep: it says when the next one is due.

mod objects;
mod pods;

use std::sync::Arc;
use std::time::Duration;

use ferromesh_ca::key::{KeyAlgorithm, PrivateKey};
use ferromesh_crds::issued_certificate::IssuedCertificateState;
use ferromesh_crds::{IssuedCertificate, IssuedCertificateStatus};
use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use jiff::Timestamp;
use kube::Client;
use tokio::time::Instant;

use crate::error::{Class, Error};
use crate::restart::Waiting;
use crate::state::{self, LiveCa, Observed, Standing};

/// The most looks of one pass. A new certificate takes four; the rest is for writers that are faster.
const LOOKS: usize = 10;
/// The most bytes of an error in a status.
const MAX_ERROR: usize = 1024;
/// How soon a repair follows the one before it, when somebody keeps editing `cacerts`.
const REPAIRS: Schedule = Schedule {
    first: Duration::from_secs(2),
    longest: Duration::from_mins(5),
    quiet: Duration::from_mins(30),
};

/// Where time and keys come from.
#[derive(Clone)]
pub struct Sources {
    /// The time.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// New private keys. May take seconds.
    pub key: Arc<dyn Fn(KeyAlgorithm) -> Result<PrivateKey, ferromesh_ca::Error> + Send + Sync>,
}

impl Sources {
    /// The clock and the randomness of the operating system.
    pub fn system() -> Self {
        Self {
            now: Arc::new(Timestamp::now),
            key: Arc::new(PrivateKey::generate),
        }
    }
}

/// What is done in one cluster. Clones share the client.
#[derive(Clone)]
pub struct Hands {
    client: Client,
    field_manager: &'static str,
    sources: Sources,
}

/// What is remembered of one certificate between passes, to spare the API server questions. Nothing
/// depends on it.
pub struct Memory {
    repairs: ExponentialBackoff,
    next_repair: Option<Instant>,
    restarted: Option<pods::Restarted>,
}

/// How far a certificate has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How far.
    pub standing: Standing,
    /// The signing CA that is in place and verifies, of whatever generation.
    pub live: Option<LiveCa>,
    /// Where restarts stand; meaningful for what is stored.
    pub restart: Restart,
    /// What had to be put right in this pass.
    pub repaired: Option<Repair>,
    /// When to look again though nothing has changed.
    pub again: Option<Duration>,
}

/// Where restarts stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Nothing more is to be done here; a person may have to do something.
    Finished(Option<Waiting>),
    /// Something is waited for.
    Waiting(Waiting),
}

/// `cacerts` was edited and has been put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The field manager that wrote last, if it is known.
    pub by: Option<String>,
}

// === impl Memory ===

impl Memory {
    /// Nothing is remembered. `jitter` spreads repairs.
    pub fn new(jitter: Jitter) -> Self {
        Self {
            repairs: ExponentialBackoff::new(REPAIRS, jitter),
            next_repair: None,
            restarted: None,
        }
    }

    /// How long a repair must wait, so that two who write `cacerts` do not chase each other.
    fn repair_delay(&mut self) -> Option<Duration> {
        let now = Instant::now();
        match self.next_repair {
            Some(next) if next > now => Some(next - now),
            _ => {
                self.next_repair = Some(now + self.repairs.delay());
                None
            }
        }
    }
}

/// Whether the status says of the certificate as it is that something has failed.
fn has_failed(certificate: &IssuedCertificate) -> bool {
    let status = certificate.status.as_ref();
    status.is_some_and(|status| {
        status.state == IssuedCertificateState::Failed
            && Some(status.observed_generation) == certificate.metadata.generation
    })
}

// === impl Hands ===

impl Hands {
    /// Writes with `client`, under the name `field_manager`.
    pub fn new(client: Client, field_manager: &'static str, sources: Sources) -> Self {
        Self {
            client,
            field_manager,
            sources,
        }
    }

    /// Takes one certificate as far as it goes now; none if there is no such `IssuedCertificate`.
    ///
    /// # Errors
    /// [`Error`], when the API server refuses or does not answer. A refusal is also written to the
    /// status.
    pub async fn reconcile(
        &self,
        namespace: &str,
        name: &str,
        memory: &mut Memory,
    ) -> Result<Option<Progress>, Error> {
        let mut repaired = None;
        let mut editor = None;
        for _ in 0..LOOKS {
            let Some(mut observed) = self.look(namespace, name).await? else {
                return Ok(None);
            };
            let decision = state::decide(&observed, (self.sources.now)());
            let mut progress = Progress {
                standing: decision.standing,
                live: decision.live,
                restart: Restart::Finished(None),
                repaired: repaired.clone(),
                again: None,
            };
            let repair = decision.actions.iter().find(|action| action.is_repair());
            if let Some(repair) = repair {
                editor = repair.editor(&observed, self.field_manager);
                progress.again = memory.repair_delay();
            }
            if decision.actions.is_empty() && progress.standing == Standing::Stored {
                progress.restart = match self.restart(&mut observed, &progress, memory).await {
                    Ok(restart) => restart,
                    // What is stored stays stored.
                    Err(error) if error.class() == Class::Refused => {
                        let reason = error.text();
                        Restart::Waiting(Waiting::Refused { reason })
                    }
                    Err(error) => return Err(error),
                };
                progress.again = pods::look_again(&progress.restart);
            }
            // What failed is said until it has been tried again: a status that goes back and forth would
            // be written for as long as the trouble lasts.
            if decision.actions.is_empty() || !has_failed(&observed.certificate) {
                self.write_status(&mut observed.certificate, &progress)
                    .await?;
            }
            if decision.actions.is_empty() || progress.again.is_some() {
                return Ok(Some(progress));
            }
            let is_repair = repair.is_some();
            match self.act(&observed, decision.actions).await {
                Ok(()) if is_repair => {
                    let by = editor.clone();
                    repaired = Some(Repair { by });
                }
                Ok(()) => {}
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(self.failed(&mut observed, error).await),
            }
        }
        Err(Error::Contended {
            object: format!("{namespace}/{name}"),
            by: editor,
        })
    }

    /// Says in the status what somebody must change.
    async fn failed(&self, observed: &mut Observed, error: Error) -> Error {
        if error.class() == Class::Refused {
            let status = IssuedCertificateState::Failed;
            let written = self
                .replace_status(&mut observed.certificate, status, &error.text())
                .await;
            if let Err(second) = written {
                tracing::debug!(error = second.text(), "the status could not be written");
            }
        }
        error
    }

    async fn write_status(
        &self,
        certificate: &mut IssuedCertificate,
        progress: &Progress,
    ) -> Result<(), Error> {
        let Some(state) = progress.standing.state() else {
            return Ok(());
        };
        let is_finished = matches!(progress.restart, Restart::Finished(_));
        let (state, error) = match (&progress.standing, state) {
            (Standing::Blocked(obstacle), state) => (state, obstacle.to_string()),
            (_, IssuedCertificateState::Issued) if is_finished => {
                (IssuedCertificateState::Finished, String::new())
            }
            (_, state) => (state, String::new()),
        };
        self.replace_status(certificate, state, &error).await
    }

    /// Writes the status if it says something new. Who comes too late looks again anyway.
    async fn replace_status(
        &self,
        certificate: &mut IssuedCertificate,
        state: IssuedCertificateState,
        error: &str,
    ) -> Result<(), Error> {
        let end = error.floor_char_boundary(MAX_ERROR);
        let status = IssuedCertificateStatus {
            observed_generation: certificate.metadata.generation.unwrap_or_default(),
            error: error.get(..end).unwrap_or_default().to_owned(),
            state,
        };
        if certificate.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let mut next = certificate.clone();
        next.status = Some(status);
        match self.put_status(&next).await {
            Ok(written) => {
                *certificate = written;
                Ok(())
            }
            Err(error) if error.is_late() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
