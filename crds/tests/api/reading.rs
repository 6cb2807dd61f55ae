//! Objects are read leniently and written canonically, and nothing is lost on the way.

use ferromesh_crds::approval::ApprovalState;
use ferromesh_crds::destination::ServiceType;
use ferromesh_crds::settings::UnresolvedReferences;
use ferromesh_crds::traffic_policy::TlsMode;
use ferromesh_crds::{
    AccessPolicy, CertificateRequest, Destination, IssuedCertificate, KubernetesCluster, Mesh,
    PodBounceDirective, Settings, TrafficPolicy, VirtualMesh, Workload,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tree::schemas;

/// Applies a check to every kind.
macro_rules! for_each_kind {
    ($check:ident) => {{
        $check::<AccessPolicy>("AccessPolicy");
        $check::<CertificateRequest>("CertificateRequest");
        $check::<Destination>("Destination");
        $check::<IssuedCertificate>("IssuedCertificate");
        $check::<KubernetesCluster>("KubernetesCluster");
        $check::<Mesh>("Mesh");
        $check::<PodBounceDirective>("PodBounceDirective");
        $check::<Settings>("Settings");
        $check::<TrafficPolicy>("TrafficPolicy");
        $check::<VirtualMesh>("VirtualMesh");
        $check::<Workload>("Workload");
    }};
}

trait Kind: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug {}
impl<K: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug> Kind for K {}

fn read<K: Kind>(object: &Value) -> K {
    serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object:#}"))
}

/// An object with a value in every field that its schema has.
fn full(kind: &str) -> Value {
    let mut object = sample(&schemas()[kind]);
    object["metadata"] = json!({"name": "a", "namespace": "b"});
    object
}

fn sample(schema: &Value) -> Value {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return json!({"observedGeneration": 1, "spec": {"policy": {"requestTimeout": "5s"}}});
    }
    match schema["type"].as_str().unwrap() {
        "object" => {
            let values = &schema["additionalProperties"];
            if values.is_object() {
                return json!({"key": sample(values)});
            }
            let members = schema["properties"].as_object().into_iter().flatten();
            members
                .map(|(name, member)| (name.clone(), sample(member)))
                .collect()
        }
        "array" => json!([sample(&schema["items"])]),
        "string" => match (schema["enum"].as_array(), schema["format"].as_str()) {
            (Some(names), _) => names.last().unwrap().clone(),
            (None, Some("byte")) => json!("YQ=="),
            (None, Some("date-time")) => json!("2026-01-02T03:04:05Z"),
            (None, _) => json!("a"),
        },
        "integer" => json!(1),
        "number" => json!(0.5),
        "boolean" => json!(true),
        other => panic!("a schema of type {other}"),
    }
}

