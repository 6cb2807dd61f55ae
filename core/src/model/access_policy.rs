//! Access policies: who may call destinations, and how.

use std::sync::Arc;

use ferromesh_crds as crds;
use ferromesh_istio::authorization_policy::Operation;

use super::kubernetes::key;
use super::reject::{Code, Door, Rejection};
use super::selector::{Destinations, Names};
use crate::key::Key;

/// An access policy.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessPolicy {
    /// Name and namespace.
    pub key: Key,
    /// Generation of the stored object.
    pub generation: i64,
    /// The spec as written, for the statuses that repeat it.
    pub spec: Arc<crds::AccessPolicySpec>,
    /// Who may call, alternatives; none means anybody, authenticated or not.
    pub sources: Arc<[Identities]>,
    /// Which destinations are meant.
    pub destinations: Destinations,
    /// What may be called; all empty means everything.
    pub operation: Operation,
    /// What is wrong with it. A policy with any allows nothing, and still closes what it selects.
    pub rejections: Arc<[Rejection]>,
}

/// One alternative of who calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identities {
    /// By where the caller runs.
    pub matcher: Option<IdentityMatcher>,
    /// By the caller's service account.
    pub accounts: Box<[ServiceAccount]>,
}

/// Where a caller runs; an empty part holds for every caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityMatcher {
    /// In one of these namespaces.
    pub namespaces: Names,
    /// In one of these clusters.
    pub clusters: Names,
}

/// A service account; an empty part stands for any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Cluster.
    pub cluster: String,
}

const MAX_SOURCES: usize = 1_000;
const MAX_OPERATIONS: usize = 1_000;
/// Most callers that one policy may name: with more, an API server refuses the object that they are written into.
const MAX_CALLERS: usize = 10_000;

impl AccessPolicy {
    /// Reads a policy; what is wrong with it is kept beside it.
    pub fn parse(object: &crds::AccessPolicy) -> Self {
        let mut door = Door::default();
        let spec = &object.spec;
        let destinations = Destinations::parse(
            &mut door,
            "spec.destinationSelector",
            &spec.destination_selector,
        );
        door.limit(
            "spec.sourceSelector",
            spec.source_selector.len(),
            MAX_SOURCES,
        );
        let sources: Arc<[_]> = spec
            .source_selector
            .iter()
            .take(MAX_SOURCES)
            .map(Identities::from)
            .collect();
        limit_callers(&mut door, &sources);
        Self {
            key: key(&object.metadata, ""),
            generation: object.metadata.generation.unwrap_or_default(),
            spec: Arc::new(spec.clone()),
            sources,
            destinations,
            operation: operation(&mut door, spec),
            rejections: door.close().into(),
        }
    }
}

fn limit_callers(door: &mut Door, sources: &[Identities]) {
    let counts = sources.iter().map(|it| {
        let matched = it.matcher.as_ref().map_or(0, IdentityMatcher::count);
        matched.saturating_add(it.accounts.len())
    });
    let count = counts.fold(0, usize::saturating_add);
    if count > MAX_CALLERS {
        door.refuse(
            "spec.sourceSelector",
            Code::TooLarge,
            format!("comes to {count} namespaces and service accounts, at most {MAX_CALLERS} are handled; split the policy"),
        );
    }
}

fn operation(door: &mut Door, spec: &crds::AccessPolicySpec) -> Operation {
    for (field, values) in [
        ("spec.allowedPaths", &spec.allowed_paths),
        ("spec.allowedMethods", &spec.allowed_methods),
    ] {
        door.limit(field, values.len(), MAX_OPERATIONS);
        for (i, value) in values.iter().enumerate() {
            if value.is_empty() {
                door.refuse(
                    format_args!("{field}[{i}]"),
                    Code::Invalid,
                    "is empty; remove the entry, or write `*` for any",
                );
            }
        }
    }
    door.limit(
        "spec.allowedPorts",
        spec.allowed_ports.len(),
        MAX_OPERATIONS,
    );
    for (i, port) in spec.allowed_ports.iter().enumerate() {
        if !(1..=65_535).contains(port) {
            door.refuse(
                format_args!("spec.allowedPorts[{i}]"),
                Code::Invalid,
                format!("{port} is not a port; use a number from 1 to 65535"),
            );
        }
    }
    Operation {
        paths: spec.allowed_paths.clone(),
        methods: spec.allowed_methods.clone(),
        ports: spec.allowed_ports.iter().map(ToString::to_string).collect(),
    }
}

impl IdentityMatcher {
    /// How many namespaces of clusters it comes to.
    fn count(&self) -> usize {
        let [namespaces, clusters] =
            [&self.namespaces, &self.clusters].map(|it| it.iter().count().max(1));
        namespaces.saturating_mul(clusters)
    }
}

impl From<&crds::selector::IdentitySelector> for Identities {
    fn from(selector: &crds::selector::IdentitySelector) -> Self {
        Self {
            matcher: selector
                .kube_identity_matcher
                .as_ref()
                .map(|matcher| IdentityMatcher {
                    namespaces: Names::from(&matcher.namespaces),
                    clusters: Names::from(&matcher.clusters),
                }),
            accounts: selector
                .kube_service_account_refs
                .iter()
                .flat_map(|refs| &refs.service_accounts)
                .map(|account| ServiceAccount {
                    name: account.name.clone(),
                    namespace: account.namespace.clone(),
                    cluster: account.cluster_name.clone(),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{AccessPolicy, MAX_CALLERS};

    fn refusals(source: &Value) -> Vec<String> {
        let object = serde_json::from_value(json!({
            "metadata": { "name": "a", "namespace": "gloo-mesh" },
            "spec": { "sourceSelector": [source] },
        }));
        let policy = AccessPolicy::parse(&object.expect("a policy"));
        policy.rejections.iter().map(ToString::to_string).collect()
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("n-{at}")).collect()
    }

    #[test]
    fn as_many_callers_are_named_as_an_object_holds() {
        let accounts = |count| {
            let names = names(count).into_iter();
            let accounts: Vec<_> = names
                .map(|name| json!({ "name": name, "namespace": "shop" }))
                .collect();
            json!({ "kubeServiceAccountRefs": { "serviceAccounts": accounts } })
        };
        assert_eq!(refusals(&accounts(MAX_CALLERS)), [""; 0]);
        assert_eq!(
            refusals(&accounts(MAX_CALLERS + 1)),
            [
                "spec.sourceSelector: comes to 10001 namespaces and service accounts, at most 10000 are handled; split the policy"
            ]
        );
    }

    #[test]
    fn a_namespace_of_two_clusters_is_two_callers() {
        let matcher = |namespaces, clusters| json!({ "kubeIdentityMatcher": { "namespaces": names(namespaces), "clusters": names(clusters) } });
        assert_eq!(refusals(&matcher(5_000, 2)), [""; 0]);
        assert_eq!(refusals(&matcher(5_001, 2)).len(), 1);
    }
}
