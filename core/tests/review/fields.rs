//! Whatever speaks against an object names the field that it is about.

use ferromesh_core::State;

use crate::world::{
    REVIEWS, REVIEWS_1, VIRTUAL_MESH, creation, estate, policy, traffic_policy, update, with,
};

/// The fields that speak against an object, each with what is wrong there.
fn fields(state: &State, object: &str) -> Vec<(String, String)> {
    let denials = creation(state, object).denials;
    denials
        .into_iter()
        .map(|denial| (denial.path.unwrap_or_default(), denial.message))
        .collect()
}

/// Exactly one field speaks against an object, with a message that has this part.
#[track_caller]
fn assert_names(state: &State, object: &str, path: &str, part: &str) {
    let fields = fields(state, object);
    let [(at, message)] = &*fields else {
        panic!("{object} has not one error: {fields:#?}")
    };
    assert_eq!(at, path, "{message}");
    assert!(message.contains(part), "{part:?} is not in {message:?}");
}

fn timeout(name: &str, selector: &str, timeout: &str) -> String {
    let spec =
        format!("{{destinationSelector: {selector}, policy: {{requestTimeout: {timeout}}}}}");
    traffic_policy(name, &spec)
}

/// A policy of another kind of mesh: the estate with a Service in a mesh that we do not write for.
const OSM: &str = "
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Mesh
metadata: {name: osm, namespace: gloo-mesh}
spec: {osm: {installation: {cluster: cluster-1, namespace: osm-system}}}
---
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Destination
metadata: {name: bookstore, namespace: gloo-mesh}
spec:
  mesh: {name: osm, namespace: gloo-mesh}
  kubeService:
    ref: {name: bookstore, namespace: osm, clusterName: cluster-1}
    workloadSelectorLabels: {app: bookstore}
    ports: [{name: http, port: 80, protocol: TCP}]
";

#[test]
fn a_service_that_is_missing_is_named_by_its_reference() {
    let services = "{services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}, {name: gone, namespace: bookinfo, clusterName: cluster-1}]}";
    let selector = format!("[{{kubeServiceMatcher: {{}}}}, {{kubeServiceRefs: {services}}}]");
    let path = "spec.destinationSelector[1].kubeServiceRefs.services[1]";
    let part = "Destination gone.bookinfo.cluster-1 not found";
    assert_names(&estate(), &timeout("a", &selector, "1s"), path, part);
    let access = format!("{{destinationSelector: {selector}}}");
    assert_names(&estate(), &policy("AccessPolicy", "a", &access), path, part);
}

#[test]
fn a_reference_beside_one_that_is_not_complete_keeps_its_position() {
    let selector = "[{kubeServiceRefs: {services: [{name: a}, {name: gone, namespace: bookinfo, clusterName: cluster-1}]}}]";
    let fields = fields(&estate(), &timeout("a", selector, "1s"));
    let paths: Vec<_> = fields.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "spec.destinationSelector[0].kubeServiceRefs.services[0]",
            "spec.destinationSelector[0].kubeServiceRefs.services[1]"
        ]
    );
}

#[test]
fn a_conflict_is_named_by_the_field_that_both_set() {
    for (field, mine, others) in [
        ("requestTimeout", "1s", "2s"),
        ("retries", "{attempts: 1}", "{attempts: 2}"),
        (
            "faultInjection",
            "{abort: {httpStatus: 500}}",
            "{abort: {httpStatus: 501}}",
        ),
        (
            "trafficShift",
            "{destinations: [{weight: 1, kubeService: {name: reviews, namespace: bookinfo, clusterName: cluster-1}}]}",
            "{destinations: [{weight: 1, kubeService: {name: reviews, namespace: bookinfo, clusterName: cluster-2}}]}",
        ),
    ] {
        let spec = |value: &str| {
            format!("{{destinationSelector: {REVIEWS_1}, policy: {{{field}: {value}}}}}")
        };
        let state = with(estate(), &traffic_policy("a", &spec(others)));
        let path = format!("spec.policy.{field}");
        let part = "already owned by TrafficPolicy a.gloo-mesh, which";
        assert_names(&state, &traffic_policy("b", &spec(mine)), &path, part);
    }
}

#[test]
fn a_shift_target_is_named_by_its_position() {
    let shift = |target: &str| {
        let here = "{weight: 1, kubeService: {name: reviews, namespace: bookinfo, clusterName: cluster-1, port: 9080}}";
        let target = format!("{{weight: 1, kubeService: {target}}}");
        let spec = format!(
            "{{destinationSelector: {REVIEWS_1}, policy: {{trafficShift: {{destinations: [{here}, {target}]}}}}}}"
        );
        traffic_policy("a", &spec)
    };
    let path = "spec.policy.trafficShift.destinations[1].kubeService";
    assert_names(
        &estate(),
        &shift("{name: gone, namespace: bookinfo, clusterName: cluster-1}"),
        path,
        "Destination not found for kube service gone.bookinfo.cluster-1",
    );
    assert_names(
        &estate(),
        &shift("{name: reviews, namespace: bookinfo, clusterName: cluster-2, port: 1}"),
        &format!("{path}.port"),
        "specified port 1 does not exist",
    );
}

