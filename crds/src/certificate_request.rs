//! `CertificateRequest`: one cluster asks for one signature.

use k8s_openapi::ByteString;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, wire};

/// Asks for the certificate of the `IssuedCertificate` with the same name and namespace.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "certificates.mesh.gloo.solo.io",
    version = "v1",
    kind = "CertificateRequest",
    plural = "certificaterequests",
    shortname = "mcr",
    category = "gloo-mesh",
    namespaced,
    status = "CertificateRequestStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Asks the management plane for the certificate of the IssuedCertificate with the same name.",
    printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#,
    printcolumn = r#"{"name": "Error", "type": "string", "jsonPath": ".status.error"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRequestSpec {
    /// The signing request: PKCS #10, PEM.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::bytes")]
    pub certificate_signing_request: ByteString,
}

/// What became of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRequestStatus {
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
    pub state: CertificateRequestState,
    /// The certificate, PEM.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::bytes")]
    pub signed_certificate: ByteString,
    /// The root that vouches for it, PEM.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::bytes")]
    pub signing_root_ca: ByteString,
}

/// How far a request has come.
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
pub enum CertificateRequestState {
    /// Not answered.
    #[default]
    Pending,
    /// Signed.
    Finished,
    /// Refused, or it went wrong.
    Failed,
}
