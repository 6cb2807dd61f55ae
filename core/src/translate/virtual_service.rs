//! `VirtualService`: a destination's routes, for one host name.

use ferromesh_istio::VirtualService;
use ferromesh_istio::virtual_service::{
    Destination, HttpMatch, HttpRetry, HttpRoute, PortSelector, WeightedDestination,
};

use super::route::{fault, order};
use super::traffic::{Group, Traffic};
use crate::model::destination::KubeService;
use crate::model::duration;
use crate::model::traffic_policy::Retries;

/// Renders the routes for callers in `origin`, who call the destination `host`.
///
/// None where no policy routes anything, or the service has no port.
pub(crate) fn render(
    traffic: &Traffic,
    service: &KubeService,
    host: &str,
    origin: &str,
) -> Option<VirtualService> {
    let mut http: Vec<HttpRoute> = Vec::new();
    for group in &traffic.groups {
        let base = route(group, origin);
        let alternatives = group.conditions.alternatives();
        for port in service.ports.iter() {
            for alternative in &alternatives {
                let mut route = base.clone();
                route.matches = vec![HttpMatch {
                    port: Some(port.port),
                    ..alternative.clone()
                }];
                finish(&mut route, host, port.port);
                http.push(route);
            }
        }
    }
    if http.is_empty() {
        return None;
    }
    // Stable: routes of equal weight keep the order of their policies.
    http.sort_by(|left, right| order::specificity(&left.matches[0], &right.matches[0]));
    Some(VirtualService {
        hosts: vec![host.to_owned()],
        http,
    })
}

/// What the group does, on any port.
fn route(group: &Group, origin: &str) -> HttpRoute {
    HttpRoute {
        matches: Vec::new(),
        route: group
            .shift
            .value()
            .into_iter()
            .flat_map(|backends| backends.iter())
            .map(|backend| WeightedDestination {
                destination: Destination {
                    host: backend.host.seen_from(origin).to_owned(),
                    port: backend.port.map(|number| PortSelector { number }),
                    subset: backend.subset.to_string(),
                },
                weight: backend.weight,
            })
            .collect(),
        timeout: group
            .timeout
            .value()
            .map(|timeout| duration::print(*timeout)),
        retries: group.retries.value().map(
            |Retries {
                 attempts,
                 per_try_timeout,
             }| HttpRetry {
                attempts: *attempts,
                per_try_timeout: per_try_timeout.map(duration::print),
            },
        ),
        fault: group.fault.value().map(fault::render),
    }
}

/// Sends requests where they were going, unless they are shifted, and to the port they called.
fn finish(route: &mut HttpRoute, host: &str, port: u32) {
    if route.route.is_empty() {
        route.route.push(WeightedDestination {
            destination: Destination {
                host: host.to_owned(),
                ..Destination::default()
            },
            weight: 0,
        });
    }
    for target in &mut route.route {
        target
            .destination
            .port
            .get_or_insert(PortSelector { number: port });
    }
}
