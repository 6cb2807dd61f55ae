//! What to do next for one certificate, and what its status says.
//!
//! [`decide`] looks at what is there and returns the next few writes. After them one looks again: that
//! is how what was written is read back and verified. No step depends on a step before it having been
//! seen, so a process may die after any write, or before it.

mod case;

use std::fmt;

use ferromesh_ca::bundle::RootId;
use ferromesh_ca::digest::Fingerprint;
use ferromesh_ca::key::KeyAlgorithm;
use ferromesh_crds::issued_certificate::IssuedCertificateState as State;
use ferromesh_crds::{CertificateRequest, IssuedCertificate, PodBounceDirective};
use jiff::Timestamp;

use self::case::Case;
use crate::cacerts::ForeignCa;
use crate::mark::{self, Generation, Version};
use crate::request::Unusable;
use crate::sealed::Sealed;
use crate::terms::{Fault, Terms};

/// All that there is about one certificate in its cluster.
#[derive(Debug)]
pub struct Observed {
    /// What is asked for.
    pub certificate: IssuedCertificate,
    /// The Secret that should hold the key.
    pub key: Option<Sealed>,
    /// The request for the signature.
    pub request: Option<CertificateRequest>,
    /// The Secret that istiod reads.
    pub cacerts: Option<Sealed>,
    /// The other certificate that `cacerts` says it was written for, if there still is one: istiods of
    /// one namespace share the Secret.
    pub owner: Option<IssuedCertificate>,
    /// Which pods to restart.
    pub directive: Option<PodBounceDirective>,
}

/// What is to be done, and how far it has come.
#[derive(Debug)]
pub struct Decision {
    /// How far the certificate has come.
    pub standing: Standing,
    /// The signing CA that is in place, of whatever generation.
    pub live: Option<LiveCa>,
    /// The next writes, in order. One looks again after them, or after one that failed.
    pub actions: Vec<Action>,
}

/// How far a certificate has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// Nobody is asked to store it here.
    Ignored,
    /// There is no key for it yet.
    WithoutKey,
    /// It is being asked for, or the answer is being stored.
    Asked,
    /// Another certificate keeps the Secret, and has not come so far yet.
    Shared,
    /// It is stored, read back and verified.
    Stored,
    /// Somebody must do something.
    Blocked(Obstacle),
}

/// A signing CA of ours that is in place and verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCa {
    /// Its generation, if it is known.
    pub generation: Option<Generation>,
    /// The root that it chains to.
    pub root: RootId,
    /// Until when leaves verify.
    pub not_after: Timestamp,
    /// Pods that were created until then may never have seen the root.
    pub root_since: Timestamp,
}

/// Why nothing more can be done here. The text names the object and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Obstacle {
    /// The certificate asks for what cannot be done.
    #[error(transparent)]
    Terms(#[from] Fault),
    /// A signing CA that is not ours.
    #[error("{0}")]
    ForeignCa(Box<ForeignCa>),
    /// A Secret where the key belongs.
    #[error(
        "Secret {0} is not ours and stands where the private key belongs: move its content elsewhere and delete it"
    )]
    ForeignKey(String),
    /// A request of the same name.
    #[error("CertificateRequest {0} is not ours: delete it")]
    ForeignRequest(String),
    /// The one who signs says no.
    #[error("the request was refused: {0}")]
    Refused(String),
    /// What the one who signs answered is of no use.
    #[error("the answer to the request is of no use: {0}")]
    Unusable(#[from] Unusable),
    /// Another root than before, which would stop all traffic.
    #[error(
        "the new certificate chains to root {offered} and the one in Secret {secret} to root {relied}, which stays: \
         changing the root of a running mesh is not supported yet. Give the virtual mesh its former root and \
         delete CertificateRequest {request}; or delete the Secret to change at once: workloads then stop \
         trusting each other until they are restarted"
    )]
    RootChanged {
        /// Which Secret.
        secret: String,
        /// The request that was answered with the new root.
        request: String,
        /// The root that is relied on.
        relied: RootId,
        /// The root of the new certificate.
        offered: RootId,
    },
}

