//! Certificates of every kind, sound and broken.

use ferromesh_ca::bundle::TrustBundle;
use ferromesh_ca::certificate::Certificate;
use ferromesh_ca::error::Error;
use ferromesh_ca::issue::{self, Serial, SigningCa};
use ferromesh_ca::key::{KeyAlgorithm, PrivateKey};
use ferromesh_ca::lint::Rule;
use ferromesh_ca::policy::{CertOptions, IntermediateProfile, RootProfile};
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SigningKey as _,
};
use x509_parser::prelude::FromDer as _;

pub(crate) const URI: &str = "spiffe://cluster.local/ns/istio-system/sa/istiod";

pub(crate) fn now() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().unwrap()
}

pub(crate) fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(days * 24)
}

pub(crate) fn serial(byte: u8) -> Serial {
    Serial::from_random([byte; 16])
}

pub(crate) fn key(algorithm: KeyAlgorithm) -> PrivateKey {
    PrivateKey::generate(algorithm).unwrap()
}

pub(crate) fn p256() -> PrivateKey {
    key(KeyAlgorithm::EcdsaP256)
}

/// A root as the management cluster generates it.
pub(crate) fn root_of(options: &CertOptions, epoch: u64) -> SigningCa {
    let profile = RootProfile::for_virtual_mesh(options, "gloo-mesh", "vm", epoch).unwrap();
    let key = key(profile.key_algorithm());
    issue::self_signed_root(key, &profile, now(), serial(1)).unwrap()
}

pub(crate) fn root() -> SigningCa {
    root_of(&CertOptions::default(), 1)
}

pub(crate) fn intermediate_profile(options: &CertOptions) -> IntermediateProfile {
    let names = vec![URI.parse().unwrap()];
    IntermediateProfile::new(options, "cluster-1", "istiod-istio-system", 3, names).unwrap()
}

/// An intermediate as the management cluster issues it.
pub(crate) fn intermediate(root: &SigningCa, key: &PrivateKey) -> Certificate {
    let profile = intermediate_profile(&CertOptions::default());
    issue::intermediate(key.public_key(), &profile, root, now(), serial(2)).unwrap()
}

pub(crate) fn bundle(root: &Certificate) -> TrustBundle {
    TrustBundle::of(root.clone()).unwrap()
}

/// A certificate that somebody else made, with its key.
pub(crate) struct Foreign {
    pub(crate) params: CertificateParams,
    pub(crate) der: Vec<u8>,
    pub(crate) key: KeyPair,
}

impl Foreign {
    pub(crate) fn pem(&self) -> String {
        pem("CERTIFICATE", &self.der)
    }

    pub(crate) fn certificate(&self) -> Certificate {
        Certificate::from_der(&self.der).unwrap()
    }

    pub(crate) fn private_key(&self) -> PrivateKey {
        PrivateKey::from_pem("key", self.key.serialize_pem().as_bytes()).unwrap()
    }

    /// A certificate under this one.
    pub(crate) fn issue(&self, change: impl FnOnce(&mut CertificateParams)) -> Foreign {
        let key = KeyPair::generate().unwrap();
        self.issue_for(key, change)
    }

    pub(crate) fn issue_for(
        &self,
        key: KeyPair,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Foreign {
        let params = ca_params("intermediate", change);
        let issuer = Issuer::from_params(&self.params, &self.key);
        let der = params.signed_by(&key, &issuer).unwrap().der().to_vec();
        Foreign { params, der, key }
    }
}

/// A self-signed root, sound but for `change`.
pub(crate) fn foreign_root(change: impl FnOnce(&mut CertificateParams)) -> Foreign {
    let params = ca_params("foreign root", change);
    let key = KeyPair::generate().unwrap();
    let der = params.self_signed(&key).unwrap().der().to_vec();
    Foreign { params, der, key }
}

fn ca_params(name: &str, change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2036, 1, 1);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    change(&mut params);
    params
}

