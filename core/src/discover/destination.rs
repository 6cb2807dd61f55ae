//! Destinations: Services with something of a mesh behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::address;
use super::mesh::ControlPlanes;
use crate::graph::Reader;
use crate::key::Key;
use crate::layer::Source;
use crate::model::destination::{
    Endpoint, EndpointPort, EndpointSubset, KubeService, Values, can_exist,
};
use crate::model::kubernetes::endpoints::{self, IpFamily};
use crate::model::kubernetes::{EndpointSlice, Node, Pod, Service};
use crate::model::{Destination, Labels, Workload};
use crate::naming;

/// Labels that tell pods of one workload apart, and no workloads.
const PER_POD: [&str; 2] = ["pod-template-hash", "service.istio.io/canonical-revision"];

/// The destination that a Service is.
pub(crate) fn discover<'a>(reader: &Reader<'a>, service: &'a Service) -> Option<Destination> {
    let key = &service.key;
    if !can_exist(key) {
        return None;
    }
    let workloads: Vec<(&Source, &Arc<Workload>)> = reader.workloads_selected(service).collect();
    let first = workloads
        .iter()
        .map(|(_, workload)| workload)
        .min_by_key(|workload| &workload.key);
    let mesh = first
        .and_then(|workload| workload.mesh.clone())
        .or_else(|| {
            let planes = ControlPlanes::of(reader, key.cluster());
            let mesh = planes.istio(None).or(planes.osm());
            mesh.filter(|_| service.is_enabled)
                .map(|mesh| mesh.key.clone())
        })?;
    let endpoints = endpoints(reader, service, &workloads);
    Some(Destination {
        key: Key::local(
            &naming::discovered(key.name(), key.namespace(), key.cluster()),
            reader.namespace(),
        ),
        generation: 0,
        annotations: service.annotations.clone(),
        mesh: Some(mesh),
        // One text for what is found together: there are very many.
        discovered_in: first.map_or_else(
            || key.cluster().into(),
            |workload| Arc::clone(&workload.discovered_in),
        ),
        service: Some(KubeService {
            reference: key.clone(),
            selector: service.selector.clone(),
            labels: service.labels.clone(),
            ports: Arc::clone(&service.ports),
            subsets: subsets(
                workloads
                    .iter()
                    .filter_map(|(_, workload)| Some(&workload.controller.as_ref()?.pod_labels)),
            ),
            region: nodes(reader, service, &workloads)
                .map(|node| &node.region)
                .find(|region| !region.is_empty())
                .cloned()
                .unwrap_or_default(),
            endpoints,
            external_addresses: address::external(service, || nodes(reader, service, &workloads)),
            service_type: service.service_type,
        }),
    })
}

/// Label keys with at least two values among the workloads, each with its values in order.
fn subsets<'a>(workloads: impl Iterator<Item = &'a Labels>) -> Box<[(Box<str>, Values)]> {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, value) in workloads.flat_map(Labels::iter) {
        values.entry(key).or_default().insert(value);
    }
    values
        .into_iter()
        .filter(|(key, values)| values.len() > 1 && !PER_POD.contains(key))
        .map(|(key, values)| (key.into(), values.into_iter().map(Box::from).collect()))
        .collect()
}

/// Nodes behind a Service: those of its workloads' pods in the order of their names, ready or not,
/// then those of its endpoints, which need not belong to a workload. One can be there many times.
fn nodes<'a>(
    reader: &Reader<'a>,
    service: &Service,
    workloads: &[(&Source, &Arc<Workload>)],
) -> impl Iterator<Item = &'a Arc<Node>> {
    let mut pods: Vec<&Pod> = workloads
        .iter()
        .flat_map(|(source, _)| reader.pods_of(source))
        .filter(|pod| pod.labels.contain(&service.selector))
        .collect();
    pods.sort_unstable_by(|left, right| left.key.cmp(&right.key));
    let endpoints = slices(reader, service)
        .flat_map(|slice| &slice.subsets)
        .flat_map(|subset| &subset.endpoints)
        .filter_map(|endpoint| endpoint.node.as_deref());
    pods.into_iter()
        .map(|pod| &*pod.node)
        .chain(endpoints)
        .filter_map(|node| reader.node(node, service.key.cluster()))
}

