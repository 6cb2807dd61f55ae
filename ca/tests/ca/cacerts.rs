use std::collections::BTreeMap;

use ferromesh_ca::cacerts::{CaCerts, Form, Found};
use ferromesh_ca::error::{Error, PemFault};
use ferromesh_ca::issue::SigningCa;
use ferromesh_ca::key::PrivateKey;
use ferromesh_ca::lint::Rule;
use ferromesh_ca::pem;
use proptest::prelude::*;

use crate::fixtures::{
    Foreign, bundle, common_name, days, foreign_root, intermediate, now, p256, root, rules,
};

type Entries = BTreeMap<String, Vec<u8>>;

fn read(entries: &Entries) -> Found {
    let entries = entries
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_slice()));
    Found::read(entries, now())
}

fn assemble(root: &SigningCa, key: &PrivateKey) -> CaCerts {
    let signer = intermediate(root, key);
    CaCerts::assemble(key, &signer, &[], &bundle(root.certificate()), now())
        .ok()
        .unwrap()
}

fn entries(cacerts: &CaCerts) -> Entries {
    let entries = cacerts.entries();
    entries
        .map(|(name, content)| (name.to_owned(), content.to_vec()))
        .into()
}

fn ours() -> Entries {
    entries(&assemble(&root(), &p256()))
}

fn text(entries: &Entries, name: &str) -> String {
    String::from_utf8(entries[name].clone()).unwrap()
}

#[test]
fn what_is_written_are_the_five_entries_of_upstream() {
    let root = root();
    let key = p256();
    let signer = intermediate(&root, &key);
    let roots = bundle(root.certificate());
    let cacerts = CaCerts::assemble(&key, &signer, &[], &roots, now())
        .ok()
        .unwrap();
    let entries = entries(&cacerts);
    let (signer, root) = (signer.to_pem(), root.certificate().to_pem());
    assert_eq!(entries.len(), 5);
    assert_eq!(text(&entries, "ca-cert.pem"), signer);
    assert_eq!(text(&entries, "cert-chain.pem"), format!("{signer}{root}"));
    assert_eq!(text(&entries, "root-cert.pem"), root);
    assert!(text(&entries, "ca-key.pem") == *key.to_pkcs8_pem());
    assert_eq!(entries["key.pem"], b"");
}

#[test]
fn what_is_written_reads_back_as_the_same() {
    let cacerts = assemble(&root(), &p256());
    let signer = cacerts.signer().clone();
    let form = Form::Istio;
    assert_eq!(read(&entries(&cacerts)), Found::Valid { form, signer });
}

#[test]
fn intermediates_between_signer_and_root_are_part_of_the_chain() {
    let root = foreign_root(|_| {});
    let upper = root.issue(|_| {});
    let lower = upper.issue(|params| params.distinguished_name = common_name("lower"));
    let cacerts = CaCerts::assemble(
        &lower.private_key(),
        &lower.certificate(),
        &[upper.certificate()],
        &bundle(&root.certificate()),
        now(),
    );
    let chain = cacerts.ok().unwrap().signer().chain().to_vec();
    assert_eq!(chain, [lower, upper, root].map(|ca| ca.certificate()));
}

#[test]
fn nothing_incomplete_or_wrong_is_assembled() {
    let (root, other) = (root(), root());
    let key = p256();
    let signer = intermediate(&root, &key);
    let assemble = |key: &PrivateKey, root: &SigningCa, time| {
        rules(CaCerts::assemble(
            key,
            &signer,
            &[],
            &bundle(root.certificate()),
            time,
        ))
    };
    assert_eq!(assemble(&p256(), &root, now()), [Rule::KeyMismatch]);
    assert!(matches!(
        assemble(&key, &other, now())[..],
        [Rule::IssuerUnknown { .. }]
    ));
    assert!(matches!(
        assemble(&key, &root, now() + days(100))[..],
        [Rule::Expired { .. }]
    ));
}

#[test]
fn a_secret_without_entries_of_a_ca_holds_nothing() {
    assert_eq!(read(&Entries::new()), Found::Nothing);
    let other = Entries::from([("notes".to_owned(), b"x".to_vec())]);
    assert_eq!(read(&other), Found::Nothing);
}

/// istiod would not start with it.
#[test]
fn every_entry_that_istiod_needs_is_missed_when_absent_or_empty() {
    for name in [
        "ca-cert.pem",
        "ca-key.pem",
        "cert-chain.pem",
        "root-cert.pem",
    ] {
        let mut entries = ours();
        entries.remove(name);
        let incomplete = Found::Incomplete {
            form: Form::Istio,
            missing: vec![name],
        };
        assert_eq!(read(&entries), incomplete);
        entries.insert(name.to_owned(), Vec::new());
        assert_eq!(read(&entries), incomplete);
    }
}

#[test]
fn the_empty_entry_of_upstream_may_be_absent() {
    let mut entries = ours();
    entries.remove("key.pem");
    assert!(matches!(read(&entries), Found::Valid { .. }));
}

#[test]
fn a_ca_that_istiod_made_is_recognised() {
    let root = foreign_root(|_| {});
    let mut entries = Entries::from([
        ("ca-cert.pem".to_owned(), root.pem().into_bytes()),
        ("istio-generated".to_owned(), Vec::new()),
    ]);
    let signer = Some(root.certificate());
    assert_eq!(read(&entries), Found::IstioGenerated { signer });
    entries.insert("ca-cert.pem".to_owned(), b"?".to_vec());
    assert_eq!(read(&entries), Found::IstioGenerated { signer: None });
}

