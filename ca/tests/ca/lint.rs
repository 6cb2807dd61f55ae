//! What a root of a user must be. The rows are measured differences between OpenSSL, BoringSSL,
//! rustls and Go.

use ferromesh_ca::bundle::TrustBundle;
use ferromesh_ca::error::{DerFault, Error, PemFault};
use ferromesh_ca::lint::{Rule, lint_certificate, lint_pair};
use ferromesh_ca::policy::CertOptions;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose,
    NameConstraints,
};

use crate::fixtures::{
    Foreign, common_name, days, der, error, foreign_root, now, p256, rdn, resign, root, root_of,
    root_with_subject, rules, without_key_ids,
};

/// The rules that a root breaks, judged without its key.
fn broken(root: &Foreign) -> Vec<Rule> {
    rules(lint_certificate(root.pem().as_bytes(), now()))
}

fn broken_by(change: impl FnOnce(&mut CertificateParams)) -> Vec<Rule> {
    broken(&foreign_root(change))
}

#[test]
fn a_sound_root_passes_with_its_key() {
    let root = foreign_root(|_| {});
    let key = root.key.serialize_pem();
    let imported = lint_pair(root.pem().as_bytes(), key.as_bytes(), now())
        .ok()
        .unwrap();
    assert_eq!(imported.warnings, []);
    assert_eq!(imported.ca.certificate(), &root.certificate());
}

#[test]
fn a_generated_root_passes_when_it_is_read_back() {
    for bits in [None, Some(2048)] {
        let root = root_of(
            &CertOptions {
                rsa_key_size_bits: bits,
                ..CertOptions::default()
            },
            1,
        );
        let (certificate, key) = (root.certificate().to_pem(), root.key().to_pkcs8_pem());
        let imported = lint_pair(certificate.as_bytes(), key.as_bytes(), now())
            .ok()
            .unwrap();
        assert_eq!(imported.warnings, []);
    }
}

#[test]
fn a_root_that_is_no_ca_is_refused() {
    assert!(broken_by(|params| params.is_ca = IsCa::NoCa).contains(&Rule::NotCa));
    assert_eq!(
        broken_by(|params| params.is_ca = IsCa::ExplicitNoCa),
        [Rule::NotCa]
    );
}

/// rustls alone would accept it.
#[test]
fn a_root_without_key_cert_sign_is_refused() {
    let usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
    assert_eq!(
        broken_by(|params| params.key_usages = usages),
        [Rule::NoKeyCertSign]
    );
}

/// What `openssl req -x509` makes without further options.
#[test]
fn a_root_without_any_key_usage_passes_with_a_warning() {
    let root = foreign_root(|params| params.key_usages = Vec::new());
    let (_, warnings) = lint_certificate(root.pem().as_bytes(), now()).unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].rule, Rule::NoKeyUsage);
    assert!(warnings[0].to_string().contains("keyUsage=critical"));
}

/// rustls and Envoy alone would accept it.
#[test]
fn a_root_that_allows_no_intermediate_is_refused() {
    let (allowed, needed) = (0, 1);
    let none = IsCa::Ca(BasicConstraints::Constrained(0));
    let rules = broken_by(|params| params.is_ca = none);
    assert_eq!(rules, [Rule::PathLength { allowed, needed }]);
    let one = IsCa::Ca(BasicConstraints::Constrained(1));
    assert_eq!(broken_by(|params| params.is_ca = one), []);
}

/// OpenSSL alone would refuse it.
#[test]
fn an_anchor_that_is_not_self_signed_is_refused() {
    let root = foreign_root(|_| {});
    assert_eq!(broken(&root.issue(|_| {})), [Rule::NotSelfSigned]);
}

#[test]
fn a_root_whose_own_signature_is_wrong_is_refused() {
    let mut root = foreign_root(|_| {});
    root.der = resign(&root.der, &KeyPair::generate().unwrap(), |_| {});
    assert_eq!(broken(&root), [Rule::NotSelfSigned]);
}

#[test]
fn a_root_without_subject_key_id_is_refused() {
    assert_eq!(broken_by(without_key_ids), [Rule::NoSubjectKeyId]);
}

#[test]
fn a_root_without_subject_is_refused() {
    let rules = broken_by(|params| params.distinguished_name = DistinguishedName::new());
    assert_eq!(rules, [Rule::EmptySubject]);
}

/// rustls alone would accept an expired anchor.
#[test]
fn a_root_outside_its_life_is_refused() {
    let rules = broken_by(|params| params.not_after = rcgen::date_time_ymd(2026, 11, 1));
    assert!(matches!(rules[..], [Rule::Expired { .. }]));
    let rules = broken_by(|params| params.not_before = rcgen::date_time_ymd(2026, 12, 1));
    assert!(matches!(rules[..], [Rule::NotYetValid { .. }]));
}

#[test]
fn a_root_too_old_to_issue_is_refused_and_one_that_ends_soon_warned_about() {
    let rules = broken_by(|params| params.not_after = rcgen::date_time_ymd(2026, 11, 22));
    assert!(matches!(rules[..], [Rule::EndsTooSoon { .. }]));
    let soon = foreign_root(|params| params.not_after = rcgen::date_time_ymd(2027, 1, 1));
    let (_, warnings) = lint_certificate(soon.pem().as_bytes(), now()).unwrap();
    assert!(matches!(warnings[0].rule, Rule::EndsSoon { .. }));
}

