//! Issuing. Everything that a certificate says comes from a profile; the clock, the serial
//! number and the keys are arguments.
//!
//! rcgen lays certificates out, and two things of it are not used. It keeps names in a map,
//! which collapses repeated attributes (`DC=com,DC=acme`): the name of the issuer is copied from
//! the issuer's certificate as bytes instead. And its defaults (valid 1975 to 4096, no authority
//! key identifier, a serial number that repeats) are all overridden. What comes out is read back
//! and verified before it is returned.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyUsagePurpose,
};

use crate::bundle::TrustBundle;
use crate::certificate::{Certificate, Match};
use crate::der::{self, TbsFields};
use crate::error::Error;
use crate::key::{PrivateKey, PublicKey};
use crate::lint::{self, Finding, Findings, Rule};
use crate::name::SubjectAltName;
use crate::policy::{self, IntermediateProfile, RootProfile, ServingProfile, Subject, Validity};
use crate::verify;

/// A serial number: 126 random bits, positive, of a fixed length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Serial([u8; 16]);

impl Serial {
    /// Makes one of 16 random bytes.
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        // The first two bits keep it positive and its encoding 16 bytes long.
        bytes[0] = bytes[0] & 0x3f | 0x40;
        Self(bytes)
    }
}

/// A CA certificate and its private key.
pub struct SigningCa {
    certificate: Certificate,
    key: PrivateKey,
}

impl SigningCa {
    /// Puts together what belongs together.
    ///
    /// # Errors
    /// [`Error::Refused`] if the certificate is not that of a CA, has no subject or no subject
    /// key identifier, or the key is not its key. Its time is judged when it issues.
    pub fn new(certificate: Certificate, key: PrivateKey) -> Result<Self, Error> {
        let mut findings = lint::ca_findings(&certificate, 0);
        let mut broken = |rule| findings.push(Finding::new(&certificate, rule));
        if certificate.subject_key_id().is_none() {
            broken(Rule::NoSubjectKeyId);
        }
        if certificate.subject().is_empty() {
            broken(Rule::EmptySubject);
        }
        if key.public_key() != certificate.public_key() {
            broken(Rule::KeyMismatch);
        }
        Findings::split(findings)?;
        Ok(Self { certificate, key })
    }

    /// Its certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Its private key, to be stored.
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }
}

/// Makes a root.
///
/// # Errors
/// [`Error::Policy`] and [`Error::Signing`].
pub fn self_signed_root(
    key: PrivateKey,
    profile: &RootProfile,
    now: Timestamp,
    serial: Serial,
) -> Result<SigningCa, Error> {
    let subject = profile.subject(key.public_key());
    let mut params = params(&subject, profile.validity(now)?, serial, &[]);
    params.is_ca = IsCa::Ca(match profile.path_length() {
        Some(length) => BasicConstraints::Constrained(length),
        None => BasicConstraints::Unconstrained,
    });
    params.key_usages = CA_USAGES.to_vec();
    let certificate = sign(&params, key.public_key(), &key, None)?;
    SigningCa::new(certificate, key)
}

/// Issues the intermediate of a mesh. Of the sender of `public_key` nothing else is asked.
///
/// # Errors
/// [`Error::Policy`] if the key is not of the kind that the profile asks for or the issuer ends
/// too soon; [`Error::Refused`] if what came out would not be taken by every verifier;
/// [`Error::Signing`].
pub fn intermediate(
    public_key: &PublicKey,
    profile: &IntermediateProfile,
    issuer: &SigningCa,
    now: Timestamp,
    serial: Serial,
) -> Result<Certificate, Error> {
    profile.check_key(public_key)?;
    let validity = profile.validity(&issuer.certificate, now)?;
    let mut params = params(profile.subject(), validity, serial, profile.names());
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = CA_USAGES.to_vec();
    let certificate = sign(&params, public_key, &issuer.key, Some(&issuer.certificate))?;
    let roots = TrustBundle::of(issuer.certificate.clone())?;
    verify::signer_path(&certificate, &[], &roots, now)?;
    Ok(certificate)
}

/// Issues the certificate of one of our own servers.
///
/// # Errors
/// As [`intermediate`].
pub fn serving_leaf(
    public_key: &PublicKey,
    profile: &ServingProfile,
    issuer: &SigningCa,
    now: Timestamp,
    serial: Serial,
) -> Result<Certificate, Error> {
    let validity = profile.validity(&issuer.certificate, now)?;
    let mut params = leaf_params(profile.subject(), validity, serial, profile.names());
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = sign(&params, public_key, &issuer.key, Some(&issuer.certificate))?;
    let roots = TrustBundle::of(issuer.certificate.clone())?;
    verify::verify_serving(&certificate, profile.names(), &roots, now)?;
    Ok(certificate)
}