#[test]
fn a_mesh_of_another_sort_is_named_by_what_selects_it() {
    let state = with(estate(), OSM);
    let matcher =
        "[{kubeServiceMatcher: {labels: {a: b}}}, {kubeServiceMatcher: {namespaces: [osm]}}]";
    let reference = "[{kubeServiceMatcher: {namespaces: [osm]}, kubeServiceRefs: {services: [{name: bookstore, namespace: osm, clusterName: cluster-1}]}}]";
    for (selector, path) in [
        ("[]", "spec.destinationSelector"),
        (matcher, "spec.destinationSelector[1].kubeServiceMatcher"),
        (
            reference,
            "spec.destinationSelector[0].kubeServiceRefs.services[0]",
        ),
    ] {
        let part = "on bookstore.gloo-mesh: bookstore.osm.cluster-1 is in a mesh of type osm";
        assert_names(&state, &timeout("a", selector, "1s"), path, part);
    }
}

#[test]
fn a_cluster_without_trust_domain_is_named_wherever_a_source_names_it() {
    let access = |sources: &str| {
        let spec = format!("{{destinationSelector: {REVIEWS_1}, sourceSelector: {sources}}}");
        policy("AccessPolicy", "a", &spec)
    };
    assert_names(
        &estate(),
        &access("[{}, {kubeIdentityMatcher: {clusters: [cluster-2, cluster-1, cluster-0]}}]"),
        "spec.sourceSelector[1].kubeIdentityMatcher.clusters[2]",
        "Trust domain not found for cluster cluster-0;",
    );
    assert_names(
        &estate(),
        &access(
            "[{kubeServiceAccountRefs: {serviceAccounts: [{name: a, namespace: b, clusterName: cluster-1}, {name: a, namespace: b, clusterName: cluster-0}]}}]",
        ),
        "spec.sourceSelector[0].kubeServiceAccountRefs.serviceAccounts[1].clusterName",
        "Trust domain not found for cluster cluster-0;",
    );
}

