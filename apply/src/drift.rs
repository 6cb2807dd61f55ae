//! Whether an object stands as it is wanted, told from two digests.
//!
//! The digest of a wanted object is over its labels, its annotations and its spec. That of a standing
//! object is over what `managedFields` says has been set: of labels and annotations what *we* have set,
//! since others may add theirs; of the spec what *anybody* has set, since a field that somebody adds to
//! our spec changes what the object does. What the API server adds by itself has been set by nobody, so
//! that defaults and the order of maps do not count, and nothing has to be remembered: after a restart
//! equal objects are seen to be equal.
//!
//! Where a webhook, or a default within an atomic list, makes something else of what we write, the two
//! digests differ. Then the digest of the object as it came back from our own write counts as equal
//! too; the inventory remembers it.

use std::fmt::{self, Write as _};

use ferromesh_runtime::fingerprint::Fingerprint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::{fields::Fields, object::Desired};

/// An object of ours as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) uid: Box<str>,
    pub(crate) version: Box<str>,
    pub(crate) digest: Fingerprint,
    /// It has been deleted, and finalizers keep it.
    pub(crate) is_terminating: bool,
}

/// The operation of server-side apply in `managedFields`.
const APPLY: &str = "Apply";

impl Standing {
    /// Reduces an object that `manager` has applied.
    pub(crate) fn of(object: &DynamicObject, manager: &str) -> Self {
        let meta = &object.metadata;
        let entries = meta.managed_fields.as_deref().unwrap_or_default();
        let ours = Fields::of(entries, |entry| is_ours(entry, manager));
        let everybody = Fields::of(entries, |_| true);
        let of_metadata = |field: &str, map: Option<&_>| {
            let set = ours.below("metadata").and_then(|meta| meta.below(field));
            match (set, map) {
                (Some(set), Some(map)) => set.project(&json!(map)),
                _ => json!({}),
            }
        };
        let spec = match everybody.below("spec") {
            Some(set) => set.project(&object.data["spec"]),
            None => Value::Null,
        };
        Self {
            uid: text(meta.uid.as_deref()),
            version: text(meta.resource_version.as_deref()),
            digest: digest(
                &of_metadata("labels", meta.labels.as_ref()),
                &of_metadata("annotations", meta.annotations.as_ref()),
                &spec,
            ),
            is_terminating: meta.deletion_timestamp.is_some(),
        }
    }

    /// Whether this was seen before `other`: versions of one API server count upwards
    /// (Kubernetes: KEP-5504), in as many digits as it takes.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        let is_number = |version: &str| version.bytes().all(|byte| byte.is_ascii_digit());
        is_number(&self.version)
            && is_number(&other.version)
            && (self.version.len(), &self.version) < (other.version.len(), &other.version)
    }
}

/// The digest of an object as it is wanted.
pub(crate) fn wanted(desired: &Desired) -> Fingerprint {
    let map = |map: &_| json!(map);
    digest(
        &map(&desired.labels),
        &map(&desired.annotations),
        &desired.spec,
    )
}

/// A merge patch that takes away from an object what others have set in its spec and nobody wants.
pub(crate) fn surplus(object: &DynamicObject, manager: &str, desired: &Desired) -> Option<Value> {
    let entries = object
        .metadata
        .managed_fields
        .as_deref()
        .unwrap_or_default();
    let others = Fields::of(entries, |entry| !is_ours(entry, manager));
    let spec = others.below("spec")?.surplus(&desired.spec)?;
    Some(json!({
        "metadata": {
            "uid": object.metadata.uid,
            "resourceVersion": object.metadata.resource_version,
        },
        "spec": spec,
    }))
}

