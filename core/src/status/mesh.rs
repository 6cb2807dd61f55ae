//! Status of a mesh.

use ferromesh_crds as crds;
use ferromesh_crds::mesh::{AppliedIngressGateway, AppliedVirtualMesh};

use super::{Body, Budget, Status, size};
use crate::key::Key;
use crate::model::destination::{object_ref, signed};
use crate::state::State;

/// Room that is kept for gateways beside the spec of the virtual mesh.
const RESERVED_FOR_GATEWAYS: usize = 2_000;

pub(super) fn status(state: &State, key: &Key) -> Option<Status> {
    let mesh = state.meshes().get(key)?;
    let membership = state
        .graph
        .estate
        .site(key)
        .and_then(|site| site.membership.as_ref());
    let mut budget = Budget::new();
    let body = Body::Mesh(Box::new(crds::MeshStatus {
        observed_generation: mesh.generation,
        applied_virtual_mesh: membership.map(|membership| AppliedVirtualMesh {
            reference: Some(object_ref(&membership.virtual_mesh.key)),
            observed_generation: membership.virtual_mesh.generation,
            spec: Some(crds::VirtualMeshSpec::clone(&membership.virtual_mesh.spec))
                .filter(|spec| budget.take(size(spec), RESERVED_FOR_GATEWAYS)),
        }),
        applied_east_west_ingress_gateways: membership
            .into_iter()
            .flat_map(|membership| membership.gateways.iter())
            .map(|gateway| AppliedIngressGateway {
                destination_ref: Some(object_ref(&gateway.destination)),
                external_addresses: gateway.addresses.iter().map(ToString::to_string).collect(),
                destination_port: signed(gateway.port),
                container_port: signed(gateway.container_port),
            })
            .filter(|gateway| budget.take(size(gateway) + 1, 0))
            .collect(),
        ..crds::MeshStatus::default()
    }));
    Some(Status {
        body,
        conditions: Vec::new(),
    })
}
