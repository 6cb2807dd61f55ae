//! How the management plane reaches the API server of a remote cluster.
//!
//! It starts from the kubeconfig of the person who registers the cluster. Of that, only the entry of the
//! API server is taken over, with everything in the text itself: never a credential of that person, never
//! the path of a file.

mod address;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use ferromesh_crds::name::ClusterName;
use ferromesh_runtime::client::MAX_KUBECONFIG_SIZE;
use k8s_openapi::ByteString;
use kube::config::{
    AuthInfo, Cluster, Context, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster,
    NamedContext,
};
use serde_json::json;

pub use self::address::Address;
use crate::credential::Token;

/// What every PEM certificate begins with (RFC 7468, 5.1).
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// Why a kubeconfig does not tell how to reach an API server. Nothing of a credential is quoted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig cannot be read.
    #[error("reading the kubeconfig; give one with --kubeconfig or $KUBECONFIG")]
    Unreadable(#[source] KubeconfigError),
    /// Not a kubeconfig at all. The parser's own message is left out, for it quotes the text.
    #[error("the kubeconfig is not YAML of kind Config (line {line}, column {column})")]
    Malformed {
        /// The line of the first error, from 1; 0 if unknown.
        line: u64,
        /// The column of the first error, from 1; 0 if unknown.
        column: u64,
    },
    /// No context was named, by nobody.
    #[error(
        "the kubeconfig names no current-context: choose one of {}",
        listed(known)
    )]
    NoContext {
        /// The contexts that there are.
        known: Vec<String>,
    },
    /// The context does not exist.
    #[error(
        "the kubeconfig has no context `{name}`: choose one of {}",
        listed(known)
    )]
    UnknownContext {
        /// The context that was asked for.
        name: String,
        /// The contexts that there are.
        known: Vec<String>,
    },
    /// A field that is missing or of no use.
    #[error("kubeconfig {entry}: {field} {problem}")]
    Field {
        /// The entry, as "cluster `east`".
        entry: String,
        /// The field in it.
        field: &'static str,
        /// What is wrong with it and what is expected.
        problem: &'static str,
    },
    /// The file of the certificate authority cannot be taken over.
    #[error(
        "reading the certificate-authority of kubeconfig {entry} from {}: it is to be a PEM file of at most {MAX_KUBECONFIG_SIZE} bytes",
        path.display()
    )]
    CertificateAuthority {
        /// The entry, as "cluster `east`".
        entry: String,
        /// The file.
        path: PathBuf,
        /// What the file system said, or what is wrong with the content.
        #[source]
        source: io::Error,
    },
    /// An address that is none.
    #[error("`{}` is not the address of an API server: {problem}", text.escape_debug())]
    Address {
        /// What was given.
        text: String,
        /// What is wrong with it and what is expected.
        problem: &'static str,
    },
}

/// Names as a person reads them.
fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return String::from("… it has none");
    }
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// The API server of a remote cluster, as the management plane is to reach it.
#[derive(Clone, Debug)]
pub struct ApiServer {
    cluster: Cluster,
    /// What else of the context other readers of the Secret may look at.
    context: Context,
    is_local: bool,
}

