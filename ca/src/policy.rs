//! What a certificate may say: profiles, computed from the user's options and from names that
//! the management cluster knows. A certificate request has no say in it.

mod profile;

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};

pub(crate) use self::profile::Subject;
pub use self::profile::{IntermediateProfile, RootProfile, ServingProfile};
use crate::certificate::Certificate;
use crate::key::{KeyAlgorithm, KeyKind};

/// The life of a root unless the user says otherwise.
pub const ROOT_LIFE: SignedDuration = SignedDuration::from_hours(3650 * 24);
/// The life of an intermediate unless the user says otherwise.
pub const INTERMEDIATE_LIFE: SignedDuration = SignedDuration::from_hours(90 * 24);
/// The life of a serving certificate.
pub const SERVING_LIFE: SignedDuration = SignedDuration::from_hours(90 * 24);

/// The organization of a root unless the user says otherwise, as upstream has it.
pub const ROOT_ORGANIZATION: &str = "gloo-mesh";
/// The organization of an intermediate unless the user says otherwise, as upstream has it.
pub const INTERMEDIATE_ORGANIZATION: &str = "Istio";

/// How far back certificates start, for clocks that are behind.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_hours(1);
/// How much earlier than its issuer a certificate ends.
const NESTING: SignedDuration = SignedDuration::from_hours(1);
/// The most characters of an organization or a common name (RFC 5280, A.1:
/// ub-organization-name, ub-common-name).
const MAX_ATTRIBUTE: usize = 64;

/// Why policy refuses. The text names the field of the API and the remedy.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Violation {
    /// No life at all.
    #[error("ttlDays is 0: give at least 1, or leave it out for the default")]
    NoLife,
    /// A life that no certificate can express (RFC 5280, 4.1.2.5).
    #[error("ttlDays ends after the year 9999: give a smaller number")]
    TooLongLife,
    /// An RSA key size that is not made here.
    #[error(
        "rsaKeySizeBytes is {0}: it counts bits, despite its name: give 2048, 3072 or 4096, or leave it out for an ECDSA key"
    )]
    KeySize(u32),
    /// An organization that does not fit into a certificate.
    #[error("orgName must have 1 to 64 characters and no control characters")]
    Organization,
    /// A name that does not fit into a certificate.
    #[error("the name of the {0} must not be empty or hold control characters")]
    Name(&'static str),
    /// A host that is none.
    #[error("host {0:?} is not an IP address, a URI with a host, or a DNS name")]
    SubjectAltName(String),
    /// More hosts than a certificate is given.
    #[error("{0} hosts are too many: give at most 64")]
    Hosts(usize),
    /// Names that a server cannot be called by.
    #[error("a serving certificate needs 1 to 64 names, DNS names or IP addresses")]
    ServingNames,
    /// The issuer ends too soon, or has not begun.
    #[error(
        "the issuing certificate is valid from {not_before} to {not_after}: nothing that ends an hour before it can be issued now; rotate the root or set the clock"
    )]
    Issuer {
        /// The start of its validity.
        not_before: Timestamp,
        /// The end of its validity.
        not_after: Timestamp,
    },
    /// The request carries a key of another kind than policy asks for.
    #[error("the request carries an {found} key where {wanted} is asked for: make a new key")]
    KeyKind {
        /// What policy asks for.
        wanted: KeyKind,
        /// What the request carries.
        found: KeyKind,
    },
}

/// The user's options for one kind of certificate (`CommonCertOptions`). What is absent takes
/// the default of the profile.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertOptions {
    /// `ttlDays`.
    pub ttl_days: Option<u32>,
    /// `rsaKeySizeBytes`, which counts bits. Absent: an ECDSA key.
    pub rsa_key_size_bits: Option<u32>,
    /// `orgName`.
    pub organization: Option<String>,
}

impl CertOptions {
    /// The kind of key: RSA of the size that is asked for, otherwise `default`.
    ///
    /// # Errors
    /// [`Violation::KeySize`].
    pub fn key_algorithm(&self, default: KeyAlgorithm) -> Result<KeyAlgorithm, Violation> {
        match self.rsa_key_size_bits {
            None => Ok(default),
            Some(2048) => Ok(KeyAlgorithm::Rsa2048),
            Some(3072) => Ok(KeyAlgorithm::Rsa3072),
            Some(4096) => Ok(KeyAlgorithm::Rsa4096),
            Some(bits) => Err(Violation::KeySize(bits)),
        }
    }

    /// The organization that is asked for, otherwise `default`.
    ///
    /// # Errors
    /// [`Violation::Organization`].
    pub fn organization(&self, default: &str) -> Result<Organization, Violation> {
        self.organization.as_deref().unwrap_or(default).parse()
    }

