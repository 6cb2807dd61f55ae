//! Status of a destination.

use ferromesh_crds as crds;
use ferromesh_crds::destination::{
    AppliedAccessPolicy, AppliedFederation, AppliedTrafficPolicy, RequiredSubsets,
};

use super::{Body, Budget, Status, size};
use crate::key::Key;
use crate::model::destination::object_ref;
use crate::naming;
use crate::state::State;

pub(super) fn status(state: &State, key: &Key) -> Option<Status> {
    let destination = state.destinations().get(key)?;
    let record = state.graph.records.get(key)?;
    let mut budget = Budget::new();
    let federation = record
        .federation
        .as_ref()
        .filter(|it| !it.clients.is_empty());
    let keepalive = federation.and_then(|_| {
        let membership = record.site.as_ref()?.membership.as_ref()?;
        membership
            .virtual_mesh
            .spec
            .federation
            .as_ref()?
            .tcp_keepalive
            .clone()
    });
    let applied_federation = federation.map(|federation| AppliedFederation {
        federated_hostname: federation.hostname.to_string(),
        federated_to_meshes: federation
            .clients
            .iter()
            .map(|it| object_ref(&it.mesh))
            .collect(),
        flat_network: false,
        virtual_mesh_ref: Some(object_ref(&federation.virtual_mesh)),
        tcp_keepalive: keepalive,
    });
    budget.left = budget.left.saturating_sub(size(&applied_federation));
    let required_subsets = state
        .graph
        .subsets
        .get(key)
        .into_iter()
        .flat_map(|subsets| subsets.policies())
        .map(|policy| RequiredSubsets {
            traffic_policy_ref: Some(object_ref(&policy.key)),
            observed_generation: policy.generation,
            traffic_shift: policy
                .spec
                .policy
                .as_ref()
                .and_then(|it| it.traffic_shift.clone()),
        })
        .filter(|entry| budget.take(size(entry), 0))
        .collect();
    let applied_traffic_policies = record
        .traffic_policies
        .iter()
        // One that means no caller of the destination is accepted, and does nothing.
        .filter(|bound| bound.errors.is_empty() || bound.is_applied)
        .map(|bound| &bound.policy)
        .map(|policy| AppliedTrafficPolicy {
            reference: Some(object_ref(&policy.key)),
            observed_generation: policy.generation,
            spec: Some(crds::TrafficPolicySpec::clone(&policy.spec)),
        })
        .filter(|entry| budget.take(size(entry), 0))
        .collect();
    let applied_access_policies = record
        .access_policies
        .iter()
        // One with rejections closes the destination, and allows nothing.
        .filter(|bound| bound.is_applied && bound.policy.rejections.is_empty())
        .map(|bound| &bound.policy)
        .map(|policy| AppliedAccessPolicy {
            reference: Some(object_ref(&policy.key)),
            observed_generation: policy.generation,
            spec: Some(crds::AccessPolicySpec::clone(&policy.spec)),
        })
        .filter(|entry| budget.take(size(entry), 0))
        .collect();
    let local_fqdn = destination.service.as_ref().map(|service| {
        let reference = &service.reference;
        let domain = state.graph.estate.domain(reference.cluster());
        naming::local_fqdn(reference.name(), reference.namespace(), &domain)
    });
    let body = Body::Destination(Box::new(crds::DestinationStatus {
        observed_generation: destination.generation,
        applied_traffic_policies,
        applied_access_policies,
        local_fqdn: local_fqdn.unwrap_or_default(),
        applied_federation,
        required_subsets,
        omitted: budget.omitted(),
        conditions: Vec::new(),
    }));
    Some(Status {
        body,
        conditions: Vec::new(),
    })
}
