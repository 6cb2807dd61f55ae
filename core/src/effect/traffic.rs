//! What a traffic policy does.

use std::collections::BTreeSet;
use std::sync::Arc;

use ferromesh_istio::virtual_service::HttpMatch;

use super::{Remark, Weight, counted, selection};
use crate::key::Key;
use crate::model::selector::WorkloadMatcher;
use crate::model::traffic_policy::{Actions, FaultKind};
use crate::model::{Destination, TrafficPolicy};
use crate::record::Record;
use crate::state::State;

/// Shift targets that are called by name before the others are counted.
const NAMED: usize = 3;

pub(super) fn remarks(state: &State, key: &Key) -> Vec<Remark> {
    let Some(policy) = state.snapshot().traffic_policies.get(key) else {
        return Vec::new();
    };
    let selection = selection::select(state, "spec.destinationSelector", &policy.destinations);
    let mut remarks = selection.remarks;
    if policy.actions == Actions::default() {
        remarks.push(Remark::new(
            Weight::Reach,
            "spec.policy sets nothing: requests are left as they are",
        ));
    }
    remarks.extend(boundless(policy));
    remarks.extend(fault(policy));
    let destinations = &selection.destinations;
    remarks.extend(unrouted(state, policy, destinations));
    remarks.extend(unreachable(state, policy, destinations));
    remarks
}

/// Conditions that are there and ask for nothing: what they were to ask for may have been misspelt.
fn boundless(policy: &TrafficPolicy) -> Vec<Remark> {
    let matcher = policy
        .matchers
        .iter()
        .position(|it| *it == HttpMatch::default());
    let source = policy
        .sources
        .0
        .iter()
        .position(|it| *it == WorkloadMatcher::default());
    [
        ("spec.httpRequestMatchers", matcher, "every request"),
        ("spec.sourceSelector", source, "every workload"),
    ]
    .into_iter()
    .filter_map(|(field, at, all)| {
        Some(Remark::new(
            Weight::Reach,
            format!("{field}[{}] is empty: {all} is meant", at?),
        ))
    })
    .collect()
}

/// A share that is left out stands for everything, which is easily overlooked.
fn fault(policy: &TrafficPolicy) -> Option<Remark> {
    let written = policy.spec.policy.as_ref()?.fault_injection.as_ref()?;
    if written.percentage.is_some() {
        return None;
    }
    let what = match policy.actions.fault?.kind {
        FaultKind::Delay(_) => "delayed",
        FaultKind::Abort(_) => "aborted",
    };
    Some(Remark::new(
        Weight::Reach,
        format!("spec.policy.faultInjection.percentage is left out: every request is {what}"),
    ))
}

/// Once a destination has routes, a request that none of them fits gets 404.
fn unrouted(
    state: &State,
    policy: &TrafficPolicy,
    selected: &[&Arc<Destination>],
) -> Option<Remark> {
    if policy.matchers.is_empty() && policy.sources.0.is_empty() {
        return None;
    }
    let count = state
        .records_of(selected)
        .filter(|record| leaves_out(record, &policy.key))
        .count();
    (count > 0).then(|| {
        Remark::new(
            Weight::Reach,
            format!(
                "requests to {} that no policy's matchers fit get 404; add a policy without matchers",
                counted(count, "destination")
            ),
        )
    })
}

/// Whether the policy has routes on a destination, which has none for every request.
fn leaves_out(record: &Record, policy: &Key) -> bool {
    let Some(service) = record.service() else {
        return false;
    };
    let groups = &record.routes.from(service.reference.cluster()).groups;
    groups.iter().any(|group| group.owners().contains(policy))
        && !groups.iter().any(|group| group.conditions.fit_all())
}

/// Targets that callers cannot reach: they are in another cluster and not federated to the
/// callers' mesh.
fn unreachable(
    state: &State,
    policy: &TrafficPolicy,
    selected: &[&Arc<Destination>],
) -> Vec<Remark> {
    if policy.actions.shift.is_none() {
        return Vec::new();
    }
    let mut callers: BTreeSet<(&Key, &str)> = BTreeSet::new();
    for record in selected.iter().filter_map(|it| state.record(&it.key)) {
        let Some(site) = &record.site else { continue };
        callers.insert((&site.mesh.key, &site.cluster));
        let clients = record
            .federation
            .iter()
            .flat_map(|federation| federation.clients.iter());
        callers.extend(clients.map(|client| (&client.mesh, client.cluster.as_ref())));
    }
    callers.retain(|(_, cluster)| policy.sources.within(cluster).is_some());
    let targets: BTreeSet<&Key> = policy.targets().map(|target| &target.service).collect();
    let mut lost = Vec::new();
    for target in targets {
        let record = state
            .graph
            .destination_index
            .of_service(target)
            .and_then(|key| state.record(key));
        // A target that does not exist is an error of its own.
        let Some(record) = record else { continue };
        for (mesh, cluster) in &callers {
            let is_federated = record.federation.as_ref().is_some_and(|federation| {
                federation
                    .clients
                    .iter()
                    .any(|client| client.mesh == **mesh)
            });
            if target.cluster() != *cluster && !is_federated {
                lost.push((target, *mesh));
            }
        }
    }
    let more = lost.len().saturating_sub(NAMED);
    let mut remarks: Vec<_> = lost
        .iter()
        .take(NAMED)
        .map(|(target, mesh)| {
            Remark::new(
                Weight::Reach,
                format!(
                    "shift target {target} is not federated to mesh {}: requests from there fail",
                    mesh.name()
                ),
            )
        })
        .collect();
    if more > 0 {
        remarks.push(Remark::new(
            Weight::Reach,
            format!("{more} more pairs of shift target and calling mesh are not federated"),
        ));
    }
    remarks
}
