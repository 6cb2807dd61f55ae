//! Private keys and public keys.
//!
//! A [`PrivateKey`] has no `Debug`, no `Clone` and no serde. It leaves this crate in one form
//! only: the PKCS#8 PEM of [`PrivateKey::to_pkcs8_pem`], wiped when dropped.

use std::fmt;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey as ParsedKey;
use x509_parser::x509::SubjectPublicKeyInfo;
use zeroize::Zeroizing;

use crate::der;
use crate::digest::Fingerprint;
use crate::error::{DerFault, Error};
use crate::pem::{self, Limits};

/// The most bytes of PEM text that are read as a private key.
pub const MAX_KEY_BYTES: usize = 64 * 1024;

const PKCS8: &str = "PRIVATE KEY";
const PKCS1: &str = "RSA PRIVATE KEY";
const SEC1: &str = "EC PRIVATE KEY";

/// What kind of key to generate.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum KeyAlgorithm {
    /// ECDSA on the curve P-256; signs with SHA-256.
    EcdsaP256,
    /// ECDSA on the curve P-384; signs with SHA-384.
    EcdsaP384,
    /// RSA of 2048 bits; signs with SHA-256, as all RSA keys here.
    Rsa2048,
    /// RSA of 3072 bits.
    Rsa3072,
    /// RSA of 4096 bits.
    Rsa4096,
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        KeyKind::from(*self).fmt(f)
    }
}

/// What kind of key a given key is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum KeyKind {
    /// ECDSA on the curve P-256.
    EcdsaP256,
    /// ECDSA on the curve P-384.
    EcdsaP384,
    /// RSA.
    Rsa {
        /// Length of the modulus, 2048 to 8192.
        bits: usize,
    },
}

impl From<KeyAlgorithm> for KeyKind {
    fn from(algorithm: KeyAlgorithm) -> Self {
        match algorithm {
            KeyAlgorithm::EcdsaP256 => Self::EcdsaP256,
            KeyAlgorithm::EcdsaP384 => Self::EcdsaP384,
            KeyAlgorithm::Rsa2048 => Self::Rsa { bits: 2048 },
            KeyAlgorithm::Rsa3072 => Self::Rsa { bits: 3072 },
            KeyAlgorithm::Rsa4096 => Self::Rsa { bits: 4096 },
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EcdsaP256 => f.write_str("ECDSA P-256"),
            Self::EcdsaP384 => f.write_str("ECDSA P-384"),
            Self::Rsa { bits } => write!(f, "RSA {bits}"),
        }
    }
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// A private key. Its memory is wiped when it is dropped.
///
/// It cannot be printed:
///
/// ```compile_fail,E0277
/// let key = ferromesh_ca::key::PrivateKey::generate(ferromesh_ca::key::KeyAlgorithm::EcdsaP256);
/// println!("{:?}", key.ok());
/// ```
///
/// nor copied:
///
/// ```compile_fail,E0308
/// fn copy(key: &ferromesh_ca::key::PrivateKey) -> ferromesh_ca::key::PrivateKey {
///     key.clone()
/// }
/// ```
pub struct PrivateKey {
    pair: Pair,
    public: PublicKey,
}

impl PrivateKey {
    /// Makes a new key from the randomness of the operating system.
    ///
    /// # Errors
    /// [`Error::KeyGeneration`].
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, Error> {
        let ecdsa = |curve| EcdsaKeyPair::generate(curve).map(Pair::Ecdsa);
        let rsa = |size| RsaKeyPair::generate(size).map(Pair::Rsa);
        let pair = match algorithm {
            KeyAlgorithm::EcdsaP256 => ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING),
            KeyAlgorithm::EcdsaP384 => ecdsa(&ECDSA_P384_SHA384_ASN1_SIGNING),
            KeyAlgorithm::Rsa2048 => rsa(KeySize::Rsa2048),
            KeyAlgorithm::Rsa3072 => rsa(KeySize::Rsa3072),
            KeyAlgorithm::Rsa4096 => rsa(KeySize::Rsa4096),
        };
        pair.ok()
            .and_then(Self::of_pair)
            .ok_or(Error::KeyGeneration(algorithm))
    }

