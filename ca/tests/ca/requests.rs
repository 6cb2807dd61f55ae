use ferromesh_ca::error::{DerFault, Error, PemFault};
use ferromesh_ca::issue;
use ferromesh_ca::policy::CertOptions;
use ferromesh_ca::request::{CertificateRequest, MAX_REQUEST_BYTES, VerifiedRequest};
use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType,
};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use crate::fixtures::{URI, intermediate_profile, now, p256, pem, replace, root, serial};

#[test]
fn a_request_proves_its_public_key() {
    let key = p256();
    let organization = "Istio".parse().unwrap();
    let request = CertificateRequest::new(&key, &organization, &[URI.parse().unwrap()]).unwrap();
    let verified = VerifiedRequest::from_pem(request.to_pem().as_bytes()).unwrap();
    assert_eq!(verified.public_key(), key.public_key());
    let (_, parsed) = X509CertificationRequest::from_der(request.der()).unwrap();
    let info = &parsed.certification_request_info;
    assert_eq!(info.subject.to_string(), "O=Istio");
    assert!(format!("{:?}", parsed.requested_extensions().unwrap().next()).contains(URI));
}

#[test]
fn every_kind_of_key_can_make_a_request() {
    use ferromesh_ca::key::KeyAlgorithm::{EcdsaP256, EcdsaP384, Rsa2048};
    for algorithm in [EcdsaP256, EcdsaP384, Rsa2048] {
        let key = crate::fixtures::key(algorithm);
        let request = CertificateRequest::new(&key, &"Istio".parse().unwrap(), &[]).unwrap();
        let verified = VerifiedRequest::from_der(request.der()).unwrap();
        assert_eq!(verified.public_key(), key.public_key());
    }
}

#[test]
fn a_request_for_somebody_elses_key_is_refused() {
    let (own, other) = (p256(), p256());
    let request = CertificateRequest::new(&own, &"Istio".parse().unwrap(), &[]).unwrap();
    let mut der = request.der().to_vec();
    replace(
        &mut der,
        own.public_key().spki_der(),
        other.public_key().spki_der(),
    );
    assert_eq!(VerifiedRequest::from_der(&der), Err(Error::Possession));
}

#[test]
fn a_request_changed_after_signing_is_refused() {
    let request = CertificateRequest::new(&p256(), &"Istio".parse().unwrap(), &[]).unwrap();
    let mut der = request.der().to_vec();
    replace(&mut der, b"Istio", b"istio");
    assert_eq!(VerifiedRequest::from_der(&der), Err(Error::Possession));
}

#[test]
fn keys_that_some_verifier_refuses_are_refused_in_requests() {
    for algorithm in [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P521_SHA512] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let request = CertificateParams::default()
            .serialize_request(&key)
            .unwrap();
        assert!(matches!(
            VerifiedRequest::from_der(request.der()),
            Err(Error::Der {
                fault: DerFault::SignatureAlgorithm(_) | DerFault::Key,
                ..
            })
        ));
    }
}

#[test]
fn requests_are_bounded() {
    assert!(matches!(
        VerifiedRequest::from_pem(&vec![b' '; MAX_REQUEST_BYTES + 1]),
        Err(Error::Pem {
            fault: PemFault::TooLarge { .. },
            ..
        })
    ));
    assert!(matches!(
        VerifiedRequest::from_der(&vec![0; MAX_REQUEST_BYTES + 1]),
        Err(Error::Der {
            fault: DerFault::TooLarge { .. },
            ..
        })
    ));
}

#[test]
fn what_is_not_one_request_is_refused() {
    let request = CertificateRequest::new(&p256(), &"Istio".parse().unwrap(), &[]).unwrap();
    let trailing = [request.der(), &[0]].concat();
    assert!(VerifiedRequest::from_der(&trailing).is_err());
    assert!(VerifiedRequest::from_pem(request.to_pem().repeat(2).as_bytes()).is_err());
    let mislabelled = pem("CERTIFICATE", request.der());
    let refused = VerifiedRequest::from_pem(mislabelled.as_bytes()).unwrap_err();
    assert!(
        refused.to_string().contains("CERTIFICATE REQUEST"),
        "{refused}"
    );
    let older = pem("NEW CERTIFICATE REQUEST", request.der());
    assert!(VerifiedRequest::from_pem(older.as_bytes()).is_ok());
}

/// Everything that a request can ask for.
fn wishes() -> impl Strategy<Value = CertificateParams> {
    let usages = prop::sample::subsequence(
        vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::KeyEncipherment,
        ],
        0..=4,
    );
    let purposes = prop::sample::subsequence(
        vec![
            ExtendedKeyUsagePurpose::Any,
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::CodeSigning,
        ],
        0..=4,
    );
    let ca = prop_oneof![
        Just(IsCa::NoCa),
        Just(IsCa::ExplicitNoCa),
        Just(IsCa::Ca(BasicConstraints::Unconstrained)),
        any::<u8>().prop_map(|length| IsCa::Ca(BasicConstraints::Constrained(length))),
    ];
    let name = prop_oneof![
        "[a-z]{1,20}".prop_map(|name| SanType::DnsName(name.try_into().unwrap())),
        "spiffe://[a-z]{1,20}/ns/[a-z]{1,9}/sa/[a-z]{1,9}"
            .prop_map(|uri| SanType::URI(uri.try_into().unwrap())),
        any::<[u8; 4]>().prop_map(|octets| SanType::IpAddress(octets.into())),
    ];
    let extension = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(
        |(critical, content)| {
            // A private arc, and an OCTET STRING so that it is DER.
            let content = crate::fixtures::der(4, &content);
            let mut extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 1], content);
            extension.set_criticality(critical);
            extension
        },
    );
    (
        "[ -~é]{0,30}",
        prop::collection::vec(name, 0..4),
        usages,
        purposes,
        ca,
        prop::collection::vec(extension, 0..3),
    )
        .prop_map(|(subject, names, usages, purposes, ca, extensions)| {
            let mut params = CertificateParams::default();
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, subject);
            params.subject_alt_names = names;
            params.key_usages = usages;
            params.extended_key_usages = purposes;
            params.is_ca = ca;
            params.custom_extensions = extensions;
            params
        })
}

proptest! {
    /// Issued certificate ⊆ policy: whatever the request asks for, what is signed is, byte for
    /// byte, what policy says about the bare public key.
    #[test]
    fn a_request_contributes_only_its_public_key(params in wishes()) {
        let root = root();
        let key = KeyPair::generate().unwrap();
        let request = params.serialize_request(&key).unwrap();
        let verified = VerifiedRequest::from_der(request.der()).unwrap();

        let own = ferromesh_ca::key::PrivateKey::from_pem("key", key.serialize_pem().as_bytes());
        let own = own.ok().unwrap();
        let profile = intermediate_profile(&CertOptions::default());
        let issue = |key| issue::intermediate(key, &profile, &root, now(), serial(9)).unwrap();
        let asked = issue(verified.public_key());
        let bare = issue(own.public_key());

        // Only the random part of the ECDSA signature may differ.
        let content = |der: &[u8]| {
            let (_, parsed) = x509_parser::certificate::X509Certificate::from_der(der).unwrap();
            parsed.tbs_certificate.as_ref().to_vec()
        };
        prop_assert_eq!(content(asked.der()), content(bare.der()));
        prop_assert_eq!(asked.uris(), [URI.to_owned()]);
    }
}
