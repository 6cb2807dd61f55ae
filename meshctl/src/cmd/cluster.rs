//! `cluster`: the registered clusters.

mod deregister;
mod list;
mod register;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ferromesh_crds::name::ClusterName;
use ferromesh_registration::Event;
use ferromesh_registration::progress::Change;
use ferromesh_runtime::client;
use kube::Client;

use crate::args::Global;
use crate::error::{Error, Outcome};
use crate::management::options;
use crate::render::Screen;

/// Register, deregister and list clusters
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Register(register::Arguments),
    Deregister(deregister::Arguments),
    List(list::Arguments),
}

/// The name of a cluster.
#[derive(Args, Debug)]
struct Name {
    /// The name under which the cluster is, or is to be, registered
    #[arg(value_name = "NAME", required = true, num_args = 1..=2)]
    words: Vec<ClusterName>,
}

/// The cluster that is registered.
#[derive(Args, Debug)]
struct Remote {
    /// Context of the remote cluster in its kubeconfig; the current one where that is a file of
    /// its own
    #[arg(long, value_name = "NAME")]
    remote_context: Option<String>,

    /// Kubeconfig file of the remote cluster; else that of the management cluster
    #[arg(long, value_name = "FILE")]
    remote_kubeconfig: Option<PathBuf>,
}

pub(crate) async fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    match &arguments.verb {
        Verb::Register(arguments) => register::run(global, arguments, screen).await,
        Verb::Deregister(arguments) => deregister::run(global, arguments, screen).await,
        Verb::List(arguments) => list::run(global, arguments, screen).await,
    }
}

impl Name {
    /// The name. Older command lines have the edition in front of it.
    fn get(&self) -> Result<&ClusterName, Error> {
        match &*self.words {
            [name] => Ok(name),
            [edition, name] if edition.as_str() == "community" => Ok(name),
            words => Err(Error::Usage {
                argument: words
                    .iter()
                    .map(ClusterName::as_str)
                    .collect::<Vec<_>>()
                    .join(" "),
                problem: "give the name of one cluster",
            }),
        }
    }
}

impl Remote {
    /// The file that names the remote cluster.
    fn kubeconfig<'a>(&'a self, global: &'a Global) -> Option<&'a std::path::Path> {
        let file = self.remote_kubeconfig.as_ref();
        file.or(global.kubeconfig.as_ref()).map(PathBuf::as_path)
    }

    /// A client of the remote cluster, with the rights of whoever calls.
    async fn connect(&self, global: &Global) -> Result<Client, Error> {
        let connection = client::local(
            self.kubeconfig(global),
            self.remote_context.as_deref(),
            &options(global),
        )
        .await
        .map_err(|source| Error::Connect {
            cluster: "the remote cluster",
            source,
        })?;
        Ok(connection.client)
    }
}

/// Tells what happens, as it happens.
fn tell(screen: &mut Screen, event: &Event) {
    match event {
        Event::Applied {
            side,
            object,
            change,
        } => {
            let change = match change {
                Change::Created => "created",
                Change::Changed => "changed",
                Change::Unchanged => "unchanged",
            };
            screen.note(format_args!("{object} {change} in {side}"));
        }
        Event::Kept {
            side,
            object,
            reason,
        } => screen.note(format_args!("{object} left as it is in {side}: {reason}")),
        Event::Deleted { side, object } => {
            screen.note(format_args!("{object} deleted in {side}"));
        }
        Event::CredentialIssued { validity } => match validity {
            Some(validity) => screen.note(format_args!(
                "credential issued, valid until {}, renewed by the server before that",
                validity.expires
            )),
            None => screen.note("credential issued, which does not expire"),
        },
        Event::Warning(warning) => screen.note(format_args!("warning: {warning}")),
        _ => {}
    }
}
