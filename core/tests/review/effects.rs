//! What a change does, in words.

use ferromesh_core::review::Weight;

use crate::world::*;

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
        "wins over TrafficPolicy gloo-mesh/m on reviews-1.gloo-mesh: spec.policy.requestTimeout",
    );
    let [message] = &*refused(&state, &traffic_policy("z", &spec("2s"))) else {
        panic!("is not refused once")
    };
    assert!(
        message.starts_with(
            "spec.policy.requestTimeout: on reviews-1.gloo-mesh: timeout: already owned by TrafficPolicy m.gloo-mesh,"
        ),
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
        "spec.meshes[1]: ingress gateway gateway-2.gloo-mesh has no external address yet; other clusters cannot reach it",
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
            "spec.meshes[0]: Includes a Mesh (istiod-2.gloo-mesh) that already is grouped in a VirtualMesh (m.gloo-mesh)"
        ]
    );
    assert_eq!(
        refused(&state, &policy("VirtualMesh", "a", claim)),
        [
            "spec.meshes[0]: Includes a Mesh (istiod-2.gloo-mesh) that already is grouped in a VirtualMesh (m.gloo-mesh); take it out there first"
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
