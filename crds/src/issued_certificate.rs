//! `IssuedCertificate`: the intermediate that one mesh is to have.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cert_options::{CommonCertOptions, VaultCa};
use crate::reference::ObjectRef;
use crate::{schema, wire};

/// The intermediate that one mesh is to have. At most one of the certificate authorities is set.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "certificates.mesh.gloo.solo.io",
    version = "v1",
    kind = "IssuedCertificate",
    plural = "issuedcertificates",
    shortname = "icert",
    category = "gloo-mesh",
    namespaced,
    status = "IssuedCertificateStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The intermediate certificate authority that one mesh is to have. Written by the management plane.",
    printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#,
    printcolumn = r#"{"name": "Secret", "type": "string", "jsonPath": ".spec.issuedCertificateSecret.name"}"#,
    printcolumn = r#"{"name": "Secret Namespace", "type": "string", "jsonPath": ".spec.issuedCertificateSecret.namespace"}"#,
    printcolumn = r#"{"name": "Error", "type": "string", "jsonPath": ".status.error"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::at_most_one(&["glooMeshCa", "agentCa"])]))]
pub struct IssuedCertificateSpec {
    /// Names that the certificate is for: DNS names, IP addresses or SPIFFE IDs.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub hosts: Vec<String>,
    /// Organisation. Deprecated: use `certOptions.orgName`.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub org: String,
    /// Secret with the certificate authority that signs. Deprecated: use `glooMeshCa`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_certificate_secret: Option<ObjectRef>,
    /// Secret that is to hold the certificate. When left out, nobody stores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_certificate_secret: Option<ObjectRef>,
    /// The `PodBounceDirective` to follow once the certificate is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_bounce_directive: Option<ObjectRef>,
    /// Parameters of the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_options: Option<CommonCertOptions>,
    /// The management plane signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gloo_mesh_ca: Option<GlooMeshCa>,
    /// The agent in the cluster has it signed elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_ca: Option<AgentCa>,
}

/// A certificate authority that the management plane holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GlooMeshCa {
    /// Secret of the management cluster with the certificate authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_certificate_secret: Option<ObjectRef>,
}

/// A certificate authority that the agent calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCa {
    /// A `HashiCorp` Vault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault: Option<VaultCa>,
}

/// What became of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuedCertificateStatus {
    /// Generation of the object that this status speaks of.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// Why it failed.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub error: String,
    /// How far it has come.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub state: IssuedCertificateState,
}

/// How far a certificate has come.
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
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum IssuedCertificateState {
    /// Not begun.
    #[default]
    Pending,
    /// A key was made and a certificate asked for.
    Requested,
    /// The certificate is signed and stored.
    Issued,
    /// The certificate is in use.
    Finished,
    /// It went wrong.
    Failed,
}
