//! What to do next for one certificate, and what its status says.
//!
//! [`decide`] looks at what is there and returns the next few writes. After them one looks again: that
//! is how what was written is read back and verified. No step depends on a step before it having been
//! seen, so a process may die after any write, or before it.

use std::fmt;

use ferromesh_ca::bundle::RootId;
use ferromesh_ca::cacerts::CaCerts;
use ferromesh_ca::digest::Fingerprint;
use ferromesh_ca::key::KeyAlgorithm;
use ferromesh_ca::verify::VerifiedSigner;
use ferromesh_crds::issued_certificate::IssuedCertificateState as State;
use ferromesh_crds::{CertificateRequest, IssuedCertificate, PodBounceDirective, meta};
use jiff::{SignedDuration, Timestamp};

use crate::cacerts::{self, ForeignCa, Live, Ours};
use crate::key::{HeldKey, StoredKey};
use crate::mark::{self, Generation, Version};
use crate::renewal::Life;
use crate::request::{self, Answer, Asked, Unusable};
use crate::sealed::Sealed;
use crate::terms::{Fault, Terms};

/// How long a key is kept although the certificate for it would have to be renewed at once.
const LEAST_KEY_LIFE: SignedDuration = SignedDuration::from_hours(1);

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

/// What is there, read.
struct Case<'a> {
    observed: &'a Observed,
    terms: &'a Terms,
    namespace: &'a str,
    now: Timestamp,
    key: StoredKey,
    live: Live,
}

// === impl Case ===

impl<'a> Case<'a> {
    fn read(observed: &'a Observed, terms: &'a Terms, now: Timestamp) -> Self {
        let namespace = observed.certificate.metadata.namespace.as_deref();
        let namespace = namespace.unwrap_or_default();
        let key = StoredKey::read(observed.key.as_ref(), namespace);
        let public_key = match &key {
            StoredKey::Held(held) => Some(held.key.public_key()),
            _ => None,
        };
        let live = Live::read(observed.cacerts.as_ref(), namespace, public_key, now);
        Self {
            observed,
            terms,
            namespace,
            now,
            key,
            live,
        }
    }

    fn decide(&self) -> Decision {
        let decision = match (&self.live, &self.key) {
            (Live::Foreign(found), _) => Decision::of(Obstacle::ForeignCa(found.clone())),
            (Live::Ours(ours), _) if self.is_owned_by_another() => {
                Decision::of(ours.intact().map_or(Standing::Shared, |_| Standing::Stored))
            }
            _ if self.is_satisfied() => {
                if self.ours().is_some_and(|ours| self.is_due(ours)) {
                    self.new_key(Standing::Asked)
                } else {
                    Decision::of(Standing::Stored)
                }
            }
            (_, StoredKey::Foreign) => Decision::of(Obstacle::ForeignKey(self.name())),
            (_, StoredKey::Held(held)) => match self.usable_generation(held) {
                Some(generation) => self.ask(held, generation),
                None => self.new_key(Standing::Asked),
            },
            (_, StoredKey::Absent | StoredKey::Broken { .. }) => self.new_key(Standing::WithoutKey),
        };
        Decision {
            live: self.ours().and_then(live_ca),
            ..decision
        }
    }

    fn ours(&self) -> Option<&Ours> {
        match &self.live {
            Live::Ours(ours) => Some(ours),
            Live::Absent | Live::Foreign(_) => None,
        }
    }

    /// Whether what is in place is what is asked for, and no newer key for it is on its way.
    fn is_satisfied(&self) -> bool {
        let Some(ours) = self.ours().filter(|ours| ours.intact().is_some()) else {
            return false;
        };
        let digest = self.terms.digest.to_string();
        let newer = match &self.key {
            StoredKey::Held(held) => {
                held.terms.as_ref() == Some(&digest) && held.generation > ours.marks.generation
            }
            _ => false,
        };
        ours.marks.terms.as_ref() == Some(&digest) && !newer
    }

    /// Whether `cacerts` is kept for another certificate, which is there and wants it.
    fn is_owned_by_another(&self) -> bool {
        let owner = self.observed.owner.as_ref();
        owner.is_some_and(|owner| {
            let wants = Terms::read(&owner.spec).ok().flatten();
            owner.metadata.deletion_timestamp.is_none()
                && owner.metadata.name != self.observed.certificate.metadata.name
                && wants.is_some_and(|terms| terms.namespace == self.terms.namespace)
        })
    }

    fn is_due(&self, ours: &Ours) -> bool {
        ours.signer().is_some_and(|signer| {
            Life::of(signer.certificate(), signer.roots()).is_due(self.terms.renewal, self.now)
        })
    }

    /// The generation of the key, if it was made for these terms and nothing newer is in place.
    fn usable_generation(&self, held: &HeldKey) -> Option<Generation> {
        let generation = held.generation?;
        let newest = self.ours().and_then(|ours| ours.marks.generation);
        let for_these_terms = held.terms == Some(self.terms.digest.to_string());
        (for_these_terms && newest <= Some(generation)).then_some(generation)
    }

