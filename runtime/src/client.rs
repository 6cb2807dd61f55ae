//! Clients of API servers.
//!
//! Two doors. [`local`] is for what the operator of this process gives it: flags, environment, files, the
//! pod it runs in; there a kubeconfig may name plugins and files. [`from_bytes`] is for a kubeconfig that
//! came out of a Secret: whoever can write that Secret must not be able to make this process run a program
//! or read one of its files, so every such field is refused by name, and the size is bounded.
//!
//! A proxy is never used: neither `HTTPS_PROXY` nor `proxy-url`; the latter is refused rather than
//! forgotten.

mod kubeconfig;
mod transport;

use std::{borrow::Cow, fmt, path::Path, time::Duration};

use axum::http::{HeaderValue, header::USER_AGENT};
use kube::{
    Client, Config,
    client::RustlsTlsError,
    config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use self::kubeconfig::Chosen;
pub(crate) use self::transport::Gate;
use crate::fingerprint::Fingerprint;

/// The largest kubeconfig that [`from_bytes`] reads. Those that tools write have a few kilobytes.
pub const MAX_KUBECONFIG_SIZE: usize = 256 * 1024;

/// A client and what is known about it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Connection {
    /// The client. It must be used within the Tokio runtime it was made in.
    pub client: Client,
    /// The address of the API server.
    pub server: String,
    /// Of the bytes given to [`from_bytes`]; of address and context for [`local`], where files that the
    /// kubeconfig names are followed without a new client.
    pub fingerprint: Fingerprint,
    /// What an operator should know and may have wanted.
    pub warnings: Vec<ClientWarning>,
}

/// Something that weakens a connection and was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientWarning {
    /// `insecure-skip-tls-verify`: whoever answers at that address is believed.
    UnverifiedServer {
        /// The address of the API server.
        server: String,
    },
    /// The address is `http://`: credentials and objects travel in the clear.
    Plaintext {
        /// The address of the API server.
        server: String,
    },
}

impl fmt::Display for ClientWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnverifiedServer { server } => write!(
                f,
                "the certificate of {server} is not verified (insecure-skip-tls-verify): \
                 give certificate-authority-data instead"
            ),
            Self::Plaintext { server } => write!(
                f,
                "credentials and objects travel unencrypted to {server}: use an https address"
            ),
        }
    }
}

/// How clients behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `User-Agent` of every request.
    pub user_agent: Cow<'static, str>,
    /// How long a TCP connection and its TLS handshake may take.
    pub connect_timeout: Duration,
    /// How long an API server may take until its answer begins, retries of a busy server included.
    pub response_timeout: Duration,
    /// Whether the client itself asks again, within `response_timeout`, when an API server is too busy (429,
    /// 503, 504). Off where the caller has a backoff of its own and wants to know.
    pub retries: bool,
    /// How long an answer that has begun may stay silent. Watches are silent for up to their own timeout
    /// (see [`pump::Config`](crate::pump::Config)), so this must be longer than that.
    pub read_timeout: Duration,
}

/// What every client here calls itself.
const AGENT: &str = concat!("ferromesh/", env!("CARGO_PKG_VERSION"));

/// The `User-Agent` of one process: by it the audit log of an API server tells who of several has written,
/// in the words of the lease (see [`lease::identity`](crate::lease::identity)).
pub fn agent(identity: &str) -> String {
    format!("{AGENT} ({identity})")
}

impl Default for Options {
    fn default() -> Self {
        Self {
            user_agent: Cow::Borrowed(AGENT),
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(30),
            retries: true,
            read_timeout: Duration::from_secs(310),
        }
    }
}

