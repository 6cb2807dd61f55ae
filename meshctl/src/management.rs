//! The management cluster, asked with the rights of whoever calls.

use std::time::Duration;

use ferromesh_crds::name::Namespace;
use ferromesh_runtime::client::{self, Options};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client};

use crate::args::Global;
use crate::error::Error;
use crate::kind::Shown;
use crate::render::Screen;

/// Objects per page of a list, as client-go has it.
const PAGE: u32 = 500;
/// Longest time for a TCP connection and its TLS handshake.
const CONNECT: Duration = Duration::from_secs(10);

/// The management cluster.
pub(crate) struct Management {
    pub(crate) client: Client,
    /// The address of its API server.
    pub(crate) server: String,
    /// The namespace of the management plane.
    pub(crate) namespace: Namespace,
}

/// Where objects are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope {
    /// In the namespace of the management plane.
    Own,
    /// In all namespaces.
    All,
}

impl Management {
    /// Makes a client; nothing is asked yet.
    pub(crate) async fn connect(global: &Global, screen: &mut Screen) -> Result<Self, Error> {
        let connection = client::local(
            global.kubeconfig.as_deref(),
            global.context.as_deref(),
            &options(global),
        )
        .await
        .map_err(|source| Error::Connect {
            cluster: "the management cluster",
            source,
        })?;
        for warning in &connection.warnings {
            screen.note(format_args!("warning: {warning}"));
        }
        Ok(Self {
            client: connection.client,
            server: connection.server,
            namespace: global.namespace.clone(),
        })
    }

    /// Every object of a kind, by namespace and name.
    pub(crate) async fn list(
        &self,
        kind: Shown,
        scope: Scope,
    ) -> Result<Vec<DynamicObject>, Error> {
        let resource = kind.resource();
        let api = self.api(&resource, scope);
        let mut parameters = ListParams::default().limit(PAGE);
        let mut found = Vec::new();
        loop {
            let page = api.list(&parameters).await.map_err(|source| match source {
                // A kind that nobody serves is answered by no API, with a bare 404.
                kube::Error::Api(status) if status.code == 404 => Error::NotServed {
                    kind: resource.kind.clone(),
                    api_version: resource.api_version.clone(),
                },
                source => self.failed(&format!("listing {}", resource.plural), source),
            })?;
            found.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => break,
            }
        }
        for object in &mut found {
            object.types = Some(types(&resource));
            object.metadata.managed_fields = None;
        }
        found.sort_by(|left, right| {
            let (left, right) = (&left.metadata, &right.metadata);
            (&left.namespace, &left.name).cmp(&(&right.namespace, &right.name))
        });
        Ok(found)
    }

    /// One object of a kind, in the namespace of the management plane.
    pub(crate) async fn find(&self, kind: Shown, name: &str) -> Result<DynamicObject, Error> {
        let resource = kind.resource();
        let found = self.api(&resource, Scope::Own).get(name).await;
        let mut object = found.map_err(|source| match source {
            kube::Error::Api(status) if status.is_not_found() => Error::Missing {
                kind: resource.kind.clone(),
                namespace: self.namespace.to_string(),
                name: name.to_owned(),
            },
            source => self.failed(&format!("reading {} {name}", resource.kind), source),
        })?;
        object.types = Some(types(&resource));
        object.metadata.managed_fields = None;
        Ok(object)
    }

    /// The error of a request that failed.
    pub(crate) fn failed(&self, action: &str, source: kube::Error) -> Error {
        Error::Request {
            action: format!("{action} at {}", self.server),
            source: Box::new(source),
        }
    }

    fn api(&self, resource: &ApiResource, scope: Scope) -> Api<DynamicObject> {
        match scope {
            Scope::Own => {
                Api::namespaced_with(self.client.clone(), self.namespace.as_str(), resource)
            }
            Scope::All => Api::all_with(self.client.clone(), resource),
        }
    }
}

/// How clients of this process behave.
pub(crate) fn options(global: &Global) -> Options {
    Options {
        user_agent: concat!("meshctl/", env!("CARGO_PKG_VERSION")).into(),
        connect_timeout: CONNECT.min(global.request_timeout),
        response_timeout: global.request_timeout,
        ..Options::default()
    }
}

/// Items of a list do not say what they are.
fn types(resource: &ApiResource) -> kube::core::TypeMeta {
    kube::core::TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    }
}
