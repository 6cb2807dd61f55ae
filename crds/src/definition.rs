//! All kinds, as an API server is told about them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube_core::CustomResourceExt;
use serde_json::json;

use crate::condition::{Reason, Status, Type};
use crate::{
    AccessPolicy, CertificateRequest, Destination, IssuedCertificate, KubernetesCluster, Mesh,
    PodBounceDirective, Settings, TrafficPolicy, VirtualMesh, Workload,
};

/// Labels by which people find our definitions.
const LABELS: [(&str, &str); 2] = [
    ("app", "gloo-mesh"),
    ("app.kubernetes.io/name", "gloo-mesh"),
];

/// The definitions of all kinds: what the management cluster needs.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut definitions = managed();
    definitions.extend([
        definition::<Mesh>(),
        definition::<Workload>(),
        definition::<Destination>(),
        definition::<TrafficPolicy>(),
        definition::<AccessPolicy>(),
        definition::<VirtualMesh>(),
        definition::<KubernetesCluster>(),
        definition::<Settings>(),
    ]);
    definitions
}

/// The definitions that a managed cluster needs: the kinds of a certificate's life.
pub fn managed() -> Vec<CustomResourceDefinition> {
    vec![
        definition::<IssuedCertificate>(),
        definition::<CertificateRequest>(),
        definition::<PodBounceDirective>(),
    ]
}

/// The definition of one kind, with what the derive cannot say.
fn definition<K: CustomResourceExt>() -> CustomResourceDefinition {
    let mut definition = K::crd();
    definition.metadata.labels = Some(
        LABELS
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    );
    for version in &mut definition.spec.versions {
        let schema = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut());
        if let Some(schema) = schema {
            visit(schema, &forget_null);
            if let Some(status) = schema
                .properties
                .as_mut()
                .and_then(|all| all.get_mut("status"))
            {
                visit(status, &forget_rules);
                begin(&definition.spec.names.kind, status);
            }
        }
    }
    definition
}

/// The API server drops a `null` where the schema does not allow one, which is how it comes to mean
/// "not set"; where the schema allows it, it is stored, and rules have to know it.
fn forget_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
}

/// A status repeats what was judged when it was stored. To judge it again could only lose the
/// report on an object that was stored before a rule came.
fn forget_rules(schema: &mut JSONSchemaProps) {
    schema.x_kubernetes_validations = None;
    schema.minimum = None;
    schema.maximum = None;
    schema.min_length = None;
    schema.max_length = None;
    schema.max_items = None;
    schema.max_properties = None;
    schema.pattern = None;
}

/// What a status says before anybody has looked at the object. Whoever waits for it goes by that (kstatus):
/// without it, an object of which nothing is said would count as one that is all right.
fn begin(kind: &str, status: &mut JSONSchemaProps) {
    let (status_at_first, conditions_at_first) = match kind {
        "AccessPolicy" | "Settings" | "TrafficPolicy" | "VirtualMesh" => {
            (json!({ "observedGeneration": -1 }), None)
        }
        // Its status is begun by registration, and speaks of no generation.
        "KubernetesCluster" => {
            let ready = json!({
                "type": Type::Ready.as_str(),
                "status": Status::Unknown.as_str(),
                "reason": Reason::Pending.as_str(),
                "message": "nobody has looked at it yet",
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            });
            (json!({}), Some(json!([ready])))
        }
        _ => return,
    };
    status.default = Some(JSON(status_at_first));
    let properties = status.properties.as_mut();
    if let Some(conditions) = properties.and_then(|all| all.get_mut("conditions")) {
        conditions.default = conditions_at_first.map(JSON);
    }
}

/// Applies `change` to a schema and everything in it.
fn visit(schema: &mut JSONSchemaProps, change: &impl Fn(&mut JSONSchemaProps)) {
    change(schema);
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        visit(property, change);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        visit(items, change);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        visit(values, change);
    }
}
