//! Global access policy: what no access policy speaks of is denied, but gateways stay open.

use std::collections::BTreeMap;

use ferromesh_istio::AuthorizationPolicy;
use ferromesh_istio::authorization_policy::{Action, Rule, WorkloadSelector};

use crate::estate::{Membership, Site};
use crate::model::destination::Address;
use crate::model::labels::Labels;
use crate::model::virtual_mesh::GlobalAccess;
use crate::naming;

const DENY: &str = "global-access-control";
const ALLOW_GATEWAY: &str = "allow-ingress-gateway-";

/// The policies of a mesh by name: one that denies, and one for each gateway that lets in.
///
/// A gateway's policy is named after its address. Two gateways at one address get one policy if
/// they are the same pods; else the second is named after its Service, too.
pub(crate) fn render(
    site: &Site,
    membership: &Membership,
) -> BTreeMap<String, AuthorizationPolicy> {
    let mut policies = BTreeMap::new();
    match membership.virtual_mesh.global_access {
        GlobalAccess::Enabled => {}
        // Istio lets through what no policy speaks of; there is nothing to say.
        GlobalAccess::MeshDefault | GlobalAccess::Disabled => return policies,
    }
    policies.insert(DENY.to_owned(), AuthorizationPolicy::default());
    let listed = site
        .mesh
        .istio()
        .into_iter()
        .flat_map(|istio| &istio.ingress_gateways)
        .map(|gateway| {
            let address = gateway.address.as_ref().map(Address::as_str);
            (gateway.name.as_str(), address, &gateway.workload_labels)
        });
    let applied = membership.gateways.iter().map(|gateway| {
        let address = gateway.addresses.first().map(AsRef::as_ref);
        (gateway.service.as_ref(), address, &gateway.pod_labels)
    });
    // Without labels a policy would let everybody in everywhere.
    let gateways = listed
        .chain(applied)
        .filter(|(_, _, labels)| !labels.is_empty());
    for (service, address, labels) in gateways {
        let policy = allow(labels);
        let name = format!(
            "{ALLOW_GATEWAY}{}",
            naming::sanitize(address.unwrap_or(service))
        );
        match policies.get(&name) {
            Some(same) if *same == policy => {}
            Some(_) => {
                policies.insert(format!("{name}-{}", naming::sanitize(service)), policy);
            }
            None => {
                policies.insert(name, policy);
            }
        }
    }
    policies
}

fn allow(labels: &Labels) -> AuthorizationPolicy {
    AuthorizationPolicy {
        selector: Some(WorkloadSelector {
            match_labels: labels.to_map(),
        }),
        action: Some(Action::Allow),
        rules: vec![Rule::default()],
    }
}