/// The manager that changed an object last, if it is not `manager`.
pub(crate) fn last_other(object: &DynamicObject, manager: &str) -> Option<String> {
    let entries = object
        .metadata
        .managed_fields
        .as_deref()
        .unwrap_or_default();
    let is_main =
        |entry: &&ManagedFieldsEntry| entry.subresource.as_deref().unwrap_or("").is_empty();
    let others = entries
        .iter()
        .filter(is_main)
        .filter(|entry| !is_ours(entry, manager));
    let last = others.max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    last.and_then(|entry| entry.manager.clone())
}

/// The path of the first thing that is wanted and that the object has otherwise; defaults may be added.
pub(crate) fn difference(desired: &Desired, object: &DynamicObject) -> Option<String> {
    let meta = &object.metadata;
    let [labels, annotations] = [&meta.labels, &meta.annotations].map(|map| json!(map));
    let wanted_labels = json!(desired.labels);
    let wanted_annotations = json!(desired.annotations);
    let pairs = [
        ("metadata.labels", &wanted_labels, &labels),
        ("metadata.annotations", &wanted_annotations, &annotations),
        ("spec", &desired.spec, &object.data["spec"]),
    ];
    pairs
        .into_iter()
        .find_map(|(path, wanted, standing)| missing(wanted, standing, path))
}

fn missing(wanted: &Value, standing: &Value, path: &str) -> Option<String> {
    match (wanted, standing) {
        (Value::Null, _) => None,
        (Value::Object(wanted), Value::Object(standing)) => {
            wanted.iter().find_map(|(name, wanted)| {
                let standing = standing.get(name).unwrap_or(&Value::Null);
                missing(wanted, standing, &format!("{path}.{name}"))
            })
        }
        (Value::Object(wanted), Value::Null) if wanted.is_empty() => None,
        (Value::Array(wanted), Value::Array(standing)) if wanted.len() == standing.len() => {
            let pairs = wanted.iter().zip(standing).enumerate();
            { pairs }.find_map(|(at, (wanted, standing))| {
                missing(wanted, standing, &format!("{path}[{at}]"))
            })
        }
        (wanted, standing) => {
            let text = |value| {
                let mut text = String::new();
                canonical(value, &mut text);
                text
            };
            (text(wanted) != text(standing)).then(|| path.to_owned())
        }
    }
}

fn is_ours(entry: &ManagedFieldsEntry, manager: &str) -> bool {
    entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some(APPLY)
}

fn text(text: Option<&str>) -> Box<str> {
    text.unwrap_or_default().into()
}

fn digest(labels: &Value, annotations: &Value, spec: &Value) -> Fingerprint {
    let pieces = [labels, annotations, spec].map(|value| {
        let mut text = String::new();
        canonical(value, &mut text);
        text
    });
    Fingerprint::of(pieces.iter().map(String::as_bytes))
}

/// JSON with sorted fields, without fields that are null, and with whole numbers as whole numbers.
fn canonical(value: &Value, text: &mut String) {
    written(value, text).expect("a string takes everything");
}

