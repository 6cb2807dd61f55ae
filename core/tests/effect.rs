//! What is said about a change before it is made.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "what a test cannot read, or does not expect, fails it"
)]

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::review::{Candidate, Intent, Outcome, Remark, Review, Weight, judged};
use ferromesh_core::{Change, Kind, Object, Scope, State};
use serde_json::Value;

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

/// The estate, with the management cluster listed.
fn estate() -> State {
    let management = [Scope::Management, Scope::Everywhere];
    synced(with(State::default(), ESTATE), "", &management)
}

fn synced(state: State, cluster: &str, scopes: &[Scope]) -> State {
    let kinds = Kind::ALL
        .iter()
        .filter(|kind| scopes.contains(&kind.scope()));
    let listed = kinds.map(|kind| Change::Synced {
        cluster: cluster.into(),
        kind: *kind,
    });
    state.step(listed).0
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

/// An object of a kind that is judged.
fn read(text: &str) -> (Kind, Value) {
    let object: Value = serde_saphyr::from_str(text).unwrap();
    let word = |field: &str| object[field].as_str().unwrap();
    let (group, _) = word("apiVersion").split_once('/').unwrap();
    (judged(group, word("kind")).unwrap(), object)
}

fn review(state: &State, kind: Kind, intent: Intent) -> Outcome {
    let mut review = Review::new(state, Candidate::new(kind, intent).unwrap());
    while !review.advance(7) {}
    let outcome = review.finish();
    assert!(outcome.is_complete);
    outcome
}

fn creation(state: &State, object: &str) -> Outcome {
    let (kind, object) = read(object);
    review(state, kind, Intent::Create(object))
}

/// An object takes another form.
fn update(state: &State, old: &str, new: &str) -> Outcome {
    let ((kind, old), (_, new)) = (read(old), read(new));
    review(state, kind, Intent::Update { old, new })
}

fn removal(state: &State, object: &str) -> Vec<String> {
    let (kind, object) = read(object);
    texts(&review(state, kind, Intent::Delete(object)).remarks)
}

fn texts(remarks: &[Remark]) -> Vec<String> {
    remarks.iter().map(|remark| remark.text.clone()).collect()
}

/// What is said about an object that may be created.
fn said(state: &State, object: &str) -> Vec<String> {
    let outcome = creation(state, object);
    assert_eq!(outcome.denials, [], "is refused");
    texts(&outcome.remarks)
}

/// Why an object may not be created.
fn refused(state: &State, object: &str) -> Vec<String> {
    let denials = creation(state, object).denials;
    denials.iter().map(ToString::to_string).collect()
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
        "adds 2 objects: VirtualService bookinfo/reviews on cluster-1, VirtualService bookinfo/reviews on cluster-2",
    );
    assert_eq!(said.len(), 2);
}

#[test]
fn outputs_are_named_as_long_as_there_is_room() {
    let said = said(
        &estate(),
        &traffic_policy("a", "{policy: {requestTimeout: 1s}}"),
    );
    assert_says(
        &said,
        "adds 5 objects: VirtualService istio-system/gateway on cluster-1 and 4 more",
    );
}

#[test]
fn an_empty_selector_is_said_to_select_everything() {
    let outcome = creation(
        &estate(),
        &traffic_policy("a", "{policy: {requestTimeout: 1s}}"),
    );
    let first = &outcome.remarks[0];
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
    let before = policy("VirtualMesh", "a", both);
    // The other has claimed in vain so far.
    let other = policy("VirtualMesh", "b", other);
    let state = with(with(estate(), &before), &other);
    let outcome = update(&state, &before, &policy("VirtualMesh", "a", one));
    assert_eq!(outcome.denials, []);
    assert_says(
        &texts(&outcome.remarks),
        "1 object that had errors will be accepted",
    );
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
    synced(state, cluster, &[Scope::Managed, Scope::Everywhere])
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
    let wide = traffic_policy("b", &spec(REVIEWS, "2s"));
    let narrow = traffic_policy("b", &spec(REVIEWS_2, "2s"));
    assert_eq!(update(&with(state, &wide), &wide, &narrow).denials, []);
}

#[test]
fn an_error_on_a_further_destination_is_new() {
    let spec = |selector: &str, timeout: &str| {
        format!("{{destinationSelector: {selector}, policy: {{requestTimeout: {timeout}}}}}")
    };
    let state = with(estate(), &traffic_policy("a", &spec(REVIEWS, "1s")));
    let before = traffic_policy("b", &spec(REVIEWS_1, "2s"));
    let after = traffic_policy("b", &spec(REVIEWS_2, "2s"));
    let outcome = update(&with(state, &before), &before, &after);
    assert_eq!(outcome.denials.len(), 1);
}

// What is not worked out.

#[test]
fn a_review_that_is_not_finished_says_what_is_proven_and_that_there_is_more() {
    let (kind, object) = read(&traffic_policy("a", MISSING));
    let candidate = Candidate::new(kind, Intent::Create(object)).unwrap();
    let mut review = Review::new(&estate(), candidate.clone());
    assert!(!review.advance(1), "there is nothing of that name");
    let outcome = review.finish();
    assert!(outcome.is_allowed() && !outcome.is_complete);
    assert_eq!(
        outcome.warnings().join(" "),
        "there was no time to work out whether this fits other objects, and what it changes; see its status"
    );

    let mut review = Review::new(&estate(), candidate);
    assert!(!review.advance(1));
    assert!(!review.advance(1), "its references are looked up");
    let outcome = review.finish();
    assert_eq!(outcome.denials.len(), 1);
    assert_eq!(outcome.remarks, []);
}

// How it is told.

#[test]
fn of_what_a_refused_change_would_do_nothing_is_said() {
    let mut spec = MISSING.replace("policy:", "destinationSelectors: [], policy:");
    let outcome = creation(&estate(), &traffic_policy("a", &spec));
    let weights: Vec<_> = outcome.remarks.iter().map(|it| it.weight).collect();
    assert_eq!(
        (outcome.denials.len(), &*weights),
        (1, &[Weight::Dropped][..])
    );

    spec = spec.replace("gone", "reviews");
    let outcome = creation(&estate(), &traffic_policy("a", &spec));
    assert_eq!(outcome.remarks[0].weight, Weight::Dropped);
    assert!(
        outcome
            .remarks
            .iter()
            .any(|it| it.weight == Weight::Outcome)
    );
}

#[test]
fn advice_is_given_once() {
    let selector = "{kubeServiceRefs: {services: [{name: a, namespace: b, clusterName: cluster-1}, {name: b, namespace: b, clusterName: cluster-1}]}}";
    let spec =
        format!("{{destinationSelector: [{selector}], policy: {{retries: {{attempts: -1}}}}}}");
    let outcome = creation(&estate(), &traffic_policy("a", &spec));
    assert_eq!(outcome.denials.len(), 3);
    let [remedy] = &*outcome.remedies() else {
        panic!("is not one")
    };
    assert!(remedy.contains("unresolvedReferences"), "{remedy}");
}

#[test]
fn a_review_by_small_slices_comes_to_the_same() {
    let (kind, object) = read(&policy("VirtualMesh", "vm", VIRTUAL_MESH));
    let by = |fuel| {
        let intent = Intent::Create(object.clone());
        let mut review = Review::new(&estate(), Candidate::new(kind, intent).unwrap());
        while !review.advance(fuel) {}
        review.finish()
    };
    let at_once = by(usize::MAX);
    assert!(at_once.effect.added > 0);
    assert_eq!(by(1), at_once);
}
