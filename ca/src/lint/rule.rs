//! The rules, what breaking each one means, and what to do about it.

use std::fmt;

use jiff::Timestamp;

use crate::certificate::Certificate;

/// The most findings that are written out.
const SHOWN: usize = 8;

/// A rule that a certificate breaks. Most hold because at least one of the verifiers in a mesh
/// (OpenSSL, BoringSSL in Envoy, rustls in ztunnel, Go in istiod) refuses what breaks them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rule {
    /// Basic constraints do not say CA.
    NotCa,
    /// A leaf was wanted and this is a CA.
    IsCa,
    /// The key usage does not have keyCertSign. rustls would not notice.
    NoKeyCertSign,
    /// No key usage at all: a warning.
    NoKeyUsage,
    /// A leaf whose key usage does not have digitalSignature.
    NoDigitalSignature,
    /// An extended key usage without serverAuth or without clientAuth.
    ExtendedKeyUsage,
    /// Not signed by its own key: OpenSSL takes only self-signed anchors.
    NotSelfSigned,
    /// No subject key identifier.
    NoSubjectKeyId,
    /// The path length does not allow the CA certificates below. rustls and Envoy would not
    /// notice on a root.
    PathLength {
        /// What it allows.
        allowed: u32,
        /// How many there are.
        needed: u32,
    },
    /// The serial number is negative or longer than 20 octets.
    Serial,
    /// The subject has no attribute.
    EmptySubject,
    /// Go cannot read the subject.
    SubjectText(&'static str),
    /// Name constraints on kinds of names that rustls cannot match: it refuses everything below.
    NameConstraints(&'static str),
    /// Before its time.
    NotYetValid {
        /// When it starts.
        not_before: Timestamp,
    },
    /// After its time. On an anchor, rustls would not notice.
    Expired {
        /// When it ended.
        not_after: Timestamp,
    },
    /// It ends before anything useful could be issued under it.
    EndsTooSoon {
        /// When it ends.
        not_after: Timestamp,
    },
    /// It ends before an intermediate of usual life would: a warning.
    EndsSoon {
        /// When it ends.
        not_after: Timestamp,
    },
    /// The private key is another one.
    KeyMismatch,
    /// Nobody of the issuer's name is in the chain or among the roots.
    IssuerUnknown {
        /// The name.
        issuer: String,
    },
    /// The key identifiers of issuer and issued do not fit.
    KeyIdMismatch,
    /// Several certificates of one name and nothing to tell their keys apart: OpenSSL and
    /// BoringSSL try only one.
    SameSubject,
    /// More roots of one name than rustls tries.
    TooManySameSubject {
        /// How many there are.
        count: usize,
    },
    /// The issuer's key did not make the signature.
    Signature,
    /// The path to a root is longer than some verifiers go.
    PathTooLong,
    /// The chain that leaves are sent with does not hold the certificate that signs them.
    ChainWithoutSigner,
    /// The chain holds another certificate for the key that signs: verifiers pick either.
    SignerTwice,
    /// rustls refuses it for a reason of its own.
    Rustls(String),
    /// Not exactly one URI among the subject alternative names.
    Identity {
        /// How many URIs there are.
        found: usize,
    },
    /// The name is not among the subject alternative names.
    NameNotCovered {
        /// The name.
        name: String,
    },
}

impl Rule {
    /// Whether it is only a warning.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::NoKeyUsage | Self::EndsSoon { .. })
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotCa => "use a CA certificate (basicConstraints=critical,CA:TRUE)",
            Self::IsCa => "use a leaf certificate",
            Self::NoKeyCertSign | Self::NoKeyUsage => {
                "re-issue it with keyUsage=critical,keyCertSign,cRLSign"
            }
            Self::NoDigitalSignature => "re-issue it with keyUsage=critical,digitalSignature",
            Self::ExtendedKeyUsage => {
                "re-issue it without extendedKeyUsage, or with both serverAuth and clientAuth"
            }
            Self::NotSelfSigned => "use the self-signed root at the end of its chain",
            Self::NoSubjectKeyId => "re-issue it with subjectKeyIdentifier=hash",
            Self::PathLength { .. } => "re-issue it with a larger pathlen or without one",
            Self::Serial => "re-issue it with a positive serial number of at most 20 octets",
            Self::EmptySubject => "re-issue it with a subject",
            Self::SubjectText(_) => "re-issue it with UTF8String or PrintableString attributes",
            Self::NameConstraints(_) => "re-issue it without these name constraints",
            Self::NotYetValid { .. } => "wait, or set the clock",
            Self::Expired { .. } | Self::EndsTooSoon { .. } | Self::EndsSoon { .. } => {
                "use one with more life left"
            }
            Self::KeyMismatch => "use the private key that belongs to the certificate",
            Self::IssuerUnknown { .. } => "add the issuer to the chain or its root to the roots",
            Self::KeyIdMismatch => {
                "use the issuer whose subjectKeyIdentifier is the authorityKeyIdentifier"
            }
            Self::SameSubject => {
                "re-issue them with subjectKeyIdentifier, or give each its own subject"
            }
            Self::TooManySameSubject { .. } => "remove roots that sign nothing any more",
            Self::Signature => "use the issuer whose key signed it",
            Self::PathTooLong => "use fewer intermediates",
            Self::ChainWithoutSigner => "put the signing certificate first into the chain",
            Self::SignerTwice => "keep only the signing certificate itself in the chain",
            Self::Rustls(_) => "re-issue it",
            Self::Identity { .. } => "re-issue it with exactly one URI",
            Self::NameNotCovered { .. } => "re-issue it for this name",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCa => f.write_str("not a CA certificate"),
            Self::IsCa => f.write_str("a CA certificate where a leaf belongs"),
            Self::NoKeyCertSign => f.write_str("its key usage lacks keyCertSign"),
            Self::NoKeyUsage => f.write_str("it has no key usage, which strict verifiers refuse"),
            Self::NoDigitalSignature => f.write_str("its key usage lacks digitalSignature"),
            Self::ExtendedKeyUsage => {
                f.write_str("its extended key usage lacks serverAuth or clientAuth")
            }
            Self::NotSelfSigned => f.write_str("a root must be self-signed, this one is not"),
            Self::NoSubjectKeyId => f.write_str("it has no subject key identifier"),
            Self::PathLength { allowed, needed } => write!(
                f,
                "its path length allows {allowed} CA certificates below it, {needed} are needed"
            ),
            Self::Serial => f.write_str("its serial number is negative or too long"),
            Self::EmptySubject => f.write_str("its subject is empty"),
            Self::SubjectText(fault) => write!(f, "its subject holds {fault}"),
            Self::NameConstraints(kind) => {
                write!(
                    f,
                    "its name constraints speak of {kind}, which rustls cannot match"
                )
            }
            Self::NotYetValid { not_before } => write!(f, "not valid before {not_before}"),
            Self::Expired { not_after } => write!(f, "expired at {not_after}"),
            Self::EndsTooSoon { not_after } => {
                write!(
                    f,
                    "it ends at {not_after}, too soon to issue anything under it"
                )
            }
            Self::EndsSoon { not_after } => write!(
                f,
                "it ends at {not_after}, sooner than an intermediate of usual life would"
            ),
            Self::KeyMismatch => f.write_str("the private key does not belong to it"),
            Self::IssuerUnknown { issuer } => write!(f, "its issuer {issuer} is not there"),
            Self::KeyIdMismatch => {
                f.write_str("its authority key identifier is not its issuer's key identifier")
            }
            Self::SameSubject => f.write_str(
                "others have the same subject and another key, and key identifiers are missing",
            ),
            Self::TooManySameSubject { count } => {
                write!(f, "{count} roots have this subject, more than rustls tries")
            }
            Self::Signature => f.write_str("its issuer did not sign it"),
            Self::PathTooLong => f.write_str("the path to a root is too long"),
            Self::ChainWithoutSigner => f.write_str("the chain does not hold it"),
            Self::SignerTwice => {
                f.write_str("the chain holds another certificate for the same key")
            }
            Self::Rustls(reason) => write!(f, "rustls refuses it: {reason}"),
            Self::Identity { found } => {
                write!(f, "it has {found} URIs, exactly one is an identity")
            }
            Self::NameNotCovered { name } => write!(f, "it is not for {name}"),
        }
    }
}

/// A rule and the certificate that breaks it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The subject of the certificate.
    pub certificate: String,
    /// What is wrong.
    pub rule: Rule,
}

impl Finding {
    pub(crate) fn new(certificate: &Certificate, rule: Rule) -> Self {
        Self {
            certificate: certificate.subject().to_string(),
            rule,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { certificate, rule } = self;
        write!(f, "certificate {certificate}: {rule}: {}", rule.remedy())
    }
}

/// Why certificates are refused: at least one finding that is not a warning.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// `Err` if any of `findings` is more than a warning, otherwise the warnings.
    pub(crate) fn split(findings: Vec<Finding>) -> Result<Vec<Finding>, Self> {
        let (warnings, errors): (Vec<_>, Vec<_>) = findings
            .into_iter()
            .partition(|finding| finding.rule.is_warning());
        if errors.is_empty() {
            Ok(warnings)
        } else {
            Err(Self(errors))
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }
}

impl From<Finding> for Findings {
    fn from(finding: Finding) -> Self {
        Self(vec![finding])
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().take(SHOWN).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{finding}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for Findings {}
