//! How the meshes of a virtual mesh come to trust each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cert_options::{CommonCertOptions, VaultCa};
use crate::empty::Empty;
use crate::reference::ObjectRef;
use crate::{schema, wire};

/// How meshes come to trust each other. Exactly one of the trust models is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("has(self.shared) || has(self.limited)", "choose how the meshes trust each other: set shared"), schema::rule("!has(self.limited)", "limited trust is not supported yet: use shared")]))]
pub struct MtlsConfig {
    /// One root of trust for all meshes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedTrust>,
    /// A root of trust for each mesh; only gateways trust each other. Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited: Option<Empty>,
    /// Pods may be restarted when that is what it takes to bring a new certificate into use.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub auto_restart_pods: bool,
}

/// One root of trust for all meshes. Exactly one of the certificate authorities is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::exactly_one(&["rootCertificateAuthority", "intermediateCertificateAuthority"])]))]
pub struct SharedTrust {
    /// The root is kept in the management cluster, where it signs an intermediate for each mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_certificate_authority: Option<RootCertificateAuthority>,
    /// The root is kept elsewhere; each mesh obtains its intermediate there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intermediate_certificate_authority: Option<IntermediateCertificateAuthority>,
    /// Parameters of the intermediates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intermediate_cert_options: Option<CommonCertOptions>,
}

/// Where the root comes from. Exactly one of the sources is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::exactly_one(&["generated", "secret"])]))]
pub struct RootCertificateAuthority {
    /// The root is generated, with these parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<CommonCertOptions>,
    /// The root is in this Secret, under the keys `root-cert.pem` and `key.pem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_ref")]
    pub secret: Option<ObjectRef>,
}

/// Where meshes obtain their intermediates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("has(self.vault)", "say where the intermediates are signed: set vault")]))]
pub struct IntermediateCertificateAuthority {
    /// From a `HashiCorp` Vault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault: Option<VaultCa>,
}
