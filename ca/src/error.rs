//! What this room answers when it refuses.

use std::fmt;

use thiserror::Error as ThisError;

use crate::key::KeyAlgorithm;
use crate::lint::Findings;
use crate::policy::Violation;

/// Why something was not read, not issued or not accepted. The text names the input, what is
/// wrong with it and what to do.
#[derive(Clone, Debug, Eq, PartialEq, ThisError)]
pub enum Error {
    /// The PEM text around the data is not as it must be.
    #[error("reading {item}, line {line}: {fault}")]
    Pem {
        /// Which input.
        item: &'static str,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there.
        fault: PemFault,
    },
    /// The data is not what it must be.
    #[error("reading {item}: {fault}")]
    Der {
        /// Which input.
        item: &'static str,
        /// What is wrong.
        fault: DerFault,
    },
    /// A certificate request whose signature does not prove that the sender has the key.
    #[error(
        "the certificate request is not signed by the key that it carries: make a new request with that key"
    )]
    Possession,
    /// The policy does not allow it.
    #[error(transparent)]
    Policy(#[from] Violation),
    /// A certificate, or several, that one of the verifiers in a mesh would refuse.
    #[error(transparent)]
    Refused(#[from] Findings),
    /// No key came out of the generator.
    #[error("generating a private key ({0}) failed")]
    KeyGeneration(KeyAlgorithm),
    /// No signature came out of the private key.
    #[error("signing with the private key failed")]
    Signing,
}

/// What can be wrong with PEM text (RFC 7468, read strictly: what some verifier in a mesh would
/// misread is refused).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PemFault {
    /// More bytes than this kind of input may have.
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most bytes that are read.
        limit: usize,
    },
    /// More blocks than this kind of input may have.
    TooMany {
        /// The most blocks that are read.
        limit: usize,
    },
    /// No block at all.
    NoBlock {
        /// The label that was looked for.
        wanted: &'static str,
    },
    /// A block of another kind.
    WrongBlock {
        /// The label that was looked for.
        wanted: &'static str,
        /// The label that was found.
        found: String,
    },
    /// A boundary that does not stand alone on its line, or that does not match.
    Boundary,
    /// A block that is not closed.
    Unterminated,
    /// Headers inside a block, as encrypted keys have.
    Headers,
    /// A line that is longer than some readers take.
    LongLine,
    /// Content that is not base64.
    Base64,
}

impl fmt::Display for PemFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes, limit } => {
                write!(f, "{bytes} bytes are too many, at most {limit} are read")
            }
            Self::TooMany { limit } => write!(f, "more than {limit} blocks"),
            Self::NoBlock { wanted } => write!(
                f,
                "no PEM block: it must hold a line \"-----BEGIN {wanted}-----\""
            ),
            Self::WrongBlock { wanted, found } => {
                write!(f, "found a {found} block where {wanted} belongs")?;
                match found.as_str() {
                    "ENCRYPTED PRIVATE KEY" => {
                        f.write_str(": decrypt it first (openssl pkey -in key.pem)")
                    }
                    "EC PARAMETERS" => f.write_str(": keep only the key (openssl ec -in key.pem)"),
                    _ => f.write_str(": remove it"),
                }
            }
            Self::Boundary => f.write_str(
                "a BEGIN or END boundary must stand alone on its line and match its pair: \
                 end each block with a newline before the next one",
            ),
            Self::Unterminated => f.write_str("the block has no END line: it is cut off"),
            Self::Headers => f.write_str(
                "headers inside the block (an encrypted key?): decrypt it or remove them",
            ),
            Self::LongLine => f.write_str(
                "longer than 76 characters: wrap the base64 at 64, as openssl writes it",
            ),
            Self::Base64 => f.write_str("not canonical base64"),
        }
    }
}

/// What can be wrong with the data of a certificate, key or request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DerFault {
    /// More bytes than this kind of input may have.
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most bytes that are read.
        limit: usize,
    },
    /// Not the DER of a version 3 certificate, a key or a request.
    Syntax,
    /// An extension that stands twice, or whose content cannot be read.
    Extension(String),
    /// A critical extension that some verifier does not know.
    CriticalExtension,
    /// A signature algorithm that not every verifier in a mesh takes.
    SignatureAlgorithm(String),
    /// A key of a kind or size that not every verifier in a mesh takes.
    Key,
}

impl fmt::Display for DerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes, limit } => {
                write!(f, "{bytes} bytes are too many, at most {limit} are read")
            }
            Self::Syntax => f.write_str("not valid DER of what it should be (X.509 version 3)"),
            Self::Extension(oid) => write!(
                f,
                "extension {oid} stands more than once or cannot be read: re-issue the certificate"
            ),
            Self::CriticalExtension => f.write_str(
                "a critical extension is not known to every verifier: re-issue the certificate \
                 without it, or with it not critical",
            ),
            Self::SignatureAlgorithm(oid) => write!(
                f,
                "signature algorithm {oid} is not taken by every verifier: sign with SHA-256 or \
                 SHA-384, by ECDSA or RSA PKCS#1 v1.5"
            ),
            Self::Key => {
                f.write_str("the key must be ECDSA P-256, ECDSA P-384 or RSA of 2048 to 8192 bits")
            }
        }
    }
}
