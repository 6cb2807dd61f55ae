//! The flags of the webhook.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::Args;

use ferromesh_ca::policy::Violation;

use crate::register::{Endpoint, Url};
use crate::router::Limits;
use crate::{certificate, register};

/// How the webhook listens, and how API servers find it.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct WebhookArgs {
    /// Address that the webhook listens on
    #[arg(
        long,
        env = "FERROMESH_WEBHOOK_ADDRESS",
        value_name = "ADDRESS",
        default_value_t = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 9443))
    )]
    pub webhook_address: SocketAddr,

    /// Where the management cluster's API server finds the webhook, if it runs outside of it: https://HOST:PORT
    #[arg(long, env = "FERROMESH_WEBHOOK_URL", value_name = "URL")]
    pub webhook_url: Option<Url>,

    /// Service, in our namespace, behind which the webhook runs, if it runs in the cluster
    #[arg(
        long,
        env = "FERROMESH_WEBHOOK_SERVICE",
        value_name = "NAME",
        default_value = "ferromesh"
    )]
    pub webhook_service: String,

    /// Port of that Service
    #[arg(
        long,
        env = "FERROMESH_WEBHOOK_SERVICE_PORT",
        value_name = "PORT",
        default_value_t = 443
    )]
    pub webhook_service_port: u16,

    /// Name of the registration; another one for each management plane of a cluster
    #[arg(
        long,
        env = "FERROMESH_WEBHOOK_NAME",
        value_name = "NAME",
        default_value = "ferromesh"
    )]
    pub webhook_name: String,

    /// Milliseconds in which an object is judged; after that the answer says what is known by then
    #[arg(
        long,
        env = "FERROMESH_WEBHOOK_DEADLINE",
        value_name = "MILLISECONDS",
        default_value_t = 200,
        value_parser = clap::value_parser!(u64).range(1..=2_000)
    )]
    pub webhook_deadline: u64,
}

impl WebhookArgs {
    /// The certificate for the names by which API servers call; `namespace` is ours.
    ///
    /// An error if the Service has a name that no certificate can carry.
    pub fn certificate(&self, namespace: &str) -> Result<certificate::Options, Violation> {
        let names = self.endpoint(namespace).names()?;
        Ok(certificate::Options::new(namespace, names))
    }

    /// What API servers are told to ask; `namespace` is ours.
    pub fn registration(&self, namespace: &str) -> register::Options {
        register::Options {
            name: self.webhook_name.clone(),
            ..register::Options::new(namespace, self.endpoint(namespace))
        }
    }

    fn endpoint(&self, namespace: &str) -> Endpoint {
        match &self.webhook_url {
            Some(url) => Endpoint::Url(url.clone()),
            None => Endpoint::Service {
                namespace: namespace.to_owned(),
                name: self.webhook_service.clone(),
                port: self.webhook_service_port,
            },
        }
    }

    /// What reviews may cost.
    pub fn limits(&self) -> Limits {
        Limits {
            deadline: Duration::from_millis(self.webhook_deadline),
            ..Limits::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: WebhookArgs,
    }

    fn parse(args: &[&str]) -> Result<WebhookArgs, clap::Error> {
        let name = ["webhook"].iter();
        Command::try_parse_from(name.chain(args)).map(|command| command.args)
    }

    #[test]
    fn a_service_is_registered_unless_an_address_is_given() {
        let args = parse(&[]).unwrap();
        let service = Endpoint::Service {
            namespace: "gloo-mesh".into(),
            name: "ferromesh".into(),
            port: 443,
        };
        let names = service.names().unwrap();
        assert_eq!(args.certificate("gloo-mesh").unwrap().names, names);
        assert_eq!(
            args.registration("gloo-mesh"),
            register::Options::new("gloo-mesh", service)
        );
        assert_eq!(args.limits(), Limits::default());

        let args = parse(&["--webhook-url", "https://10.0.0.1:9443"]).unwrap();
        let endpoint = Endpoint::Url("https://10.0.0.1:9443".parse().unwrap());
        let names = endpoint.names().unwrap();
        assert_eq!(args.certificate("gloo-mesh").unwrap().names, names);
        assert_eq!(args.registration("gloo-mesh").endpoint, endpoint);
    }

    #[test]
    fn the_registration_has_the_name_that_is_given() {
        let args = parse(&["--webhook-name", "another"]).unwrap();
        assert_eq!(args.registration("gloo-mesh").name, "another");
    }

    #[test]
    fn what_cannot_work_is_refused() {
        for args in [
            ["--webhook-url", "http://a"],
            ["--webhook-deadline", "0"],
            ["--webhook-deadline", "5000"],
        ] {
            assert!(parse(&args).is_err(), "{args:?}");
        }
    }
}
