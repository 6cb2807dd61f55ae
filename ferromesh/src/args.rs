//! The flags of the server.

use clap::Parser;
use ferromesh_runtime::args::{AdminArgs, KubeArgs, LogArgs};
use ferromesh_webhook::WebhookArgs;

/// Multi-cluster service mesh management: admission webhook and reconciler in one process
#[derive(Clone, Debug, Parser)]
#[command(name = "ferromesh", version)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) kube: KubeArgs,

    /// Namespace of the management plane in the management cluster
    #[arg(
        long,
        env = "FERROMESH_NAMESPACE",
        value_name = "NAMESPACE",
        default_value = "gloo-mesh"
    )]
    pub(crate) namespace: String,

    /// Name of the Settings object in that namespace
    #[arg(
        long,
        env = "FERROMESH_SETTINGS_NAME",
        value_name = "NAME",
        default_value = "settings"
    )]
    pub(crate) settings_name: String,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[cfg(feature = "otlp")]
    #[command(flatten)]
    pub(crate) otlp: ferromesh_runtime::args::OtlpArgs,

    #[command(flatten)]
    pub(crate) admin: AdminArgs,

    #[command(flatten)]
    pub(crate) webhook: WebhookArgs,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_flag_has_a_fall_back_in_the_environment() {
        let command = Args::command();
        command.clone().debug_assert();
        for flag in command.get_arguments() {
            let name = flag.get_id().as_str();
            let wanted = format!("FERROMESH_{}", name.to_uppercase());
            let env = flag.get_env().and_then(|env| env.to_str());
            assert_eq!(env, Some(wanted.as_str()), "{name}");
        }
    }
}
