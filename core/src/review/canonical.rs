//! Canonical forms, written before an object is judged.
//!
//! Nothing is rewritten that the schema takes as it is: a value that differs from what its author
//! applied would look like drift to whoever applies it again and again. What is left are the
//! leniencies of protobuf's JSON that a schema cannot express, and that would be refused
//! otherwise: the name of an enum value in another letter case, its number, and a number as a
//! string. There are no defaults to write: whatever a field that is left out stands for, it goes
//! on standing for as the fleet changes.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::Value;

use super::schema::{self, Member};
use crate::kinds::Kind;

/// A value that is to stand in the place of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    /// The way to its place: names of fields, and positions in lists.
    pub path: Vec<String>,
    /// The canonical form.
    pub value: Value,
}

/// Most replacements in one object. Of what is left the API server says that it does not fit the schema.
const MAX_REPLACEMENTS: usize = 1_000;

/// What has to be replaced in an object of `kind` so that it is in canonical form: the first thousand places.
pub fn canonical(kind: Kind, object: &Value) -> Vec<Replacement> {
    let mut replacements = Vec::new();
    if let (Some(schema), Some(spec)) = (schema::of(kind), object.get("spec"))
        && let Member::Known(schema) = schema::member(schema, "spec")
    {
        let mut path = vec!["spec".to_owned()];
        visit(&mut replacements, &mut path, spec, schema);
    }
    replacements
}

fn visit(
    replacements: &mut Vec<Replacement>,
    path: &mut Vec<String>,
    value: &Value,
    schema: &JSONSchemaProps,
) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if let Member::Known(schema) = schema::member(schema, name) {
                    path.push(name.clone());
                    visit(replacements, path, value, schema);
                    path.pop();
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema::item(schema) {
                for (at, value) in items.iter().enumerate() {
                    path.push(at.to_string());
                    visit(replacements, path, value, schema);
                    path.pop();
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            if replacements.len() < MAX_REPLACEMENTS
                && let Some(value) = form(value, schema)
            {
                let path = path.clone();
                replacements.push(Replacement { path, value });
            }
        }
    }
}

/// The canonical form of a value, where it has another.
fn form(value: &Value, schema: &JSONSchemaProps) -> Option<Value> {
    if let Some(names) = &schema.enum_ {
        let mut names = names.iter().map(|name| &name.0);
        return match value {
            Value::String(written) => names
                .filter_map(Value::as_str)
                .find(|name| name.eq_ignore_ascii_case(written))
                .filter(|name| name != written)
                .map(Value::from),
            Value::Number(number) => {
                let at = usize::try_from(number.as_u64()?).ok()?;
                names.nth(at).cloned()
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
    }
    if schema.type_.as_deref() == Some("integer") {
        return value.as_str()?.parse::<i64>().ok().map(Value::from);
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Object;

    fn traffic_policy(policy: &Value) -> Value {
        json!({
            "apiVersion": "networking.mesh.gloo.solo.io/v1",
            "kind": "TrafficPolicy",
            "metadata": {"name": "a", "namespace": "gloo-mesh"},
            "spec": {"policy": policy},
        })
    }

    fn patched(object: &Value) -> Value {
        let mut patched = object.clone();
        for Replacement { path, value } in canonical(Kind::TrafficPolicy, object) {
            let pointer = format!("/{}", path.join("/"));
            *patched.pointer_mut(&pointer).unwrap() = value;
        }
        patched
    }

    #[test]
    fn lenient_forms_become_canonical_and_read_the_same() {
        for (written, stored) in [
            (
                json!({"mtls": {"istio": {"tlsMode": "istio_mutual"}}}),
                json!({"mtls": {"istio": {"tlsMode": "ISTIO_MUTUAL"}}}),
            ),
            (
                json!({"mtls": {"istio": {"tlsMode": 0}}}),
                json!({"mtls": {"istio": {"tlsMode": "DISABLE"}}}),
            ),
            (
                json!({"trafficShift": {"destinations": [{"weight": 1}, {"weight": "99"}]}}),
                json!({"trafficShift": {"destinations": [{"weight": 1}, {"weight": 99}]}}),
            ),
        ] {
            let (written, stored) = (traffic_policy(&written), traffic_policy(&stored));
            assert_eq!(patched(&written), stored);
            let rejections = |object: &Value| match Kind::TrafficPolicy.read(object, "") {
                Ok(Object::TrafficPolicy(policy)) => {
                    (policy.actions.clone(), policy.rejections.clone())
                }
                other => panic!("{other:?}"),
            };
            // Some of it is lenient on the wire and some only here: what both read is the same.
            if Kind::TrafficPolicy.read(&written, "").is_ok() {
                assert_eq!(rejections(&written), rejections(&stored));
            }
        }
    }

    #[test]
    fn what_is_canonical_or_means_nothing_is_left_as_it_is() {
        for policy in [
            json!({}),
            json!({"requestTimeout": "0.5s", "retries": {"attempts": 2}}),
            json!({"mtls": {"istio": {"tlsMode": "DISABLE"}}}),
            json!({"mtls": {"istio": {"tlsMode": "nonsense"}}}),
            json!({"mtls": {"istio": {"tlsMode": 17}}}),
            json!({"retries": {"attempts": "many"}}),
            json!({"faultInjection": {"percentage": 50}}),
            json!([{"mtls": 1}]),
        ] {
            let object = traffic_policy(&policy);
            assert_eq!(canonical(Kind::TrafficPolicy, &object), [], "{policy}");
        }
    }

    #[test]
    fn a_second_time_changes_nothing() {
        let object = traffic_policy(&json!({
            "mtls": {"istio": {"tlsMode": "simple"}},
            "retries": {"attempts": "3"},
        }));
        let once = patched(&object);
        assert_ne!(once, object);
        assert_eq!(canonical(Kind::TrafficPolicy, &once), []);
    }

    #[test]
    fn no_more_is_replaced_than_an_answer_holds() {
        let lenient = vec![json!({"weight": "1"}); MAX_REPLACEMENTS + 1];
        let object = traffic_policy(&json!({"trafficShift": {"destinations": lenient}}));
        let replacements = canonical(Kind::TrafficPolicy, &object);
        assert_eq!(replacements.len(), MAX_REPLACEMENTS);
    }

    #[test]
    fn kinds_that_are_not_ours_and_objects_without_spec_are_left_alone() {
        assert_eq!(canonical(Kind::Pod, &json!({"spec": {}})), []);
        assert_eq!(canonical(Kind::Settings, &json!({})), []);
    }
}
