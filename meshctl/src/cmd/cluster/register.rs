//! `cluster register`.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use ferromesh_core::model::duration;
use ferromesh_crds::name::{ClusterName, Hostname, Namespace};
use ferromesh_registration::credential::MIN_LIFETIME;
use ferromesh_registration::kubeconfig::{self, Address, ApiServer};
use ferromesh_registration::{CredentialKind, Plan, Registration};

use super::{Name, Remote, tell};
use crate::args::Global;
use crate::error::{Error, Outcome};
use crate::management::Management;
use crate::render::Screen;

/// Register a cluster, or bring its registration up to date
///
/// Makes an account with the least rights in the remote cluster, and a kubeconfig Secret and a
/// `KubernetesCluster` in the management cluster. May be repeated.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("which").args(["remote_context", "remote_kubeconfig"]).required(true).multiple(true))]
pub(super) struct Arguments {
    #[command(flatten)]
    name: Name,

    #[command(flatten)]
    remote: Remote,

    /// Namespace of the registration in the remote cluster
    #[arg(long, value_name = "NAME", default_value = ferromesh_crds::meta::DEFAULT_NAMESPACE)]
    remote_namespace: Namespace,

    /// DNS domain of the remote cluster
    #[arg(long, value_name = "DOMAIN", default_value = ferromesh_crds::meta::DEFAULT_CLUSTER_DOMAIN)]
    cluster_domain: Hostname,

    /// Address at which the management plane reaches the remote API server, where that of the
    /// kubeconfig is not it
    #[arg(long, value_name = "HOST[:PORT]")]
    api_server_address: Option<Address>,

    /// Namespace of istiod in the remote cluster. May be repeated
    #[arg(long = "istio-namespace", value_name = "NAME", default_value = ferromesh_crds::meta::DEFAULT_ISTIO_NAMESPACE)]
    istio_namespaces: Vec<Namespace>,

    /// Label on the objects in the management cluster. May be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,

    /// How the management plane shows who it is
    #[arg(long, value_enum, default_value = "renewed")]
    credential: Credential,

    /// For how long a renewed token is valid; API servers may grant less [default: 168h]
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    token_lifetime: Option<Duration>,

    /// Show all objects instead of making them
    #[arg(long)]
    dry_run: bool,

    /// How a dry run is written
    #[arg(short, long, value_enum, default_value = "yaml", requires = "dry_run")]
    output: Style,
}

/// How the management plane shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Credential {
    /// By a token that expires and that the server renews
    Renewed,
    /// By a token that never expires
    LongLived,
}

/// How a dry run is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Style {
    /// Objects for both clusters, each under a comment that tells its side
    Yaml,
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or("write a label as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let lifetime = duration::parse(text)?;
    if lifetime < MIN_LIFETIME {
        let least = MIN_LIFETIME.as_secs();
        return Err(format!("API servers grant no token for less than {least}s"));
    }
    Ok(lifetime)
}

pub(super) async fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    if arguments.credential == Credential::LongLived && arguments.token_lifetime.is_some() {
        return Err(Error::Usage {
            argument: "--token-lifetime".to_owned(),
            problem: "a long-lived credential does not expire: leave one of the two out",
        });
    }
    let remote = &arguments.remote;
    let api_server = kubeconfig::read(remote.kubeconfig(global))
        .and_then(|kubeconfig| {
            ApiServer::resolve(
                &kubeconfig,
                remote.remote_context.as_deref(),
                arguments.api_server_address.as_ref(),
            )
        })
        .map_err(Error::Kubeconfig)?;
    let name = arguments.name.get()?;
    let registration = registration(global, arguments, name, api_server);
    if arguments.dry_run {
        let Style::Yaml = arguments.output;
        screen.bytes(Plan::new(&registration).to_yaml().as_bytes())?;
        return Ok(Outcome::Clean);
    }
    let management = Management::connect(global, screen).await?;
    let client = remote.connect(global).await?;
    let mut progress = |event| tell(screen, &event);
    ferromesh_registration::register(&management.client, &client, &registration, &mut progress)
        .await?;
    screen.line(format_args!("cluster {name} registered"))?;
    Ok(Outcome::Clean)
}

fn registration(
    global: &Global,
    arguments: &Arguments,
    name: &ClusterName,
    api_server: ApiServer,
) -> Registration {
    let mut registration = Registration::new(name.clone(), api_server);
    registration.management_namespace = global.namespace.clone();
    registration.remote_namespace = arguments.remote_namespace.clone();
    registration.cluster_domain = arguments.cluster_domain.clone();
    registration.labels = arguments.labels.iter().cloned().collect();
    registration.istio_namespaces = arguments.istio_namespaces.iter().cloned().collect();
    registration.credential = match (arguments.credential, arguments.token_lifetime) {
        (Credential::LongLived, _) => CredentialKind::LongLived,
        (Credential::Renewed, None) => CredentialKind::default(),
        (Credential::Renewed, Some(lifetime)) => CredentialKind::Requested { lifetime },
    };
    registration
}
