//! `version`: of this binary, and of what runs in the cluster.

use std::collections::BTreeMap;

use clap::Args;
use ferromesh_runtime::telemetry::Chain;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;

use crate::args::{Form, Global};
use crate::error::{Error, Outcome};
use crate::management::Management;
use crate::render::Screen;

/// Print the versions of this binary and of the management plane as JSON
///
/// A cluster that is not reached is told in the document, and is no failure.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// This binary alone
    #[arg(long)]
    client: bool,
}

#[derive(Serialize)]
struct Versions {
    client: Client,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Vec<Server>>,
    /// Why nothing is said about the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Client {
    version: &'static str,
}

/// What runs in one namespace. Scripts rely on the capital letter.
#[derive(Debug, PartialEq, Serialize)]
struct Server {
    #[serde(rename = "Namespace")]
    namespace: String,
    components: Vec<Component>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Component {
    component_name: String,
    images: Vec<Image>,
}

/// An image, taken apart.
#[derive(Debug, PartialEq, Serialize)]
struct Image {
    name: String,
    domain: String,
    path: String,
    version: String,
}

pub(crate) async fn run(
    global: &Global,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<Outcome, Error> {
    let client = Client {
        version: env!("CARGO_PKG_VERSION"),
    };
    let (server, error) = if arguments.client {
        (None, None)
    } else {
        match servers(global, screen).await {
            Ok(servers) => (Some(servers), None),
            Err(error) => (Some(Vec::new()), Some(Chain(&error).to_string())),
        }
    };
    let versions = Versions {
        client,
        server,
        error,
    };
    screen.document(Form::Json, &versions)?;
    Ok(Outcome::Clean)
}

async fn servers(global: &Global, screen: &mut Screen) -> Result<Vec<Server>, Error> {
    let management = Management::connect(global, screen).await?;
    let api: Api<Deployment> =
        Api::namespaced(management.client.clone(), management.namespace.as_str());
    let found = api
        .list(&ListParams::default())
        .await
        .map_err(|source| management.failed("listing deployments", source))?;
    let components: BTreeMap<String, Component> = found
        .items
        .into_iter()
        .map(|deployment| {
            let name = deployment.metadata.name.unwrap_or_default();
            let pod = deployment.spec.and_then(|spec| spec.template.spec);
            let containers = pod.map(|pod| pod.containers).unwrap_or_default();
            let images = containers.into_iter().filter_map(|it| it.image);
            let component = Component {
                component_name: name.clone(),
                images: images.map(|image| Image::parse(&image)).collect(),
            };
            (name, component)
        })
        .collect();
    if components.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![Server {
        namespace: management.namespace.to_string(),
        components: components.into_values().collect(),
    }])
}

impl Image {
    /// Takes a reference apart: `domain/path/name:version@digest`. What has neither dot nor colon
    /// nor is `localhost` is no domain (the grammar of the container reference libraries).
    fn parse(reference: &str) -> Self {
        let bare = reference
            .split_once('@')
            .map_or(reference, |(bare, _)| bare);
        let (rest, version) = match bare.rsplit_once(':') {
            Some((rest, version)) if !version.contains('/') => (rest, version),
            _ => (bare, "latest"),
        };
        let is_domain = |part: &str| part.contains(['.', ':']) || part == "localhost";
        let (domain, path) = match rest.split_once('/') {
            Some((domain, path)) if is_domain(domain) => (domain, path),
            _ => ("docker.io", rest),
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        Self {
            name: name.to_owned(),
            domain: domain.to_owned(),
            path: path.to_owned(),
            version: version.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_taken_apart() {
        for (reference, domain, path, name, version) in [
            (
                "ghcr.io/ferromesh/ferromesh:0.1.0",
                "ghcr.io",
                "ferromesh/ferromesh",
                "ferromesh",
                "0.1.0",
            ),
            (
                "localhost:5000/ferromesh@sha256:00",
                "localhost:5000",
                "ferromesh",
                "ferromesh",
                "latest",
            ),
            (
                "istio/pilot:1.26.2@sha256:00",
                "docker.io",
                "istio/pilot",
                "pilot",
                "1.26.2",
            ),
            ("nginx", "docker.io", "nginx", "nginx", "latest"),
        ] {
            let image = Image::parse(reference);
            let parts = (&*image.domain, &*image.path, &*image.name, &*image.version);
            assert_eq!(parts, (domain, path, name, version), "{reference}");
        }
    }
}
