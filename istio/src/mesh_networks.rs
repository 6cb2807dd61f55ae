//! `MeshNetworks`: the part of Istio's network configuration that discovery reads.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::mesh_config::Lenient;

/// What ConfigMap `istio`, key `meshNetworks`, says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MeshNetworks {
    /// Networks by name.
    pub networks: Option<BTreeMap<String, Option<Network>>>,
}

/// One network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Network {
    /// Which endpoints are in it.
    pub endpoints: Option<Vec<NetworkEndpoints>>,
}

/// Endpoints of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkEndpoints {
    /// All those of the cluster that Istio knows by this name.
    pub from_registry: Option<Lenient>,
}