/// Issues a leaf under `signer` for trial, which certifies the signer's own key and goes
/// nowhere: rustls verifies leaves only, so this is how it is asked about a signer.
pub(crate) fn trial_leaf(signer: &Certificate, key: &PrivateKey) -> Result<Certificate, Error> {
    // Not the name of the signer of [`try_chain`], whose key it shares: rustls takes that for a
    // loop.
    let subject = trial_subject("trial leaf")?;
    let validity = Validity {
        not_before: signer.not_before(),
        not_after: signer.not_after(),
    };
    let name = "spiffe://trial.local/ns/trial/sa/trial".parse()?;
    let mut params = leaf_params(&subject, validity, TRIAL_SERIAL, &[name]);
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    params.use_authority_key_identifier_extension = signer.subject_key_id().is_some();
    sign(&params, signer.public_key(), key, Some(signer))
}

/// Issues an intermediate and a leaf under `root` for trial, with no key but the root's own, and
/// verifies them.
pub(crate) fn try_chain(root: &SigningCa, now: Timestamp) -> Result<(), Error> {
    let certificate = &root.certificate;
    let validity = Validity::nested(policy::INTERMEDIATE_LIFE, certificate, now)?;
    let mut params = params(&trial_subject("trial")?, validity, TRIAL_SERIAL, &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = CA_USAGES.to_vec();
    let signer = sign(
        &params,
        certificate.public_key(),
        &root.key,
        Some(certificate),
    )?;
    let roots = TrustBundle::of(certificate.clone())?;
    verify::verify_signer(&signer, &root.key, &[], &roots, now)?;
    Ok(())
}

const TRIAL_SERIAL: Serial = Serial([1; 16]);

fn trial_subject(common_name: &str) -> Result<Subject, Error> {
    Ok(Subject {
        organization: policy::ROOT_ORGANIZATION.parse()?,
        common_name: common_name.to_owned(),
    })
}

const CA_USAGES: [KeyUsagePurpose; 2] = [KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];

/// What all certificates have in common.
fn params(
    subject: &Subject,
    validity: Validity,
    serial: Serial,
    names: &[SubjectAltName],
) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, subject.organization.as_str());
    params
        .distinguished_name
        .push(DnType::CommonName, subject.common_name.as_str());
    // Seconds since 1970, which is as far back as a certificate of ours goes.
    let time = |time: Timestamp| {
        let seconds = u64::try_from(time.as_second()).unwrap_or_default();
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    params.not_before = time(validity.not_before);
    params.not_after = time(validity.not_after);
    params.serial_number = Some(serial.0.to_vec().into());
    params.subject_alt_names = names.iter().map(SubjectAltName::to_rcgen).collect();
    params.use_authority_key_identifier_extension = true;
    params
}

fn leaf_params(
    subject: &Subject,
    validity: Validity,
    serial: Serial,
    names: &[SubjectAltName],
) -> CertificateParams {
    let mut params = params(subject, validity, serial, names);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params
}

/// Signs what `params` say about `public_key`, with `key`, which is that of `issuer`; without an
/// issuer the certificate is self-signed. Reads the result back and verifies it.
fn sign(
    params: &CertificateParams,
    public_key: &PublicKey,
    key: &PrivateKey,
    issuer: Option<&Certificate>,
) -> Result<Certificate, Error> {
    let public_key = public_key.to_rcgen();
    let key_id = match issuer {
        Some(issuer) => issuer.subject_key_id().unwrap_or_default().to_vec(),
        None => params.key_identifier(&public_key),
    };
    let mut naming = CertificateParams::default();
    naming.key_identifier_method = KeyIdMethod::PreSpecified(key_id);
    let unsigned = params
        .signed_by(&public_key, &Issuer::from_params(&naming, Unsigned(key)))
        .map_err(|_| Error::Signing)?;
    let fields = TbsFields::of_certificate(unsigned.der())
        .expect("rcgen lays certificates out as version 3");
    let issuer_name = issuer.map_or(fields.subject, |issuer| issuer.subject().der());
    let tbs = fields.with_issuer(issuer_name);
    let signature = key.sign(&tbs)?;
    let signed = der::write_signed(&tbs, fields.algorithm, &signature);

    let certificate = Certificate::from_der(&signed)?;
    let issuer = issuer.unwrap_or(&certificate);
    let named = certificate.names_as_issuer(issuer);
    let broken = if matches!(named, Match::OtherName | Match::OtherKeyId) {
        Some(Rule::KeyIdMismatch)
    } else if !certificate.is_signed_by(issuer.public_key()) {
        Some(Rule::Signature)
    } else {
        None
    };
    match broken {
        Some(rule) => Err(Findings::from(Finding::new(&certificate, rule)).into()),
        None => Ok(certificate),
    }
}

/// Stands in for the issuer's key while rcgen lays a certificate out: the signature is made once
/// the name of the issuer is in its place.
struct Unsigned<'a>(&'a PrivateKey);

impl rcgen::PublicKeyData for Unsigned<'_> {
    fn der_bytes(&self) -> &[u8] {
        // Only asked for to derive a key identifier, which is given.
        &[]
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.0.public_key().rcgen_algorithm()
    }
}

impl rcgen::SigningKey for Unsigned<'_> {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(Vec::new())
    }
}