/// Reads the kubeconfig of the person who asks: the file, or `$KUBECONFIG`, or `~/.kube/config`.
pub fn read(file: Option<&Path>) -> Result<Kubeconfig, Error> {
    let read = match file {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    read.map_err(|error| match error {
        KubeconfigError::Parse(error) => {
            let (line, column) = error
                .location()
                .map_or((0, 0), |location| (location.line(), location.column()));
            Error::Malformed { line, column }
        }
        error => Error::Unreadable(error),
    })
}

// === impl ApiServer ===

impl ApiServer {
    /// The API server of a context, the current one unless `context` names another, at `address` if one is
    /// given.
    ///
    /// A certificate authority in a file is read and taken into the text. Where the kubeconfig knows the
    /// server by an address of its own machine and `address` replaces it, the certificate is still
    /// verified, by the name that it surely has: the one it was reached by until now.
    pub fn resolve(
        kubeconfig: &Kubeconfig,
        context: Option<&str>,
        address: Option<&Address>,
    ) -> Result<Self, Error> {
        let context = context_of(kubeconfig, context)?;
        let entry = format!("cluster `{}`", context.cluster);
        let field = |field, problem| Error::Field {
            entry: entry.clone(),
            field,
            problem,
        };
        let mut cluster = kubeconfig
            .clusters
            .iter()
            .find(|named| named.name == context.cluster)
            .and_then(|named| named.cluster.clone())
            .ok_or_else(|| field("cluster", "is missing, and the context names it"))?;
        if cluster
            .proxy_url
            .as_ref()
            .is_some_and(|url| !url.is_empty())
        {
            return Err(field(
                "proxy-url",
                "is not supported: give a server that can be reached without a proxy",
            ));
        }
        cluster.proxy_url = None;
        inline_authority(&mut cluster, &entry)?;

        let server = cluster
            .server
            .as_deref()
            .filter(|server| !server.is_empty())
            .ok_or_else(|| {
                field(
                    "server",
                    "is missing: give the address, as https://host:port",
                )
            })?;
        let original = Address::of_server(server)?;
        if let Some(address) = address {
            cluster.server = Some(address.instead_of(&original));
            let is_verified = !cluster.insecure_skip_tls_verify.unwrap_or(false);
            if original.is_local() && original.is_encrypted() && is_verified {
                cluster
                    .tls_server_name
                    .get_or_insert_with(|| original.server_name());
            }
        }
        Ok(Self {
            cluster,
            context: Context {
                namespace: context.namespace.clone(),
                extensions: context.extensions.clone(),
                ..Context::default()
            },
            is_local: address.unwrap_or(&original).is_local(),
        })
    }

    /// Its address.
    pub fn address(&self) -> &str {
        self.cluster.server.as_deref().unwrap_or_default()
    }

    /// Whether the address means whichever machine asks, so that hardly any but this one reaches the cluster.
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// The kubeconfig of the management plane: one cluster, one user and one context, all named as the
    /// cluster is registered.
    pub(crate) fn kubeconfig(&self, name: &ClusterName, token: &Token) -> String {
        let name = name.as_str().to_owned();
        let context = Context {
            cluster: name.clone(),
            user: Some(name.clone()),
            ..self.context.clone()
        };
        let kubeconfig = Kubeconfig {
            api_version: Some(String::from("v1")),
            kind: Some(String::from("Config")),
            clusters: vec![NamedCluster {
                name: name.clone(),
                cluster: Some(self.cluster.clone()),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: name.clone(),
                auth_info: Some(bearer(token)),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: name.clone(),
                context: Some(context),
                ..NamedContext::default()
            }],
            current_context: Some(name),
            ..Kubeconfig::default()
        };
        written(&kubeconfig)
    }
}

/// A kubeconfig with another token for the user of its current context.
pub(crate) fn with_token(kubeconfig: &[u8], token: &Token) -> Result<String, Error> {
    let malformed = || Error::Malformed { line: 0, column: 0 };
    if kubeconfig.len() > MAX_KUBECONFIG_SIZE {
        return Err(malformed());
    }
    let text = str::from_utf8(kubeconfig).map_err(|_| malformed())?;
    let mut kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| malformed())?;
    let context = context_of(&kubeconfig, None)?;
    let user = context.user.clone().unwrap_or_default();
    let entry = format!("user `{user}`");
    let user = kubeconfig
        .auth_infos
        .iter_mut()
        .find(|named| named.name == user)
        .and_then(|named| named.auth_info.as_mut())
        .filter(|user| user.token.is_some())
        .ok_or(Error::Field {
            entry,
            field: "token",
            problem: "is missing, so it cannot be renewed: register the cluster again",
        })?;
    user.token = bearer(token).token;
    Ok(written(&kubeconfig))
}

fn context_of<'a>(kubeconfig: &'a Kubeconfig, name: Option<&str>) -> Result<&'a Context, Error> {
    let known = || {
        let names = kubeconfig.contexts.iter().map(|context| &context.name);
        names.cloned().collect()
    };
    let name = name
        .or(kubeconfig.current_context.as_deref())
        .filter(|name| !name.is_empty())
        .ok_or_else(|| Error::NoContext { known: known() })?;
    kubeconfig
        .contexts
        .iter()
        .find(|context| context.name == name)
        .ok_or_else(|| Error::UnknownContext {
            name: name.to_owned(),
            known: known(),
        })?
        .context
        .as_ref()
        .ok_or_else(|| Error::Field {
            entry: format!("context `{name}`"),
            field: "context",
            problem: "is missing: name a cluster and a user in it",
        })
}

/// Takes a certificate authority that is in a file into the text. What is in the text already wins, as it
/// does for kubectl.
fn inline_authority(cluster: &mut Cluster, entry: &str) -> Result<(), Error> {
    let path = cluster.certificate_authority.take();
    let has_data = cluster
        .certificate_authority_data
        .as_ref()
        .is_some_and(|data| !data.is_empty());
    let Some(path) = path.filter(|path| !path.is_empty() && !has_data) else {
        return Ok(());
    };
    let path = PathBuf::from(path);
    let bytes = read_certificates(&path).map_err(|source| Error::CertificateAuthority {
        entry: entry.to_owned(),
        path,
        source,
    })?;
    // The API's own form of bytes is the base64 that kubeconfigs use.
    let data = serde_json::to_value(ByteString(bytes)).expect("bytes are JSON");
    cluster.certificate_authority_data = data.as_str().map(str::to_owned);
    Ok(())
}

fn read_certificates(path: &Path) -> io::Result<Vec<u8>> {
    let wrong = |problem| io::Error::new(io::ErrorKind::InvalidData, problem);
    let limit = u64::try_from(MAX_KUBECONFIG_SIZE).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() > MAX_KUBECONFIG_SIZE {
        return Err(wrong("it is larger"));
    }
    let has_certificate = bytes
        .windows(CERTIFICATE.len())
        .any(|window| window == CERTIFICATE);
    if has_certificate {
        Ok(bytes)
    } else {
        Err(wrong("it has no PEM certificate"))
    }
}

/// A user with nothing but a token.
fn bearer(token: &Token) -> AuthInfo {
    serde_json::from_value(json!({ "token": token.expose() })).expect("a token is a string")
}

fn written(kubeconfig: &Kubeconfig) -> String {
    serde_saphyr::to_string(kubeconfig).expect("a kubeconfig is YAML")
}
