//! `cluster deregister`.

use clap::{ArgGroup, Args};
use ferromesh_registration::{Deregistration, Event};

use super::{Name, Remote, tell};
use crate::args::Global;
use crate::error::{Error, Outcome};
use crate::management::Management;
use crate::render::Screen;

/// Deregister a cluster: take the registration away on both sides, and nothing else
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("which").args(["remote_context", "remote_kubeconfig", "unreachable"]).required(true).multiple(true))]
pub(super) struct Arguments {
    #[command(flatten)]
    name: Name,

    #[command(flatten)]
    remote: Remote,

    /// The remote cluster is gone, or not reached from here: do the management side alone
    #[arg(long, conflicts_with_all = ["remote_context", "remote_kubeconfig", "purge"])]
    unreachable: bool,

    /// Take away what the management plane has written to the remote cluster, too
    #[arg(long)]
    purge: bool,
}

pub(super) async fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    let name = arguments.name.get()?;
    let management = Management::connect(global, screen).await?;
    let remote = if arguments.unreachable {
        None
    } else {
        Some(arguments.remote.connect(global).await?)
    };
    let deregistration = Deregistration {
        name: name.clone(),
        management_namespace: global.namespace.clone(),
        purge: arguments.purge,
    };
    let mut is_anything_gone = false;
    let mut progress = |event| {
        is_anything_gone |= matches!(event, Event::Deleted { .. });
        tell(screen, &event);
    };
    ferromesh_registration::deregister(
        &management.client,
        remote.as_ref(),
        &deregistration,
        &mut progress,
    )
    .await?;
    if is_anything_gone {
        screen.line(format_args!("cluster {name} deregistered"))?;
    } else {
        screen.line(format_args!(
            "cluster {name} is not registered: there was nothing to take away"
        ))?;
    }
    Ok(Outcome::Clean)
}
