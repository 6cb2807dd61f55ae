//! The credential that a server shows, and how it is replaced while it serves.
//!
//! A handshake takes the credential that is current at that moment; connections that exist keep the one
//! they began with.

use std::{fmt, io, path::Path, path::PathBuf, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject},
};
use tokio::{
    io::AsyncReadExt,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;
use x509_parser::{error::X509Error, prelude::FromDer};
use zeroize::Zeroizing;

use crate::fingerprint::Fingerprint;

/// The largest file that a chain or a key is read from.
const MAX_FILE: u64 = 1024 * 1024;

/// A certificate chain, leaf first, and the private key of the leaf.
pub struct Credential {
    certified: Arc<CertifiedKey>,
    not_after: Timestamp,
    fingerprint: Fingerprint,
}

/// Why a credential cannot be used. No variant carries anything of a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The chain holds no certificate.
    #[error("the certificate chain holds no PEM block CERTIFICATE")]
    NoCertificate,
    /// The chain is not PEM.
    #[error("reading the certificate chain as PEM")]
    Chain(#[source] pem::Error),
    /// The leaf is not an X.509 certificate.
    #[error("reading the first certificate of the chain")]
    Leaf(#[source] X509Error),
    /// There is no private key.
    #[error(
        "reading the private key: expected one PEM block PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY"
    )]
    NoKey,
    /// The key cannot be used, or is not the one of the leaf.
    #[error("taking the private key for the first certificate of the chain")]
    Key(#[source] rustls::Error),
    /// A file cannot be read.
    #[error("reading {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file is larger than a credential can be.
    #[error("{} has more than {MAX_FILE} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

/// The credential that a server shows now; none until one has been set. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ServedCredential {
    current: Arc<ArcSwapOption<Credential>>,
}

/// Where a credential is kept as files, as a Secret volume shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialFiles {
    /// The certificate chain in PEM, leaf first.
    pub chain: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

/// The TLS side of a server that shows `credential`: TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1.
pub fn server_config(credential: &ServedCredential) -> Arc<ServerConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("aws-lc-rs speaks TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(credential.clone()));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

// === impl Credential ===

impl Credential {
    /// Takes a chain, leaf first, and the key of the leaf, both in PEM. Reads no clock: an expired
    /// certificate is taken.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        let fingerprint = Fingerprint::of([chain, key]);
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(Error::Chain)?;
        let not_after = not_after(chain.first().ok_or(Error::NoCertificate)?)?;
        // The parser's own error may quote the text.
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| Error::NoKey)?;
        let certified = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())
            .map_err(Error::Key)?;
        Ok(Self {
            certified: Arc::new(certified),
            not_after,
            fingerprint,
        })
    }

    /// The certificates in DER, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.certified.cert
    }

    /// When the leaf expires.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Changes when chain or key change.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("fingerprint", &self.fingerprint)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

fn not_after(leaf: &[u8]) -> Result<Timestamp, Error> {
    let (_, leaf) = x509_parser::certificate::X509Certificate::from_der(leaf)
        .map_err(|error| Error::Leaf(error.into()))?;
    Timestamp::from_second(leaf.validity().not_after.timestamp())
        .map_err(|_| Error::Leaf(X509Error::InvalidDate))
}

// === impl ServedCredential ===

impl ServedCredential {
    /// No credential yet: handshakes fail until there is one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows `credential` from the next handshake on. Nothing happens, and false is returned, if its
    /// content is that of the current one.
    pub fn replace(&self, credential: Credential) -> bool {
        let current = self.current.load();
        let is_new = current
            .as_ref()
            .is_none_or(|current| current.fingerprint != credential.fingerprint);
        if is_new {
            self.current.store(Some(Arc::new(credential)));
        }
        is_new
    }

    /// The one that is shown now.
    pub fn current(&self) -> Option<Arc<Credential>> {
        self.current.load_full()
    }
}

impl ResolvesServerCert for ServedCredential {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.load();
        current
            .as_ref()
            .map(|credential| Arc::clone(&credential.certified))
    }
}

// === impl CredentialFiles ===

impl CredentialFiles {
    /// Reads both files.
    pub async fn load(&self) -> Result<Credential, Error> {
        let chain = read(&self.chain).await?;
        let key = read(&self.key).await?;
        Credential::from_pem(&chain, &key)
    }

    /// Reads both files again every `period` and on `SIGHUP`, and shows what they hold, until `cancel`.
    ///
    /// They are compared by content: a Secret volume swaps a symbolic link, which a watch of the file
    /// would see once and then never again. While they cannot be used, as between the writing of one and
    /// of the other, the current credential stays.
    pub async fn follow(
        &self,
        served: &ServedCredential,
        period: Duration,
        cancel: CancellationToken,
    ) {
        let mut hangup = signal(SignalKind::hangup()).ok();
        let mut complaint = String::new();
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                Some(()) = async { hangup.as_mut()?.recv().await } => {}
                () = tokio::time::sleep(period) => {}
            }
            match self.load().await {
                Ok(credential) => {
                    complaint.clear();
                    let not_after = credential.not_after();
                    if served.replace(credential) {
                        tracing::info!(%not_after, "serving with a new certificate");
                    }
                }
                Err(error) if error.to_string() == complaint => {}
                Err(error) => {
                    complaint = error.to_string();
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "keeping the certificate in use: the new one cannot be used"
                    );
                }
            }
        }
    }
}

async fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    let read = async {
        let mut content = Zeroizing::new(Vec::new());
        let file = tokio::fs::File::open(path).await?;
        file.take(MAX_FILE + 1).read_to_end(&mut content).await?;
        Ok(content)
    };
    let content = read.await.map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })?;
    if content.len() > usize::try_from(MAX_FILE).unwrap_or(usize::MAX) {
        return Err(Error::TooLarge {
            path: path.to_owned(),
        });
    }
    Ok(content)
}
