//! TLS on the way to a destination.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire;

/// TLS on the way to a destination, by type of mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mtls {
    /// For Istio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub istio: Option<IstioMtls>,
}

/// TLS between Istio's proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IstioMtls {
    /// Which kind of TLS; DISABLE when left out.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub tls_mode: TlsMode,
}

/// Kind of TLS.
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
pub enum TlsMode {
    /// No TLS.
    #[default]
    Disable,
    /// TLS that proves the server's identity only.
    Simple,
    /// Mutual TLS with the certificates of the mesh.
    IstioMutual,
}