fn tls(root: &Foreign, signer: &Foreign) -> Entries {
    Entries::from([
        ("tls.crt".to_owned(), signer.pem().into_bytes()),
        (
            "tls.key".to_owned(),
            signer.key.serialize_pem().into_bytes(),
        ),
        ("ca.crt".to_owned(), root.pem().into_bytes()),
    ])
}

#[test]
fn the_tls_form_is_recognised_and_preferred_as_istiod_does() {
    let root = foreign_root(|_| {});
    let signer = root.issue(|_| {});
    let mut entries = ours();
    entries.extend(tls(&root, &signer));
    match read(&entries) {
        Found::Valid {
            form: Form::Tls,
            signer: found,
        } => {
            assert_eq!(found.certificate(), &signer.certificate());
            assert_eq!(found.chain(), [signer.certificate(), root.certificate()]);
        }
        other => panic!("{other:?}"),
    }
    let mut entries = tls(&root, &signer);
    entries.remove("ca.crt");
    let incomplete = Found::Incomplete {
        form: Form::Tls,
        missing: vec!["ca.crt"],
    };
    assert_eq!(read(&entries), incomplete);
}

/// istiod puts the two files together as they are: without a newline between them peers lose
/// the chain.
#[test]
fn the_tls_form_without_a_newline_at_the_end_is_refused() {
    let root = foreign_root(|_| {});
    let signer = root.issue(|_| {});
    let mut entries = tls(&root, &signer);
    entries.insert(
        "tls.crt".to_owned(),
        signer.pem().trim_end().as_bytes().to_vec(),
    );
    match read(&entries) {
        Found::Invalid {
            form: Form::Tls,
            reason: Error::Pem { item, fault, .. },
        } => {
            assert_eq!((item, fault), ("cert-chain.pem", PemFault::Boundary));
        }
        other => panic!("{other:?}"),
    }
}

fn invalid(entries: &Entries) -> Error {
    match read(entries) {
        Found::Invalid { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn parts_of_different_cas_do_not_make_one() {
    let (a, b) = (ours(), ours());
    for (name, rule) in [
        ("ca-key.pem", Rule::KeyMismatch),
        ("cert-chain.pem", Rule::ChainWithoutSigner),
    ] {
        let mut mixed = a.clone();
        mixed.insert(name.to_owned(), b[name].clone());
        assert_eq!(rules::<()>(Err(invalid(&mixed))), [rule]);
    }
    let mut mixed = a.clone();
    mixed.insert("root-cert.pem".to_owned(), b["root-cert.pem"].clone());
    let broken = rules::<()>(Err(invalid(&mixed)));
    assert!(matches!(broken[..], [Rule::IssuerUnknown { .. }]));
}

/// Verifiers pick either of the two.
#[test]
fn a_chain_with_the_signing_key_certified_twice_is_refused() {
    let key = p256();
    let (a, b) = (root(), root());
    let mut entries = entries(&assemble(&a, &key));
    let twice = format!(
        "{}{}",
        text(&entries, "cert-chain.pem"),
        intermediate(&b, &key).to_pem()
    );
    entries.insert("cert-chain.pem".to_owned(), twice.into_bytes());
    assert_eq!(rules::<()>(Err(invalid(&entries))), [Rule::SignerTwice]);
}

#[test]
fn an_intermediate_among_the_roots_is_refused() {
    let mut entries = ours();
    let roots = format!(
        "{}{}",
        text(&entries, "root-cert.pem"),
        text(&entries, "ca-cert.pem")
    );
    entries.insert("root-cert.pem".to_owned(), roots.into_bytes());
    assert_eq!(rules::<()>(Err(invalid(&entries))), [Rule::NotSelfSigned]);
}

#[test]
fn comments_and_a_repeated_root_change_nothing() {
    let mut entries = ours();
    let before = read(&entries);
    let root = text(&entries, "root-cert.pem");
    entries.insert(
        "root-cert.pem".to_owned(),
        format!("# root\n{root}\n{root}").into_bytes(),
    );
    assert_eq!(read(&entries), before);
}

#[test]
fn what_was_found_tells_nothing_of_the_key() {
    let entries = ours();
    let shown = format!("{:?}", read(&entries));
    for line in text(&entries, "ca-key.pem").lines() {
        assert!(!shown.contains(line));
    }
}

#[test]
fn a_secret_too_large_is_invalid_and_not_read() {
    let mut entries = ours();
    let large = vec![b'\n'; pem::MAX_CERTIFICATES_BYTES + 1];
    entries.insert("root-cert.pem".to_owned(), large);
    assert!(matches!(
        invalid(&entries),
        Error::Pem {
            item: "root-cert.pem",
            fault: PemFault::TooLarge { .. },
            ..
        }
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What is written re-parses identically, however many roots there are.
    #[test]
    fn every_assembled_secret_reads_back_identically(others in 0_usize..4, key_first: bool) {
        let root = root();
        let key = p256();
        let signer = intermediate(&root, &key);
        let mut roots: Vec<_> = (0..others).map(|_| foreign_root(|_| {}).certificate()).collect();
        let place = if key_first { 0 } else { roots.len() };
        roots.insert(place, root.certificate().clone());
        let mut roots = roots.into_iter();
        let mut bundle = bundle(&roots.next().unwrap());
        for root in roots {
            bundle = bundle.with(root).unwrap();
        }
        let cacerts = CaCerts::assemble(&key, &signer, &[], &bundle, now()).ok().unwrap();
        let written = cacerts.signer().clone();
        prop_assert_eq!(written.roots(), &bundle);
        let form = Form::Istio;
        prop_assert_eq!(read(&entries(&cacerts)), Found::Valid { form, signer: written });
    }
}