#[test]
fn a_root_that_never_ends_passes() {
    // "No well-defined expiration" (RFC 5280, 4.1.2.5).
    let root = foreign_root(|params| {
        params.not_after =
            rcgen::date_time_ymd(9999, 12, 31) + std::time::Duration::from_secs(24 * 3600 - 1);
    });
    assert_eq!(broken(&root), []);
    let key = root.key.serialize_pem();
    assert!(lint_pair(root.pem().as_bytes(), key.as_bytes(), now()).is_ok());
}

#[test]
fn an_extended_key_usage_that_leaves_out_one_end_of_mutual_tls_is_refused() {
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, CodeSigning, ServerAuth};
    for purposes in [
        vec![CodeSigning],
        vec![ClientAuth],
        vec![ServerAuth],
        vec![Any],
    ] {
        let rules = broken_by(|params| params.extended_key_usages = purposes);
        assert_eq!(rules, [Rule::ExtendedKeyUsage]);
    }
    let both = vec![ClientAuth, ServerAuth];
    assert_eq!(broken_by(|params| params.extended_key_usages = both), []);
}

/// rustls refuses everything below a constraint on URIs, inside or not.
#[test]
fn name_constraints_that_rustls_cannot_match_are_refused() {
    let permit = |subtree| {
        broken_by(|params| {
            params.name_constraints = Some(NameConstraints {
                permitted_subtrees: vec![subtree],
                excluded_subtrees: Vec::new(),
            });
        })
    };
    assert_eq!(permit(GeneralSubtree::DnsName("acme.com".to_owned())), []);
    assert_eq!(
        permit(GeneralSubtree::DirectoryName(common_name("acme"))),
        [Rule::NameConstraints("directory names")]
    );
    // NameConstraints ::= { permitted [0] { { base: URI [6] "cluster.local" } } }
    let base = der(0x30, &der(0x86, b"cluster.local"));
    let content = der(0x30, &der(0xa0, &base));
    let rules = broken_by(|params| {
        let mut extension = CustomExtension::from_oid_content(&[2, 5, 29, 30], content);
        extension.set_criticality(true);
        params.custom_extensions.push(extension);
    });
    assert_eq!(rules, [Rule::NameConstraints("URIs")]);
}

#[test]
fn serial_numbers_that_go_refuses_are_refused() {
    let long = vec![0x7f; 21];
    let rules = broken_by(|params| params.serial_number = Some(long.into()));
    assert_eq!(rules, [Rule::Serial]);
    let mut negative = foreign_root(|params| params.serial_number = Some(vec![0x55; 8].into()));
    let key = &negative.key;
    negative.der = resign(&negative.der, key, |tbs| {
        crate::fixtures::replace(tbs, &[2, 8, 0x55], &[2, 8, 0xd5]);
    });
    assert_eq!(broken(&negative), [Rule::Serial]);
}

#[test]
fn subjects_that_go_cannot_read_are_refused() {
    let name = b"\x55\x04\x03";
    for (tag, text) in [
        (0x1c, b"\0\0\0A".as_slice()),
        (0x13, b"a@b"),
        (0x16, b"\xff\xff"),
        (0x1e, b"\xd8\x00"),
        (0x1e, b"\0A\0"),
    ] {
        let root = root_with_subject(&der(0x30, &rdn(&[(name, tag, text)])));
        match lint_certificate(root.pem().as_bytes(), now()) {
            Err(Error::Der {
                fault: DerFault::Syntax,
                ..
            }) => {}
            other => assert!(matches!(rules(other)[..], [Rule::SubjectText(_)]), "{tag}"),
        }
    }
}

#[test]
fn critical_extensions_that_verifiers_do_not_know_are_refused() {
    let root = foreign_root(|params| {
        let mut extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 1], vec![5, 0]);
        extension.set_criticality(true);
        params.custom_extensions.push(extension);
    });
    let refused = lint_certificate(root.pem().as_bytes(), now()).unwrap_err();
    assert!(matches!(
        refused,
        Error::Der {
            fault: DerFault::CriticalExtension,
            ..
        }
    ));
}

#[test]
fn an_extension_that_stands_twice_is_refused() {
    let root = foreign_root(|params| {
        let content = vec![0x30, 3, 1, 1, 0xff];
        params
            .custom_extensions
            .push(CustomExtension::from_oid_content(&[2, 5, 29, 19], content));
    });
    let refused = lint_certificate(root.pem().as_bytes(), now()).unwrap_err();
    let fault = DerFault::Extension("2.5.29.19".to_owned());
    assert!(matches!(refused, Error::Der { fault: found, .. } if found == fault));
}

