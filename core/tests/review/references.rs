//! References that lead nowhere: refused, let through, or not known.

use std::sync::Arc;

use ferromesh_core::model::kubernetes::Secret;
use ferromesh_core::{Change, Code, Finding, Key, Object, Scope, State};

use crate::world::*;

#[test]
fn a_service_that_does_not_exist_is_refused_unless_settings_or_namespace_say_otherwise() {
    let candidate = traffic_policy("a", MISSING);
    let message = "spec.destinationSelector[0].kubeServiceRefs.services[0]: Destination gone.bookinfo.cluster-2 not found";
    let relaxed = format!("{message}; takes effect once that is there");
    assert_eq!(refused(&estate(), &candidate), [message]);

    let settings = "{admission: {unresolvedReferences: Warn}}";
    let state = with(estate(), &policy("Settings", "settings", settings));
    assert_says(&said(&state, &candidate), &relaxed);
    let state = with(estate(), &policy("Settings", "others", settings));
    assert_eq!(refused(&state, &candidate), [message]);

    let namespace = |value: &str| {
        format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: gloo-mesh, labels: {{admission.mesh.gloo.solo.io/unresolved-references: {value}}}}}}}"
        )
    };
    assert_says(
        &said(&with(estate(), &namespace("warn")), &candidate),
        &relaxed,
    );
    assert_eq!(
        refused(&with(estate(), &namespace("deny")), &candidate),
        [message]
    );
}

#[test]
fn what_is_wrong_by_itself_is_refused_however_references_are_judged() {
    let state = with(
        estate(),
        &policy(
            "Settings",
            "settings",
            "{admission: {unresolvedReferences: Warn}}",
        ),
    );
    let spec = "{policy: {retries: {attempts: -1}}}";
    assert_eq!(
        refused(&state, &traffic_policy("a", spec)),
        [
            "spec.policy.retries.attempts: is negative; use 0 to turn retries off, or a positive number"
        ]
    );
}

fn registered(cluster: &str) -> String {
    format!(
        "{{apiVersion: multicluster.solo.io/v1alpha1, kind: KubernetesCluster, metadata: {{name: {cluster}, namespace: gloo-mesh}}, spec: {{}}}}"
    )
}

fn listed(state: State, cluster: &str) -> State {
    synced(state, cluster, &[Scope::Managed, Scope::Everywhere])
}

#[test]
fn a_cluster_that_is_not_listed_makes_missing_things_uncertain() {
    let state = with(estate(), &registered("cluster-3"));
    let service = traffic_policy("a", &MISSING.replace("cluster-2", "cluster-3"));
    assert_says(
        &said(&state, &service),
        "cluster cluster-3 has not been listed yet, so this is not certain: spec.destinationSelector[0].kubeServiceRefs.services[0]: Destination gone.bookinfo.cluster-3 not found",
    );
    let mesh = policy(
        "VirtualMesh",
        "vm",
        "{meshes: [{name: istiod-3, namespace: gloo-mesh}]}",
    );
    assert_says(
        &said(&state, &mesh),
        "cluster cluster-3 has not been listed yet, so this is not certain: spec.meshes[0]: Mesh istiod-3.gloo-mesh not found; list discovered meshes with `kubectl get mesh`",
    );
    let spec = format!(
        "{{destinationSelector: {REVIEWS_1}, sourceSelector: [{{kubeIdentityMatcher: {{clusters: [cluster-3]}}}}]}}"
    );
    let access = policy("AccessPolicy", "a", &spec);
    let [uncertain] = &*said(&state, &access)
        .into_iter()
        .filter(|text| text.contains("not certain"))
        .collect::<Vec<_>>()
    else {
        panic!("is not uncertain")
    };
    assert!(uncertain.contains("Trust domain not found for cluster cluster-3"));

    let state = listed(state, "cluster-3");
    for candidate in [&service, &mesh, &access] {
        assert_eq!(refused(&state, candidate).len(), 1, "{candidate}");
    }
}

// What translating does not mind.

const WARN: &str = "{admission: {unresolvedReferences: Warn}}";

/// What speaks against an object, as fields and messages.
#[track_caller]
fn assert_refuses(state: &State, object: &str, expected: &[&str]) {
    assert_eq!(refused(state, object), expected, "{object}");
}

