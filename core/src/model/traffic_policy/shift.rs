//! Traffic shifts: where requests go instead, and in which proportion.

use std::fmt;
use std::sync::Arc;

use ferromesh_crds::traffic_policy as wire;

use crate::key::Key;
use crate::model::labels::Labels;
use crate::model::reject::{Code, Door};
use crate::naming;

const MAX_TARGETS: usize = 256;
const MAX_WEIGHT: u32 = 1_000_000;

/// A target and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShiftTarget {
    /// Share of the requests: its part of the sum of all weights.
    pub weight: u32,
    /// Where they go.
    pub target: Target,
}

/// A Kubernetes Service, maybe one port and one group of its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The Service.
    pub service: Key,
    /// Which port; none where the Service has one alone.
    pub port: Option<u32>,
    /// Labels of the endpoints, empty for all.
    pub subset: Labels,
    /// The name of the subset that these labels stand for, empty for all.
    pub subset_name: Arc<str>,
}

pub(super) fn parse(
    door: &mut Door,
    path: fmt::Arguments<'_>,
    shift: &wire::TrafficShift,
) -> Arc<[ShiftTarget]> {
    let path = format_args!("{path}.destinations");
    door.limit(path, shift.destinations.len(), MAX_TARGETS);
    if shift.destinations.len() > 1 && shift.destinations.iter().all(|target| target.weight == 0) {
        door.refuse(
            path,
            Code::Invalid,
            "give at least one of several destinations a weight above 0 (Istio refuses the route)",
        );
    }
    shift
        .destinations
        .iter()
        .take(MAX_TARGETS)
        .enumerate()
        .filter_map(|(i, target)| one(door, format_args!("{path}[{i}]"), target))
        .collect()
}

fn one(
    door: &mut Door,
    path: fmt::Arguments<'_>,
    target: &wire::WeightedDestination,
) -> Option<ShiftTarget> {
    let weight = u32::try_from(target.weight)
        .ok()
        .filter(|weight| *weight <= MAX_WEIGHT);
    if weight.is_none() {
        door.refuse(
            format_args!("{path}.weight"),
            Code::Invalid,
            format!(
                "{} is not a weight; use a number from 0 to {MAX_WEIGHT}",
                target.weight
            ),
        );
    }
    door.not_supported(
        format_args!("{path}.virtualDestination"),
        target.virtual_destination.is_some(),
    );
    door.not_supported(
        format_args!("{path}.staticDestination"),
        target.static_destination.is_some(),
    );
    door.not_supported(
        format_args!("{path}.clusterHeader"),
        target.cluster_header.is_some(),
    );
    door.not_supported(format_args!("{path}.options"), target.options.is_some());
    let members = [
        target.kube_service.is_some(),
        target.virtual_destination.is_some(),
        target.static_destination.is_some(),
        target.cluster_header.is_some(),
    ];
    match members.into_iter().filter(|is_set| *is_set).count() {
        0 => door.refuse(
            path,
            Code::Required,
            "must set a destination type on traffic shift destination: set kubeService",
        ),
        1 => {}
        _ => door.refuse(
            path,
            Code::Invalid,
            "kubeService, virtualDestination, staticDestination and clusterHeader exclude each other; keep one",
        ),
    }
    let service = target.kube_service.as_ref()?;
    let reference = Key::new(&service.name, &service.namespace, &service.cluster_name);
    if service.name.is_empty() || service.namespace.is_empty() || service.cluster_name.is_empty() {
        door.refuse(
            format_args!("{path}.kubeService"),
            Code::Required,
            "name, namespace and clusterName must all be specified",
        );
        return None;
    }
    let port = match u32::try_from(service.port) {
        Ok(0) => None,
        Ok(port) if port <= 65_535 => Some(port),
        Ok(_) | Err(_) => {
            door.refuse(
                format_args!("{path}.kubeService.port"),
                Code::Invalid,
                format!(
                    "{} is not a port; use a number from 1 to 65535",
                    service.port
                ),
            );
            None
        }
    };
    door.labels(format_args!("{path}.kubeService.subset"), &service.subset);
    Some(ShiftTarget {
        weight: weight.unwrap_or_default(),
        target: Target {
            service: reference,
            port,
            subset: Labels::from(&service.subset),
            subset_name: naming::subset(&service.subset).into(),
        },
    })
}
