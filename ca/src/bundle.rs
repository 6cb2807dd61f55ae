//! Trust bundles: the roots that a mesh believes, in order.

use std::fmt;
use std::str::FromStr;

use crate::certificate::Certificate;
use crate::digest::{Fingerprint, NotAFingerprint};
use crate::error::{Error, PemFault};
use crate::lint::{self, Finding, Findings, Rule};
use crate::pem;

/// The most roots of one subject. rustls gives up after 100 signatures, some of which the rest
/// of a path needs.
const MAX_SAME_SUBJECT: usize = 90;

/// Which root: a digest of its subject and its public key. A root that is re-issued with the same
/// subject and key is the same root.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RootId(Fingerprint);

impl RootId {
    /// The identity of this root.
    pub fn of(root: &Certificate) -> Self {
        // DER says its own length, so the two cannot run into each other.
        Self(Fingerprint::of([
            root.subject().der(),
            root.public_key().spki_der(),
        ]))
    }
}

impl fmt::Display for RootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RootId({})", self.0)
    }
}

impl FromStr for RootId {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// An ordered set of roots, never empty, each of which every verifier takes as an anchor. Their
/// time is judged when something is verified: an expired root that nothing needs does no harm.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TrustBundle(Vec<Certificate>);

impl TrustBundle {
    /// The bundle of one root.
    ///
    /// # Errors
    /// [`Error::Refused`] if some verifier would not take it as an anchor.
    pub fn of(root: Certificate) -> Result<Self, Error> {
        Findings::split(lint::anchor_findings(&root, 0))?;
        Ok(Self(vec![root]))
    }

    /// The bundle with one more root at its end; the same bundle if it is there already.
    ///
    /// # Errors
    /// As [`TrustBundle::of`], and if verifiers could not tell the roots apart.
    pub fn with(mut self, root: Certificate) -> Result<Self, Error> {
        if self.0.contains(&root) {
            return Ok(self);
        }
        if self.0.len() == pem::MAX_CERTIFICATES {
            return Err(Error::Pem {
                item: "the trust bundle",
                line: 1,
                fault: PemFault::TooMany {
                    limit: pem::MAX_CERTIFICATES,
                },
            });
        }
        let mut findings = lint::anchor_findings(&root, 0);
        let same = |other: &&Certificate| other.subject() == root.subject();
        let count = self.0.iter().filter(same).count() + 1;
        let blurred = self.0.iter().filter(same).any(|other| {
            other.public_key() != root.public_key()
                && (root.subject_key_id().is_none()
                    || other.subject_key_id().is_none()
                    || root.subject_key_id() == other.subject_key_id())
        });
        if blurred {
            findings.push(Finding::new(&root, Rule::SameSubject));
        }
        if count > MAX_SAME_SUBJECT {
            findings.push(Finding::new(&root, Rule::TooManySameSubject { count }));
        }
        Findings::split(findings)?;
        self.0.push(root);
        Ok(self)
    }

    /// Reads a bundle; a root that stands there twice counts once. `item` names the input in
    /// errors.
    ///
    /// # Errors
    /// [`Error::Pem`] and [`Error::Der`] if it cannot be read, and as [`TrustBundle::with`].
    pub fn from_pem(item: &'static str, text: &[u8]) -> Result<Self, Error> {
        let mut roots = pem::read_certificates(item, text)?.into_iter();
        let first = roots
            .next()
            .expect("the reader returns at least one certificate");
        roots.try_fold(Self::of(first)?, Self::with)
    }

    /// The bundle as PEM, each block ended by a newline.
    ///
    /// # Errors
    /// [`Error::Pem`] if it is larger than the reader takes.
    pub fn to_pem(&self) -> Result<String, Error> {
        pem::write_certificates("the trust bundle", &self.0)
    }

    /// The roots, in order.
    pub fn roots(&self) -> &[Certificate] {
        &self.0
    }

    /// Whether this root is in it.
    pub fn contains(&self, id: RootId) -> bool {
        self.0.iter().any(|root| RootId::of(root) == id)
    }

    /// Whether every root of `other` is in it.
    pub fn is_superset(&self, other: &Self) -> bool {
        other.0.iter().all(|root| self.contains(RootId::of(root)))
    }
}
