//! Keys, certificate requests, issuing by policy, trust bundles and their verification.
//!
//! This room computes on bytes. The clock, serial numbers and private keys are arguments; the
//! only randomness it draws by itself is inside a signature, and inside key generation when that
//! is asked for by name. It reads no file, no environment and no API server, and starts nothing.
//! What may not enter: a clock, an async runtime, a Kubernetes client.
//!
//! Three rules hold throughout:
//!
//! - A private key has no `Debug`, no `Clone` and no serde; it leaves as PKCS#8 PEM only.
//! - A certificate request contributes its public key and nothing else.
//! - What is written is verified first, the way every verifier in a mesh would: OpenSSL,
//!   BoringSSL (Envoy), rustls (ztunnel) and Go (istiod).
//!
//! Modules in reading order:
//!
//! - [`error`]: why something is refused.
//! - [`digest`]: SHA-256 as a value.
//! - `der`: the little DER that copying a name byte for byte needs.
//! - [`pem`]: PEM text, strictly.
//! - [`key`]: private and public keys.
//! - [`name`]: subjects and subject alternative names.
//! - [`certificate`]: a certificate, read once.
//! - [`request`]: certificate requests, made and verified.
//! - [`policy`]: what a certificate may say.
//! - [`issue`]: issuing what policy says.
//! - [`lint`]: the strict linter, and the import of a user's root.
//! - [`bundle`]: the roots that a mesh believes.
//! - [`verify`]: chains, signers for istiod, identities.
//! - [`cacerts`]: the Secret that istiod signs from.

pub mod bundle;
pub mod cacerts;
pub mod certificate;
mod der;
pub mod digest;
pub mod error;
pub mod issue;
pub mod key;
pub mod lint;
pub mod name;
pub mod pem;
pub mod policy;
pub mod request;
pub mod verify;

pub use crate::error::Error;