    /// Reads a PEM text that holds one unencrypted key: PKCS#8 (`PRIVATE KEY`), PKCS#1
    /// (`RSA PRIVATE KEY`) or SEC1 (`EC PRIVATE KEY`). `item` names the input in errors.
    ///
    /// # Errors
    /// [`Error::Pem`] and [`Error::Der`]. They say nothing about the key itself.
    pub fn from_pem(item: &'static str, text: &[u8]) -> Result<Self, Error> {
        let limits = Limits {
            bytes: MAX_KEY_BYTES,
            blocks: 1,
        };
        let blocks = pem::read_blocks(item, text, limits, &[PKCS8, PKCS1, SEC1])?;
        let block = blocks
            .into_iter()
            .next()
            .expect("the reader returns at least one block");
        let content = block.content.as_slice();
        let pair = match block.label {
            PKCS8 => ecdsa_pair(|curve| EcdsaKeyPair::from_pkcs8(curve, content))
                .or_else(|| RsaKeyPair::from_pkcs8(content).ok().map(Pair::Rsa)),
            PKCS1 => RsaKeyPair::from_der(content).ok().map(Pair::Rsa),
            SEC1 if is_sec1(content) => {
                ecdsa_pair(|curve| EcdsaKeyPair::from_private_key_der(curve, content))
            }
            _ => None,
        };
        // The library ignores what follows a PKCS#1 key; Go, and with it istiod, does not.
        der::read_sequence(content)
            .and(pair)
            .and_then(Self::of_pair)
            .ok_or(Error::Der {
                item,
                fault: DerFault::Key,
            })
    }

    fn of_pair(pair: Pair) -> Option<Self> {
        let spki: PublicKeyX509Der<'_> = match &pair {
            Pair::Ecdsa(pair) => pair.public_key().as_der().ok()?,
            Pair::Rsa(pair) => pair.public_key().as_der().ok()?,
        };
        let public = PublicKey::from_spki_der("public key", spki.as_ref()).ok()?;
        Some(Self { pair, public })
    }

    /// The key as unencrypted PKCS#8 PEM, ended by a newline: the one way out.
    pub fn to_pkcs8_pem(&self) -> Zeroizing<String> {
        const HELD: &str = "a key that was read or made can be encoded";
        match &self.pair {
            Pair::Ecdsa(pair) => pem::write_block(PKCS8, pair.to_pkcs8v1().expect(HELD).as_ref()),
            Pair::Rsa(pair) => {
                let encoded: Pkcs8V1Der<'_> = pair.as_der().expect(HELD);
                pem::write_block(PKCS8, encoded.as_ref())
            }
        }
    }

    /// Its public half.
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Signs with the digest that belongs to the kind of key (see [`KeyAlgorithm`]).
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ecdsa(pair) => match pair.sign(&random, message) {
                Ok(signature) => Ok(signature.as_ref().to_vec()),
                Err(_) => Err(Error::Signing),
            },
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                match pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature) {
                    Ok(()) => Ok(signature),
                    Err(_) => Err(Error::Signing),
                }
            }
        }
    }

    /// The public key as rcgen wants it: the content of the BIT STRING.
    fn public_bits(&self) -> &[u8] {
        match &self.pair {
            Pair::Ecdsa(pair) => pair.public_key().as_ref(),
            Pair::Rsa(pair) => pair.public_key().as_ref(),
        }
    }
}

/// Tries both curves.
fn ecdsa_pair(
    read: impl Fn(&'static EcdsaSigningAlgorithm) -> Result<EcdsaKeyPair, KeyRejected>,
) -> Option<Pair> {
    let p256 = read(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let pair = p256.or_else(|_| read(&ECDSA_P384_SHA384_ASN1_SIGNING));
    pair.ok().map(Pair::Ecdsa)
}

/// Version 1 tells SEC1 (RFC 5915) from PKCS#8, which the library would read here and Go not.
fn is_sec1(content: &[u8]) -> bool {
    let version = der::read_sequence(content).and_then(der::read);
    version.is_some_and(|(version, _)| version.content == [1])
}

/// Signs for rcgen.
pub(crate) struct Signer<'a>(pub(crate) &'a PrivateKey);

impl rcgen::PublicKeyData for Signer<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0.public_bits()
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.0.public.rcgen_algorithm()
    }
}

