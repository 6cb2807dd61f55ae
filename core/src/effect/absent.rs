//! What an object asks for that is not there, and that translating it does not mind: clusters that
//! nobody has registered, and subsets that no pod is in.
//!
//! Whoever writes such a name has most likely misspelt it, so it is refused like any reference that
//! leads nowhere. What is stored goes on: a cluster comes and goes, and so do pods.

use std::collections::BTreeSet;
use std::fmt;

use ferromesh_crds::selector::{DestinationSelector, IdentitySelector, WorkloadSelector};

use super::reference;
use crate::delta::{StatusKey, StatusKind};
use crate::diagnose::{Code, Finding};
use crate::index::Candidates;
use crate::key::Key;
use crate::model::destination::KubeService;
use crate::model::selector::Names;
use crate::model::{Labels, TrafficPolicy};
use crate::record::SELECTORS;
use crate::state::State;
use crate::table::Set;

/// As many clusters as are told one by one.
const MOST: usize = 8;
/// Labels that are told of those that could be asked for instead.
const VALUES: usize = 5;

/// Everything that an object asks for and that is not there, in this state.
pub(super) fn findings(state: &State, subject: &StatusKey) -> Vec<Finding> {
    let snapshot = state.snapshot();
    let key = &subject.key;
    let mut clusters = Clusters::of(state);
    let mut subsets = Vec::new();
    match subject.kind {
        StatusKind::TrafficPolicy => {
            if let Some(policy) = snapshot.traffic_policies.get(key) {
                clusters.destinations(SELECTORS, &policy.spec.destination_selector);
                clusters.workloads("spec.sourceSelector", &policy.spec.source_selector);
                subsets = missing_subsets(state, policy);
            }
        }
        StatusKind::AccessPolicy => {
            if let Some(policy) = snapshot.access_policies.get(key) {
                clusters.destinations(SELECTORS, &policy.spec.destination_selector);
                clusters.identities("spec.sourceSelector", &policy.spec.source_selector);
            }
        }
        StatusKind::VirtualMesh => {
            let virtual_mesh = snapshot.virtual_meshes.get(key);
            let federation = virtual_mesh.and_then(|it| it.spec.federation.as_ref());
            let selectors = federation.iter().flat_map(|it| &it.selectors).enumerate();
            for (at, selector) in selectors {
                let path = format!("spec.federation.selectors[{at}].destinationSelectors");
                clusters.destinations(&path, &selector.destination_selectors);
            }
            let gateways = federation
                .iter()
                .flat_map(|it| &it.east_west_ingress_gateway_selectors);
            for (at, selector) in gateways.enumerate() {
                let path = format!(
                    "spec.federation.eastWestIngressGatewaySelectors[{at}].destinationSelectors"
                );
                clusters.destinations(&path, &selector.destination_selectors);
            }
        }
        StatusKind::Destination
        | StatusKind::Mesh
        | StatusKind::Settings
        | StatusKind::Workload => {}
    }
    let mut findings = clusters.findings();
    findings.extend(subsets);
    findings
}

/// Clusters that an object names, and those of them that are not registered.
struct Clusters<'a> {
    state: &'a State,
    registered: BTreeSet<&'a str>,
    seen: BTreeSet<&'a str>,
    unknown: Vec<Finding>,
    more: usize,
}

impl<'a> Clusters<'a> {
    fn of(state: &'a State) -> Self {
        Self {
            state,
            registered: reference::registered(state).collect(),
            seen: BTreeSet::new(),
            unknown: Vec::new(),
            more: 0,
        }
    }

    fn destinations(&mut self, path: &str, selectors: &'a [DestinationSelector]) {
        for (at, selector) in selectors.iter().enumerate() {
            if let Some(matcher) = &selector.kube_service_matcher {
                let path = || format!("{path}[{at}].kubeServiceMatcher.clusters");
                self.list(&matcher.clusters, path);
            }
        }
    }

    fn workloads(&mut self, path: &str, selectors: &'a [WorkloadSelector]) {
        for (at, selector) in selectors.iter().enumerate() {
            if let Some(matcher) = &selector.kube_workload_matcher {
                let path = || format!("{path}[{at}].kubeWorkloadMatcher.clusters");
                self.list(&matcher.clusters, path);
            }
        }
    }

    fn identities(&mut self, path: &str, selectors: &'a [IdentitySelector]) {
        for (at, selector) in selectors.iter().enumerate() {
            if let Some(matcher) = &selector.kube_identity_matcher {
                let path = || format!("{path}[{at}].kubeIdentityMatcher.clusters");
                self.list(&matcher.clusters, path);
            }
            let refs = selector.kube_service_account_refs.iter();
            let accounts = refs.flat_map(|refs| &refs.service_accounts);
            for (nth, account) in accounts.enumerate() {
                let path = format!("{path}[{at}].kubeServiceAccountRefs.serviceAccounts[{nth}]");
                if !account.cluster_name.is_empty() {
                    self.name(&account.cluster_name, || format!("{path}.clusterName"));
                }
            }
        }
    }

