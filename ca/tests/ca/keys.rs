use ferromesh_ca::error::{DerFault, Error, PemFault};
use ferromesh_ca::key::{KeyAlgorithm, KeyKind, MAX_KEY_BYTES, PrivateKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::der_parser::asn1_rs::{Any, FromDer as _, Sequence};

use crate::fixtures::{der, error, key, p256, pem};

fn read(text: &str) -> Result<PrivateKey, Error> {
    PrivateKey::from_pem("key.pem", text.as_bytes())
}

fn pkcs8(key: &PrivateKey) -> Vec<u8> {
    let text = key.to_pkcs8_pem();
    let key = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).unwrap();
    key.secret_pkcs8_der().to_vec()
}

/// What PKCS#8 wraps: PKCS#1 or SEC1.
fn inner(key: &PrivateKey) -> Vec<u8> {
    let pkcs8 = pkcs8(key);
    let (_, sequence) = Sequence::from_der(&pkcs8).unwrap();
    let (rest, _version) = Any::from_der(&sequence.content).unwrap();
    let (rest, _algorithm) = Any::from_der(rest).unwrap();
    let (_, key) = Any::from_der(rest).unwrap();
    key.data.to_vec()
}

#[test]
fn every_kind_of_key_reads_back_from_pkcs8_as_itself() {
    for algorithm in [
        KeyAlgorithm::EcdsaP256,
        KeyAlgorithm::EcdsaP384,
        KeyAlgorithm::Rsa2048,
        KeyAlgorithm::Rsa3072,
    ] {
        let key = key(algorithm);
        assert_eq!(key.public_key().kind(), KeyKind::from(algorithm));
        let text = key.to_pkcs8_pem();
        assert!(text.starts_with("-----BEGIN PRIVATE KEY-----\n"));
        assert!(text.ends_with("-----END PRIVATE KEY-----\n"));
        let read = read(&text).ok().unwrap();
        assert_eq!(read.public_key(), key.public_key());
        assert!(*read.to_pkcs8_pem() == *text);
    }
}

#[test]
fn pkcs1_and_sec1_keys_are_read_and_leave_as_pkcs8() {
    for (algorithm, label) in [
        (KeyAlgorithm::Rsa2048, "RSA PRIVATE KEY"),
        (KeyAlgorithm::EcdsaP256, "EC PRIVATE KEY"),
        (KeyAlgorithm::EcdsaP384, "EC PRIVATE KEY"),
    ] {
        let key = key(algorithm);
        let read = read(&pem(label, &inner(&key))).ok().unwrap();
        assert_eq!(read.public_key(), key.public_key());
        assert!(*read.to_pkcs8_pem() == *key.to_pkcs8_pem());
    }
}

#[test]
fn a_key_under_the_label_of_another_form_is_refused() {
    let key = p256();
    let text = key.to_pkcs8_pem();
    let sec1 = inner(&key);
    for wrong in [
        text.replace("PRIVATE KEY", "EC PRIVATE KEY"),
        text.replace("PRIVATE KEY", "RSA PRIVATE KEY"),
        pem("PRIVATE KEY", &sec1),
    ] {
        let fault = DerFault::Key;
        let item = "key.pem";
        assert_eq!(error(read(&wrong)), Error::Der { item, fault });
    }
}

#[test]
fn bytes_after_the_key_are_refused() {
    let (ecdsa, rsa) = (p256(), key(KeyAlgorithm::Rsa2048));
    for (label, content) in [
        ("EC PRIVATE KEY", inner(&ecdsa)),
        ("RSA PRIVATE KEY", inner(&rsa)),
        ("PRIVATE KEY", pkcs8(&ecdsa)),
        ("PRIVATE KEY", pkcs8(&rsa)),
    ] {
        assert!(read(&pem(label, &content)).is_ok());
        let trailed = [content, vec![0]].concat();
        assert!(read(&pem(label, &trailed)).is_err(), "{label}");
    }
}

#[test]
fn keys_of_other_kinds_are_refused_with_what_is_taken() {
    for algorithm in [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P521_SHA512] {
        let other = rcgen::KeyPair::generate_for(algorithm).unwrap();
        let refused = error(read(&other.serialize_pem())).to_string();
        assert!(
            refused.contains("key.pem") && refused.contains("P-256"),
            "{refused}"
        );
    }
}

#[test]
fn encrypted_keys_and_parameters_are_refused_with_the_remedy() {
    let content = der(0x30, &[5, 0]);
    for (label, remedy) in [
        ("ENCRYPTED PRIVATE KEY", "openssl pkey"),
        ("EC PARAMETERS", "openssl ec"),
    ] {
        // As openssl writes parameters: before the key.
        let text = format!("{}{}", pem(label, &content), p256().to_pkcs8_pem().as_str());
        let refused = error(read(&text));
        assert!(refused.to_string().contains(remedy), "{refused}");
    }
}

#[test]
fn two_keys_in_one_text_are_refused() {
    let text = p256().to_pkcs8_pem().repeat(2);
    let fault = PemFault::TooMany { limit: 1 };
    assert!(matches!(error(read(&text)), Error::Pem { fault: found, .. } if found == fault));
}

#[test]
fn key_texts_are_bounded() {
    let text = " ".repeat(MAX_KEY_BYTES + 1);
    let refused = error(read(&text));
    assert!(matches!(
        refused,
        Error::Pem {
            fault: PemFault::TooLarge { .. },
            ..
        }
    ));
}

#[test]
fn errors_say_nothing_of_the_key() {
    let text = p256().to_pkcs8_pem();
    // One character of the key changed: it no longer fits its public half.
    let broken: String = text.replacen("MIG", "MIH", 1);
    let refused = error(read(&broken)).to_string();
    for line in text.lines().filter(|line| !line.starts_with('-')) {
        assert!(!refused.contains(line));
    }
}
