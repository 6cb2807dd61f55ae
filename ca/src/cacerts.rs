//! The Secret `cacerts`, from which istiod takes its signing CA: written complete and verified,
//! or not at all; read and classified.

use std::fmt;

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::bundle::TrustBundle;
use crate::certificate::Certificate;
use crate::error::Error;
use crate::key::PrivateKey;
use crate::pem;
use crate::verify::{self, IstiodFiles, VerifiedSigner};

/// The entry that holds the signing certificate.
pub const CA_CERT: &str = "ca-cert.pem";
/// The entry that holds the private key of the signing certificate.
pub const CA_KEY: &str = "ca-key.pem";
/// The entry that holds the chain that leaves are sent with: signer, intermediates, root.
pub const CERT_CHAIN: &str = "cert-chain.pem";
/// The entry that holds the roots.
pub const ROOT_CERT: &str = "root-cert.pem";
/// The entry that upstream writes and leaves empty.
pub const EMPTY_KEY: &str = "key.pem";

/// What istiod puts beside a CA that it made itself.
const ISTIO_GENERATED: &str = "istio-generated";
const TLS_CERT: &str = "tls.crt";
const TLS_KEY: &str = "tls.key";
const TLS_ROOTS: &str = "ca.crt";

/// All entries of a `cacerts` Secret. It exists only complete, and verified as istiod and every
/// other verifier in a mesh would. It has no `Debug` and no `Clone`: the private key is in it.
pub struct CaCerts {
    ca_key: Zeroizing<String>,
    ca_cert: String,
    cert_chain: String,
    root_cert: String,
    signer: VerifiedSigner,
}

impl CaCerts {
    /// Puts together what istiod shall sign with: the signer and its key, the certificates
    /// between the signer and its root if there are any, and the roots. What is verified is the
    /// very text that will be written.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason, or [`Error::Pem`] if it is larger than is read.
    pub fn assemble(
        key: &PrivateKey,
        signer: &Certificate,
        intermediates: &[Certificate],
        roots: &TrustBundle,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let path = verify::signer_path(signer, intermediates, roots, now)?;
        let ca_key = key.to_pkcs8_pem();
        let ca_cert = signer.to_pem();
        let cert_chain = pem::write_certificates(CERT_CHAIN, path)?;
        let root_cert = roots.to_pem()?;
        let files = IstiodFiles {
            ca_cert: ca_cert.as_bytes(),
            ca_key: ca_key.as_bytes(),
            cert_chain: cert_chain.as_bytes(),
            root_cert: root_cert.as_bytes(),
        };
        let signer = verify::verify_for_istiod(&files, now)?;
        Ok(Self {
            ca_key,
            ca_cert,
            cert_chain,
            root_cert,
            signer,
        })
    }

    /// The five entries, name and content. One of them is the private key.
    pub fn entries(&self) -> [(&'static str, &[u8]); 5] {
        [
            (CA_CERT, self.ca_cert.as_bytes()),
            (CA_KEY, self.ca_key.as_bytes()),
            (CERT_CHAIN, self.cert_chain.as_bytes()),
            (ROOT_CERT, self.root_cert.as_bytes()),
            (EMPTY_KEY, &[]),
        ]
    }

    /// What was verified.
    pub fn signer(&self) -> &VerifiedSigner {
        &self.signer
    }
}

/// How a Secret holds a signing CA.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// `ca-cert.pem`, `ca-key.pem`, `cert-chain.pem`, `root-cert.pem`.
    Istio,
    /// `tls.crt`, `tls.key`, `ca.crt` (type `kubernetes.io/tls`), which istiod prefers whenever
    /// `tls.crt` is there.
    Tls,
}

impl Form {
    /// The entries that istiod needs: signer, key, chain, roots.
    fn entries(self) -> [&'static str; 4] {
        match self {
            Self::Istio => [CA_CERT, CA_KEY, CERT_CHAIN, ROOT_CERT],
            Self::Tls => [TLS_CERT, TLS_KEY, TLS_CERT, TLS_ROOTS],
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Istio => f.write_str("Istio form"),
            Self::Tls => f.write_str("kubernetes.io/tls form"),
        }
    }
}

/// What a `cacerts` Secret holds. No private key is kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Found {
    /// No entry that concerns a CA.
    Nothing,
    /// A CA that istiod made for itself.
    IstioGenerated {
        /// Its certificate, if it can be read.
        signer: Option<Certificate>,
    },
    /// Some of the entries: the next start of istiod would fail.
    Incomplete {
        /// The form that the entries belong to.
        form: Form,
        /// The entries that are absent or empty.
        missing: Vec<&'static str>,
    },
    /// All of the entries, but istiod or some verifier would refuse them.
    Invalid {
        /// The form.
        form: Form,
        /// Why.
        reason: Error,
    },
    /// A signing CA that works.
    Valid {
        /// The form.
        form: Form,
        /// The CA.
        signer: VerifiedSigner,
    },
}

impl Found {
    /// Classifies the entries of a Secret, name and content.
    pub fn read<'a>(
        entries: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        now: Timestamp,
    ) -> Self {
        let entries: Vec<(&str, &[u8])> = entries.into_iter().collect();
        let named = |name: &str| entries.iter().find(|(entry, _)| *entry == name);
        let content = |name: &str| {
            let content = named(name).map(|(_, content)| *content);
            content.unwrap_or_default()
        };
        let form = if named(TLS_CERT).is_some() {
            Form::Tls
        } else {
            Form::Istio
        };
        if form == Form::Istio && named(ISTIO_GENERATED).is_some() {
            let signer = pem::read_certificate(CA_CERT, content(CA_CERT)).ok();
            return Self::IstioGenerated { signer };
        }
        let wanted = form.entries();
        if wanted.iter().all(|name| named(name).is_none()) {
            return Self::Nothing;
        }
        let mut missing: Vec<&str> = Vec::new();
        for name in wanted {
            if content(name).is_empty() && !missing.contains(&name) {
                missing.push(name);
            }
        }
        if !missing.is_empty() {
            return Self::Incomplete { form, missing };
        }
        let [ca_cert, ca_key, cert_chain, root_cert] = wanted.map(content);
        // istiod puts the two files of the TLS form one after the other as they are.
        let joined = match form {
            Form::Istio => cert_chain.to_vec(),
            Form::Tls => [cert_chain, root_cert].concat(),
        };
        let files = IstiodFiles {
            ca_cert,
            ca_key,
            cert_chain: &joined,
            root_cert,
        };
        match verify::verify_for_istiod(&files, now) {
            Ok(signer) => Self::Valid { form, signer },
            Err(reason) => Self::Invalid { form, reason },
        }
    }
}
