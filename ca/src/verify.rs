//! Verification: by rustls, and by a strict reading of our own that takes only what every
//! verifier in a mesh takes.
//!
//! rustls alone is not enough: it does not look at the expiry or the path length of an anchor,
//! nor at keyCertSign, all of which Envoy or OpenSSL do. Our own reading alone is not enough
//! either: one implementation is not a proof. Both must agree.

use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use webpki::KeyUsage;

use crate::bundle::{RootId, TrustBundle};
use crate::certificate::{Certificate, Match};
use crate::digest::Fingerprint;
use crate::error::Error;
use crate::issue;
use crate::key::PrivateKey;
use crate::lint::{self, Finding, Findings, Rule};
use crate::name::SubjectAltName;
use crate::pem;

/// The most CA certificates between a leaf and a root; rustls takes no more.
const MAX_INTERMEDIATES: usize = 6;

/// A CA certificate that signs leaves, the chain that its leaves are sent with and the roots that
/// believe it, verified together at one time. It holds no key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VerifiedSigner {
    certificate: Certificate,
    chain: Vec<Certificate>,
    roots: TrustBundle,
    root: RootId,
    not_after: Timestamp,
}

impl VerifiedSigner {
    /// The certificate that signs leaves.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// What leaves are sent with, the signer among it.
    pub fn chain(&self) -> &[Certificate] {
        &self.chain
    }

    /// The roots.
    pub fn roots(&self) -> &TrustBundle {
        &self.roots
    }

    /// The root that the signer chains to.
    pub fn root_id(&self) -> RootId {
        self.root
    }

    /// When the first certificate between the signer and its root ends, both included: until
    /// then leaves verify.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// SHA-256 of the public key that signs: a new one for each generation.
    pub fn key_fingerprint(&self) -> Fingerprint {
        self.certificate.public_key().fingerprint()
    }

    /// SHA-256 of all its certificates: the same for the same material, however it is written.
    pub fn content_fingerprint(&self) -> Fingerprint {
        let parts = [
            std::slice::from_ref(&self.certificate),
            &self.chain,
            self.roots.roots(),
        ];
        let digests: Vec<Fingerprint> = parts
            .into_iter()
            .map(|part| Fingerprint::of(part.iter().map(Certificate::der)))
            .collect();
        Fingerprint::of(digests.iter().map(|digest| digest.as_bytes().as_slice()))
    }
}

/// The signing CA as istiod reads it from its directory.
#[derive(Clone, Copy)]
pub struct IstiodFiles<'a> {
    /// `ca-cert.pem`: the signer, first.
    pub ca_cert: &'a [u8],
    /// `ca-key.pem`.
    pub ca_key: &'a [u8],
    /// `cert-chain.pem`.
    pub cert_chain: &'a [u8],
    /// `root-cert.pem`.
    pub root_cert: &'a [u8],
}

/// Makes the checks that istiod makes before it starts with a plugged-in CA (Istio,
/// `security/pkg/pki/util/keycertbundle.go`, `Verify`, and that it is a CA): a certificate that
/// chains to the roots and allows server authentication, and its key. Beyond them, that the chain
/// holds the signer, without which peers could not verify leaves, and everything that the other
/// verifiers ask.
///
/// # Errors
/// [`Error::Pem`] and [`Error::Der`] name the file, [`Error::Refused`] the certificate.
pub fn verify_for_istiod(files: &IstiodFiles<'_>, now: Timestamp) -> Result<VerifiedSigner, Error> {
    let roots = TrustBundle::from_pem("root-cert.pem", files.root_cert)?;
    let chain = pem::read_certificates("cert-chain.pem", files.cert_chain)?;
    let signer = pem::read_certificates("ca-cert.pem", files.ca_cert)?
        .into_iter()
        .next()
        .expect("the reader returns at least one certificate");
    let key = PrivateKey::from_pem("ca-key.pem", files.ca_key)?;
    let broken = |rule| Err(Findings::from(Finding::new(&signer, rule)).into());
    if key.public_key() != signer.public_key() {
        return broken(Rule::KeyMismatch);
    }
    if !chain.contains(&signer) {
        return broken(Rule::ChainWithoutSigner);
    }
    let twice = |other: &Certificate| other.public_key() == signer.public_key() && *other != signer;
    if chain.iter().any(twice) {
        return broken(Rule::SignerTwice);
    }
    verify_signer(&signer, &key, &chain, &roots, now)
}

