//! No bytes make a reader panic: neither arbitrary ones nor sound ones with a few bytes changed,
//! which get much deeper.

use ferromesh_ca::bundle::TrustBundle;
use ferromesh_ca::cacerts::{CaCerts, Found};
use ferromesh_ca::certificate::Certificate;
use ferromesh_ca::key::{PrivateKey, PublicKey};
use ferromesh_ca::lint::{lint_certificate, lint_pair};
use ferromesh_ca::request::{CertificateRequest, VerifiedRequest};
use ferromesh_ca::verify;
use proptest::prelude::*;

use crate::fixtures::{
    URI, bundle, foreign_root, intermediate, now, p256, pem, rdn, resign, root, root_with_subject,
};

/// Changes to make: where, as a fraction of the length, and the new byte.
fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)
}

fn changed(bytes: &[u8], changes: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, byte) in changes {
        let place = place.index(bytes.len());
        bytes[place] = *byte;
    }
    bytes
}

/// Whatever can be done with a certificate that was read.
fn use_certificate(der: &[u8]) {
    let text = pem("CERTIFICATE", der);
    let _judged = lint_certificate(text.as_bytes(), now());
    let _bundle = TrustBundle::from_pem("test", text.as_bytes());
    if let Ok(certificate) = Certificate::from_der(der) {
        let shown = format!("{certificate:?} {}", certificate.issuer());
        assert!(!shown.chars().any(char::is_control));
        assert_eq!(certificate.to_pem(), text);
        let roots = bundle(root().certificate());
        let _workload = verify::verify_workload(&certificate, &[], &roots, now());
        let _serving = verify::verify_serving(&certificate, &[], &roots, now());
        let chain = [certificate.clone()];
        let _signer = verify::verify_signer(&certificate, &p256(), &chain, &roots, now());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_are_refused_by_every_reader(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(Certificate::from_der(&bytes).is_err());
        prop_assert!(PublicKey::from_spki_der("test", &bytes).is_err());
        prop_assert!(VerifiedRequest::from_der(&bytes).is_err());
        for label in ["CERTIFICATE", "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "CERTIFICATE REQUEST"] {
            for text in [bytes.clone(), pem(label, &bytes).into_bytes()] {
                prop_assert!(VerifiedRequest::from_pem(&text).is_err());
                prop_assert!(PrivateKey::from_pem("test", &text).is_err());
                prop_assert!(lint_certificate(&text, now()).is_err());
                prop_assert!(lint_pair(&text, &text, now()).is_err());
                prop_assert!(TrustBundle::from_pem("test", &text).is_err());
            }
        }
    }

    #[test]
    fn secrets_of_arbitrary_entries_are_never_valid(
        entries in prop::collection::btree_map(
            prop::sample::select(vec![
                "ca-cert.pem", "ca-key.pem", "cert-chain.pem", "root-cert.pem", "key.pem",
                "tls.crt", "tls.key", "ca.crt", "istio-generated", "ca-crl.pem", "",
            ]),
            prop::collection::vec(any::<u8>(), 0..40),
            0..8,
        )
    ) {
        let entries = entries.iter().map(|(name, content)| (*name, content.as_slice()));
        let found = Found::read(entries, now());
        let valid = matches!(found, Found::Valid { .. });
        prop_assert!(!valid);
    }

    /// The signature is made after the change, so that what reads behind it is reached too.
    #[test]
    fn changed_certificates_never_panic(changes in changes(), resigned: bool) {
        let sound = foreign_root(|params| {
            params.subject_alt_names = vec![rcgen::SanType::URI(URI.try_into().unwrap())];
            params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
            params.name_constraints = Some(rcgen::NameConstraints {
                permitted_subtrees: vec![rcgen::GeneralSubtree::DnsName("a.b".to_owned())],
                excluded_subtrees: Vec::new(),
            });
        });
        if resigned {
            use_certificate(&resign(&sound.der, &sound.key, |tbs| {
                let other = changed(tbs, &changes);
                tbs.copy_from_slice(&other);
            }));
        } else {
            use_certificate(&changed(&sound.der, &changes));
        }
    }

    #[test]
    fn subjects_of_arbitrary_content_never_panic(
        tag in any::<u8>(),
        text in prop::collection::vec(any::<u8>(), 1..40),
        whole: bool,
    ) {
        let subject = if whole {
            crate::fixtures::der(0x31, &text)
        } else {
            rdn(&[(b"\x55\x04\x03", tag, &text), (b"\x55\x04\x0b", 0x0c, b"unit")])
        };
        // Long enough for the placeholder that it replaces.
        let padding = rdn(&[(b"\x55\x04\x0b", 0x0c, b"padding")]);
        let subject = crate::fixtures::der(0x30, &[subject, padding].concat());
        let root = root_with_subject(&subject);
        use_certificate(&root.der);
        let key = root.key.serialize_pem();
        if let Ok(imported) = lint_pair(root.pem().as_bytes(), key.as_bytes(), now()) {
            let issued = intermediate(&imported.ca, &p256());
            prop_assert_eq!(issued.issuer().der(), &subject[..]);
        }
    }

    #[test]
    fn changed_requests_never_panic(changes in changes()) {
        let key = p256();
        let names = [URI.parse().unwrap()];
        let request = CertificateRequest::new(&key, &"Istio".parse().unwrap(), &names).unwrap();
        let bytes = changed(request.der(), &changes);
        let read = VerifiedRequest::from_der(&bytes);
        // A request that still verifies still has the same key to give.
        if let Ok(read) = read {
            prop_assert_eq!(read.public_key(), key.public_key());
        }
        let text = changed(request.to_pem().as_bytes(), &changes);
        if let Ok(read) = VerifiedRequest::from_pem(&text) {
            prop_assert_eq!(read.public_key(), key.public_key());
        }
    }

    #[test]
    fn changed_keys_never_panic(changes in changes()) {
        let text = p256().to_pkcs8_pem();
        let _read = PrivateKey::from_pem("test", &changed(text.as_bytes(), &changes));
    }

    #[test]
    fn changed_secrets_never_panic(changes in changes(), place in 0_usize..4) {
        let root = root();
        let key = p256();
        let signer = intermediate(&root, &key);
        let roots = bundle(root.certificate());
        let cacerts = CaCerts::assemble(&key, &signer, &[], &roots, now()).ok().unwrap();
        let mut entries = cacerts.entries().map(|(name, content)| (name, content.to_vec()));
        entries[place].1 = changed(&entries[place].1, &changes);
        let entries = entries.iter().map(|(name, content)| (*name, content.as_slice()));
        if let Found::Valid { signer, .. } = Found::read(entries, now()) {
            // Only what nothing depends on can have changed: comments, and the copy of the root
            // that is sent along.
            prop_assert_eq!(signer.certificate(), cacerts.signer().certificate());
            prop_assert_eq!(signer.roots(), cacerts.signer().roots());
        }
    }
}
