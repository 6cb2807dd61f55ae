//! What applies to a destination, one type for each kind of object that does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access_policy::AccessPolicySpec;
use crate::reference::ObjectRef;
use crate::tcp_keepalive::TcpKeepalive;
use crate::traffic_policy::{TrafficPolicySpec, TrafficShift};
use crate::wire;

/// A traffic policy as it applies to one destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedTrafficPolicy {
    /// The `TrafficPolicy`.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ObjectRef>,
    /// Generation of the `TrafficPolicy` that applies.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// What the `TrafficPolicy` asked for at that generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<TrafficPolicySpec>,
}

/// An access policy as it applies to one destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedAccessPolicy {
    /// The `AccessPolicy`.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ObjectRef>,
    /// Generation of the `AccessPolicy` that applies.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// What the `AccessPolicy` asked for at that generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<AccessPolicySpec>,
}

/// How clients in other meshes call a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedFederation {
    /// Host name by which they call it.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub federated_hostname: String,
    /// Meshes whose clients may call it.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub federated_to_meshes: Vec<ObjectRef>,
    /// Clients reach the pods without a gateway.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub flat_network: bool,
    /// The `VirtualMesh` that federates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_mesh_ref: Option<ObjectRef>,
    /// Keepalive of the clients' connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_keepalive: Option<TcpKeepalive>,
}

/// A traffic shift that names subsets of a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequiredSubsets {
    /// The `TrafficPolicy` that shifts requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_policy_ref: Option<ObjectRef>,
    /// Generation of the `TrafficPolicy`.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// The shift at that generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_shift: Option<TrafficShift>,
}