impl rcgen::SigningKey for Signer<'_> {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        self.0
            .sign(message)
            .map_err(|_| rcgen::Error::RingUnspecified)
    }
}

/// A public key of a kind that every verifier in a mesh takes.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct PublicKey {
    spki: Vec<u8>,
    kind: KeyKind,
}

impl PublicKey {
    /// Reads a DER `SubjectPublicKeyInfo` (RFC 5280, 4.1.2.7). `item` names the input in errors.
    ///
    /// # Errors
    /// [`Error::Der`] if it is not ECDSA P-256, ECDSA P-384 or RSA of 2048 to 8192 bits, in
    /// canonical form.
    pub fn from_spki_der(item: &'static str, spki: &[u8]) -> Result<Self, Error> {
        let kind = kind_of(spki).ok_or(Error::Der {
            item,
            fault: DerFault::Key,
        })?;
        Ok(Self {
            spki: spki.to_vec(),
            kind,
        })
    }

    /// The DER `SubjectPublicKeyInfo`.
    pub fn spki_der(&self) -> &[u8] {
        &self.spki
    }

    /// SHA-256 of the DER `SubjectPublicKeyInfo`.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of([self.spki.as_slice()])
    }

    /// What kind of key it is.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    pub(crate) fn rcgen_algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        match self.kind {
            KeyKind::EcdsaP256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            KeyKind::EcdsaP384 => &rcgen::PKCS_ECDSA_P384_SHA384,
            KeyKind::Rsa { .. } => &rcgen::PKCS_RSA_SHA256,
        }
    }

    pub(crate) fn to_rcgen(&self) -> rcgen::SubjectPublicKeyInfo {
        rcgen::SubjectPublicKeyInfo::from_der(&self.spki)
            .expect("rcgen has read this key when it was constructed")
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} {})", self.kind, self.fingerprint())
    }
}

fn kind_of(spki: &[u8]) -> Option<KeyKind> {
    use rcgen::PublicKeyData as _;

    let rcgen = rcgen::SubjectPublicKeyInfo::from_der(spki).ok()?;
    // What rcgen writes into a certificate must be the key that was checked, byte for byte.
    if rcgen.subject_public_key_info() != spki {
        return None;
    }
    if rcgen.algorithm() == &rcgen::PKCS_ECDSA_P256_SHA256 {
        return is_point(rcgen.der_bytes(), 32).then_some(KeyKind::EcdsaP256);
    }
    if rcgen.algorithm() == &rcgen::PKCS_ECDSA_P384_SHA384 {
        return is_point(rcgen.der_bytes(), 48).then_some(KeyKind::EcdsaP384);
    }
    let (_, parsed) = SubjectPublicKeyInfo::from_der(spki).ok()?;
    let ParsedKey::RSA(rsa) = parsed.parsed().ok()? else {
        return None;
    };
    // Go and BoringSSL refuse larger and even exponents.
    let exponent = rsa.try_exponent().ok()?;
    let usual_exponent = (3..1 << 31).contains(&exponent) && exponent % 2 == 1;
    let modulus = rsa.modulus.strip_prefix(&[0]).unwrap_or(rsa.modulus);
    let unused = usize::try_from(modulus.first()?.leading_zeros()).ok()?;
    let bits = modulus.len() * 8 - unused;
    let supported = usual_exponent && (2048..=8192).contains(&bits);
    supported.then_some(KeyKind::Rsa { bits })
}

/// An uncompressed point with coordinates of `size` bytes.
fn is_point(bytes: &[u8], size: usize) -> bool {
    bytes.first() == Some(&4) && bytes.len() == 1 + 2 * size
}
