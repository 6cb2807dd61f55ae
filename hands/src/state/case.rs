//! One certificate's case: what is there, read, and what follows from it.

use ferromesh_ca::bundle::RootId;
use ferromesh_ca::cacerts::CaCerts;
use ferromesh_crds::meta;
use jiff::{SignedDuration, Timestamp};

use super::{Action, Cause, Decision, LiveCa, Observed, Obstacle, Standing};
use crate::cacerts::{self, Live, Ours};
use crate::key::{HeldKey, StoredKey};
use crate::mark::Generation;
use crate::renewal::Life;
use crate::request::{self, Answer, Asked, Unusable};
use crate::sealed::Sealed;
use crate::terms::Terms;

/// How long a key is kept although the certificate for it would have to be renewed at once.
const LEAST_KEY_LIFE: SignedDuration = SignedDuration::from_hours(1);

/// What is there, read.
pub(super) struct Case<'a> {
    observed: &'a Observed,
    terms: &'a Terms,
    namespace: &'a str,
    now: Timestamp,
    key: StoredKey,
    live: Live,
}

impl<'a> Case<'a> {
    pub(super) fn read(observed: &'a Observed, terms: &'a Terms, now: Timestamp) -> Self {
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

    pub(super) fn decide(&self) -> Decision {
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
    let signer = ours.signer()?;
    Some(LiveCa {
        generation: ours.marks.generation,
        root: signer.root_id(),
        not_after: signer.not_after(),
        root_since: ours.root_since()?,
    })
}