/// Why there is no client. No variant carries anything of a credential.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// More bytes than [`MAX_KUBECONFIG_SIZE`].
    #[error(
        "the kubeconfig has {size} bytes, at most {MAX_KUBECONFIG_SIZE} are read: remove entries that are not used"
    )]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// Not a kubeconfig at all. The parser's own message is left out, for it quotes the text.
    #[error("the kubeconfig is not YAML of kind Config (line {line}, column {column})")]
    Malformed {
        /// The line of the first error, from 1; 0 if unknown.
        line: u64,
        /// The column of the first error, from 1; 0 if unknown.
        column: u64,
    },
    /// A field that would make this process run, read or ask something.
    #[error("kubeconfig field {field} is not allowed here: {remedy}")]
    Refused {
        /// The path of the field, as `users[0].user.exec`.
        field: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// A field that is missing or of no use.
    #[error("kubeconfig field {field} {problem}")]
    Field {
        /// The path of the field.
        field: String,
        /// What is wrong with it and what is expected.
        problem: &'static str,
    },
    /// Certificates or keys that cannot be decoded.
    #[error("reading the credentials of the kubeconfig")]
    Credentials(#[source] KubeconfigError),
    /// A local kubeconfig that cannot be read.
    #[error("reading the kubeconfig; give one with --kubeconfig or $KUBECONFIG")]
    Local(#[source] KubeconfigError),
    /// This process runs in a pod without a usable service account.
    #[error("reading the pod's service account; see automountServiceAccountToken")]
    InCluster(#[source] InClusterError),
    /// Nobody can vouch for the API server: the kubeconfig names no certificate authority, and this machine, or
    /// the image of the server, has none.
    #[error(
        "the certificate of {server} cannot be verified, for this machine has no list of certificate authorities: \
         give the kubeconfig certificate-authority-data"
    )]
    NoAuthority {
        /// The address of the API server.
        server: String,
    },
    /// The client itself cannot be made.
    #[error("making a client for {server}")]
    Build {
        /// The address of the API server.
        server: String,
        /// What the client said.
        #[source]
        source: Box<kube::Error>,
    },
}

/// A client from what the operator gives this process.
///
/// In order: the file `kubeconfig`, `$KUBECONFIG`, the pod's own service account, `~/.kube/config`.
/// `context` chooses a context by name, else the current one counts; in a pod without a kubeconfig it has
/// nothing to choose from and is an error.
pub async fn local(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    options: &Options,
) -> Result<Connection, Error> {
    let found = match kubeconfig {
        Some(path) => Some(Kubeconfig::read_from(path).map_err(Error::Local)?),
        None => Kubeconfig::from_env().map_err(Error::Local)?,
    };
    let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let kubeconfig = match found {
        Some(kubeconfig) => kubeconfig,
        None if in_pod && context.is_none() => return in_cluster(options),
        None => Kubeconfig::read().map_err(Error::Local)?,
    };
    let chosen = Chosen::resolve(&kubeconfig, context)?;
    let server = chosen.check()?;
    let warnings = chosen.warnings(&server);
    let fingerprint = Fingerprint::of([format!("{server}#{}", chosen.context()).as_bytes()]);
    let selection = KubeConfigOptions {
        context: Some(chosen.context().to_owned()),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &selection)
        .await
        .map_err(Error::Local)?;
    Ok(Connection {
        client: build(config, &server, &warnings, options)?,
        server,
        fingerprint,
        warnings,
    })
}

fn in_cluster(options: &Options) -> Result<Connection, Error> {
    let config = Config::incluster().map_err(Error::InCluster)?;
    let server = config.cluster_url.to_string();
    Ok(Connection {
        client: build(config, &server, &[], options)?,
        fingerprint: Fingerprint::of([server.as_bytes()]),
        server,
        warnings: Vec::new(),
    })
}

/// A client from a kubeconfig that is not trusted.
///
/// Only its current context is looked at, and only credentials that stand in the text itself are taken:
/// token, client certificate and key as data, user and password. Must be called within a Tokio runtime.
pub fn from_bytes(kubeconfig: &[u8], options: &Options) -> Result<Connection, Error> {
    let fingerprint = Fingerprint::of([kubeconfig]);
    let mut kubeconfig = parse(kubeconfig)?;
    let chosen = Chosen::resolve(&kubeconfig, None)?;
    chosen.refuse_local_access()?;
    let server = chosen.check()?;
    let warnings = chosen.warnings(&server);
    kubeconfig::forget_paths(&mut kubeconfig);
    let config = Config::try_from(kubeconfig).map_err(Error::Credentials)?;
    Ok(Connection {
        client: build(config, &server, &warnings, options)?,
        server,
        fingerprint,
        warnings,
    })
}

fn parse(bytes: &[u8]) -> Result<Kubeconfig, Error> {
    if bytes.len() > MAX_KUBECONFIG_SIZE {
        return Err(Error::TooLarge { size: bytes.len() });
    }
    let malformed = |line, column| Error::Malformed { line, column };
    let text = str::from_utf8(bytes).map_err(|_| malformed(0, 0))?;
    Kubeconfig::from_yaml(text).map_err(|error| match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(location) => malformed(location.line(), location.column()),
            None => malformed(0, 0),
        },
        _ => malformed(0, 0),
    })
}

fn build(
    mut config: Config,
    server: &str,
    warnings: &[ClientWarning],
    options: &Options,
) -> Result<Client, Error> {
    if let Ok(agent) = HeaderValue::from_str(&options.user_agent) {
        config.headers.push((USER_AGENT, agent));
    }
    let verifies_nothing = warnings.iter().any(|warning| match warning {
        ClientWarning::UnverifiedServer { .. } | ClientWarning::Plaintext { .. } => true,
    });
    if config.root_cert.is_none() && verifies_nothing {
        // Else those of this machine are read, and it may have none.
        config.root_cert = Some(Vec::new());
    }
    transport::client(&config, options).map_err(|error| match error {
        kube::Error::InferKubeconfig(error) => Error::Credentials(error),
        kube::Error::RustlsTls(RustlsTlsError::AddRootCertificate(_))
            if config.root_cert.is_none() =>
        {
            Error::NoAuthority {
                server: server.to_owned(),
            }
        }
        error => Error::Build {
            server: server.to_owned(),
            source: Box::new(error),
        },
    })
}