    fn list(&mut self, names: &'a [String], path: impl Fn() -> String) {
        for (at, name) in names.iter().enumerate() {
            self.name(name, || format!("{}[{at}]", path()));
        }
    }

    fn name(&mut self, name: &'a str, path: impl FnOnce() -> String) {
        let is_known = self.registered.contains(name) || is_inhabited(self.state, name);
        if is_known || !self.seen.insert(name) {
            return;
        }
        if self.unknown.len() == MOST {
            self.more += 1;
            return;
        }
        let about = Key::local(name, &self.state.options().namespace);
        let text = format!("cluster {name} is not registered");
        let finding = Finding::about(Code::NotFound, &about, text);
        self.unknown.push(finding.at(path()));
    }

    fn findings(mut self) -> Vec<Finding> {
        if self.more > 0 {
            let text = format!("{} more clusters are not registered", self.more);
            self.unknown
                .push(Finding::new(Code::NotFound, text).at("spec"));
        }
        self.unknown
    }
}

/// Whether something is known to be in a cluster, registered or not: it was stored once, or was read
/// from files.
fn is_inhabited(state: &State, cluster: &str) -> bool {
    let mut sites = state.estate().sites.values();
    sites.any(|site| *site.cluster == *cluster)
        || state.graph.destination_index.has_service_in(cluster)
}

/// Subsets that a policy sends requests to and that no pod is in.
fn missing_subsets(state: &State, policy: &TrafficPolicy) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, target) in policy.targets().enumerate() {
        let key = state.graph.destination_index.of_service(&target.service);
        let destination = key.and_then(|key| state.destinations().get(key));
        let service = destination.and_then(|it| it.service.as_ref());
        let Some(service) = service.filter(|_| !target.subset.is_empty()) else {
            continue;
        };
        if is_there(state, service, &target.subset) {
            continue;
        }
        let labels: Vec<_> = target.subset.iter().map(label).collect();
        let text = format!(
            "traffic-shift: no pod of {} has the labels {}{}",
            target.service,
            labels.join(", "),
            choice(service, &target.subset)
        );
        let path = format!("spec.policy.trafficShift.destinations[{at}].kubeService.subset");
        findings.push(Finding::about(Code::NotFound, &target.service, text).at(path));
    }
    findings
}

/// Whether a Service may have a pod with these labels. Where none of its pods is known, it may.
fn is_there(state: &State, service: &KubeService, subset: &Labels) -> bool {
    let endpoints = service.endpoints.iter().flat_map(|it| &it.endpoints);
    let endpoints = endpoints.map(|endpoint| &endpoint.labels);
    let mut pods = endpoints.chain(workloads(state, service)).peekable();
    let has_pods = pods.peek().is_some();
    if pods.any(|labels| labels.contain(subset)) {
        return true;
    }
    // What tells its pods apart is known even where they are not.
    let is_listed = |(name, value): (&str, &str)| {
        let mut known = service.subsets.iter();
        let values = known.find(|(known, _)| **known == *name);
        values.is_none_or(|(_, values)| values.iter().any(|known| **known == *value))
    };
    !has_pods && subset.iter().all(is_listed)
}

/// Labels of the pods of the workloads behind a Service, also of those that have no pod now.
fn workloads<'a>(state: &'a State, service: &'a KubeService) -> impl Iterator<Item = &'a Labels> {
    let reference = &service.reference;
    let table = state.workloads();
    let index = &state.graph.workload_index;
    let sets = match index
        .postings
        .candidates(&service.selector, &Names::default())
    {
        // A Service that selects nothing has pods that nobody can tell.
        Candidates::All => Vec::new(),
        Candidates::Sets(sets) => sets,
    };
    let keys = sets.into_iter().flat_map(Set::iter);
    let controllers = keys.filter_map(|key| table.get(key)?.controller.as_ref());
    controllers
        .filter(|it| {
            it.reference.namespace() == reference.namespace()
                && it.reference.cluster() == reference.cluster()
                && it.pod_labels.contain(&service.selector)
        })
        .map(|it| &it.pod_labels)
}

/// What could be asked for instead.
fn choice(service: &KubeService, subset: &Labels) -> String {
    let known = service.subsets.iter();
    let known = known.filter(|(name, _)| subset.get(name).is_some());
    let labels = known.flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let labels: Vec<_> = labels.take(VALUES).map(label).collect();
    if labels.is_empty() {
        String::new()
    } else {
        format!("; there are {}", labels.join(", "))
    }
}

fn label((name, value): (impl fmt::Display, impl fmt::Display)) -> String {
    format!("{name}={value}")
}
