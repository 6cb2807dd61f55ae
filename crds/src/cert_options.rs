//! Parameters of certificates, shared by the virtual mesh and by the objects that carry one
//! certificate's life.

use k8s_openapi::ByteString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::ObjectRef;
use crate::{schema, wire};

/// Parameters of a certificate authority's certificate. What is left out or zero is the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("!has(self.rsaKeySizeBytes) || self.rsaKeySizeBytes == 0 || (self.rsaKeySizeBytes >= 2048 && self.rsaKeySizeBytes <= 8192)", "rsaKeySizeBytes counts bits in spite of its name: write 2048, 3072, 4096 or 8192, or leave it out for ECDSA")]))]
pub struct CommonCertOptions {
    /// Days for which the certificate is valid.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(range(min = 0, max = 36500))]
    pub ttl_days: i64,
    /// Asks for an RSA key of that many bits (bits, in spite of the name). Left out: ECDSA.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::uint32")]
    pub rsa_key_size_bytes: i64,
    /// Organisation in the certificate's subject.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 64))]
    pub org_name: String,
    /// Share of the certificate's life that is left when it is renewed, between 0 and 1.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(range(min = 0, max = 1))]
    pub secret_rotation_grace_period_ratio: f64,
}

/// A `HashiCorp` Vault that signs certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::exactly_one(&["tokenSecretRef", "kubernetesAuth"]), schema::rule("has(self.server) && self.server != ''", "name the Vault server, for example https://vault.example.com:8200")]))]
pub struct VaultCa {
    /// Path at which a signing request is signed, e.g. `pki/root/sign-intermediate`.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub ca_path: String,
    /// Path at which an intermediate is made, e.g. `pki_int/intermediate/generate/exported`.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub csr_path: String,
    /// URL of the Vault server.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub server: String,
    /// Certificates, PEM, that vouch for the server; unused with plain HTTP.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::bytes")]
    pub ca_bundle: ByteString,
    /// Namespace within Vault.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub namespace: String,
    /// Authenticates with a token from this Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_ref")]
    pub token_secret_ref: Option<ObjectRef>,
    /// Authenticates with a Kubernetes ServiceAccount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_auth: Option<VaultKubernetesAuth>,
}

/// How a Kubernetes ServiceAccount authenticates to Vault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::at_most_one(&["serviceAccountRef", "mountedSaPath"]), schema::rule("has(self.role) && self.role != ''", "name the Vault role to assume")]))]
pub struct VaultKubernetesAuth {
    /// Path of the auth method; `/v1/auth/kubernetes` when left out.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub mount_path: String,
    /// Vault role to assume.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub role: String,
    /// Key of the token within its Secret; `token` when left out.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub secret_token_key: String,
    /// The ServiceAccount whose token is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_ref")]
    pub service_account_ref: Option<ObjectRef>,
    /// Directory where the token is mounted; the usual one of Kubernetes when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mounted_sa_path: Option<String>,
}
