//! Which services of a virtual mesh are made known to which meshes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::empty::Empty;
use crate::reference::ObjectRef;
use crate::selector::{DestinationSelector, IngressGatewaySelector};
use crate::tcp_keepalive::TcpKeepalive;
use crate::{schema, wire};

/// Which services are made known to which meshes, and how they are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Federation {
    /// What is federated; none means nothing.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 32))]
    pub selectors: Vec<FederationSelector>,
    /// Federates everything to every mesh. Deprecated: use one empty selector. Has no effect when
    /// there are selectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissive: Option<Empty>,
    /// The clusters share one network: pods are reached without a gateway.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub flat_network: bool,
    /// Last part of federated host names; `global` when left out. Another one needs Istio's DNS
    /// proxying in every client mesh.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::dns_name")]
    pub hostname_suffix: String,
    /// Keepalive of connections between meshes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// The gateways that take traffic from other meshes; when left out they are found by label.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 32))]
    pub east_west_ingress_gateway_selectors: Vec<IngressGatewaySelector>,
}

/// Federates the selected destinations to the given meshes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FederationSelector {
    /// The destinations; none means every destination of the virtual mesh.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 32))]
    pub destination_selectors: Vec<DestinationSelector>,
    /// The meshes to whose clients they are made known; none means every mesh of the virtual mesh.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::mesh_refs")]
    pub meshes: Vec<ObjectRef>,
}
