//! The strict linter: what a CA certificate must be so that every verifier in a mesh takes it,
//! and the import of a root that a user supplies.
//!
//! OpenSSL, BoringSSL (Envoy), rustls (ztunnel) and Go (istiod) accept different things. The
//! rules here are the intersection.

mod rule;

use jiff::{SignedDuration, Timestamp};

pub use self::rule::{Finding, Findings, Rule};
use crate::certificate::{Certificate, Match};
use crate::error::Error;
use crate::issue::{self, SigningCa};
use crate::key::PrivateKey;
use crate::pem;
use crate::policy;

/// The entry of a root Secret that holds the certificate.
pub const ROOT_CERTIFICATE: &str = "root-cert.pem";
/// The entry of a root Secret that holds the private key.
pub const ROOT_KEY: &str = "key.pem";

/// The life that a root must have left: a day for what is issued under it, which ends an hour
/// before it.
const LEAST_LIFE: SignedDuration = SignedDuration::from_hours(25);

/// A root that passed, and what could still be better.
pub struct ImportedRoot {
    /// Ready to issue.
    pub ca: SigningCa,
    /// Warnings.
    pub warnings: Vec<Finding>,
}

/// Judges the certificate of a root that a user supplies (`root-cert.pem`), without its key.
/// Returns it with warnings.
///
/// # Errors
/// [`Error::Pem`] and [`Error::Der`] if it cannot be read, [`Error::Refused`] with all that is
/// wrong.
pub fn lint_certificate(
    certificate: &[u8],
    now: Timestamp,
) -> Result<(Certificate, Vec<Finding>), Error> {
    let root = pem::read_certificate(ROOT_CERTIFICATE, certificate)?;
    let warnings = Findings::split(root_findings(&root, now))?;
    Ok((root, warnings))
}

/// Judges a root that a user supplies (`root-cert.pem` and `key.pem`). Beyond
/// [`lint_certificate`], the key must belong to the certificate, and a chain issued for trial
/// must verify: so a subject that could not be copied as issuer is found here and not in a mesh.
///
/// # Errors
/// As [`lint_certificate`]; nothing in them speaks of the key itself.
pub fn lint_pair(certificate: &[u8], key: &[u8], now: Timestamp) -> Result<ImportedRoot, Error> {
    let root = pem::read_certificate(ROOT_CERTIFICATE, certificate)?;
    let mut findings = root_findings(&root, now);
    let key = PrivateKey::from_pem(ROOT_KEY, key)?;
    if key.public_key() != root.public_key() {
        findings.push(Finding::new(&root, Rule::KeyMismatch));
    }
    let warnings = Findings::split(findings)?;
    let ca = SigningCa::new(root, key)?;
    issue::try_chain(&ca, now)?;
    Ok(ImportedRoot { ca, warnings })
}

/// Everything about a root that is to sign intermediates.
fn root_findings(root: &Certificate, now: Timestamp) -> Vec<Finding> {
    let mut findings = anchor_findings(root, 1);
    let mut broken = |rule| findings.push(Finding::new(root, rule));
    if root.subject_key_id().is_none() {
        broken(Rule::NoSubjectKeyId);
    }
    if root.subject().is_empty() {
        broken(Rule::EmptySubject);
    }
    if root.extensions().key_usage.is_none() {
        broken(Rule::NoKeyUsage);
    }
    let not_after = root.not_after();
    match time_rule(root, now) {
        Some(rule) => broken(rule),
        None if root.remaining(now) < LEAST_LIFE => broken(Rule::EndsTooSoon { not_after }),
        None if root.remaining(now) < policy::INTERMEDIATE_LIFE => {
            broken(Rule::EndsSoon { not_after });
        }
        None => {}
    }
    findings
}

/// What must hold of an anchor at any time, with `below` CA certificates under it.
pub(crate) fn anchor_findings(anchor: &Certificate, below: u32) -> Vec<Finding> {
    let mut findings = ca_findings(anchor, below);
    let by_name = match anchor.names_as_issuer(anchor) {
        Match::Full | Match::NameOnly => true,
        Match::OtherName | Match::OtherKeyId => false,
    };
    if !by_name || !anchor.is_signed_by(anchor.public_key()) {
        findings.push(Finding::new(anchor, Rule::NotSelfSigned));
    }
    findings
}

/// What must hold of any CA certificate at any time, with `below` CA certificates under it.
pub(crate) fn ca_findings(ca: &Certificate, below: u32) -> Vec<Finding> {
    let extensions = ca.extensions();
    let mut findings = Vec::new();
    let mut broken = |rule| findings.push(Finding::new(ca, rule));
    if !extensions.is_ca {
        broken(Rule::NotCa);
    }
    if extensions
        .key_usage
        .is_some_and(|usage| !usage.key_cert_sign)
    {
        broken(Rule::NoKeyCertSign);
    }
    if extensions
        .extended_key_usage
        .is_some_and(|usage| !(usage.server && usage.client))
    {
        broken(Rule::ExtendedKeyUsage);
    }
    if let Some(allowed) = extensions.path_length
        && allowed < below
    {
        let needed = below;
        broken(Rule::PathLength { allowed, needed });
    }
    if let Some(kind) = extensions.constrained {
        broken(Rule::NameConstraints(kind));
    }
    if let Some(rule) = general_rule(ca) {
        broken(rule);
    }
    findings
}

/// What must hold of any certificate at any time.
pub(crate) fn general_rule(certificate: &Certificate) -> Option<Rule> {
    let serial = certificate.serial();
    let negative = serial.first().is_none_or(|first| first & 0x80 != 0);
    // A leading zero only keeps the number positive.
    let octets = serial.strip_prefix(&[0]).unwrap_or(serial).len();
    if negative || octets > 20 {
        return Some(Rule::Serial);
    }
    certificate.subject().fault().map(Rule::SubjectText)
}

/// What is wrong with its time.
pub(crate) fn time_rule(certificate: &Certificate, now: Timestamp) -> Option<Rule> {
    let not_before = certificate.not_before();
    let not_after = certificate.not_after();
    if now < not_before {
        Some(Rule::NotYetValid { not_before })
    } else if now > not_after {
        Some(Rule::Expired { not_after })
    } else {
        None
    }
}
