use ferromesh_ca::error::Error;
use ferromesh_ca::issue::{self, Serial};
use ferromesh_ca::key::{KeyAlgorithm, KeyKind};
use ferromesh_ca::lint::{Rule, lint_pair};
use ferromesh_ca::name::SubjectAltName;
use ferromesh_ca::policy::{CertOptions, RootProfile, ServingProfile, Violation};
use ferromesh_ca::verify;
use jiff::SignedDuration;
use proptest::prelude::*;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::fixtures::{
    URI, bundle, days, error, intermediate, intermediate_profile, key, now, p256, rdn, root,
    root_of, root_with_subject, rules, serial,
};

fn parsed(der: &[u8]) -> X509Certificate<'_> {
    X509Certificate::from_der(der).unwrap().1
}

/// Object identifiers and criticality of all extensions, in order.
fn extensions(certificate: &X509Certificate<'_>) -> Vec<(String, bool)> {
    let mut all: Vec<_> = certificate
        .extensions()
        .iter()
        .map(|extension| (extension.oid.to_id_string(), extension.critical))
        .collect();
    all.sort();
    all
}

fn named(extensions: &[(&str, bool)]) -> Vec<(String, bool)> {
    let owned = extensions
        .iter()
        .map(|(oid, critical)| ((*oid).to_owned(), *critical));
    owned.collect()
}

const AUTHORITY_KEY_ID: &str = "2.5.29.35";
const SUBJECT_KEY_ID: &str = "2.5.29.14";
const BASIC_CONSTRAINTS: &str = "2.5.29.19";
const KEY_USAGE: &str = "2.5.29.15";
const EXTENDED_KEY_USAGE: &str = "2.5.29.37";
const SUBJECT_ALT_NAME: &str = "2.5.29.17";
const SIGN_CERTIFICATES_AND_CRLS: u16 = 1 << 5 | 1 << 6;

#[test]
fn a_root_says_what_its_profile_says_and_nothing_else() {
    let root = root();
    let certificate = root.certificate();
    let mark = certificate.public_key().fingerprint().short();
    assert_eq!(
        certificate.subject().to_string(),
        format!("O=gloo-mesh, CN=vm.gloo-mesh root e1 {mark}")
    );
    assert_eq!(certificate.issuer(), certificate.subject());
    assert_eq!(certificate.public_key().kind(), KeyKind::EcdsaP384);
    assert_eq!(
        certificate.not_before(),
        now() - SignedDuration::from_hours(1)
    );
    assert_eq!(certificate.not_after(), now() + days(3650));

    let parsed = parsed(certificate.der());
    assert_eq!(
        extensions(&parsed),
        named(&[
            (SUBJECT_KEY_ID, false),
            (KEY_USAGE, true),
            (BASIC_CONSTRAINTS, true),
            (AUTHORITY_KEY_ID, false),
        ])
    );
    let constraints = parsed.basic_constraints().unwrap().unwrap().value;
    assert!(constraints.ca);
    assert_eq!(constraints.path_len_constraint, None);
    let usage = parsed.key_usage().unwrap().unwrap().value.flags;
    assert_eq!(usage, SIGN_CERTIFICATES_AND_CRLS);
}

#[test]
fn an_intermediate_says_what_its_profile_says_and_nothing_else() {
    let root = root();
    let key = p256();
    let certificate = intermediate(&root, &key);
    assert_eq!(
        certificate.subject().to_string(),
        "O=Istio, CN=cluster-1/istiod-istio-system g3"
    );
    assert_eq!(
        certificate.issuer().der(),
        root.certificate().subject().der()
    );
    assert_eq!(certificate.public_key(), key.public_key());
    assert_eq!(
        certificate.not_before(),
        now() - SignedDuration::from_hours(1)
    );
    assert_eq!(certificate.not_after(), now() + days(90));
    assert_eq!(certificate.uris(), [URI.to_owned()]);

    let parsed = parsed(certificate.der());
    assert_eq!(
        extensions(&parsed),
        named(&[
            (SUBJECT_KEY_ID, false),
            (KEY_USAGE, true),
            (SUBJECT_ALT_NAME, false),
            (BASIC_CONSTRAINTS, true),
            (AUTHORITY_KEY_ID, false),
        ])
    );
    let constraints = parsed.basic_constraints().unwrap().unwrap().value;
    assert!(constraints.ca);
    assert_eq!(constraints.path_len_constraint, Some(0));
    let usage = parsed.key_usage().unwrap().unwrap().value.flags;
    assert_eq!(usage, SIGN_CERTIFICATES_AND_CRLS);
    let names = &parsed
        .subject_alternative_name()
        .unwrap()
        .unwrap()
        .value
        .general_names;
    assert_eq!(names.len(), 1);
}

