//! The one context of a kubeconfig that counts, and what of it is refused.

use axum::http::{HeaderValue, Uri, uri::Scheme};
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use secrecy::ExposeSecret;

use super::{ClientWarning, Error};

/// The context that counts, with its cluster and its user.
pub(super) struct Chosen<'a> {
    context: &'a str,
    cluster: (usize, &'a Cluster),
    user: Option<(usize, &'a AuthInfo)>,
}

// === impl Chosen ===

impl<'a> Chosen<'a> {
    /// Finds the context of that name, or else the current one; every name must mean one entry.
    pub(super) fn resolve(
        kubeconfig: &'a Kubeconfig,
        context: Option<&'a str>,
    ) -> Result<Self, Error> {
        let field = |field: String, problem| Error::Field { field, problem };
        let name = context
            .or(kubeconfig.current_context.as_deref())
            .filter(|name| !name.is_empty())
            .ok_or_else(|| {
                field(
                    "current-context".into(),
                    "is missing: name the context to use",
                )
            })?;

        let contexts = kubeconfig.contexts.iter().map(|entry| entry.name.as_str());
        let index = only(contexts, name).map_err(|problem| field("contexts".into(), problem))?;
        let context = kubeconfig.contexts[index]
            .context
            .as_ref()
            .ok_or_else(|| field(format!("contexts[{index}].context"), "is missing"))?;

        let clusters = kubeconfig.clusters.iter().map(|entry| entry.name.as_str());
        let cluster_index = only(clusters, &context.cluster)
            .map_err(|problem| field(format!("contexts[{index}].context.cluster"), problem))?;
        let cluster = kubeconfig.clusters[cluster_index]
            .cluster
            .as_ref()
            .ok_or_else(|| field(format!("clusters[{cluster_index}].cluster"), "is missing"))?;

        let user = match context.user.as_deref().filter(|user| !user.is_empty()) {
            None => None,
            Some(user) => {
                let users = kubeconfig
                    .auth_infos
                    .iter()
                    .map(|entry| entry.name.as_str());
                let user_index = only(users, user)
                    .map_err(|problem| field(format!("contexts[{index}].context.user"), problem))?;
                kubeconfig.auth_infos[user_index]
                    .auth_info
                    .as_ref()
                    .map(|user| (user_index, user))
            }
        };
        Ok(Self {
            context: name,
            cluster: (cluster_index, cluster),
            user,
        })
    }

    /// The name of the context.
    pub(super) fn context(&self) -> &'a str {
        self.context
    }

    /// Checks what kube does not, or not without a panic, and returns the address of the API server.
    pub(super) fn check(&self) -> Result<String, Error> {
        self.refuse_proxy()?;
        self.check_token()?;
        self.server()
    }

    fn check_token(&self) -> Result<(), Error> {
        let Some((
            index,
            AuthInfo {
                token: Some(token), ..
            },
        )) = self.user
        else {
            return Ok(());
        };
        match HeaderValue::from_str(token.expose_secret()) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Field {
                field: format!("users[{index}].user.token"),
                problem: "holds what no HTTP header may: is there a line break in it?",
            }),
        }
    }

    fn server(&self) -> Result<String, Error> {
        let (index, cluster) = self.cluster;
        let field = |problem| Error::Field {
            field: format!("clusters[{index}].cluster.server"),
            problem,
        };
        let server = present(cluster.server.as_ref())
            .ok_or_else(|| field("is missing: give the address, as https://host:port"))?;
        let uri: Uri = server
            .parse()
            .map_err(|_| field("is not an address: expected https://host:port"))?;
        let speaks_http = uri
            .scheme()
            .is_some_and(|scheme| *scheme == Scheme::HTTPS || *scheme == Scheme::HTTP);
        if !speaks_http || uri.host().is_none_or(str::is_empty) {
            return Err(field("is not an address: expected https://host:port"));
        }
        if uri
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'))
        {
            return Err(field("carries credentials: give them in users[].user"));
        }
        Ok(server.to_owned())
    }

    pub(super) fn warnings(&self, server: &str) -> Vec<ClientWarning> {
        let server = server.to_owned();
        let is_plain = server
            .split_once("://")
            .is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("http"));
        if is_plain {
            vec![ClientWarning::Plaintext { server }]
        } else if self.cluster.1.insecure_skip_tls_verify.unwrap_or(false) {
            vec![ClientWarning::UnverifiedServer { server }]
        } else {
            Vec::new()
        }
    }

    fn refuse_proxy(&self) -> Result<(), Error> {
        let (index, cluster) = self.cluster;
        refuse(
            &format!("clusters[{index}].cluster"),
            &[(
                "proxy-url",
                present(cluster.proxy_url.as_ref()).is_some(),
                "give a server address that can be reached without a proxy",
            )],
        )
    }

    /// Refuses what would run a program or read a file of this process.
    pub(super) fn refuse_local_access(&self) -> Result<(), Error> {
        const PLUGIN: &str = "give a token, or client-certificate-data and client-key-data";

        let (index, cluster) = self.cluster;
        refuse(
            &format!("clusters[{index}].cluster"),
            &[(
                "certificate-authority",
                present(cluster.certificate_authority.as_ref()).is_some(),
                "give certificate-authority-data",
            )],
        )?;
        let Some((index, user)) = self.user else {
            return Ok(());
        };
        refuse(
            &format!("users[{index}].user"),
            &[
                ("exec", user.exec.is_some(), PLUGIN),
                ("auth-provider", user.auth_provider.is_some(), PLUGIN),
                (
                    "tokenFile",
                    present(user.token_file.as_ref()).is_some(),
                    "give token",
                ),
                (
                    "client-certificate",
                    present(user.client_certificate.as_ref()).is_some(),
                    "give client-certificate-data",
                ),
                (
                    "client-key",
                    present(user.client_key.as_ref()).is_some(),
                    "give client-key-data",
                ),
            ],
        )
    }
}

/// Takes every path of a local file out. Those that count are empty: they were refused if not, and kube
/// would read them.
pub(super) fn forget_paths(kubeconfig: &mut Kubeconfig) {
    let clusters = kubeconfig.clusters.iter_mut();
    for cluster in clusters.filter_map(|entry| entry.cluster.as_mut()) {
        cluster.certificate_authority = None;
    }
    let users = kubeconfig.auth_infos.iter_mut();
    for user in users.filter_map(|entry| entry.auth_info.as_mut()) {
        user.token_file = None;
        user.client_certificate = None;
        user.client_key = None;
    }
}

/// client-go takes an empty string for an absent one.
fn present(field: Option<&String>) -> Option<&str> {
    field.map(String::as_str).filter(|text| !text.is_empty())
}

fn refuse(parent: &str, fields: &[(&str, bool, &'static str)]) -> Result<(), Error> {
    match fields.iter().find(|(_, is_present, _)| *is_present) {
        None => Ok(()),
        Some((field, _, remedy)) => Err(Error::Refused {
            field: format!("{parent}.{field}"),
            remedy,
        }),
    }
}

/// The position of the one entry of that name.
fn only<'a>(names: impl Iterator<Item = &'a str>, name: &str) -> Result<usize, &'static str> {
    let mut found = names.enumerate().filter(|(_, entry)| *entry == name);
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (None, _) => Err("names an entry that does not exist"),
        (Some(_), Some(_)) => Err("names an entry that exists twice"),
    }
}
