//! What holds for every definition.

use std::collections::BTreeSet;

use ferromesh_crds::{all, managed};
use serde_json::{Value, json};

use crate::tree::{nodes, schemas};

#[test]
fn each_kind_is_served_under_its_compatible_name() {
    let found: BTreeSet<String> = all()
        .iter()
        .map(|definition| {
            let spec = &definition.spec;
            let [version] = &spec.versions[..] else {
                panic!("one version")
            };
            assert!(version.served && version.storage);
            assert_eq!(spec.scope, "Namespaced");
            assert!(version.subresources.as_ref().unwrap().status.is_some());
            format!(
                "{} {}/{} {}",
                spec.names.kind, spec.group, version.name, spec.names.plural
            )
        })
        .collect();
    let expected: BTreeSet<String> = [
        "AccessPolicy networking.mesh.gloo.solo.io/v1 accesspolicies",
        "CertificateRequest certificates.mesh.gloo.solo.io/v1 certificaterequests",
        "Destination discovery.mesh.gloo.solo.io/v1 destinations",
        "IssuedCertificate certificates.mesh.gloo.solo.io/v1 issuedcertificates",
        "KubernetesCluster multicluster.solo.io/v1alpha1 kubernetesclusters",
        "Mesh discovery.mesh.gloo.solo.io/v1 meshes",
        "PodBounceDirective certificates.mesh.gloo.solo.io/v1 podbouncedirectives",
        "Settings settings.mesh.gloo.solo.io/v1 settings",
        "TrafficPolicy networking.mesh.gloo.solo.io/v1 trafficpolicies",
        "VirtualMesh networking.mesh.gloo.solo.io/v1 virtualmeshes",
        "Workload discovery.mesh.gloo.solo.io/v1 workloads",
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(found, expected);
}

#[test]
fn a_managed_cluster_needs_the_kinds_of_certificates() {
    assert!(
        managed()
            .iter()
            .all(|it| it.spec.group == ferromesh_crds::CERTIFICATES_GROUP)
    );
    assert_eq!(managed().len(), 3);
}

#[test]
fn short_names_are_ours_alone() {
    // Of Kubernetes, and of Istio, whose kinds live on the same clusters.
    let taken = "po svc ep cm sa no ns pv pvc rs rc ds deploy sts hpa cj crd cs ev limits quota pdb \
                 ing netpol pc csr sc dr gw se vs we wg ap pa ra telemetry";
    let mut seen: BTreeSet<String> = taken.split(' ').map(str::to_owned).collect();
    for name in all()
        .into_iter()
        .filter_map(|it| it.spec.names.short_names)
        .flatten()
    {
        assert!(seen.insert(name.clone()), "{name} is taken");
    }
}

#[test]
fn no_category_hides_a_kind() {
    for names in all().into_iter().map(|it| it.spec.names) {
        let categories = names.categories.unwrap_or_default();
        assert_eq!(
            categories,
            ["gloo-mesh"],
            "{}: `kubectl get mesh` means a kind",
            names.kind
        );
    }
}

#[test]
fn only_formats_that_api_servers_know_appear() {
    for (kind, schema) in &schemas() {
        for (path, node) in nodes(schema) {
            let format = node["format"].as_str().unwrap_or("int64");
            assert!(
                ["int32", "int64", "double", "byte", "date-time"].contains(&format),
                "{kind}{path}: {format}"
            );
        }
    }
}

#[test]
fn schemas_fill_nothing_in_but_that_nothing_was_told_yet_and_store_no_null() {
    for (kind, schema) in &schemas() {
        for (path, node) in nodes(schema) {
            let is_status = [".status", ".status.conditions"].contains(&&*path);
            assert!(
                (is_status || node["default"].is_null()) && node["nullable"].is_null(),
                "{kind}{path}"
            );
        }
    }
}

#[test]
fn only_the_spec_and_the_parts_of_a_condition_are_required() {
    for (kind, schema) in &schemas() {
        for (path, node) in nodes(schema) {
            let expected = match &*path {
                "" => json!(["spec"]),
                ".status.conditions[]" => {
                    json!(["lastTransitionTime", "message", "reason", "status", "type"])
                }
                _ => Value::Null,
            };
            assert_eq!(node["required"], expected, "{kind}{path}");
        }
    }
}

#[test]
fn nothing_is_kept_unpruned_but_applied_traffic_policies() {
    for (kind, schema) in &schemas() {
        for (path, node) in nodes(schema) {
            assert_eq!(
                node["x-kubernetes-preserve-unknown-fields"] == true,
                kind == "Destination" && path == ".status.appliedTrafficPolicies[]",
                "{kind}{path}"
            );
        }
    }
}

#[test]
fn a_status_is_never_refused_for_what_it_repeats() {
    for (kind, schema) in &schemas() {
        for (path, node) in nodes(&schema["properties"]["status"]) {
            for keyword in ["x-kubernetes-validations", "minimum", "maximum", "maxItems"] {
                assert!(node[keyword].is_null(), "{kind}.status{path}: {keyword}");
            }
        }
    }
}

#[test]
fn every_field_is_explained() {
    for (kind, schema) in &schemas() {
        for (path, node) in nodes(schema) {
            let is_field = !path.ends_with([']', '}']);
            let description = node["description"].as_str().unwrap_or_default();
            assert!(!is_field || description.len() > 5, "{kind}{path}");
            assert!(
                !description.contains("[`"),
                "a link makes no sense here: {kind}{path}"
            );
        }
    }
}

#[test]
fn a_definition_fits_into_the_annotation_of_kubectl_apply() {
    for definition in all() {
        let size = serde_json::to_vec(&definition).unwrap().len();
        assert!(
            size < 200_000,
            "{:?}: {size} bytes",
            definition.metadata.name
        );
    }
}
