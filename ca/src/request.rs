//! Certificate requests (PKCS#10): made where the key is, and read where it is not.
//!
//! A request contributes its public key and the proof that its sender has the private key.
//! Nothing else in it is even parsed into a type: what a certificate says is policy's business.

use rcgen::{CertificateParams, DistinguishedName, DnType};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use crate::certificate;
use crate::error::{DerFault, Error};
use crate::key::{PrivateKey, PublicKey, Signer};
use crate::name::SubjectAltName;
use crate::pem::{self, Limits};
use crate::policy::Organization;

/// The most bytes that are read as a certificate request, as PEM or as DER.
pub const MAX_REQUEST_BYTES: usize = 16 * 1024;

const REQUEST: &str = "CERTIFICATE REQUEST";
/// The label that older tools write (RFC 7468, 7).
const OLDER_REQUEST: &str = "NEW CERTIFICATE REQUEST";
const ITEM: &str = "the certificate request";

/// A certificate request that was made here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateRequest {
    der: Vec<u8>,
}

impl CertificateRequest {
    /// Makes a request for the public half of `key`. Organization and names are there for
    /// issuers other than ours, which uses nothing of them.
    ///
    /// # Errors
    /// [`Error::Signing`].
    pub fn new(
        key: &PrivateKey,
        organization: &Organization,
        names: &[SubjectAltName],
    ) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, organization.as_str());
        params.subject_alt_names = names.iter().map(SubjectAltName::to_rcgen).collect();
        let request = params
            .serialize_request(&Signer(key))
            .map_err(|_| Error::Signing)?;
        Ok(Self {
            der: request.der().to_vec(),
        })
    }

    /// The request as DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The request as one PEM block, ended by a newline.
    pub fn to_pem(&self) -> String {
        pem::write_block(REQUEST, &self.der).to_string()
    }
}

/// What a request proves: somebody has the private key of this public key. It has nothing else
/// to give.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VerifiedRequest {
    public_key: PublicKey,
}

impl VerifiedRequest {
    /// Reads and verifies a request in PEM.
    ///
    /// # Errors
    /// [`Error::Pem`] and [`Error::Der`] if it cannot be read, [`Error::Possession`] if its
    /// signature is not of the key that it carries.
    pub fn from_pem(text: &[u8]) -> Result<Self, Error> {
        let limits = Limits {
            bytes: MAX_REQUEST_BYTES,
            blocks: 1,
        };
        let blocks = pem::read_blocks(ITEM, text, limits, &[REQUEST, OLDER_REQUEST])?;
        let block = blocks
            .first()
            .expect("the reader returns at least one block");
        Self::from_der(&block.content)
    }

    /// Reads and verifies a request in DER.
    ///
    /// # Errors
    /// As [`VerifiedRequest::from_pem`].
    pub fn from_der(der: &[u8]) -> Result<Self, Error> {
        let fail = |fault| Error::Der { item: ITEM, fault };
        if der.len() > MAX_REQUEST_BYTES {
            return Err(fail(DerFault::TooLarge {
                bytes: der.len(),
                limit: MAX_REQUEST_BYTES,
            }));
        }
        let (rest, request) =
            X509CertificationRequest::from_der(der).map_err(|_| fail(DerFault::Syntax))?;
        if !rest.is_empty() {
            return Err(fail(DerFault::Syntax));
        }
        if !certificate::is_strong(&request.signature_algorithm) {
            let oid = certificate::shown(&request.signature_algorithm.algorithm);
            return Err(fail(DerFault::SignatureAlgorithm(oid)));
        }
        let key = request.certification_request_info.subject_pki.raw;
        let public_key = PublicKey::from_spki_der(ITEM, key)?;
        request.verify_signature().map_err(|_| Error::Possession)?;
        Ok(Self { public_key })
    }

    /// The public key.
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }
}
