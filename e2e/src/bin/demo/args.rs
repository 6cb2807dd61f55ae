//! What can be asked of the demo.

use std::path::PathBuf;

use clap::Parser;

/// The main job of Ferromesh, told step by step
#[derive(Clone, Debug, Parser)]
#[command(name = "hack/demo")]
pub(crate) struct Args {
    /// Leave everything running at the end, and say how it is reached
    #[arg(long)]
    pub(crate) keep: bool,

    /// Contexts of clusters that are there already: the management cluster and two that run Istio. They
    /// are registered as cluster-1 and cluster-2
    #[arg(
        long,
        value_name = "MANAGEMENT,CLUSTER-1,CLUSTER-2",
        value_delimiter = ',',
        num_args = 1
    )]
    pub(crate) contexts: Vec<String>,

    /// Kubeconfig that holds the contexts; else $KUBECONFIG, else ~/.kube/config
    #[arg(long, value_name = "FILE", requires = "contexts")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Address at which the API server of the management cluster reaches this machine
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) webhook_host: String,
}
