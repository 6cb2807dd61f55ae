//! What is said about a change before it is made.

#![allow(
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "what a test cannot read, or does not expect, fails it"
)]

use ferromesh_core::effect::{self, Extent, Ruling, Weight};
use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::{Change, Delta, Kind, Object, Scope, State, StatusKey, StatusKind, Step};

/// Two Istio meshes and three Services, of which reviews is in both.
const ESTATE: &str = include_str!("effect/estate.yaml");

fn objects(text: &str) -> Vec<Object> {
    manifest::read(text, "")
        .into_iter()
        .map(|entry| match entry {
            Entry::Object(object) => object,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn estate() -> State {
    with(State::default(), ESTATE)
}

fn with(state: State, text: &str) -> State {
    state.step(objects(text).into_iter().map(Change::Upsert)).0
}

fn policy(kind: &str, name: &str, spec: &str) -> String {
    let group = if kind == "Settings" {
        "settings"
    } else {
        "networking"
    };
    format!(
        "{{apiVersion: {group}.mesh.gloo.solo.io/v1, kind: {kind}, metadata: {{name: {name}, namespace: gloo-mesh}}, spec: {spec}}}"
    )
}

fn traffic_policy(name: &str, spec: &str) -> String {
    policy("TrafficPolicy", name, spec)
}

fn subject(object: &Object) -> StatusKey {
    let kind = match object.kind() {
        Kind::TrafficPolicy => StatusKind::TrafficPolicy,
        Kind::AccessPolicy => StatusKind::AccessPolicy,
        Kind::VirtualMesh => StatusKind::VirtualMesh,
        Kind::Settings => StatusKind::Settings,
        other => panic!("{}", other.name()),
    };
    StatusKey {
        kind,
        key: object.key().clone(),
    }
}

fn rule(state: &State, candidate: &str) -> Ruling {
    let [object] = &*objects(candidate) else {
        panic!("is not one object")
    };
    let (_, delta) = state.clone().step([Change::Upsert(object.clone())]);
    effect::rule(&delta, &subject(object), Extent::Complete)
}

fn removal(state: &State, object: &str) -> Vec<String> {
    let [object] = &*objects(object) else {
        panic!("is not one object")
    };
    let gone = Change::Remove(object.kind(), object.key().clone());
    let (_, delta) = state.clone().step([gone]);
    texts(&effect::removal(&delta, &subject(object), Extent::Complete))
}

fn texts(remarks: &[effect::Remark]) -> Vec<String> {
    remarks.iter().map(|remark| remark.text.clone()).collect()
}

/// What is said about a change that is let through.
fn said(state: &State, candidate: &str) -> Vec<String> {
    let ruling = rule(state, candidate);
    assert_eq!(ruling.errors, [], "is refused");
    texts(&ruling.remarks)
}

/// What speaks against a change.
fn refused(state: &State, candidate: &str) -> Vec<String> {
    let errors = rule(state, candidate).errors;
    errors.into_iter().map(|error| error.message).collect()
}

#[track_caller]
fn assert_says(said: &[String], expected: &str) {
    assert!(
        said.iter().any(|text| text == expected),
        "{expected:?} is not among {said:#?}"
    );
}

#[track_caller]
fn assert_silent_on(said: &[String], part: &str) {
    assert!(
        !said.iter().any(|text| text.contains(part)),
        "{part:?} is in {said:#?}"
    );
}

const REVIEWS_1: &str = "[{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}]}}]";
const REVIEWS_2: &str = "[{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-2}]}}]";
const REVIEWS: &str = "[{kubeServiceMatcher: {labels: {app: reviews}}}]";
const VIRTUAL_MESH: &str = "{meshes: [{name: istiod-1, namespace: gloo-mesh}, {name: istiod-2, namespace: gloo-mesh}], federation: {selectors: [{}]}, mtlsConfig: {autoRestartPods: true, shared: {rootCertificateAuthority: {generated: {}}}}}";

// How far selectors reach.

#[test]
fn a_selection_is_counted() {
    let spec = format!("{{destinationSelector: {REVIEWS}, policy: {{requestTimeout: 1s}}}}");
    let said = said(&estate(), &traffic_policy("a", &spec));
    assert_says(&said, "selects 2 of 5 destinations on 2 clusters");
    assert_says(
        &said,
        "adds 2 objects in the clusters: VirtualService bookinfo/reviews on cluster-1, VirtualService bookinfo/reviews on cluster-2",
    );
    assert_eq!(said.len(), 2);
}

#[test]
fn an_empty_selector_is_said_to_select_everything() {
    let ruling = rule(
        &estate(),
        &traffic_policy("a", "{policy: {requestTimeout: 1s}}"),
    );
    let first = &ruling.remarks[0];
    assert_eq!(
        (first.weight, &*first.text),
        (
            Weight::Reach,
            "spec.destinationSelector is empty: selects 5 of 5 destinations on 2 clusters"
        )
    );
}

#[test]
fn a_matcher_without_conditions_is_said_to_select_everything() {
    let spec = "{destinationSelector: [{kubeServiceMatcher: {}}], policy: {requestTimeout: 1s}}";
    assert_says(
        &said(&estate(), &traffic_policy("a", spec)),
        "spec.destinationSelector[0].kubeServiceMatcher is empty: selects 5 of 5 destinations on 2 clusters",
    );
}

#[test]
fn selectors_that_select_nothing_are_named() {
    let spec = "{destinationSelector: [{}], policy: {requestTimeout: 1s}}";
    let said = said(&estate(), &traffic_policy("a", spec));
    assert_says(
        &said,
        "spec.destinationSelector[0] is empty and selects nothing",
    );
    assert_says(
        &said,
        "selects 0 of 5 destinations on 0 clusters: no effect until one matches",
    );
    assert_says(&said, "changes nothing in any cluster");
}

#[test]
fn clusters_that_are_not_registered_are_named() {
    let spec = "{destinationSelector: [{kubeServiceMatcher: {clusters: [cluster-1, cluster-9]}}], sourceSelector: [{kubeWorkloadMatcher: {clusters: [cluster-8]}}], policy: {requestTimeout: 1s}}";
    let said = said(&estate(), &traffic_policy("a", spec));
    assert_says(
        &said,
        "spec.destinationSelector names clusters that are not registered: cluster-9",
    );
    assert_says(
        &said,
        "spec.sourceSelector names clusters that are not registered: cluster-8",
    );
}

// Traffic policies.

#[test]
fn a_policy_that_sets_nothing_is_said_to_do_nothing() {
    let said = said(
        &estate(),
        &traffic_policy("a", &format!("{{destinationSelector: {REVIEWS}}}")),
    );
    assert_says(
        &said,
        "spec.policy sets nothing: requests are left as they are",
    );
    assert_says(&said, "changes nothing in any cluster");
}

#[test]
fn conditions_that_ask_for_nothing_are_named() {
    // As the API server leaves them once it has dropped what the schema does not know.
    let spec = format!(
        "{{destinationSelector: {REVIEWS_1}, httpRequestMatchers: [{{uri: {{prefix: /a}}}}, {{}}], sourceSelector: [{{}}], policy: {{requestTimeout: 1s}}}}"
    );
    let said = said(&estate(), &traffic_policy("a", &spec));
    assert_says(
        &said,
        "spec.httpRequestMatchers[1] is empty: every request is meant",
    );
    assert_says(
        &said,
        "spec.sourceSelector[0] is empty: every workload is meant",
    );
}

#[test]
fn requests_that_no_matcher_fits_are_said_to_get_404() {
    let text = "requests to 1 destination that no policy's matchers fit get 404; add a policy without matchers";
    let spec = |matchers: &str| {
        format!(
            "{{destinationSelector: {REVIEWS_1}, httpRequestMatchers: [{matchers}], policy: {{requestTimeout: 1s}}}}"
        )
    };
    let narrow = traffic_policy("a", &spec("{uri: {prefix: /api}}"));
    assert_says(&said(&estate(), &narrow), text);

    let all = traffic_policy("a", &spec("{uri: {prefix: /}}"));
    assert_silent_on(&said(&estate(), &all), "404");

    let fallback = format!("{{destinationSelector: {REVIEWS_1}, policy: {{requestTimeout: 2s}}}}");
    let state = with(estate(), &traffic_policy("fallback", &fallback));
    assert_silent_on(&said(&state, &narrow), "404");
}

#[test]
fn a_shift_to_a_service_that_is_not_federated_is_said_to_fail() {
    let spec = format!(
        "{{destinationSelector: {REVIEWS_1}, policy: {{trafficShift: {{destinations: [{{kubeService: {{name: reviews, namespace: bookinfo, clusterName: cluster-2}}, weight: 100}}]}}}}}}"
    );
    let shift = traffic_policy("a", &spec);
    assert_says(
        &said(&estate(), &shift),
        "shift target reviews.bookinfo.cluster-2 is not federated to mesh istiod-1: requests from there fail",
    );
    let state = with(estate(), &policy("VirtualMesh", "vm", VIRTUAL_MESH));
    assert_silent_on(&said(&state, &shift), "not federated");
}

#[test]
fn a_fault_without_percentage_is_said_to_meet_every_request() {
    let fault = |percentage: &str| {
        let spec = format!(
            "{{destinationSelector: {REVIEWS_1}, policy: {{faultInjection: {{abort: {{httpStatus: 503}}{percentage}}}}}}}"
        );
        said(&estate(), &traffic_policy("a", &spec))
    };
    assert_says(
        &fault(""),
        "spec.policy.faultInjection.percentage is left out: every request is aborted",
    );
    assert_silent_on(&fault(", percentage: 5"), "percentage");
}

#[test]
fn a_policy_that_wins_over_another_says_so() {
    let spec = |timeout: &str| {
        format!("{{destinationSelector: {REVIEWS_1}, policy: {{requestTimeout: {timeout}}}}}")
    };
    let state = with(estate(), &traffic_policy("m", &spec("1s")));
    assert_says(
        &said(&state, &traffic_policy("a", &spec("2s"))),
        "wins over TrafficPolicy gloo-mesh/m on reviews-1.gloo-mesh.: timeout",
    );
    let [message] = &*refused(&state, &traffic_policy("z", &spec("2s"))) else {
        panic!("is not refused once")
    };
    assert!(
        message.starts_with("on reviews-1.gloo-mesh.: timeout: already owned by"),
        "{message}"
    );
}

// Access policies.

#[test]
fn a_first_access_policy_is_said_to_close_its_destinations() {
    let spec = format!(
        "{{destinationSelector: {REVIEWS}, sourceSelector: [{{kubeIdentityMatcher: {{namespaces: [a]}}}}]}}"
    );
    let first = policy("AccessPolicy", "a", &spec);
    assert_says(
        &said(&estate(), &first),
        "destinations that refuse every call that no AccessPolicy allows, from now on: 2",
    );
    let state = with(estate(), &first);
    let second = policy("AccessPolicy", "b", &spec);
    assert_silent_on(&said(&state, &second), "from now on");
    assert_says(
        &removal(&state, &first),
        "destinations that accept every call from now on: no AccessPolicy selects them any more: 2",
    );
}

#[test]
fn sources_that_let_in_more_than_they_seem_to_are_named() {
    for (sources, expected) in [
        (
            "[]",
            "spec.sourceSelector is empty: anybody may call, authenticated or not",
        ),
        (
            "[{}]",
            "spec.sourceSelector[0] is empty: every authenticated caller may call",
        ),
        (
            "[{kubeIdentityMatcher: {}}]",
            "spec.sourceSelector[0].kubeIdentityMatcher is empty: every authenticated caller may call",
        ),
        (
            "[{kubeServiceAccountRefs: {serviceAccounts: [{name: a, namespace: b, clusterName: cluster-1}, {name: a, clusterName: cluster-1}]}}]",
            "spec.sourceSelector[0].kubeServiceAccountRefs.serviceAccounts[1] has no namespace: the whole trust domain may call",
        ),
    ] {
        let spec = format!("{{destinationSelector: {REVIEWS}, sourceSelector: {sources}}}");
        assert_says(
            &said(&estate(), &policy("AccessPolicy", "a", &spec)),
            expected,
        );
    }
}

#[test]
fn deleting_the_only_access_policy_where_all_is_denied_is_said_to_seal() {
    let spec = format!(
        "{{destinationSelector: {REVIEWS}, sourceSelector: [{{kubeIdentityMatcher: {{namespaces: [a]}}}}]}}"
    );
    let only = policy("AccessPolicy", "a", &spec);
    let denied = VIRTUAL_MESH.replacen('{', "{globalAccessPolicy: ENABLED, ", 1);
    let virtual_mesh = policy("VirtualMesh", "vm", &denied);
    let state = with(with(estate(), &only), &virtual_mesh);
    assert_says(
        &removal(&state, &only),
        "destinations that refuse every call from now on: globalAccessPolicy is ENABLED and no AccessPolicy selects them: 2",
    );
    let open = with(
        with(estate(), &only),
        &policy("VirtualMesh", "vm", VIRTUAL_MESH),
    );
    assert_says(
        &said(&open, &virtual_mesh),
        "globalAccessPolicy is ENABLED: 3 destinations without an AccessPolicy refuse every call",
    );
}

// Virtual meshes.

#[test]
fn a_virtual_mesh_says_what_it_groups_and_federates() {
    let said = said(&estate(), &policy("VirtualMesh", "vm", VIRTUAL_MESH));
    assert_says(&said, "groups 2 meshes, federates 5 of 5 destinations");
}

#[test]
fn a_gateway_without_an_address_is_named() {
    let state = with(
        estate(),
        &ESTATE_GATEWAY_2.replace("externalAddresses: [{ip: 172.18.0.220}]", ""),
    );
    assert_says(
        &said(&state, &policy("VirtualMesh", "vm", VIRTUAL_MESH)),
        "ingress gateway gateway-2.gloo-mesh. has no external address yet; other clusters cannot reach it",
    );
}

const ESTATE_GATEWAY_2: &str = "
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Destination
metadata: {name: gateway-2, namespace: gloo-mesh}
spec:
  mesh: {name: istiod-2, namespace: gloo-mesh}
  kubeService:
    ref: {name: gateway, namespace: istio-system, clusterName: cluster-2}
    workloadSelectorLabels: {istio: ingressgateway}
    serviceType: LOAD_BALANCER
    externalAddresses: [{ip: 172.18.0.220}]
    ports: [{name: tls, port: 15443, protocol: TCP, targetPortNumber: 15443}]
";

#[test]
fn a_virtual_mesh_that_shares_nothing_says_so() {
    let spec = "{meshes: [{name: istiod-1, namespace: gloo-mesh}, {name: istiod-2, namespace: gloo-mesh}]}";
    let said = said(&estate(), &policy("VirtualMesh", "vm", spec));
    assert_says(
        &said,
        "spec.federation.selectors is empty: no mesh sees another's services; `[{}]` federates all",
    );
    assert_says(
        &said,
        "spec.mtlsConfig is not set: calls between meshes fail unless they share a root already",
    );
}

#[test]
fn a_mesh_of_another_virtual_mesh_is_refused_whatever_the_key() {
    let state = with(estate(), &policy("VirtualMesh", "m", VIRTUAL_MESH));
    let claim = "{meshes: [{name: istiod-2, namespace: gloo-mesh}]}";
    assert_eq!(
        refused(&state, &policy("VirtualMesh", "z", claim)),
        [
            "Includes a Mesh (istiod-2.gloo-mesh) that already is grouped in a VirtualMesh (m.gloo-mesh)"
        ]
    );
    assert_eq!(
        refused(&state, &policy("VirtualMesh", "a", claim)),
        [
            "Includes a Mesh (istiod-2.gloo-mesh) that already is grouped in a VirtualMesh (m.gloo-mesh); take it out there first"
        ]
    );
}

#[test]
fn a_virtual_mesh_that_lets_go_of_a_mesh_is_let_through() {
    let both = "{meshes: [{name: istiod-1, namespace: gloo-mesh}, {name: istiod-2, namespace: gloo-mesh}]}";
    let one = "{meshes: [{name: istiod-1, namespace: gloo-mesh}]}";
    let other = "{meshes: [{name: istiod-2, namespace: gloo-mesh}]}";
    let state = with(estate(), &policy("VirtualMesh", "a", both));
    // Has claimed in vain so far.
    let state = with(state, &policy("VirtualMesh", "b", other));
    let said = said(&state, &policy("VirtualMesh", "a", one));
    assert_says(&said, "1 object that had errors will be accepted");
}

#[test]
fn deleting_a_virtual_mesh_says_what_is_lost() {
    let virtual_mesh = policy("VirtualMesh", "vm", VIRTUAL_MESH);
    let said = removal(&with(estate(), &virtual_mesh), &virtual_mesh);
    assert_says(
        &said,
        "leaves 2 meshes without each other: 5 destinations are federated no more",
    );
    assert_says(
        &said,
        "the certificate authorities of its meshes stay as they are",
    );
}

// Settings.

#[test]
fn settings_that_are_not_read_say_so() {
    assert_says(
        &said(&estate(), &policy("Settings", "mine", "{}")),
        "these settings are not read: those that hold are gloo-mesh/settings",
    );
    assert_silent_on(
        &said(&estate(), &policy("Settings", "settings", "{}")),
        "not read",
    );
}

// What is not there.

const MISSING: &str = "{destinationSelector: [{kubeServiceRefs: {services: [{name: gone, namespace: bookinfo, clusterName: cluster-2}]}}], policy: {requestTimeout: 1s}}";

#[test]
fn a_service_that_does_not_exist_is_refused_unless_settings_or_namespace_say_otherwise() {
    let candidate = traffic_policy("a", MISSING);
    let message = "Destination gone.bookinfo.cluster-2 not found";
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
    let kinds = Kind::ALL
        .iter()
        .filter(|kind| matches!(kind.scope(), Scope::Managed | Scope::Everywhere));
    state
        .step(kinds.map(|kind| Change::Synced {
            cluster: cluster.into(),
            kind: *kind,
        }))
        .0
}

#[test]
fn a_cluster_that_is_not_listed_makes_missing_things_uncertain() {
    let state = with(estate(), &registered("cluster-3"));
    let service = traffic_policy("a", &MISSING.replace("cluster-2", "cluster-3"));
    assert_says(
        &said(&state, &service),
        "cluster cluster-3 has not been listed yet, so this is not certain: Destination gone.bookinfo.cluster-3 not found",
    );
    let mesh = policy(
        "VirtualMesh",
        "vm",
        "{meshes: [{name: istiod-3, namespace: gloo-mesh}]}",
    );
    assert_says(
        &said(&state, &mesh),
        "cluster cluster-3 has not been listed yet, so this is not certain: Mesh istiod-3.gloo-mesh. not found; list discovered meshes with `kubectl get mesh`",
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

// What was there before.

#[test]
fn an_error_that_was_listed_elsewhere_is_not_new() {
    let spec = |selector: &str, timeout: &str| {
        format!("{{destinationSelector: {selector}, policy: {{requestTimeout: {timeout}}}}}")
    };
    let state = with(estate(), &traffic_policy("a", &spec(REVIEWS, "1s")));
    // Stored while nobody was there to refuse it: it loses on both.
    let state = with(state, &traffic_policy("b", &spec(REVIEWS, "2s")));
    let narrower = traffic_policy("b", &spec(REVIEWS_2, "2s"));
    assert_eq!(refused(&state, &narrower), [""; 0]);
}

#[test]
fn an_error_on_a_further_destination_is_new() {
    let spec = |selector: &str, timeout: &str| {
        format!("{{destinationSelector: {selector}, policy: {{requestTimeout: {timeout}}}}}")
    };
    let state = with(estate(), &traffic_policy("a", &spec(REVIEWS, "1s")));
    let state = with(state, &traffic_policy("b", &spec(REVIEWS_1, "2s")));
    assert_eq!(
        refused(&state, &traffic_policy("b", &spec(REVIEWS_2, "2s"))).len(),
        1
    );
}

// What is not worked out.

#[test]
fn a_step_that_is_not_finished_says_nothing_of_what_it_would_do() {
    let [object] = &*objects(&traffic_policy("a", MISSING)) else {
        panic!("is not one object")
    };
    let change = || [Change::Upsert(object.clone())];
    let at_once = Step::new(estate(), change()).finish().1;
    let ruling = effect::rule(&at_once, &subject(object), Extent::Partial);
    assert_eq!(ruling, Ruling::default());
    let proven = |fuel| {
        let mut step = Step::new(estate(), change());
        assert!(!step.advance(fuel));
        let delta: Delta = step.finish().1;
        effect::rule(&delta, &subject(object), Extent::Partial).errors
    };
    assert_eq!(
        proven(1).len(),
        1,
        "is proven as soon as references are looked up"
    );
}