#[test]
fn an_intermediate_names_its_issuer_by_the_issuers_own_key_id() {
    let root = root();
    let certificate = intermediate(&root, &p256());
    let parsed = parsed(certificate.der());
    let authority = parsed
        .iter_extensions()
        .find_map(|extension| match extension.parsed_extension() {
            x509_parser::extensions::ParsedExtension::AuthorityKeyIdentifier(id) => Some(id),
            _ => None,
        })
        .unwrap();
    assert_eq!(
        authority.key_identifier.as_ref().map(|id| id.0),
        root.certificate().subject_key_id()
    );
    assert!(certificate.subject_key_id().is_some());
    assert_ne!(
        certificate.subject_key_id(),
        root.certificate().subject_key_id()
    );
}

#[test]
fn options_of_the_user_reach_the_certificates() {
    let options = CertOptions {
        ttl_days: Some(365),
        rsa_key_size_bits: Some(2048),
        organization: Some("acme".to_owned()),
    };
    let root = root_of(&options, 2);
    assert_eq!(root.certificate().not_after(), now() + days(365));
    assert_eq!(
        root.certificate().public_key().kind(),
        KeyKind::Rsa { bits: 2048 }
    );
    let shown = root.certificate().subject().to_string();
    assert!(
        shown.starts_with("O=acme, CN=vm.gloo-mesh root e2 "),
        "{shown}"
    );

    let shorter = CertOptions {
        ttl_days: Some(30),
        ..options
    };
    let profile = intermediate_profile(&shorter);
    let key = key(profile.key_algorithm());
    let certificate =
        issue::intermediate(key.public_key(), &profile, &root, now(), serial(3)).unwrap();
    assert_eq!(certificate.not_after(), now() + days(30));
    assert_eq!(certificate.public_key().kind(), KeyKind::Rsa { bits: 2048 });
    verify::verify_signer(&certificate, &key, &[], &bundle(root.certificate()), now()).unwrap();
}

#[test]
fn two_roots_of_one_mesh_never_share_a_subject() {
    let (a, b) = (root(), root());
    assert_ne!(a.certificate().subject(), b.certificate().subject());
    assert_ne!(
        a.certificate().subject_key_id(),
        b.certificate().subject_key_id()
    );
}

#[test]
fn an_intermediate_ends_an_hour_before_its_root() {
    let short = CertOptions {
        ttl_days: Some(10),
        ..CertOptions::default()
    };
    let root = root_of(&short, 1);
    let certificate = intermediate(&root, &p256());
    let end = root.certificate().not_after();
    assert_eq!(certificate.not_after(), end - SignedDuration::from_hours(1));
}

#[test]
fn an_intermediate_never_starts_before_its_root() {
    let root = root();
    let later = now() + SignedDuration::from_mins(10);
    let profile = intermediate_profile(&CertOptions::default());
    let certificate =
        issue::intermediate(p256().public_key(), &profile, &root, later, serial(4)).unwrap();
    assert_eq!(
        certificate.not_before(),
        later - SignedDuration::from_hours(1)
    );
    let earlier = now() - SignedDuration::from_mins(10);
    let certificate =
        issue::intermediate(p256().public_key(), &profile, &root, earlier, serial(4)).unwrap();
    assert_eq!(certificate.not_before(), root.certificate().not_before());
}

#[test]
fn nothing_is_issued_outside_the_life_of_the_root() {
    let root = root();
    let profile = intermediate_profile(&CertOptions::default());
    let end = root.certificate().not_after();
    for time in [
        now() - SignedDuration::from_hours(2),
        end - SignedDuration::from_hours(1),
        end + SignedDuration::from_hours(1),
    ] {
        let refused = issue::intermediate(p256().public_key(), &profile, &root, time, serial(5));
        assert!(matches!(
            refused,
            Err(Error::Policy(Violation::Issuer { .. }))
        ));
    }
}

#[test]
fn a_key_of_another_kind_than_asked_for_is_refused() {
    let root = root();
    let profile = intermediate_profile(&CertOptions::default());
    let other = key(KeyAlgorithm::EcdsaP384);
    let refused = issue::intermediate(other.public_key(), &profile, &root, now(), serial(6));
    let wanted = KeyKind::EcdsaP256;
    let found = KeyKind::EcdsaP384;
    assert_eq!(
        refused,
        Err(Error::Policy(Violation::KeyKind { wanted, found }))
    );
}

