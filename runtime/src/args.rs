//! Argument structs that every binary flattens, so that all of them speak the same flags.
//!
//! Every flag has a fall-back in the environment, `FERROMESH_` and its name.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

use crate::{
    client::{self, Connection},
    serve::{self, Limits, Server},
    telemetry::{self, LogFormat, LogHandle},
};

/// Which API server is meant.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeArgs {
    /// Kubeconfig file; else $KUBECONFIG, the pod's service account, ~/.kube/config
    #[arg(long, env = "FERROMESH_KUBECONFIG", value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,

    /// Context in the kubeconfig; else the current one
    #[arg(long, env = "FERROMESH_CONTEXT", value_name = "NAME", global = true)]
    pub context: Option<String>,
}

/// What is logged, and how.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct LogArgs {
    /// Level (error, warn, info, debug, trace), or target=level pairs separated by commas
    #[arg(
        long,
        env = "FERROMESH_LOG_LEVEL",
        value_name = "FILTER",
        default_value = "info",
        global = true
    )]
    pub log_level: String,

    /// Form of log lines
    #[arg(
        long,
        env = "FERROMESH_LOG_FORMAT",
        value_enum,
        default_value_t,
        global = true
    )]
    pub log_format: LogFormat,
}

/// Who is told what becomes of each change.
#[cfg(feature = "otlp")]
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct OtlpArgs {
    /// Address of a collector of OTLP (protobuf over HTTP), as http://collector:4318; none: no traces
    #[arg(long, env = "FERROMESH_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
}

/// Where the process shows health and metrics.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminArgs {
    /// Address of /healthz, /readyz, /metrics and /log
    #[arg(
        long,
        env = "FERROMESH_ADMIN_ADDRESS",
        value_name = "ADDRESS",
        default_value = "0.0.0.0:9091"
    )]
    pub admin_address: SocketAddr,
}

// === impl KubeArgs ===

impl KubeArgs {
    /// A client of that API server.
    pub async fn connect(&self, options: &client::Options) -> Result<Connection, client::Error> {
        client::local(self.kubeconfig.as_deref(), self.context.as_deref(), options).await
    }
}

// === impl LogArgs ===

impl LogArgs {
    /// Logs from now on. At most once per process.
    pub fn init(&self) -> Result<LogHandle, telemetry::Error> {
        telemetry::init(&self.log_level, self.log_format)
    }
}

// === impl OtlpArgs ===

#[cfg(feature = "otlp")]
impl OtlpArgs {
    /// Logs from now on, and tells spans of `service` to the collector, if there is one. At most once per
    /// process.
    pub fn init(
        &self,
        log: &LogArgs,
        service: &'static str,
    ) -> Result<(LogHandle, Option<telemetry::Traces>), telemetry::Error> {
        let Some(endpoint) = &self.otlp_endpoint else {
            return Ok((log.init()?, None));
        };
        let (directives, format) = (&*log.log_level, log.log_format);
        let (log, traces) = telemetry::init_traced(directives, format, endpoint, service)?;
        Ok((log, Some(traces)))
    }
}

// === impl AdminArgs ===

impl AdminArgs {
    /// Listens there.
    pub async fn bind(&self) -> Result<Server, serve::Error> {
        Server::bind(self.admin_address, Limits::default()).await
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Binary {
        #[command(flatten)]
        kube: KubeArgs,
        #[command(flatten)]
        log: LogArgs,
        #[command(flatten)]
        admin: AdminArgs,
    }

    #[test]
    fn flags_are_taken() {
        let args = Binary::parse_from([
            "binary",
            "--kubeconfig=/etc/kube",
            "--context=east",
            "--log-level=info,tower=debug",
            "--log-format=json",
            "--admin-address=127.0.0.1:1",
        ]);
        assert_eq!(args.kube.kubeconfig, Some("/etc/kube".into()));
        assert_eq!(args.kube.context.as_deref(), Some("east"));
        assert_eq!(args.log.log_level, "info,tower=debug");
        assert_eq!(args.log.log_format, LogFormat::Json);
        assert_eq!(args.admin.admin_address, "127.0.0.1:1".parse().unwrap());
    }

    #[test]
    fn every_flag_has_its_name_in_the_environment() {
        let command = <Binary as clap::CommandFactory>::command();
        for argument in command.get_arguments() {
            let flag = argument.get_long().unwrap();
            let expected = format!("FERROMESH_{}", flag.replace('-', "_").to_uppercase());
            assert_eq!(
                argument.get_env().and_then(|env| env.to_str()),
                Some(expected.as_str())
            );
        }
        assert_eq!(command.get_arguments().count(), 5);
    }
}