#[test]
fn of_very_many_clusters_without_trust_domain_the_first_are_named() {
    let clusters: Vec<_> = (0..2_000).map(|nth| format!("unknown-{nth:04}")).collect();
    let spec = format!(
        "{{destinationSelector: {REVIEWS_1}, sourceSelector: [{{kubeIdentityMatcher: {{clusters: [{}]}}}}]}}",
        clusters.join(", ")
    );
    let fields = fields(&estate(), &policy("AccessPolicy", "a", &spec));
    let others = ("spec.sourceSelector", "Trust domain not found for others;");
    let rest = ("spec", "1992 more clusters are not registered");
    assert_eq!(fields.len(), 8 + 2);
    for ((path, message), (at, part)) in fields[8..].iter().zip([others, rest]) {
        assert_eq!(path, at);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn what_a_virtual_mesh_lacks_is_named_by_its_field() {
    let gone =
        "{kubeServiceRefs: {services: [{name: gone, namespace: a, clusterName: cluster-1}]}}";
    for (spec, path, part) in [
        (
            "{meshes: [{name: istiod-1, namespace: gloo-mesh}, {name: istiod-9, namespace: gloo-mesh}]}".to_owned(),
            "spec.meshes[1]",
            "Mesh istiod-9.gloo-mesh not found",
        ),
        (
            VIRTUAL_MESH.replace("[{}]", "[{}, {meshes: [{name: istiod-1, namespace: gloo-mesh}, {name: istiod-9, namespace: gloo-mesh}]}]"),
            "spec.federation.selectors[1].meshes[1]",
            "Mesh istiod-9.gloo-mesh not found",
        ),
        (
            VIRTUAL_MESH.replace("[{}]", &format!("[{{}}, {{destinationSelectors: [{gone}]}}]")),
            "spec.federation.selectors[1].destinationSelectors[0].kubeServiceRefs.services[0]",
            "Destination gone.a.cluster-1 not found",
        ),
        (
            VIRTUAL_MESH.replace("selectors: [{}]", &format!("eastWestIngressGatewaySelectors: [{{destinationSelectors: [{gone}]}}]")),
            "spec.federation.eastWestIngressGatewaySelectors[0].destinationSelectors[0].kubeServiceRefs.services[0]",
            "Destination gone.a.cluster-1 not found",
        ),
        (
            VIRTUAL_MESH.replace("generated: {}", "secret: {name: a, namespace: b}"),
            "spec.mtlsConfig.shared.rootCertificateAuthority.secret",
            "Secret b/a not found",
        ),
    ] {
        assert_names(&estate(), &policy("VirtualMesh", "vm", &spec), path, part);
    }
}

#[test]
fn a_gateway_that_cannot_serve_is_named_by_what_selects_it() {
    let selector =
        format!("eastWestIngressGatewaySelectors: [{{destinationSelectors: {REVIEWS_1}}}]");
    let spec = VIRTUAL_MESH.replace("selectors: [{}]", &selector);
    assert_names(
        &estate(),
        &policy("VirtualMesh", "vm", &spec),
        "spec.federation.eastWestIngressGatewaySelectors[0].destinationSelectors[0].kubeServiceRefs.services[0]",
        "destination reviews-1.gloo-mesh needs a port of that name",
    );
}

#[test]
fn a_suffix_that_no_client_resolves_is_named_on_each_destination() {
    let spec = VIRTUAL_MESH.replace("[{}]", "[{}], hostnameSuffix: mesh.internal");
    let fields = fields(&estate(), &policy("VirtualMesh", "vm", &spec));
    assert!(!fields.is_empty());
    for (path, message) in fields {
        assert_eq!(path, "spec.federation.hostnameSuffix", "{message}");
        assert!(message.starts_with("on "), "{message}");
    }
}

#[test]
fn an_old_error_that_moves_in_its_list_is_not_new() {
    let service =
        |name: &str| format!("{{name: {name}, namespace: bookinfo, clusterName: cluster-1}}");
    let listing = |names: &[&str]| {
        let services: Vec<_> = names.iter().map(|name| service(name)).collect();
        let services = services.join(", ");
        timeout(
            "a",
            &format!("[{{kubeServiceRefs: {{services: [{services}]}}}}]"),
            "1s",
        )
    };
    let before = listing(&["gone"]);
    let state = with(estate(), &before);
    assert_eq!(
        update(&state, &before, &listing(&["reviews", "gone"])).denials,
        []
    );
    let denials = update(&state, &before, &listing(&["gone", "gone"])).denials;
    let paths: Vec<_> = denials
        .iter()
        .map(|denial| denial.path.as_deref())
        .collect();
    assert_eq!(
        paths,
        [Some(
            "spec.destinationSelector[0].kubeServiceRefs.services[1]"
        )]
    );
}

#[test]
fn an_old_conflict_does_not_excuse_one_in_another_field() {
    let spec = |policy: &str| format!("{{destinationSelector: {REVIEWS}, policy: {policy}}}");
    let state = with(
        estate(),
        &traffic_policy("a", &spec("{requestTimeout: 1s, retries: {attempts: 1}}")),
    );
    let before = traffic_policy("b", &spec("{requestTimeout: 2s}"));
    let after = traffic_policy("b", &spec("{requestTimeout: 2s, retries: {attempts: 2}}"));
    let denials = update(&with(state, &before), &before, &after).denials;
    let paths: Vec<_> = denials
        .iter()
        .map(|denial| denial.path.as_deref())
        .collect();
    assert_eq!(paths, [Some("spec.policy.retries")]);
}

#[test]
fn an_old_error_of_a_destination_is_not_new_when_it_is_selected_otherwise() {
    let state = with(estate(), OSM);
    let reference = "[{kubeServiceRefs: {services: [{name: bookstore, namespace: osm, clusterName: cluster-1}]}}]";
    let before = timeout("a", "[{kubeServiceMatcher: {namespaces: [osm]}}]", "1s");
    let after = timeout("a", reference, "1s");
    assert_eq!(update(&with(state, &before), &before, &after).denials, []);
}

/// A policy for callers of a thousand namespaces whose requests have a header of these many letters.
fn long(name: &str, letter: &str, letters: usize) -> String {
    let namespaces = (0..1_000).map(|at| format!("n-{at}"));
    let namespaces = namespaces.collect::<Vec<_>>().join(", ");
    let header = letter.repeat(letters);
    let spec = format!(
        "{{destinationSelector: {REVIEWS_1}, sourceSelector: [{{kubeWorkloadMatcher: {{namespaces: [{namespaces}]}}}}], httpRequestMatchers: [{{headers: [{{name: h, value: {header}}}]}}], policy: {{requestTimeout: 1s}}}}"
    );
    traffic_policy(name, &spec)
}

#[test]
fn routes_that_no_api_server_takes_are_refused() {
    assert_eq!(fields(&estate(), &long("a", "x", 2_000)), []);
    let part = "the routes to reviews.bookinfo.cluster-1 come to 3";
    assert_names(&estate(), &long("a", "x", 3_000), "spec", part);
}

#[test]
fn routes_that_fit_in_no_more_beside_those_of_others_are_refused() {
    let state = with(estate(), &long("a", "x", 2_000));
    assert_eq!(fields(&state, &long("a", "x", 2_100)), []);
    assert_names(
        &state,
        &long("b", "y", 2_000),
        "spec",
        "an API server takes",
    );
}