fn written(value: &Value, text: &mut String) -> fmt::Result {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().filter(|(_, value)| !value.is_null()).collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                write!(text, "{}:", Value::from(name.as_str()))?;
                written(value, text)?;
                text.push(',');
            }
            text.push('}');
            Ok(())
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                written(item, text)?;
                text.push(',');
            }
            text.push(']');
            Ok(())
        }
        Value::Number(number) => match number.as_f64().filter(|float| float.fract() == 0.0) {
            // An API server writes 1.0 as 1.
            Some(float) if number.is_f64() => write!(text, "{float:.0}"),
            _ => write!(text, "{number}"),
        },
        other => write!(text, "{other}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn desired(spec: Value) -> Desired {
        Desired {
            labels: BTreeMap::from([("owner".to_owned(), "us".to_owned())]),
            spec,
            ..Desired::default()
        }
    }

    fn object(spec: &Value, managed: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "g/v1", "kind": "K",
            "metadata": {
                "name": "a", "uid": "u", "resourceVersion": "7",
                "labels": { "owner": "us", "theirs": "1" }, "annotations": { "theirs": "1" },
                "managedFields": managed,
            },
            "spec": spec,
        }))
        .unwrap()
    }

    fn applied(spec: &Value) -> Value {
        json!({
            "manager": "us", "operation": "Apply", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:metadata": { "f:labels": { "f:owner": {} } }, "f:spec": spec },
        })
    }

    fn updated(spec: &Value) -> Value {
        let set = json!({ "f:metadata": { "f:annotations": { "f:theirs": {} } }, "f:spec": spec });
        json!({
            "manager": "them", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": set,
        })
    }

    fn is_as_wanted(wanted: &Value, standing: &Value, managed: &Value) -> bool {
        super::wanted(&desired(wanted.clone()))
            == Standing::of(&object(standing, managed), "us").digest
    }

    #[test]
    fn defaults_and_labels_of_others_are_no_drift() {
        let managed = json!([
            applied(&json!({ "f:a": {}, "f:b": { "f:c": {} } })),
            updated(&json!({}))
        ]);
        let standing = json!({ "b": { "defaulted": true, "c": 1 }, "a": [1], "defaulted": {} });
        assert!(is_as_wanted(
            &json!({ "a": [1], "b": { "c": 1.0 } }),
            &standing,
            &managed
        ));
    }

    #[test]
    fn a_changed_field_and_an_added_field_of_the_spec_are_drift() {
        let taken = json!([
            applied(&json!({ "f:a": {} })),
            updated(&json!({ "f:b": {} }))
        ]);
        assert!(!is_as_wanted(
            &json!({ "a": 1, "b": 1 }),
            &json!({ "a": 1, "b": 2 }),
            &taken
        ));
        let added = json!([
            applied(&json!({ "f:a": {} })),
            updated(&json!({ "f:b": {} }))
        ]);
        assert!(!is_as_wanted(
            &json!({ "a": 1 }),
            &json!({ "a": 1, "b": 2 }),
            &added
        ));
    }

    #[test]
    fn a_field_that_is_no_longer_wanted_is_drift() {
        let managed = json!([applied(&json!({ "f:a": {}, "f:b": {} }))]);
        assert!(!is_as_wanted(
            &json!({ "a": 1 }),
            &json!({ "a": 1, "b": 2 }),
            &managed
        ));
    }

    #[test]
    fn an_object_whose_managers_are_forgotten_is_drift() {
        assert!(!is_as_wanted(
            &json!({ "a": 1 }),
            &json!({ "a": 1 }),
            &json!([])
        ));
    }

    #[test]
    fn an_empty_spec_to_which_somebody_added_a_field_is_drift() {
        assert!(is_as_wanted(
            &json!({}),
            &json!({}),
            &json!([applied(&json!({}))])
        ));
        let added = json!([applied(&json!({})), updated(&json!({ "f:action": {} }))]);
        assert!(!is_as_wanted(
            &json!({}),
            &json!({ "action": "AUDIT" }),
            &added
        ));
    }

    #[test]
    fn what_the_api_server_keeps_otherwise_is_named_by_its_path() {
        let wanted = desired(json!({ "http": [{ "route": [{ "weight": 1 }] }], "n": null }));
        let same = object(
            &json!({ "http": [{ "route": [{ "weight": 1, "d": 2 }] }] }),
            &json!([]),
        );
        assert_eq!(difference(&wanted, &same), None);
        let other = object(
            &json!({ "http": [{ "route": [{ "weight": 2 }] }] }),
            &json!([]),
        );
        let path = "spec.http[0].route[0].weight";
        assert_eq!(difference(&wanted, &other).as_deref(), Some(path));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let at = |version: &str| Standing {
            version: version.into(),
            ..Standing::of(&object(&json!({}), &json!([])), "us")
        };
        assert!(at("9").is_before(&at("10")));
        assert!(!at("10").is_before(&at("9")));
        assert!(!at("9").is_before(&at("x1")));
    }
}