#[test]
fn keys_that_not_every_verifier_takes_are_refused() {
    for algorithm in [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P521_SHA512] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let der = foreign_root(|_| {})
            .params
            .self_signed(&key)
            .unwrap()
            .der()
            .to_vec();
        let text = crate::fixtures::pem("CERTIFICATE", &der);
        let refused = lint_certificate(text.as_bytes(), now()).unwrap_err();
        assert!(matches!(
            refused,
            Error::Der {
                fault: DerFault::Key | DerFault::SignatureAlgorithm(_),
                ..
            }
        ));
    }
}

#[test]
fn a_key_of_another_root_is_refused() {
    let root = foreign_root(|_| {});
    let refused = lint_pair(
        root.pem().as_bytes(),
        p256().to_pkcs8_pem().as_bytes(),
        now(),
    );
    assert_eq!(rules(refused), [Rule::KeyMismatch]);
}

#[test]
fn everything_wrong_is_said_at_once_with_remedies() {
    let root = foreign_root(|params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::CrlSign];
        params.not_after = rcgen::date_time_ymd(2026, 2, 1);
    });
    let refused = lint_certificate(root.pem().as_bytes(), now())
        .unwrap_err()
        .to_string();
    for part in [
        "CN=foreign root",
        "path length allows 0",
        "pathlen",
        "keyCertSign",
        "expired at 2026-02-01T00:00:00Z",
        "more life left",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
}

#[test]
fn a_chain_where_one_root_belongs_is_refused_and_so_is_a_key() {
    let text = foreign_root(|_| {}).pem();
    let refused = lint_certificate(text.repeat(2).as_bytes(), now()).unwrap_err();
    assert!(matches!(
        refused,
        Error::Pem {
            fault: PemFault::TooMany { .. },
            ..
        }
    ));
    let with_key = format!("{text}{}", p256().to_pkcs8_pem().as_str());
    let refused = lint_certificate(with_key.as_bytes(), now()).unwrap_err();
    assert!(matches!(
        refused,
        Error::Pem {
            fault: PemFault::WrongBlock { .. },
            ..
        }
    ));
    assert!(
        refused
            .to_string()
            .starts_with("reading root-cert.pem, line "),
        "{refused}"
    );
}

/// Only the first certificate would be read by some, none by others.
#[test]
fn a_bundle_whose_blocks_share_a_line_is_refused() {
    let (a, b) = (root(), root());
    let text = format!(
        "{}{}",
        a.certificate().to_pem().trim_end(),
        b.certificate().to_pem()
    );
    let refused = TrustBundle::from_pem("root-cert.pem", text.as_bytes()).unwrap_err();
    assert!(matches!(
        refused,
        Error::Pem {
            fault: PemFault::Boundary,
            ..
        }
    ));
}

#[test]
fn a_bundle_keeps_its_order_and_counts_a_repeated_root_once() {
    let (a, b) = (root(), root());
    let (a, b) = (a.certificate(), b.certificate());
    let text = format!("# ours\n{}\n\n{}{}", b.to_pem(), a.to_pem(), b.to_pem());
    let bundle = TrustBundle::from_pem("root-cert.pem", text.as_bytes()).unwrap();
    assert_eq!(bundle.roots(), [b.clone(), a.clone()]);
    assert_eq!(
        bundle.to_pem().unwrap(),
        format!("{}{}", b.to_pem(), a.to_pem())
    );
    let only_a = TrustBundle::of(a.clone()).unwrap();
    assert!(bundle.is_superset(&only_a) && !only_a.is_superset(&bundle));
}

/// OpenSSL and BoringSSL would try only one of them.
#[test]
fn roots_of_one_subject_need_key_ids() {
    let bundle = |change: fn(&mut CertificateParams)| {
        let roots = [foreign_root(change), foreign_root(change)];
        let [a, b] = roots.map(|root| root.certificate());
        rules(TrustBundle::of(a).unwrap().with(b))
    };
    assert_eq!(bundle(|_| {}), []);
    assert_eq!(bundle(without_key_ids), [Rule::SameSubject]);
    let same = |params: &mut CertificateParams| {
        params.key_identifier_method = KeyIdMethod::PreSpecified(vec![1; 20]);
    };
    assert_eq!(bundle(same), [Rule::SameSubject]);
}

/// rustls gives up after 100 signatures.
#[test]
fn more_roots_of_one_subject_than_rustls_tries_are_refused() {
    let mut bundle = TrustBundle::of(foreign_root(|_| {}).certificate()).unwrap();
    for _ in 1..90 {
        bundle = bundle.with(foreign_root(|_| {}).certificate()).unwrap();
    }
    let refused = bundle.with(foreign_root(|_| {}).certificate());
    assert_eq!(rules(refused), [Rule::TooManySameSubject { count: 91 }]);
}

#[test]
fn a_root_in_a_bundle_may_have_expired() {
    let old = foreign_root(|params| params.not_after = rcgen::date_time_ymd(2026, 2, 1));
    assert!(TrustBundle::of(old.certificate()).is_ok());
    assert!(old.certificate().remaining(now()) < days(0));
}

#[test]
fn an_empty_text_says_what_belongs_there() {
    let refused = error(lint_certificate(b"", now()));
    assert!(
        refused.to_string().contains("-----BEGIN CERTIFICATE-----"),
        "{refused}"
    );
}
