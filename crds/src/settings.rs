//! Settings: what holds for the whole management plane.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approval::ApprovalState;
use crate::traffic_policy::Mtls;
use crate::{schema, wire};

/// What holds for the whole management plane.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "settings.mesh.gloo.solo.io",
    version = "v1",
    kind = "Settings",
    plural = "settings",
    singular = "settings",
    category = "gloo-mesh",
    namespaced,
    status = "SettingsStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What holds for the whole management plane. Read from one object, named `settings` unless told otherwise.",
    printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#,
    printcolumn = r#"{"name": "Unresolved References", "type": "string", "jsonPath": ".spec.admission.unresolvedReferences"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("!has(self.networkingExtensionServers) || self.networkingExtensionServers.size() == 0", "networkingExtensionServers are not supported, because what another server adds could not be judged before it is stored: leave the list out")]))]
pub struct SettingsSpec {
    /// TLS on the way to destinations, unless a traffic policy says otherwise; mutual TLS when
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtls: Option<Mtls>,
    /// Servers that extend the translation. Not supported.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub networking_extension_servers: Vec<GrpcServer>,
    /// How meshes are discovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoverySettings>,
    /// How agents are reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelaySettings>,
    /// How objects are judged before they are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<AdmissionSettings>,
}

/// A gRPC server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrpcServer {
    /// Host and port.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub address: String,
    /// Connects without TLS.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub insecure: bool,
    /// Connects again when the network fails.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub reconnect_on_network_failures: bool,
}

/// How meshes are discovered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverySettings {
    /// How Istio is discovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub istio: Option<IstioDiscovery>,
}

/// How Istio is discovered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IstioDiscovery {
    /// How ingress gateways are recognised, by cluster name; `*` stands for every cluster.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub ingress_gateway_detectors: BTreeMap<String, IngressGatewayDetector>,
}

/// How ingress gateways are recognised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressGatewayDetector {
    /// Labels of a gateway's pods; `istio: ingressgateway` when left out.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub gateway_workload_labels: BTreeMap<String, String>,
    /// Name of a gateway's port for mutual TLS; `tls` when left out.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub gateway_tls_port_name: String,
}

/// How agents are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelaySettings {
    /// Clusters are reached through agents.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub enabled: bool,
    /// The server that agents call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<GrpcServer>,
}

/// How objects are judged before they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionSettings {
    /// What happens to an object that refers to something that does not exist; Deny when left
    /// out.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub unresolved_references: UnresolvedReferences,
    /// Writes the name of whoever wrote a policy, a virtual mesh or these settings into its
    /// annotation `networking.mesh.gloo.solo.io/last-author`.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub record_authors: bool,
}

/// What happens to an object that refers to something that does not exist.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum UnresolvedReferences {
    /// It is refused.
    #[default]
    Deny,
    /// It is stored with a warning, and takes effect once the other object exists.
    Warn,
}

/// What became of the settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsStatus {
    /// Generation of the settings that this status speaks of.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// Verdict on the settings.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub state: ApprovalState,
    /// Why they are not accepted.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub errors: Vec<String>,
    /// Conditions, one of each type.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