/// A write. Each takes effect as a whole or not at all, and none has an effect twice.
pub enum Action {
    /// Deletes the key of a generation that is over, and no other.
    DropKey(Version),
    /// Makes a key and creates its Secret. If there is one already, nothing is made.
    CreateKey {
        /// Its generation.
        generation: Generation,
        /// What kind of key.
        algorithm: KeyAlgorithm,
        /// The digest of the terms that it is for.
        terms: Fingerprint,
    },
    /// Asks for the certificate of the key that is stored.
    Ask {
        /// The request, without anything secret.
        request: Box<CertificateRequest>,
        /// The request that it takes the place of; none: it is created.
        replaces: Option<Version>,
    },
    /// Forgets which pods were restarted for the generation before.
    ResetDirective,
    /// Takes entries away from `cacerts` that istiod would read before ours.
    Strip {
        /// Namespace of `cacerts`.
        namespace: String,
        /// Their names.
        entries: Vec<&'static str>,
        /// Of which Secret.
        version: Version,
    },
    /// Writes `cacerts`, complete. It carries the version that it takes the place of; without one it
    /// is created.
    Store {
        /// The Secret.
        secret: Box<Sealed>,
        /// Why.
        cause: Cause,
    },
}

/// Why `cacerts` is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There was none.
    Absent,
    /// There is a new certificate.
    NewGeneration,
    /// Somebody edited it.
    Edited,
}

/// Decides what to do next.
pub fn decide(observed: &Observed, now: Timestamp) -> Decision {
    if observed.certificate.metadata.deletion_timestamp.is_some() {
        return Decision::of(Standing::Ignored);
    }
    match Terms::read(&observed.certificate.spec) {
        Ok(None) => Decision::of(Standing::Ignored),
        Ok(Some(terms)) => Case::read(observed, &terms, now).decide(),
        Err(fault) => Decision::of(Standing::Blocked(fault.into())),
    }
}

// === impl Decision ===

impl Decision {
    fn of(standing: impl Into<Standing>) -> Self {
        Self {
            standing: standing.into(),
            live: None,
            actions: Vec::new(),
        }
    }

    fn then(mut self, actions: impl IntoIterator<Item = Action>) -> Self {
        self.actions.extend(actions);
        self
    }
}

// === impl Standing ===

impl Standing {
    /// The state that the compatible API has for it; none where the status is left alone. What is
    /// stored is finished only when restarts are, too.
    pub fn state(&self) -> Option<State> {
        match self {
            Self::Ignored => None,
            Self::WithoutKey => Some(State::Pending),
            Self::Asked | Self::Shared => Some(State::Requested),
            Self::Stored => Some(State::Issued),
            Self::Blocked(_) => Some(State::Failed),
        }
    }
}

impl From<Obstacle> for Standing {
    fn from(obstacle: Obstacle) -> Self {
        Self::Blocked(obstacle)
    }
}

// === impl Action ===

impl Action {
    /// Who else wrote the object that is put right, if it is known.
    pub(crate) fn editor(&self, observed: &Observed, ourselves: &str) -> Option<String> {
        let edited = match self {
            Self::Strip { .. } => true,
            Self::Store { cause, .. } => *cause == Cause::Edited,
            _ => false,
        };
        let meta = &observed.cacerts.as_ref()?.open().metadata;
        edited
            .then(|| mark::other_writer(meta, ourselves))
            .flatten()
    }

    /// Whether it puts right what somebody else did to `cacerts`.
    pub fn is_repair(&self) -> bool {
        match self {
            Self::Strip { .. } => true,
            Self::Store { cause, .. } => *cause == Cause::Edited,
            _ => false,
        }
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropKey(_) => f.write_str("DropKey"),
            Self::CreateKey { generation, .. } => write!(f, "CreateKey({generation})"),
            Self::Ask { replaces, .. } => write!(f, "Ask(replaces: {})", replaces.is_some()),
            Self::ResetDirective => f.write_str("ResetDirective"),
            Self::Strip { entries, .. } => write!(f, "Strip({entries:?})"),
            Self::Store { cause, .. } => write!(f, "Store({cause:?})"),
        }
    }
}