/// Verifies a signer whose key is at hand, strictly and, by a leaf issued for trial, with rustls.
///
/// # Errors
/// [`Error::Refused`].
pub fn verify_signer(
    signer: &Certificate,
    key: &PrivateKey,
    chain: &[Certificate],
    roots: &TrustBundle,
    now: Timestamp,
) -> Result<VerifiedSigner, Error> {
    let path = signer_path(signer, chain, roots, now)?;
    let leaf = issue::trial_leaf(signer, key)?;
    let mut sent = vec![signer.clone()];
    sent.extend_from_slice(chain);
    for usage in [KeyUsage::server_auth(), KeyUsage::client_auth()] {
        rustls(&leaf, &sent, roots, usage, now)
            // The leaf is not what the reader of the error knows.
            .map_err(|rule| Findings::from(Finding::new(signer, rule)))?;
    }
    let root = path.last().copied().unwrap_or(signer);
    Ok(VerifiedSigner {
        certificate: signer.clone(),
        chain: chain.to_vec(),
        roots: roots.clone(),
        root: RootId::of(root),
        not_after: path
            .iter()
            .map(|certificate| certificate.not_after())
            .fold(signer.not_after(), Timestamp::min),
    })
}

/// Verifies the leaf of a workload, for both ends of mutual TLS, and then its identity: exactly
/// one URI, which is returned.
///
/// # Errors
/// [`Error::Refused`].
pub fn verify_workload<'a>(
    leaf: &'a Certificate,
    chain: &[Certificate],
    roots: &TrustBundle,
    now: Timestamp,
) -> Result<&'a str, Error> {
    let usages = [KeyUsage::server_auth(), KeyUsage::client_auth()];
    verify_leaf(leaf, chain, roots, &usages, now)?;
    match leaf.uris() {
        [identity] => Ok(identity),
        uris => {
            let found = uris.len();
            Err(Findings::from(Finding::new(leaf, Rule::Identity { found })).into())
        }
    }
}

/// Verifies the certificate of a server that is issued by a root itself, and that it is for each
/// of `names`, DNS names and IP addresses.
///
/// # Errors
/// [`Error::Refused`].
pub fn verify_serving(
    leaf: &Certificate,
    names: &[SubjectAltName],
    roots: &TrustBundle,
    now: Timestamp,
) -> Result<(), Error> {
    verify_leaf(leaf, &[], roots, &[KeyUsage::server_auth()], now)?;
    let der = CertificateDer::from(leaf.der());
    let entity = webpki::EndEntityCert::try_from(&der)
        .expect("a certificate is read by webpki when it is constructed");
    let missing = names.iter().find(|name| {
        // A wildcard stands for the hosts below it: any of them serves to ask.
        let host = name.to_string().replacen('*', "any", 1);
        let covered = ServerName::try_from(host.as_str())
            .is_ok_and(|host| entity.verify_is_valid_for_subject_name(&host).is_ok());
        !covered
    });
    match missing {
        None => Ok(()),
        Some(name) => {
            let name = name.to_string();
            Err(Findings::from(Finding::new(leaf, Rule::NameNotCovered { name })).into())
        }
    }
}

fn verify_leaf(
    leaf: &Certificate,
    chain: &[Certificate],
    roots: &TrustBundle,
    usages: &[KeyUsage],
    now: Timestamp,
) -> Result<(), Findings> {
    let extensions = leaf.extensions();
    let mut findings = Vec::new();
    let mut broken = |rule| findings.push(Finding::new(leaf, rule));
    if extensions.is_ca {
        broken(Rule::IsCa);
    }
    if extensions
        .key_usage
        .is_some_and(|usage| !usage.digital_signature)
    {
        broken(Rule::NoDigitalSignature);
    }
    if let Some(rule) = lint::general_rule(leaf) {
        broken(rule);
    }
    if let Some(rule) = lint::time_rule(leaf, now) {
        broken(rule);
    }
    Findings::split(findings)?;
    let issuer = issuer_of(leaf, chain, roots, now)?;
    signer_path(issuer, chain, roots, now)?;
    for usage in usages {
        rustls(leaf, chain, roots, *usage, now)
            .map_err(|rule| Findings::from(Finding::new(leaf, rule)))?;
    }
    Ok(())
}

