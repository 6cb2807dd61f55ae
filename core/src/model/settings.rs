//! Settings: what holds for the whole management plane.

use std::collections::BTreeMap;

use ferromesh_crds::meta::{DEFAULT_GATEWAY_LABEL, DEFAULT_GATEWAY_PORT_NAME};
use ferromesh_crds::{self as crds, settings as wire, traffic_policy::TlsMode};
use ferromesh_istio::destination_rule::ClientTlsMode;

use super::kubernetes::key;
use super::labels::Labels;
use super::reject::{Code, Door, Rejection};
use crate::key::Key;

/// Settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Name and namespace.
    pub key: Key,
    /// Generation of the stored object.
    pub generation: i64,
    /// TLS mode of every destination rule.
    pub tls_mode: ClientTlsMode,
    /// How ingress gateways are found, by cluster name or `*`.
    pub gateway_detectors: BTreeMap<String, GatewayDetector>,
    /// What a reference to something that does not exist means at admission.
    pub unresolved_references: UnresolvedReferences,
    /// Whether objects carry the name of whoever wrote what they say.
    pub records_authors: bool,
    /// What is wrong with it; the rest of it holds all the same.
    pub rejections: Box<[Rejection]>,
}

/// How ingress gateways of a cluster are found; an empty part is inherited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayDetector {
    /// Labels of the gateway's pods.
    pub workload_labels: Labels,
    /// Name of the port that carries other clusters' TLS.
    pub tls_port_name: String,
}

/// What a reference to something that does not exist means at admission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnresolvedReferences {
    /// The object is refused.
    #[default]
    Deny,
    /// It is let in with a warning and becomes active once the reference appears.
    Warn,
}

impl Settings {
    /// Reads settings; what is wrong with them is kept beside them.
    pub fn parse(object: &crds::Settings) -> Self {
        let mut door = Door::default();
        let spec = &object.spec;
        if !spec.networking_extension_servers.is_empty() {
            door.refuse(
                "spec.networkingExtensionServers",
                Code::Unsupported,
                "external translators are not called: what they change could not be judged at admission; remove the field",
            );
        }
        Self {
            key: key(&object.metadata, ""),
            generation: object.metadata.generation.unwrap_or_default(),
            tls_mode: match spec.mtls.as_ref().and_then(|mtls| mtls.istio.as_ref()) {
                None => Self::default_tls_mode(),
                Some(istio) => match istio.tls_mode {
                    TlsMode::Disable => ClientTlsMode::Disable,
                    TlsMode::Simple => ClientTlsMode::Simple,
                    TlsMode::IstioMutual => ClientTlsMode::IstioMutual,
                },
            },
            gateway_detectors: spec
                .discovery
                .iter()
                .filter_map(|discovery| discovery.istio.as_ref())
                .flat_map(|istio| &istio.ingress_gateway_detectors)
                .map(|(cluster, detector)| {
                    (
                        cluster.clone(),
                        GatewayDetector {
                            workload_labels: Labels::from(&detector.gateway_workload_labels),
                            tls_port_name: detector.gateway_tls_port_name.clone(),
                        },
                    )
                })
                .collect(),
            unresolved_references: match spec.admission.as_ref().map(|a| a.unresolved_references) {
                Some(wire::UnresolvedReferences::Warn) => UnresolvedReferences::Warn,
                Some(wire::UnresolvedReferences::Deny) | None => UnresolvedReferences::Deny,
            },
            records_authors: spec
                .admission
                .as_ref()
                .is_some_and(|admission| admission.record_authors),
            rejections: door.close().into(),
        }
    }

    /// TLS mode where nothing says otherwise.
    pub const fn default_tls_mode() -> ClientTlsMode {
        ClientTlsMode::IstioMutual
    }

    /// The detector of a cluster: its own entry, then that of `*`, then the defaults, each part
    /// by itself.
    pub fn gateway_detector(settings: Option<&Self>, cluster: &str) -> GatewayDetector {
        let entries = [cluster, "*"]
            .map(|name| settings.and_then(|settings| settings.gateway_detectors.get(name)));
        let labels = entries.iter().flatten().map(|entry| &entry.workload_labels);
        let ports = entries.iter().flatten().map(|entry| &entry.tls_port_name);
        GatewayDetector {
            workload_labels: labels
                .into_iter()
                .find(|labels| !labels.is_empty())
                .cloned()
                .unwrap_or_else(default_gateway_labels),
            tls_port_name: ports
                .into_iter()
                .find(|name| !name.is_empty())
                .cloned()
                .unwrap_or_else(|| DEFAULT_GATEWAY_PORT_NAME.to_owned()),
        }
    }
}

/// Labels of Istio's own ingress gateway.
pub fn default_gateway_labels() -> Labels {
    [DEFAULT_GATEWAY_LABEL].into_iter().collect()
}