/// JSON pointers of all members of all objects within `value`.
fn members(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, member) in object {
                let at = format!("{at}/{name}");
                members(member, &at, found);
                found.push(at);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                members(element, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_of_the_schema_is_read_and_written_back() {
    fn check<K: Kind>(kind: &str) {
        let object = full(kind);
        let mut written = serde_json::to_value(read::<K>(&object)).unwrap();
        assert_eq!(written["kind"], kind);
        written
            .as_object_mut()
            .unwrap()
            .retain(|name, _| name != "apiVersion" && name != "kind");
        assert_eq!(written, object);
    }
    for_each_kind!(check);
}

#[test]
fn null_means_that_a_field_is_not_set() {
    fn check<K: Kind>(kind: &str) {
        let object = full(kind);
        let mut fields = Vec::new();
        members(&object, "", &mut fields);
        for field in fields {
            // Kubernetes' own types, the members of a map, and the spec, without which there is
            // no object.
            if field.starts_with("/metadata")
                || field.contains("/conditions/")
                || field.ends_with("/key")
                || field == "/spec"
            {
                continue;
            }
            let (parent, name) = field.rsplit_once('/').unwrap();
            let mut nulled = object.clone();
            *nulled.pointer_mut(&field).unwrap() = Value::Null;
            let mut without = object.clone();
            without
                .pointer_mut(parent)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .remove(name);
            assert_eq!(read::<K>(&nulled), read::<K>(&without), "{kind}: {field}");
        }
    }
    for_each_kind!(check);
}

#[test]
fn what_is_not_set_is_not_written() {
    fn check<K: Kind>(kind: &str) {
        let bare = read::<K>(&json!({"metadata": {"name": "a"}, "spec": {}, "status": {}}));
        let written = serde_json::to_value(&bare).unwrap();
        assert_eq!(
            (&written["spec"], &written["status"]),
            (&json!({}), &json!({})),
            "{kind}"
        );
    }
    for_each_kind!(check);
}

#[test]
fn zero_values_are_not_written() {
    let destination: Destination = read(&json!({
        "metadata": {},
        "spec": {"kubeService": {"serviceType": "CLUSTER_IP", "region": "", "labels": {}}},
        "status": {"observedGeneration": 0, "appliedFederation": {"flatNetwork": false}},
    }));
    let written = serde_json::to_value(destination).unwrap();
    assert_eq!(written["spec"], json!({"kubeService": {}}));
    assert_eq!(written["status"], json!({"appliedFederation": {}}));
}

#[test]
fn a_member_of_a_one_of_is_written_even_when_it_is_zero() {
    let object = json!({"httpRequestMatchers": [{"uri": {"prefix": ""}}]});
    let policy: ferromesh_crds::TrafficPolicySpec = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(policy).unwrap(), object);
}

#[test]
fn a_percentage_of_zero_differs_from_none() {
    let fault = |percentage: Value| {
        let object = json!({"policy": {"faultInjection": {"percentage": percentage}}});
        let spec: ferromesh_crds::TrafficPolicySpec = serde_json::from_value(object).unwrap();
        spec.policy.unwrap().fault_injection.unwrap().percentage
    };
    assert_eq!(fault(json!(0)), Some(0.0));
    assert_eq!(fault(Value::Null), None);
}

#[test]
fn a_generation_may_be_quoted() {
    for (written, read_as) in [(json!("12"), 12), (json!(12), 12), (json!("-1"), -1)] {
        let mesh: Mesh = read(&json!({
            "metadata": {}, "spec": {}, "status": {"observedGeneration": written},
        }));
        assert_eq!(mesh.status.unwrap().observed_generation, read_as);
    }
    for wrong in [json!("12a"), json!(""), json!(1.5), json!(true)] {
        let object = json!({"metadata": {}, "spec": {}, "status": {"observedGeneration": wrong}});
        assert!(serde_json::from_value::<Mesh>(object).is_err());
    }
}

#[test]
fn an_enum_is_read_in_any_case_and_by_number() {
    fn tls_mode(written: &Value) -> Result<TlsMode, serde_json::Error> {
        let spec: ferromesh_crds::SettingsSpec =
            serde_json::from_value(json!({"mtls": {"istio": {"tlsMode": written}}}))?;
        Ok(spec.mtls.unwrap().istio.unwrap().tls_mode)
    }
    for written in [
        json!("ISTIO_MUTUAL"),
        json!("istio_mutual"),
        json!("Istio_Mutual"),
        json!(2),
    ] {
        assert_eq!(
            tls_mode(&written).unwrap(),
            TlsMode::IstioMutual,
            "{written}"
        );
    }
    assert_eq!(tls_mode(&Value::Null).unwrap(), TlsMode::Disable);
    let error = tls_mode(&json!("MUTUAL")).unwrap_err().to_string();
    assert!(
        error.contains("MUTUAL") && error.contains("`ISTIO_MUTUAL`"),
        "{error}"
    );
    for wrong in [
        json!(3),
        json!(-1),
        json!(4_294_967_296_u64),
        json!(true),
        json!({}),
    ] {
        assert!(tls_mode(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_numbers_of_enums_are_those_of_the_compatible_api() {
    use ApprovalState::{Accepted, Failed, Invalid, Pending};
    use ServiceType::{ClusterIp, ExternalName, LoadBalancer, NodePort};

    fn numbers<T: Copy + PartialEq + std::fmt::Debug>(read: impl Fn(u32) -> T, expected: &[T]) {
        for (number, expected) in (0..).zip(expected) {
            assert_eq!(read(number), *expected);
        }
    }
    let service = |number: u32| {
        let object = json!({"kubeService": {"serviceType": number}});
        let spec: ferromesh_crds::DestinationSpec = serde_json::from_value(object).unwrap();
        spec.kube_service.unwrap().service_type
    };
    numbers(service, &[ClusterIp, NodePort, LoadBalancer, ExternalName]);
    let approval = |number: u32| {
        let object = json!({"state": number});
        let status: ferromesh_crds::TrafficPolicyStatus = serde_json::from_value(object).unwrap();
        status.state
    };
    numbers(approval, &[Pending, Accepted, Invalid, Failed]);
}

#[test]
fn an_enum_of_our_own_is_read_in_any_case() {
    let spec: ferromesh_crds::SettingsSpec =
        serde_json::from_value(json!({"admission": {"unresolvedReferences": "WARN"}})).unwrap();
    assert_eq!(
        spec.admission.unwrap().unresolved_references,
        UnresolvedReferences::Warn
    );
}

#[test]
fn objects_as_users_write_them_keep_all_they_say() {
    fn check<K: Kind>(text: &str) {
        let object: Value = serde_saphyr::from_str(text).unwrap();
        let written = serde_json::to_value(read::<K>(&object)).unwrap();
        assert_eq!(written, object);
    }
    check::<VirtualMesh>(include_str!("../manifests/virtual_mesh.yaml"));
    check::<TrafficPolicy>(include_str!("../manifests/traffic_policy_shift.yaml"));
    check::<TrafficPolicy>(include_str!("../manifests/traffic_policy_retries.yaml"));
    check::<AccessPolicy>(include_str!("../manifests/access_policy.yaml"));
    check::<Mesh>(include_str!("../manifests/mesh.yaml"));
    check::<Destination>(include_str!("../manifests/destination.yaml"));
    check::<Settings>(include_str!("../manifests/settings.yaml"));
    check::<KubernetesCluster>(include_str!("../manifests/kubernetes_cluster.yaml"));
    check::<IssuedCertificate>(include_str!("../manifests/issued_certificate.yaml"));
    check::<CertificateRequest>(include_str!("../manifests/certificate_request.yaml"));
    check::<PodBounceDirective>(include_str!("../manifests/pod_bounce_directive.yaml"));
}