/// Slices of a Service, of one family of addresses where it has slices of both: each pod of a
/// Service of two families is in both. The first family of the Service counts, which is the one
/// that Endpoints have.
fn slices<'a>(
    reader: &Reader<'a>,
    service: &Service,
) -> impl Iterator<Item = &'a Arc<EndpointSlice>> {
    let slices: Vec<_> = reader.slices_of(&service.key).collect();
    let preferred = service.ip_families.iter().copied();
    let family = preferred
        .chain([IpFamily::V4, IpFamily::V6])
        .find(|family| slices.iter().any(|slice| slice.family == Some(*family)));
    slices
        .into_iter()
        .filter(move |slice| slice.family.is_none() || slice.family == family)
}

/// Ready endpoints. Slices with the same ports are one subset, and an address that two slices
/// list, as they do while it moves from one to the other, is there once. What is no address is no
/// endpoint.
fn endpoints(
    reader: &Reader<'_>,
    service: &Service,
    workloads: &[(&Source, &Arc<Workload>)],
) -> Arc<[EndpointSubset]> {
    let mut subsets: Vec<(Arc<[EndpointPort]>, Vec<Endpoint>)> = Vec::new();
    for subset in slices(reader, service).flat_map(|slice| &slice.subsets) {
        let at = subsets
            .iter()
            .position(|(known, _)| *known == subset.ports)
            .unwrap_or_else(|| {
                subsets.push((Arc::clone(&subset.ports), Vec::new()));
                subsets.len() - 1
            });
        subsets[at].1.extend(
            subset
                .endpoints
                .iter()
                .filter(|endpoint| endpoint.address.parse::<IpAddr>().is_ok())
                .map(|it| endpoint(reader, service, workloads, it)),
        );
    }
    subsets
        .into_iter()
        .filter(|(_, endpoints)| !endpoints.is_empty())
        .map(|(ports, mut endpoints)| {
            endpoints.sort_by(|left, right| left.address.cmp(&right.address));
            endpoints.dedup_by(|left, right| left.address == right.address);
            EndpointSubset {
                endpoints: endpoints.into(),
                ports,
            }
        })
        .collect()
}

fn endpoint(
    reader: &Reader<'_>,
    service: &Service,
    workloads: &[(&Source, &Arc<Workload>)],
    endpoint: &endpoints::Endpoint,
) -> Endpoint {
    let key = &service.key;
    let labels = endpoint.pod.as_deref().and_then(|pod| {
        match reader.pod(Key::new(pod, key.namespace(), key.cluster())) {
            Some(known) => reader.workload_labels(known),
            // Named here before it is listed, or in a directory without pods.
            None => named_after(pod, workloads),
        }
    });
    let node = endpoint
        .node
        .as_deref()
        .and_then(|node| reader.node(node, key.cluster()));
    let zoned = node.filter(|node| !node.zone.is_empty());
    Endpoint {
        address: endpoint.address.clone(),
        labels: labels.unwrap_or_default(),
        zone: zoned.map(|it| Arc::clone(&it.zone)).unwrap_or_default(),
        sub_zone: zoned.map(|it| Arc::clone(&it.sub_zone)).unwrap_or_default(),
    }
}

/// Labels of the workload that a pod is named after: the one with the longest name that fits.
fn named_after(pod: &str, workloads: &[(&Source, &Arc<Workload>)]) -> Option<Labels> {
    workloads
        .iter()
        .filter_map(|(source, workload)| {
            let name = source.key.name();
            let is_prefix = pod
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('-'));
            is_prefix.then_some((name.len(), workload.controller.as_ref()?))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, workload)| workload.pod_labels.clone())
}
