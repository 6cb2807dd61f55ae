//! Federation of one destination: under which name and address which meshes see it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ferromesh_istio::service_entry::Resolution;

use crate::diagnose::{Code, Finding};
use crate::estate::{Client, Membership, Site};
use crate::index::DestinationIndex;
use crate::key::Key;
use crate::model::Destination;
use crate::model::destination::KubeService;
use crate::naming;

/// How a destination is seen by other meshes.
#[derive(Clone, Debug, PartialEq)]
pub struct Federation {
    /// The virtual mesh that federates it.
    pub virtual_mesh: Key,
    /// Its name there.
    pub hostname: Arc<str>,
    /// Its virtual address there.
    pub virtual_ip: Ipv4Addr,
    /// How its addresses are read by other clusters: those of its mesh's gateways.
    pub remote_resolution: Resolution,
    /// How its addresses are read in its own cluster: those of its pods.
    pub local_resolution: Resolution,
    /// The meshes that see it, in key order.
    pub clients: Arc<[Client]>,
    /// What keeps it from others.
    pub errors: Box<[Finding]>,
}

/// Works out a destination's federation; none where nothing asks for any, or where its own mesh
/// has no gateway, which the virtual mesh's status says of the mesh.
pub(crate) fn federate(
    destination: &Destination,
    site: &Site,
    index: &DestinationIndex,
) -> Option<Federation> {
    let service = destination.service.as_ref()?;
    let membership = site.membership.as_ref()?;
    let wanted = clients(service, membership);
    if wanted.is_empty() || membership.gateways.is_empty() {
        return None;
    }
    let reference = &service.reference;
    let mut federation = Federation {
        virtual_mesh: membership.virtual_mesh.key.clone(),
        hostname: naming::federated_hostname(
            reference.name(),
            reference.namespace(),
            reference.cluster(),
            &membership.virtual_mesh.federation.hostname_suffix,
        )
        .into(),
        virtual_ip: naming::virtual_ip(
            reference.name(),
            reference.namespace(),
            reference.cluster(),
            index.virtual_ip_rank(&destination.key, service),
        ),
        remote_resolution: Resolution::Static,
        local_resolution: Resolution::Static,
        clients: Arc::from([]),
        errors: Box::default(),
    };
    match prevented(destination, service, membership, index) {
        Ok((local, remote)) => {
            federation.local_resolution = local;
            federation.remote_resolution = remote;
        }
        Err(finding) => {
            let path = membership.virtual_mesh.path_to(service);
            federation.errors = Box::new([finding.at(path)]);
            return Some(federation);
        }
    }
    let suffix = &membership.virtual_mesh.federation.hostname_suffix;
    federation.errors = wanted
        .iter()
        .filter(|client| !membership.resolves_in(client))
        .map(|client| {
            let text = format!(
                "mesh {} does not have smart DNS proxying enabled (hostname suffix {suffix} can only be specified where proxies answer DNS queries: set ISTIO_META_DNS_CAPTURE, or leave the suffix out)",
                client.mesh
            );
            Finding::about(Code::Unsupported, &client.mesh, text)
                .at("spec.federation.hostnameSuffix")
        })
        .collect();
    federation.clients = if federation.errors.is_empty() {
        wanted
    } else {
        wanted
            .iter()
            .filter(|client| membership.resolves_in(client))
            .cloned()
            .collect()
    };
    Some(federation)
}

/// The meshes that are to see a service, in key order.
fn clients(service: &KubeService, membership: &Membership) -> Arc<[Client]> {
    let mut named: Vec<&Client> = Vec::new();
    for selector in membership.virtual_mesh.federation.selectors.iter() {
        if !selector.destinations.select(Some(service)) {
            continue;
        }
        if selector.meshes.is_empty() {
            return Arc::clone(&membership.peers);
        }
        named.extend(
            membership
                .named
                .iter()
                .filter(|client| selector.meshes.iter().any(|it| it.key == client.mesh)),
        );
    }
    named.sort_unstable();
    named.dedup();
    named.into_iter().cloned().collect()
}

/// What stands in the way of federating a service to anybody, else how addresses are read on
/// either side: local, remote.
fn prevented(
    destination: &Destination,
    service: &KubeService,
    membership: &Membership,
    index: &DestinationIndex,
) -> Result<(Resolution, Resolution), Finding> {
    if let Some(holder) = index.name_holder(&destination.key, service) {
        return Err(Finding::about(
            Code::Conflicted,
            holder,
            format!(
                "the federated objects of {} would have the names of those of {holder}; rename one of the Services",
                destination.key
            ),
        ));
    }
    let local = service
        .endpoints
        .iter()
        .flat_map(|subset| &subset.endpoints)
        .map(|endpoint| &*endpoint.address);
    let remote = membership
        .gateways
        .iter()
        .flat_map(|gateway| &gateway.addresses)
        .map(AsRef::as_ref);
    Ok((
        resolution(local).ok_or_else(|| {
            Finding::new(
                Code::Unsupported,
                format!(
                    "endpoints of {} contain both ipv6 and hostname addresses",
                    destination.key
                ),
            )
        })?,
        resolution(remote).ok_or_else(|| {
            Finding::new(
                Code::Unsupported,
                "addresses of the mesh's ingress gateways contain both ipv6 and hostname addresses",
            )
        })?,
    ))
}

/// How a list of addresses is read: names need DNS, and Envoy cannot mix names with IPv6.
fn resolution<'a>(addresses: impl Iterator<Item = &'a str>) -> Option<Resolution> {
    let (mut has_names, mut has_ipv6) = (false, false);
    for address in addresses {
        match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => {}
            Ok(IpAddr::V6(_)) => has_ipv6 = true,
            Err(_) => has_names = true,
        }
    }
    match (has_names, has_ipv6) {
        (true, true) => None,
        (true, false) => Some(Resolution::Dns),
        (false, _) => Some(Resolution::Static),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_dns_and_do_not_mix_with_ipv6() {
        for (addresses, expected) in [
            (&["10.0.0.1", "10.0.0.2"][..], Some(Resolution::Static)),
            (&["10.0.0.1", "2001:db8::1"], Some(Resolution::Static)),
            (&["::ffff:10.0.0.1"], Some(Resolution::Static)),
            (&["gateway.example.com", "10.0.0.1"], Some(Resolution::Dns)),
            (&["gateway.example.com", "2001:db8::1"], None),
            (&[], Some(Resolution::Static)),
        ] {
            assert_eq!(
                resolution(addresses.iter().copied()),
                expected,
                "{addresses:?}"
            );
        }
    }
}