    /// A key of the next generation in the place of the one that is stored.
    fn new_key(&self, standing: Standing) -> Decision {
        if matches!(self.key, StoredKey::Foreign) {
            return Decision::of(Obstacle::ForeignKey(self.name()));
        }
        let request = self.observed.request.as_ref();
        let latest = [
            self.key.generation(),
            request.and_then(|request| Generation::of(&request.metadata)),
            self.ours().and_then(|ours| ours.marks.generation),
        ];
        let create = Action::CreateKey {
            generation: Generation::after(latest.into_iter().flatten().max()),
            algorithm: self.terms.algorithm,
            terms: self.terms.digest,
        };
        let drop = self.key.version().map(Action::DropKey);
        Decision::of(standing).then(drop.into_iter().chain([create]))
    }

    /// Asks for the certificate of the key, and stores the answer.
    fn ask(&self, held: &HeldKey, generation: Generation) -> Decision {
        let request = self.observed.request.as_ref();
        let replaces = match Asked::read(request, held.key.public_key(), generation, self.namespace)
        {
            Asked::Absent => None,
            Asked::Stale(version) => Some(version),
            Asked::Foreign => return Decision::of(Obstacle::ForeignRequest(self.name())),
            Asked::Waiting => return Decision::of(Standing::Asked),
            Asked::Refused(reason) => return Decision::of(Obstacle::Refused(reason)),
            Asked::Unusable(unusable) => return Decision::of(Obstacle::Unusable(unusable)),
            Asked::Answered(answer) => return self.store(held, generation, &answer),
        };
        match request::object(&self.observed.certificate, self.terms, held, generation) {
            Ok(request) => Decision::of(Standing::Asked).then([Action::Ask {
                request: Box::new(request),
                replaces,
            }]),
            Err(error) => Decision::of(Obstacle::Unusable(error.into())),
        }
    }

    fn store(&self, held: &HeldKey, generation: Generation, answer: &Answer) -> Decision {
        let Answer { certificate, roots } = answer;
        if Life::of(certificate, roots).is_due(self.terms.renewal, self.now) {
            // A clock that is wrong must not make keys without end.
            let is_old = held
                .created
                .is_none_or(|created| self.now.duration_since(created) >= LEAST_KEY_LIFE);
            return if is_old {
                self.new_key(Standing::Asked)
            } else {
                Decision::of(Obstacle::Unusable(Unusable::BornOld))
            };
        }
        let content = match CaCerts::assemble(&held.key, certificate, &[], roots, self.now) {
            Ok(content) => content,
            Err(error) => return Decision::of(Obstacle::Unusable(error.into())),
        };
        let stored = Decision::of(Standing::Asked);
        let Some(ours) = self.ours() else {
            let secret = self.secret(generation, &content, None);
            let cause = Cause::Absent;
            return stored
                .then(self.reset_directive())
                .then([Action::Store { secret, cause }]);
        };
        if !ours.strays.is_empty() {
            return stored.then([Action::Strip {
                namespace: self.terms.namespace.clone(),
                entries: ours.strays.clone(),
                version: ours.version.clone(),
            }]);
        }
        let kept = |relied: &RootId| roots.contains(*relied);
        if let Some(relied) = ours.relied_root().filter(|relied| !kept(relied)) {
            return Decision::of(Obstacle::RootChanged {
                secret: format!("{}/{}", self.terms.namespace, meta::CACERTS_SECRET),
                request: self.name(),
                relied,
                offered: content.signer().root_id(),
            });
        }
        let secret = self.secret(generation, &content, Some(ours));
        let was_ours = ours.marks.owner == self.observed.certificate.metadata.name;
        if was_ours && ours.marks.generation == Some(generation) {
            let cause = Cause::Edited;
            return stored.then([Action::Store { secret, cause }]);
        }
        let cause = Cause::NewGeneration;
        stored
            .then(self.reset_directive())
            .then([Action::Store { secret, cause }])
    }

    fn secret(
        &self,
        generation: Generation,
        content: &CaCerts,
        existing: Option<&Ours>,
    ) -> Box<Sealed> {
        Box::new(cacerts::object(
            &self.observed.certificate,
            self.terms,
            generation,
            content,
            existing,
            self.now,
        ))
    }

    fn reset_directive(&self) -> Option<Action> {
        let status = self.observed.directive.as_ref()?.status.as_ref()?;
        (!status.pods_bounced.is_empty()).then_some(Action::ResetDirective)
    }

    /// Namespace and name of the certificate, and of its key and its request.
    fn name(&self) -> String {
        let name = self.observed.certificate.metadata.name.as_deref();
        format!("{}/{}", self.namespace, name.unwrap_or_default())
    }
}

fn live_ca(ours: &Ours) -> Option<LiveCa> {
    let signer: &VerifiedSigner = ours.signer()?;
    Some(LiveCa {
        generation: ours.marks.generation,
        root: signer.root_id(),
        not_after: signer.not_after(),
        root_since: ours.root_since()?,
    })
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