pub(crate) fn common_name(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

/// Makes it a CA that has no key identifiers.
pub(crate) fn without_key_ids(params: &mut CertificateParams) {
    params.is_ca = IsCa::NoCa;
    params.use_authority_key_identifier_extension = false;
    // BasicConstraints: cA TRUE.
    let mut extension =
        CustomExtension::from_oid_content(&[2, 5, 29, 19], vec![0x30, 3, 1, 1, 0xff]);
    extension.set_criticality(true);
    params.custom_extensions.push(extension);
}

/// The PEM text of these bytes.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut digits = String::new();
    for group in der.chunks(3) {
        let mut bits = 0;
        for index in 0..3 {
            bits = bits << 8 | u32::from(group.get(index).copied().unwrap_or(0));
        }
        for index in 0..4_u32 {
            let digit = usize::try_from(bits >> (18 - 6 * index) & 63).unwrap();
            let used = usize::try_from(index).unwrap() <= group.len();
            digits.push(if used {
                char::from(alphabet[digit])
            } else {
                '='
            });
        }
    }
    let lines: Vec<&str> = digits
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

/// One DER element.
pub(crate) fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut element = vec![tag];
    match u16::try_from(content.len()).unwrap() {
        length @ 0..128 => element.push(u8::try_from(length).unwrap()),
        length => {
            element.push(0x82);
            element.extend_from_slice(&length.to_be_bytes());
        }
    }
    element.extend_from_slice(content);
    element
}

/// A relative distinguished name of one or more attributes: object identifier and string.
pub(crate) fn rdn(attributes: &[(&[u8], u8, &[u8])]) -> Vec<u8> {
    let attributes: Vec<Vec<u8>> = attributes
        .iter()
        .map(|(oid, tag, text)| der(0x30, &[der(6, oid), der(*tag, text)].concat()))
        .collect();
    der(0x31, &attributes.concat())
}

/// A root whose subject is exactly this DER, which rcgen could not write.
pub(crate) fn root_with_subject(subject: &[u8]) -> Foreign {
    // A placeholder of the same length is replaced.
    let frame = der(0x30, &rdn(&[(b"\x55\x04\x03", 0x0c, b"")])).len();
    let placeholder = "x".repeat(subject.len() - frame);
    let mut root = foreign_root(|params| params.distinguished_name = common_name(&placeholder));
    let placeholder = rdn(&[(b"\x55\x04\x03", 0x0c, placeholder.as_bytes())]);
    let placeholder = der(0x30, &placeholder);
    assert_eq!(placeholder.len(), subject.len());
    root.der = resign(&root.der, &root.key, |tbs| {
        replace(tbs, &placeholder, subject);
    });
    root
}

/// Every occurrence of `from` replaced, which must be there.
pub(crate) fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = (0..=bytes.len() - from.len())
        .filter(|start| bytes[*start..].starts_with(from))
        .collect();
    assert!(!places.is_empty());
    for start in places {
        bytes[start..start + to.len()].copy_from_slice(to);
    }
}

/// The certificate with its content changed and signed again.
pub(crate) fn resign(certificate: &[u8], key: &KeyPair, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let (_, parsed) = x509_parser::certificate::X509Certificate::from_der(certificate).unwrap();
    let mut tbs = parsed.tbs_certificate.as_ref().to_vec();
    change(&mut tbs);
    let signature = key.sign(&tbs).unwrap();
    // ecdsa-with-SHA256 (RFC 5758, 3.2).
    let algorithm = der(0x30, &der(6, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]));
    let signature = der(3, &[&[0], signature.as_slice()].concat());
    der(0x30, &[tbs, algorithm, signature].concat())
}

/// The rules that were broken.
pub(crate) fn rules<T>(result: Result<T, Error>) -> Vec<Rule> {
    match result {
        Ok(_) => Vec::new(),
        Err(Error::Refused(findings)) => findings
            .iter()
            .map(|finding| finding.rule.clone())
            .collect(),
        Err(other) => panic!("{other}"),
    }
}

/// The error; values that hold keys have no `Debug` for `unwrap_err`.
pub(crate) fn error<T>(result: Result<T, Error>) -> Error {
    result.err().expect("an error")
}