/// Asks rustls.
fn rustls(
    leaf: &Certificate,
    chain: &[Certificate],
    roots: &TrustBundle,
    usage: KeyUsage,
    now: Timestamp,
) -> Result<(), Rule> {
    let refused = |error: webpki::Error| Rule::Rustls(error.to_string());
    let roots: Vec<CertificateDer<'_>> = roots
        .roots()
        .iter()
        .map(|root| CertificateDer::from(root.der()))
        .collect();
    let anchors = roots
        .iter()
        .map(webpki::anchor_from_trusted_cert)
        .collect::<Result<Vec<_>, _>>()
        .map_err(refused)?;
    let chain: Vec<CertificateDer<'_>> = chain
        .iter()
        .map(|certificate| CertificateDer::from(certificate.der()))
        .collect();
    let der = CertificateDer::from(leaf.der());
    let leaf = webpki::EndEntityCert::try_from(&der).map_err(refused)?;
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    let algorithms = webpki::ALL_VERIFICATION_ALGS;
    leaf.verify_for_usage(algorithms, &anchors, &chain, now, usage, None, None)
        .map(drop)
        .map_err(refused)
}

/// The path from a certificate that signs leaves to a root, both included, if every verifier
/// would accept it: each certificate is a sound CA in its place and in its time, names its
/// issuer byte for byte and by key identifier, and is signed by it.
pub(crate) fn signer_path<'a>(
    signer: &'a Certificate,
    chain: &'a [Certificate],
    roots: &'a TrustBundle,
    now: Timestamp,
) -> Result<Vec<&'a Certificate>, Findings> {
    let mut path = Vec::new();
    let mut current = signer;
    let mut below = 0;
    loop {
        let mut findings = lint::ca_findings(current, below);
        if let Some(rule) = lint::time_rule(current, now) {
            findings.push(Finding::new(current, rule));
        }
        Findings::split(findings)?;
        path.push(current);
        if roots.roots().contains(current) {
            return Ok(path);
        }
        if path.len() > MAX_INTERMEDIATES {
            return Err(Finding::new(signer, Rule::PathTooLong).into());
        }
        current = issuer_of(current, chain, roots, now)?;
        below += 1;
    }
}

/// The certificate that signed `subject`: a root if there is one, otherwise one of the chain.
fn issuer_of<'a>(
    subject: &Certificate,
    chain: &'a [Certificate],
    roots: &'a TrustBundle,
    now: Timestamp,
) -> Result<&'a Certificate, Findings> {
    let broken = |rule| Err(Findings::from(Finding::new(subject, rule)));
    let candidates = || {
        let all = roots.roots().iter().chain(chain);
        all.filter(|candidate| *candidate != subject)
            .filter(|candidate| subject.names_as_issuer(candidate) != Match::OtherName)
    };
    let Some(first) = candidates().next() else {
        let issuer = subject.issuer().to_string();
        return broken(Rule::IssuerUnknown { issuer });
    };
    let fits = |candidate: &&Certificate| {
        matches!(
            subject.names_as_issuer(candidate),
            Match::Full | Match::NameOnly
        )
    };
    if candidates().find(fits).is_none() {
        return broken(Rule::KeyIdMismatch);
    }
    // Some verifiers try one issuer of a name only: without key identifiers it must be the one.
    let blurred = candidates().any(|candidate| {
        candidate.public_key() != first.public_key()
            && subject.names_as_issuer(candidate) == Match::NameOnly
    });
    if blurred {
        return broken(Rule::SameSubject);
    }
    let signed = |candidate: &&Certificate| subject.is_signed_by(candidate.public_key());
    // Where one root is there in two editions, verifiers take the one that is valid.
    let valid = candidates()
        .filter(fits)
        .filter(|candidate| candidate.is_valid_at(now))
        .find(signed);
    match valid.or_else(|| candidates().filter(fits).find(signed)) {
        Some(issuer) => Ok(issuer),
        None => broken(Rule::Signature),
    }
}