#[test]
fn a_cluster_that_nobody_has_registered_is_refused_wherever_it_is_named() {
    let refs = "{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}]}}";
    let unknown = "{kubeServiceMatcher: {clusters: [cluster-1, cluster-9]}}";
    let nowhere = "{kubeServiceMatcher: {clusters: [cluster-9]}}";
    let account = "{name: a, namespace: b, clusterName: cluster-9}";
    for (kind, spec, path) in [
        (
            "TrafficPolicy",
            format!("{{destinationSelector: [{refs}, {unknown}]}}"),
            "spec.destinationSelector[1].kubeServiceMatcher.clusters[1]",
        ),
        (
            "TrafficPolicy",
            "{sourceSelector: [{kubeWorkloadMatcher: {clusters: [cluster-9]}}]}".to_owned(),
            "spec.sourceSelector[0].kubeWorkloadMatcher.clusters[0]",
        ),
        (
            "AccessPolicy",
            format!("{{destinationSelector: [{unknown}, {unknown}]}}"),
            "spec.destinationSelector[0].kubeServiceMatcher.clusters[1]",
        ),
        (
            "AccessPolicy",
            "{destinationSelector: [{}], sourceSelector: [{kubeIdentityMatcher: {clusters: [cluster-2, cluster-9]}}]}".to_owned(),
            "spec.sourceSelector[0].kubeIdentityMatcher.clusters[1]",
        ),
        (
            "AccessPolicy",
            format!("{{destinationSelector: [{{}}], sourceSelector: [{{kubeServiceAccountRefs: {{serviceAccounts: [{account}]}}}}]}}"),
            "spec.sourceSelector[0].kubeServiceAccountRefs.serviceAccounts[0].clusterName",
        ),
        (
            "VirtualMesh",
            VIRTUAL_MESH.replace("[{}]", &format!("[{{}}, {{destinationSelectors: [{unknown}]}}]")),
            "spec.federation.selectors[1].destinationSelectors[0].kubeServiceMatcher.clusters[1]",
        ),
        (
            "VirtualMesh",
            VIRTUAL_MESH.replace("[{}]", &format!("[{{}}], eastWestIngressGatewaySelectors: [{{}}, {{destinationSelectors: [{nowhere}]}}]")),
            "spec.federation.eastWestIngressGatewaySelectors[1].destinationSelectors[0].kubeServiceMatcher.clusters[0]",
        ),
    ] {
        let object = policy(kind, "a", &spec);
        let message = format!("{path}: cluster cluster-9 is not registered");
        assert_refuses(&estate(), &object, &[&message]);
        assert_refuses(&with(estate(), &registered("cluster-9")), &object, &[]);
        let relaxed = with(estate(), &policy("Settings", "settings", WARN));
        let relaxed = said(&relaxed, &object);
        assert_says(&relaxed, &format!("{message}; takes effect once that is there"));
    }
}

#[test]
fn of_very_many_clusters_that_are_not_registered_the_first_are_named() {
    let clusters: Vec<_> = (0..2_000).map(|nth| format!("unknown-{nth}")).collect();
    let spec = format!(
        "{{destinationSelector: [{{kubeServiceMatcher: {{clusters: [{}]}}}}]}}",
        clusters.join(", ")
    );
    let refused = refused(&estate(), &traffic_policy("a", &spec));
    assert_eq!(refused.len(), 9);
    assert_eq!(refused[8], "spec: 1992 more clusters are not registered");
}

#[test]
fn a_policy_that_names_a_cluster_in_vain_already_may_be_edited() {
    let spec = |timeout: &str| {
        format!(
            "{{destinationSelector: [{{kubeServiceMatcher: {{clusters: [cluster-9]}}}}], policy: {{requestTimeout: {timeout}}}}}"
        )
    };
    let before = traffic_policy("a", &spec("1s"));
    let after = traffic_policy("a", &spec("2s"));
    let state = with(estate(), &before);
    assert_eq!(update(&state, &before, &after).denials, []);
}

/// A policy that sends requests to a subset of the reviews in cluster-2.
fn shift_to(subset: &str) -> String {
    let spec = format!(
        "{{destinationSelector: {REVIEWS_1}, policy: {{trafficShift: {{destinations: [{{weight: 1, kubeService: {{name: reviews, namespace: bookinfo, clusterName: cluster-2, subset: {subset}}}}}]}}}}}}"
    );
    traffic_policy("a", &spec)
}

fn workload(name: &str, labels: &str) -> String {
    format!(
        "{{apiVersion: discovery.mesh.gloo.solo.io/v1, kind: Workload, metadata: {{name: {name}, namespace: gloo-mesh}}, spec: {{mesh: {{name: istiod-2, namespace: gloo-mesh}}, kubernetes: {{controller: {{name: {name}, namespace: bookinfo, clusterName: cluster-2}}, podLabels: {labels}}}}}}}"
    )
}

const NO_POD: &str = "spec.policy.trafficShift.destinations[0].kubeService.subset: traffic-shift: no pod of reviews.bookinfo.cluster-2 has the labels";

#[test]
fn a_subset_that_no_pod_is_in_is_refused() {
    let state = with(
        estate(),
        &workload("v1", "{app: reviews, version: v1, tier: a}"),
    );
    let state = with(
        state,
        &workload("v2", "{app: reviews, version: v2, tier: b}"),
    );
    let state = with(state, &workload("other", "{app: ratings, version: v3}"));
    for there in ["{version: v1}", "{tier: b, version: v2}", "{app: reviews}"] {
        assert_refuses(&state, &shift_to(there), &[]);
    }
    for (missing, labels) in [
        ("{version: v9}", "version=v9"),
        ("{version: v3}", "version=v3"),
        ("{versoin: v1}", "versoin=v1"),
        ("{version: v1, tier: b}", "tier=b, version=v1"),
    ] {
        assert_refuses(&state, &shift_to(missing), &[&format!("{NO_POD} {labels}")]);
    }
}

