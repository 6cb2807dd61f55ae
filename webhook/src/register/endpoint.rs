//! Where API servers find the webhook.

use axum::http::Uri;
use ferromesh_ca::name::SubjectAltName;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};

use crate::certificate::Bundle;

/// Where API servers find the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Behind a Service of the management cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
    /// At an address outside the cluster, without a slash at its end: `https://10.0.0.1:9443`.
    Url(Url),
}

/// An address that API servers can call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    text: String,
    name: SubjectAltName,
}

/// Why an address cannot be called (Kubernetes: `WebhookClientConfig.url`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the webhook's address {text:?} cannot be called by API servers: write https://HOST:PORT, without user, query or fragment"
)]
pub struct NotAUrl {
    text: String,
}

impl std::str::FromStr for Url {
    type Err = NotAUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || NotAUrl {
            text: text.to_owned(),
        };
        let text = text.trim_end_matches('/');
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let has_user = uri.authority().is_some_and(|it| it.as_str().contains('@'));
        let is_plain = uri.scheme_str() == Some("https")
            && uri.query().is_none()
            && !text.contains('#')
            && !has_user;
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = host.parse().ok().filter(|_| is_plain).ok_or_else(wrong)?;
        Ok(Self {
            text: text.to_owned(),
            name,
        })
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Endpoint {
    /// The names by which API servers call, for the certificate.
    ///
    /// # Errors
    /// If a Service has a name that no certificate can carry.
    pub fn names(&self) -> Result<Vec<SubjectAltName>, ferromesh_ca::policy::Violation> {
        match self {
            Self::Service {
                namespace, name, ..
            } => Ok(vec![format!("{name}.{namespace}.svc").parse()?]),
            Self::Url(url) => Ok(vec![url.name.clone()]),
        }
    }

    /// How API servers call `path` and whom they believe.
    pub(super) fn client_config(&self, path: &str, bundle: &Bundle) -> WebhookClientConfig {
        let ca_bundle = Some(ByteString(bundle.pem.as_bytes().to_vec()));
        match self {
            Self::Service {
                namespace,
                name,
                port,
            } => WebhookClientConfig {
                ca_bundle,
                service: Some(ServiceReference {
                    name: name.clone(),
                    namespace: namespace.clone(),
                    path: Some(path.to_owned()),
                    port: Some(i32::from(*port)),
                }),
                url: None,
            },
            Self::Url(url) => WebhookClientConfig {
                ca_bundle,
                service: None,
                url: Some(format!("{}{path}", url.text)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_https_with_a_host() {
        for (text, host) in [
            ("https://10.0.0.1:9443", "10.0.0.1"),
            ("https://hooks.example.com", "hooks.example.com"),
            ("https://hooks.example.com:9443/mesh/", "hooks.example.com"),
            ("https://[fd00::1]:9443", "fd00::1"),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(url.name.to_string(), host);
            assert!(!url.to_string().ends_with('/'));
        }
        for text in [
            "",
            "10.0.0.1:9443",
            "http://10.0.0.1",
            "https://",
            "https://a/?b=c",
            "https://a/#b",
            "https://user@a",
            "https://user:secret@a:1",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_service_is_called_by_its_name_in_the_cluster() {
        let endpoint = Endpoint::Service {
            namespace: "gloo-mesh".into(),
            name: "ferromesh".into(),
            port: 443,
        };
        let names = endpoint.names().unwrap();
        assert_eq!(names, ["ferromesh.gloo-mesh.svc".parse().unwrap()]);
        let config = endpoint.client_config("/validate", &Bundle::new("pem".into()));
        assert_eq!(config.url, None);
        let service = config.service.unwrap();
        assert_eq!(service.path.as_deref(), Some("/validate"));
        assert_eq!(service.port, Some(443));
    }
}