    fn life(&self, default: SignedDuration) -> Result<SignedDuration, Violation> {
        match self.ttl_days {
            None => Ok(default),
            Some(0) => Err(Violation::NoLife),
            Some(days) => Ok(SignedDuration::from_hours(i64::from(days) * 24)),
        }
    }
}

/// The organization in a subject: 1 to 64 characters, none of them control characters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Organization(String);

impl Organization {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Organization {
    type Err = Violation;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_text(text) && text.chars().count() <= MAX_ATTRIBUTE {
            Ok(Self(text.to_owned()))
        } else {
            Err(Violation::Organization)
        }
    }
}

impl fmt::Display for Organization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The validity of a certificate, in whole seconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Validity {
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

impl Validity {
    fn new(life: SignedDuration, now: Timestamp) -> Result<Self, Violation> {
        let now = Timestamp::from_second(now.as_second()).map_err(|_| Violation::TooLongLife)?;
        let moved = |by| now.checked_add(by).map_err(|_| Violation::TooLongLife);
        Ok(Self {
            not_before: moved(-CLOCK_SKEW)?,
            not_after: moved(life)?,
        })
    }

    /// Lies within the validity of the issuer, and ends an hour before it.
    pub(crate) fn nested(
        life: SignedDuration,
        issuer: &Certificate,
        now: Timestamp,
    ) -> Result<Self, Violation> {
        let wanted = Self::new(life, now)?;
        let refused = Violation::Issuer {
            not_before: issuer.not_before(),
            not_after: issuer.not_after(),
        };
        let Ok(latest) = issuer.not_after().checked_sub(NESTING) else {
            return Err(refused);
        };
        if latest <= now || now < issuer.not_before() {
            return Err(refused);
        }
        Ok(Self {
            not_before: wanted.not_before.max(issuer.not_before()),
            not_after: wanted.not_after.min(latest),
        })
    }
}

/// Whether it can stand in a name: not empty, no control characters.
fn is_text(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(ttl_days: Option<u32>, rsa_key_size_bits: Option<u32>) -> CertOptions {
        CertOptions {
            ttl_days,
            rsa_key_size_bits,
            organization: None,
        }
    }

    fn intermediate(options: &CertOptions) -> Result<IntermediateProfile, Violation> {
        IntermediateProfile::new(options, "cluster-1", "istiod", 1, Vec::new())
    }

    #[test]
    fn keys_are_ecdsa_unless_rsa_is_asked_for() {
        let none = options(None, None);
        let root = RootProfile::for_virtual_mesh(&none, "gloo-mesh", "vm", 1).unwrap();
        assert_eq!(root.key_algorithm(), KeyAlgorithm::EcdsaP384);
        assert_eq!(
            intermediate(&none).unwrap().key_algorithm(),
            KeyAlgorithm::EcdsaP256
        );
        let rsa = options(None, Some(4096));
        let root = RootProfile::for_virtual_mesh(&rsa, "gloo-mesh", "vm", 1).unwrap();
        assert_eq!(root.key_algorithm(), KeyAlgorithm::Rsa4096);
        assert_eq!(
            intermediate(&rsa).unwrap().key_algorithm(),
            KeyAlgorithm::Rsa4096
        );
    }

    #[test]
    fn key_sizes_in_bytes_weak_and_huge_ones_are_refused_by_name() {
        for bits in [0, 512, 1024, 2049, 8192, u32::MAX] {
            let refused = intermediate(&options(None, Some(bits))).unwrap_err();
            assert_eq!(refused, Violation::KeySize(bits));
            assert!(refused.to_string().contains("rsaKeySizeBytes"));
        }
    }

    #[test]
    fn a_life_of_no_days_is_refused() {
        assert_eq!(
            intermediate(&options(Some(0), None)),
            Err(Violation::NoLife)
        );
    }

    #[test]
    fn a_life_beyond_the_year_9999_is_refused() {
        let root = RootProfile::for_virtual_mesh(&options(Some(u32::MAX), None), "ns", "vm", 1);
        assert_eq!(
            root.unwrap().validity(Timestamp::UNIX_EPOCH),
            Err(Violation::TooLongLife)
        );
    }

    #[test]
    fn organizations_that_do_not_fit_are_refused() {
        for text in ["", "a\nb", &"a".repeat(65)] {
            assert_eq!(text.parse::<Organization>(), Err(Violation::Organization));
        }
        assert!("Müller & Söhne".parse::<Organization>().is_ok());
    }
}