/// Subjects that corporate roots have and that a name kept in a map cannot hold.
#[test]
fn the_subject_of_any_root_is_copied_byte_for_byte() {
    let domain = b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x19";
    let unit = b"\x55\x04\x0b";
    let name = b"\x55\x04\x03";
    let country = b"\x55\x04\x06";
    let repeated = [
        rdn(&[(domain, 0x16, b"com")]),
        rdn(&[(domain, 0x16, b"acme")]),
        rdn(&[(unit, 0x13, b"PKI")]),
        rdn(&[(unit, 0x13, b"Mesh")]),
    ];
    let several_in_one = [
        rdn(&[(country, 0x13, b"DE")]),
        rdn(&[(name, 0x0c, "Wurzel Süd".as_bytes()), (unit, 0x0c, b"PKI")]),
    ];
    let old_strings = [
        rdn(&[(unit, 0x14, b"T61")]),
        rdn(&[(name, 0x1e, b"\0A\0B\0C")]),
    ];
    for subject in [
        repeated.concat(),
        several_in_one.concat(),
        old_strings.concat(),
    ] {
        let subject = crate::fixtures::der(0x30, &subject);
        let foreign = root_with_subject(&subject);
        let pem_key = foreign.key.serialize_pem();
        let imported = lint_pair(foreign.pem().as_bytes(), pem_key.as_bytes(), now());
        let root = imported
            .map_err(|error| error.to_string())
            .map(|root| root.ca);
        let root = root.unwrap();
        assert_eq!(root.certificate().subject().der(), subject);
        let key = p256();
        let certificate = intermediate(&root, &key);
        assert_eq!(certificate.issuer().der(), subject);
        verify::verify_signer(&certificate, &key, &[], &bundle(root.certificate()), now()).unwrap();
    }
}

#[test]
fn a_serving_certificate_is_for_its_names_only() {
    let profile = RootProfile::for_serving("ferromesh webhook", 1).unwrap();
    let ca_key = key(profile.key_algorithm());
    let ca = issue::self_signed_root(ca_key, &profile, now(), serial(1)).unwrap();
    let names: Vec<SubjectAltName> = [
        "ferromesh.gloo-mesh.svc",
        "*.example.com",
        "127.0.0.1",
        "::1",
    ]
    .map(|name| name.parse().unwrap())
    .to_vec();
    let profile = ServingProfile::new("ferromesh", names.clone()).unwrap();
    let key = key(profile.key_algorithm());
    let leaf = issue::serving_leaf(key.public_key(), &profile, &ca, now(), serial(2)).unwrap();
    let roots = bundle(ca.certificate());
    verify::verify_serving(&leaf, &names, &roots, now()).unwrap();

    let other: SubjectAltName = "other.gloo-mesh.svc".parse().unwrap();
    let name = other.to_string();
    assert_eq!(
        rules(verify::verify_serving(&leaf, &[other], &roots, now())),
        [Rule::NameNotCovered { name }]
    );
    assert!(verify::verify_serving(&leaf, &names, &roots, leaf.not_after() + days(1)).is_err());
    assert!(verify::verify_serving(&leaf, &names, &bundle(root().certificate()), now()).is_err());

    let parsed = parsed(leaf.der());
    assert_eq!(
        extensions(&parsed),
        named(&[
            (SUBJECT_KEY_ID, false),
            (KEY_USAGE, true),
            (SUBJECT_ALT_NAME, false),
            (BASIC_CONSTRAINTS, true),
            (AUTHORITY_KEY_ID, false),
            (EXTENDED_KEY_USAGE, false),
        ])
    );
    let purposes = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(purposes.server_auth && !purposes.client_auth && !purposes.any);
    assert!(!leaf.is_ca());
}

#[test]
fn a_serving_ca_cannot_sign_an_intermediate() {
    let profile = RootProfile::for_serving("ferromesh webhook", 1).unwrap();
    let ca_key = key(profile.key_algorithm());
    let ca = issue::self_signed_root(ca_key, &profile, now(), serial(1)).unwrap();
    let profile = intermediate_profile(&CertOptions::default());
    let refused = issue::intermediate(p256().public_key(), &profile, &ca, now(), serial(2));
    let (allowed, needed) = (0, 1);
    assert_eq!(rules(refused), [Rule::PathLength { allowed, needed }]);
}

#[test]
fn a_key_that_is_not_the_certificates_own_makes_no_ca() {
    let refused = issue::SigningCa::new(root().certificate().clone(), p256());
    assert!(matches!(error(refused), Error::Refused(_)));
}

proptest! {
    #[test]
    fn serial_numbers_are_positive_and_of_one_length(bytes in any::<[u8; 16]>()) {
        let profile = RootProfile::for_serving("test", 1).unwrap();
        let ca = issue::self_signed_root(p256(), &profile, now(), Serial::from_random(bytes));
        let ca = ca.ok().unwrap();
        let serial = ca.certificate().serial();
        prop_assert_eq!(serial.len(), 16);
        prop_assert_eq!(serial[0] & 0x80, 0);
        prop_assert_eq!(&serial[1..], &bytes[1..]);
    }
}
