//! A certificate, read once: everything that the rest of the crate judges by.

mod extensions;

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::{
    OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA, OID_PKCS1_SHA512WITHRSA,
    OID_SIG_ECDSA_WITH_SHA256, OID_SIG_ECDSA_WITH_SHA384,
};
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::{AlgorithmIdentifier, SubjectPublicKeyInfo};

use self::extensions::Extensions;
pub(crate) use self::extensions::shown;
use crate::der::TbsFields;
use crate::digest::Fingerprint;
use crate::error::{DerFault, Error};
use crate::key::PublicKey;
use crate::name::Name;
use crate::pem;

/// The most bytes of DER that are read as one certificate; rustls takes no more.
pub const MAX_CERTIFICATE_BYTES: usize = 64 * 1024;

/// An X.509 certificate. It holds nothing secret.
#[derive(Clone)]
pub struct Certificate {
    der: Vec<u8>,
    subject: Name,
    issuer: Name,
    serial: Vec<u8>,
    not_before: Timestamp,
    not_after: Timestamp,
    public_key: PublicKey,
    extensions: Extensions,
}

impl Certificate {
    /// Reads the DER of one certificate.
    ///
    /// # Errors
    /// [`Error::Der`].
    pub fn from_der(der: &[u8]) -> Result<Self, Error> {
        Self::read("the certificate", der)
    }

    /// Reads the DER of one certificate; `item` names the input in errors.
    pub(crate) fn read(item: &'static str, der: &[u8]) -> Result<Self, Error> {
        let fail = |fault| Error::Der { item, fault };
        if der.len() > MAX_CERTIFICATE_BYTES {
            return Err(fail(DerFault::TooLarge {
                bytes: der.len(),
                limit: MAX_CERTIFICATE_BYTES,
            }));
        }
        let syntax = || fail(DerFault::Syntax);
        // Three readers must agree: ours on where the fields are, x509-parser on what they mean,
        // and webpki, which stands for rustls and refuses what it does not know.
        let fields = TbsFields::of_certificate(der).ok_or_else(syntax)?;
        let (rest, parsed) = X509Certificate::from_der(der).map_err(|_| syntax())?;
        let same = rest.is_empty()
            && parsed.subject().as_raw() == fields.subject
            && parsed.issuer().as_raw() == fields.issuer
            && parsed.public_key().raw == fields.public_key;
        if !same {
            return Err(syntax());
        }
        if !is_strong(&parsed.signature_algorithm) {
            let oid = shown(&parsed.signature_algorithm.algorithm);
            return Err(fail(DerFault::SignatureAlgorithm(oid)));
        }
        let extensions = Extensions::read(&parsed).map_err(|oid| fail(DerFault::Extension(oid)))?;
        match webpki::EndEntityCert::try_from(&CertificateDer::from(der)) {
            Ok(_) => {}
            Err(webpki::Error::UnsupportedCriticalExtension) => {
                return Err(fail(DerFault::CriticalExtension));
            }
            Err(_) => return Err(syntax()),
        }
        // "No well-defined expiration" (RFC 5280, 4.1.2.5) is a day later than jiff goes.
        let latest = Timestamp::MAX.as_second();
        let time = |time: i64| Timestamp::from_second(time.min(latest)).map_err(|_| syntax());
        Ok(Self {
            der: der.to_vec(),
            subject: Name::new(fields.subject, parsed.subject()),
            issuer: Name::new(fields.issuer, parsed.issuer()),
            serial: fields.serial.content.to_vec(),
            not_before: time(parsed.validity().not_before.timestamp())?,
            not_after: time(parsed.validity().not_after.timestamp())?,
            public_key: PublicKey::from_spki_der(item, fields.public_key)?,
            extensions,
        })
    }

    /// The certificate as DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The certificate as one PEM block, ended by a newline.
    pub fn to_pem(&self) -> String {
        pem::write_certificates("the certificate", [self])
            .expect("a certificate that was read is within the limits of the reader")
    }

    /// Whom it speaks of.
    pub fn subject(&self) -> &Name {
        &self.subject
    }

    /// Who signed it, by name.
    pub fn issuer(&self) -> &Name {
        &self.issuer
    }

    /// The serial number: big-endian, two's complement.
    pub fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// The first instant at which it is valid.
    pub fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// The last instant at which it is valid.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// From the first to the last instant.
    pub fn life(&self) -> SignedDuration {
        self.not_after.duration_since(self.not_before)
    }

    /// How long it stays valid after `now`; negative when it has expired.
    pub fn remaining(&self, now: Timestamp) -> SignedDuration {
        self.not_after.duration_since(now)
    }

    /// The certified public key.
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// SHA-256 of the DER.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of([self.der.as_slice()])
    }

    /// The subject key identifier, if it has one.
    pub fn subject_key_id(&self) -> Option<&[u8]> {
        self.extensions.subject_key_id.as_deref()
    }

    /// Whether it says of itself that it is a CA.
    pub fn is_ca(&self) -> bool {
        self.extensions.is_ca
    }

    /// The URIs among its subject alternative names.
    pub fn uris(&self) -> &[String] {
        &self.extensions.uris
    }

    pub(crate) fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    pub(crate) fn is_valid_at(&self, now: Timestamp) -> bool {
        self.not_before <= now && now <= self.not_after
    }

    /// Whether `key` made the signature on it.
    pub(crate) fn is_signed_by(&self, key: &PublicKey) -> bool {
        let certificate = X509Certificate::from_der(&self.der);
        let key = SubjectPublicKeyInfo::from_der(key.spki_der());
        match (certificate, key) {
            (Ok((_, certificate)), Ok((_, key))) => {
                certificate.verify_signature(Some(&key)).is_ok()
            }
            _ => false,
        }
    }

    /// Whether `issuer` may have signed it, by all that both say: names and key identifiers.
    pub(crate) fn names_as_issuer(&self, issuer: &Self) -> Match {
        if self.issuer.der() != issuer.subject.der() {
            return Match::OtherName;
        }
        let authority = &self.extensions.authority;
        let key_ids = authority.key_id.as_deref().zip(issuer.subject_key_id());
        let serial = authority.serial.as_deref();
        let same_serial = serial.is_none_or(|serial| serial == issuer.serial);
        let named = authority.issuer.as_deref();
        let same_issuer = named.is_none_or(|named| named == issuer.issuer.der());
        match key_ids {
            _ if !(same_serial && same_issuer) => Match::OtherKeyId,
            Some((named, found)) if named != found => Match::OtherKeyId,
            Some(_) => Match::Full,
            None => Match::NameOnly,
        }
    }
}

/// How far a certificate fits the issuer that another one names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Match {
    OtherName,
    OtherKeyId,
    /// One of them says nothing of its key.
    NameOnly,
    Full,
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for Certificate {}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({}, until {})", self.subject, self.not_after)
    }
}

/// Whether every verifier in a mesh takes signatures of this algorithm.
pub(crate) fn is_strong(algorithm: &AlgorithmIdentifier<'_>) -> bool {
    [
        OID_SIG_ECDSA_WITH_SHA256,
        OID_SIG_ECDSA_WITH_SHA384,
        OID_PKCS1_SHA256WITHRSA,
        OID_PKCS1_SHA384WITHRSA,
        OID_PKCS1_SHA512WITHRSA,
    ]
    .contains(&algorithm.algorithm)
}