#[test]
fn where_no_pod_is_known_a_subset_is_refused_only_if_its_values_are() {
    assert_refuses(&estate(), &shift_to("{version: v9}"), &[]);
    let known = "
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Destination
metadata: {name: reviews-2, namespace: gloo-mesh}
spec:
  mesh: {name: istiod-2, namespace: gloo-mesh}
  kubeService:
    ref: {name: reviews, namespace: bookinfo, clusterName: cluster-2}
    workloadSelectorLabels: {app: reviews}
    subsets: {version: {values: [v1, v2]}}
    ports: [{name: http, port: 9080, protocol: TCP, targetPortNumber: 9080}]
";
    let state = with(estate(), known);
    assert_refuses(&state, &shift_to("{version: v2, other: a}"), &[]);
    let message = format!("{NO_POD} version=v9; there are version=v1, version=v2");
    assert_refuses(&state, &shift_to("{version: v9}"), &[&message]);
    // It may be there by the time its cluster has been listed.
    let unlisted = with(state, &registered("cluster-2"));
    let said = said(&unlisted, &shift_to("{version: v9}"));
    assert_says(
        &said,
        &format!("cluster cluster-2 has not been listed yet, so this is not certain: {message}"),
    );
}

// Gateways and certificates.

#[test]
fn a_mesh_without_a_gateway_is_refused_unless_references_are_relaxed() {
    let gateway = Change::Remove(
        ferromesh_core::Kind::Destination,
        Key::local("gateway-2", "gloo-mesh"),
    );
    let state = estate().step([gateway]).0;
    let object = policy("VirtualMesh", "vm", VIRTUAL_MESH);
    let [refusal] = &*refused(&state, &object) else {
        panic!("is not refused once")
    };
    assert!(
        refusal.starts_with(
            "spec.meshes[1]: no Destinations selected as ingress gateway for mesh istiod-2.gloo-mesh."
        ),
        "{refusal}"
    );
    let relaxed = with(state, &policy("Settings", "settings", WARN));
    assert_says(
        &said(&relaxed, &object),
        &format!("{refusal}; takes effect once that is there"),
    );
}

#[test]
fn a_root_of_trust_that_cannot_sign_is_refused_however_references_are_judged() {
    let object = policy(
        "VirtualMesh",
        "vm",
        &VIRTUAL_MESH.replace("generated: {}", "secret: {name: root, namespace: certs}"),
    );
    let path = "spec.mtlsConfig.shared.rootCertificateAuthority.secret: root certificate authority: Secret certs/root";
    let relaxed = with(estate(), &policy("Settings", "settings", WARN));
    assert_refuses(&estate(), &object, &[&format!("{path} not found")]);
    assert_says(
        &said(&relaxed, &object),
        &format!("{path} not found; takes effect once that is there"),
    );
    let secret = |has_key, findings: &[Finding]| {
        Change::Upsert(Object::Secret(Arc::new(Secret {
            key: Key::local("root", "certs"),
            has_certificate: true,
            has_key,
            findings: findings.into(),
        })))
    };
    let expired = Finding::new(Code::Invalid, "has expired");
    for (change, message) in [
        (
            secret(false, &[]),
            "needs the keys root-cert.pem and key.pem",
        ),
        (secret(true, &[expired]), "has expired"),
    ] {
        let state = relaxed.clone().step([change]).0;
        assert_refuses(&state, &object, &[&format!("{path} {message}")]);
    }
    let state = estate().step([secret(true, &[])]).0;
    assert_refuses(&state, &object, &[]);
}

// Afterwards.

#[test]
fn what_was_let_through_takes_effect_by_itself_once_its_reference_is_there() {
    let relaxed = with(estate(), &policy("Settings", "settings", WARN));
    let object = traffic_policy("a", &MISSING.replace("gone", "ratings"));
    let state = with(relaxed, &object);
    assert_eq!(outputs_of(&state, "ratings"), 0);
    let state = with(
        state,
        "
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Destination
metadata: {name: ratings-2, namespace: gloo-mesh}
spec:
  mesh: {name: istiod-2, namespace: gloo-mesh}
  kubeService:
    ref: {name: ratings, namespace: bookinfo, clusterName: cluster-2}
    workloadSelectorLabels: {app: ratings}
    ports: [{name: http, port: 9080, protocol: TCP, targetPortNumber: 9080}]
",
    );
    assert_eq!(outputs_of(&state, "ratings"), 1);
}

/// How many virtual services of this name stand.
fn outputs_of(state: &State, name: &str) -> usize {
    let outputs = state.outputs();
    outputs
        .filter(|output| output.key.kind.name() == "VirtualService" && *output.key.name == *name)
        .count()
}
