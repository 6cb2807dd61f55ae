//! Traffic shifts: targets found, hosts as callers of either side know them.

use std::sync::Arc;

use crate::diagnose::{Code, Finding};
use crate::graph::Reader;
use crate::model::traffic_policy::{ShiftTarget, Target};
use crate::naming;
use ferromesh_crds::meta::DEFAULT_HOSTNAME_SUFFIX;

/// Where a policy asks for a shift.
pub(crate) const PATH: &str = "spec.policy.trafficShift";

/// Where requests go, for callers of any cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Share of the requests: its part of the sum of all weights.
    pub weight: u32,
    /// Its host.
    pub host: Host,
    /// Its port; none leaves the port that was called.
    pub port: Option<u32>,
    /// Name of a subset, empty for none.
    pub subset: Arc<str>,
}

/// A service's name, which depends on who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The cluster of the service.
    pub cluster: Arc<str>,
    /// What callers in that cluster call it.
    pub local: Arc<str>,
    /// What callers elsewhere call it.
    pub federated: Arc<str>,
}

impl Host {
    /// What callers in `origin` call it.
    pub fn seen_from(&self, origin: &str) -> &str {
        if *self.cluster == *origin {
            &self.local
        } else {
            &self.federated
        }
    }
}

/// Finds every target, or says what is wrong with those that cannot be found.
pub(crate) fn resolve(
    reader: &Reader<'_>,
    targets: &[ShiftTarget],
) -> Result<Arc<[Backend]>, Vec<Finding>> {
    let mut backends = Vec::with_capacity(targets.len());
    let mut errors = Vec::new();
    for (at, ShiftTarget { weight, target }) in targets.iter().enumerate() {
        // A policy that gets here has no entry that could not be read: positions are as written.
        let path = || format!("{PATH}.destinations[{at}].kubeService");
        match port(reader, target, path) {
            Ok(port) => backends.push(Backend {
                weight: *weight,
                host: host(reader, target),
                port: Some(port),
                subset: Arc::clone(&target.subset_name),
            }),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok(backends.into())
    } else {
        Err(errors)
    }
}

/// The port that requests go to: the one that is asked for, or the only one there is.
fn port(reader: &Reader<'_>, target: &Target, path: impl Fn() -> String) -> Result<u32, Finding> {
    let key = &target.service;
    let missing = || {
        let text = format!(
            "traffic-shift: invalid traffic shift destination {key}: Destination not found for kube service {key}"
        );
        Finding::about(Code::NotFound, key, text).at(path())
    };
    let wrong = |code, text: String| {
        Finding::about(code, key, format!("traffic-shift: {text}")).at(path() + ".port")
    };
    let destination = reader.destination(key).ok_or_else(missing)?;
    let service = destination.service.as_ref().ok_or_else(missing)?;
    match (target.port, &*service.ports) {
        (Some(port), ports) if ports.iter().any(|known| known.port == port) => Ok(port),
        (Some(port), ports) => {
            let known: Vec<_> = ports.iter().map(|port| port.port.to_string()).collect();
            let text = format!(
                "specified port {port} does not exist for traffic shift destination service {key}; it has {}",
                known.join(", ")
            );
            Err(wrong(Code::NotFound, text))
        }
        (None, [only]) => Ok(only.port),
        (None, []) => {
            let text =
                format!("traffic shift destination service {key} has no port to send requests to");
            Err(wrong(Code::NotFound, text))
        }
        (None, ports) => {
            let text = format!(
                "must provide port for traffic shift destination service {key} with multiple ports ({}) defined",
                ports.len()
            );
            Err(wrong(Code::Required, text))
        }
    }
}

fn host(reader: &Reader<'_>, target: &Target) -> Host {
    let service = &target.service;
    let (name, namespace, cluster) = (service.name(), service.namespace(), service.cluster());
    let federated = reader.federated_hostname(service).unwrap_or_else(|| {
        // The name that it would have by default. Nothing resolves it until it is federated;
        // admission warns about that.
        naming::federated_hostname(name, namespace, cluster, DEFAULT_HOSTNAME_SUFFIX).into()
    });
    Host {
        cluster: cluster.into(),
        local: naming::local_fqdn(name, namespace, &reader.domain(cluster)).into(),
        federated,
    }
}
