//! `cluster list`.

use clap::{Args, ValueEnum};
use ferromesh_registration::list::{Reached, Registered, RegisteredCluster, Stored};
use serde::Serialize;

use crate::args::{Form, Global};
use crate::error::{Error, Outcome};
use crate::management::Management;
use crate::render::{Screen, table};

/// List the registered clusters, and how they fare
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// How they are written
    #[arg(short, long, value_enum, default_value = "table")]
    output: Style,

    /// Leave the titles of the columns out
    #[arg(long)]
    no_headers: bool,
}

/// How clusters are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Style {
    /// One line for each
    Table,
    /// For programs
    Json,
    /// For both
    Yaml,
    /// Names alone
    Name,
}

/// The clusters as a document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Cluster>,
}

/// One cluster as a document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    name: String,
    /// Whether there is a `KubernetesCluster`.
    registered: bool,
    namespace: String,
    domain: String,
    /// `True`, `False` or `Unknown`.
    reached: String,
    reason: String,
    /// What is wrong with the credential, what waits for a person, or why it is not reached.
    message: String,
    server: String,
    credential: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

impl From<RegisteredCluster> for Cluster {
    fn from(cluster: RegisteredCluster) -> Self {
        let RegisteredCluster {
            name,
            registered,
            credential,
        } = cluster;
        let is_registered = registered.is_some();
        let Registered {
            domain,
            namespace,
            reached,
            held,
        } = registered.unwrap_or_default();
        let (status, reason, message) = match reached {
            Some(Reached {
                status,
                reason,
                message,
                ..
            }) => (status, reason, message),
            None => ("Unknown".to_owned(), String::new(), String::new()),
        };
        let (server, credential, expires, problem) = match credential {
            Stored::Kubeconfig { server, validity } => {
                let expires = validity.map(|validity| validity.expires.to_string());
                (server, "stored", expires, None)
            }
            Stored::Unusable { problem } => (String::new(), "unusable", None, Some(problem)),
            Stored::Missing => (String::new(), "missing", None, None),
            Stored::Hidden => (String::new(), "hidden", None, None),
        };
        Self {
            name,
            registered: is_registered,
            namespace,
            domain,
            reached: status,
            reason,
            message: problem.or(held).unwrap_or(message),
            server,
            credential,
            expires,
        }
    }
}

pub(super) async fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    let management = Management::connect(global, screen).await?;
    let found = ferromesh_registration::list(&management.client, &management.namespace).await?;
    let items: Vec<Cluster> = found.into_iter().map(Cluster::from).collect();
    let form = match arguments.output {
        Style::Json => Form::Json,
        Style::Yaml => Form::Yaml,
        Style::Name => {
            for cluster in items {
                screen.line(cluster.name)?;
            }
            return Ok(Outcome::Clean);
        }
        Style::Table => {
            if items.is_empty() {
                screen.note(format_args!(
                    "no cluster is registered in namespace {}",
                    management.namespace
                ));
                return Ok(Outcome::Clean);
            }
            let titles = [
                "CLUSTER",
                "NAMESPACE",
                "REACHED",
                "REASON",
                "SERVER",
                "CREDENTIAL",
                "EXPIRES",
                "MESSAGE",
            ];
            let rows = items.into_iter().map(|cluster| {
                vec![
                    cluster.name,
                    cluster.namespace,
                    cluster.reached,
                    cluster.reason,
                    cluster.server,
                    cluster.credential.to_owned(),
                    cluster.expires.unwrap_or_default(),
                    cluster.message,
                ]
            });
            let titles = (!arguments.no_headers).then_some(&titles[..]);
            screen.line(table::columns(titles, rows.collect()))?;
            return Ok(Outcome::Clean);
        }
    };
    let list = List {
        api_version: "cli.mesh/v1",
        kind: "ClusterList",
        items,
    };
    screen.document(form, &list)?;
    Ok(Outcome::Clean)
}
