//! What can be asked.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ferromesh_core::model::duration;
use ferromesh_crds::meta::DEFAULT_NAMESPACE;
use ferromesh_crds::name::Namespace;

use crate::cmd::{
    check, cluster, completion, describe, discover, get, translate, validate, version,
};

/// Looks at a service mesh of many clusters, and at what a change to it would do
#[derive(Debug, Parser)]
#[command(
    name = "meshctl",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 all is well, 1 something is wrong with what was looked at, \
                  2 usage, 3 cluster unreachable or forbidden, 4 timed out, 5 internal error."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What every verb takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Kubeconfig file; else $KUBECONFIG, the pod's service account, ~/.kube/config
    #[arg(long, value_name = "FILE", global = true, alias = "mgmt-kubeconfig")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the management cluster in the kubeconfig; else the current one
    #[arg(long, value_name = "NAME", global = true, aliases = ["kubecontext", "mgmt-context"])]
    pub(crate) context: Option<String>,

    /// Namespace of the management plane
    #[arg(short, long, value_name = "NAME", global = true, default_value = DEFAULT_NAMESPACE, alias = "mgmt-namespace")]
    pub(crate) namespace: Namespace,

    /// How long an API server may take to answer
    #[arg(long, value_name = "DURATION", global = true, default_value = "30s", value_parser = duration::parse)]
    pub(crate) request_timeout: Duration,

    /// Tell more on stderr
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Get(get::Arguments),
    Describe(describe::Arguments),
    Check(check::Arguments),
    Cluster(cluster::Arguments),
    Validate(validate::Arguments),
    Translate(translate::Arguments),
    Discover(discover::Arguments),
    Version(version::Arguments),
    Completion(completion::Arguments),
}

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    Yaml,
    /// For programs
    Json,
}

/// Objects in files.
#[derive(Args, Debug)]
pub(crate) struct Files {
    /// File or directory of YAML or JSON, `-` for stdin; directories are read recursively. May be
    /// repeated
    #[arg(short, long = "filename", value_name = "PATH", required = true, num_args = 1..)]
    pub(crate) filename: Vec<PathBuf>,
}
