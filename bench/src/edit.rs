//! Changes of fleets.

use ferromesh_testkit::fleet::{self, Fleet, Service};
use serde_json::{Value, json};

/// How many policies are edited, one after the other.
pub const POLICIES: u32 = 50;
/// How many destinations each of them selects.
const SELECTED: u32 = 10;

/// Another header in a policy for ten services, which are listed by name; another policy each turn.
pub fn policy(fleet: &Fleet, turn: u32) -> Value {
    let number = turn % POLICIES;
    let services = (0..SELECTED.min(fleet.services))
        .map(|nth| fleet.service((number * SELECTED + nth) * 7 % fleet.services));
    let reference = |service: Service| json!({ "name": service.name, "namespace": service.namespace, "clusterName": service.cluster });
    let references: Vec<_> = services.map(reference).collect();
    json!({
        "apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "TrafficPolicy",
        "metadata": { "namespace": "gloo-mesh", "name": format!("edited-{number}") },
        "spec": {
            "destinationSelector": [{ "kubeServiceRefs": { "services": references } }],
            "policy": { "headerManipulation": { "appendRequestHeaders": { "x-turn": turn.to_string() } } },
        },
    })
}

/// Another delay in a policy for every destination.
pub fn broad_policy(turn: u32) -> Value {
    fleet::broad_policy("broad", 5 + turn)
}

/// A pod on another node, in another zone.
pub fn pod_moves(service: &Service, turn: u32) -> Value {
    service.pod(0, &format!("node-{}", turn % 10))
}

/// One of two endpoints goes, or comes back.
pub fn endpoint_goes(service: &Service, turn: u32) -> Value {
    service.endpoint_slice(1 + turn % 2)
}
