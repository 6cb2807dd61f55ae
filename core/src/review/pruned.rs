//! Fields that an API server drops because the schema does not know them.
//!
//! What is left may mean something else altogether: a selector with a misspelt field selects
//! everything. By the time an API server asks they are gone; what `kubectl apply` was given stands
//! in an annotation, though. In a file they still stand where they were written.

use std::collections::BTreeSet;
use std::fmt;

use ferromesh_crds::meta::LAST_APPLIED_ANNOTATION;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::Value;

use super::candidate::is_said_by_people;
use super::schema::{self, Member};
use super::{Remark, Weight};
use crate::kinds::Kind;

/// Fields that are called by name before the others are counted.
const NAMED: usize = 5;

/// A field that is dropped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Dropped {
    kind: Kind,
    /// Where it is written, as one would write it: `spec.policy.retries.atempts`.
    path: String,
    /// What its author may have meant, as it would be written in its place.
    suggestion: Option<String>,
}

/// What is to be said about fields that are dropped from an object of `kind`.
///
/// The annotation speaks of this change only if this change has written it: later edits by other
/// means leave it as it was. So `before`, the stored object, is looked at too.
pub(super) fn remarks(kind: Kind, object: &Value, before: Option<&Value>) -> Vec<Remark> {
    let Some(schema) = schema::of(kind) else {
        return Vec::new();
    };
    let applied = last_applied(object)
        .filter(|applied| before.and_then(last_applied) != Some(*applied))
        .and_then(|applied| serde_json::from_str(applied).ok());
    let mut walk = Walk {
        kind,
        path: String::new(),
        dropped: BTreeSet::new(),
    };
    for object in [Some(object), applied.as_ref()].into_iter().flatten() {
        walk.value(object, schema);
    }
    let more = walk.dropped.len().saturating_sub(NAMED);
    let named = walk.dropped.iter().take(NAMED).map(ToString::to_string);
    let counted = (more > 0).then(|| format!("{more} more unknown fields are dropped"));
    named
        .chain(counted)
        .map(|text| Remark::new(Weight::Dropped, text))
        .collect()
}

fn last_applied(object: &Value) -> Option<&str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(LAST_APPLIED_ANNOTATION)?
        .as_str()
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            path,
            suggestion,
        } = self;
        write!(f, "{path} is no field of {} and is dropped", kind.name())?;
        match suggestion {
            Some(suggestion) => write!(f, "; did you mean {suggestion}?"),
            None => Ok(()),
        }
    }
}

/// An object, looked through from the top.
struct Walk {
    kind: Kind,
    path: String,
    dropped: BTreeSet<Dropped>,
}

impl Walk {
    fn value(&mut self, value: &Value, schema: &JSONSchemaProps) {
        let length = self.path.len();
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if length == 0 && !is_said_by_people(name) {
                        continue;
                    }
                    let dot = if length == 0 { "" } else { "." };
                    self.path.extend([dot, name]);
                    self.field(name, value, schema);
                    self.path.truncate(length);
                }
            }
            Value::Array(items) => {
                if let Some(schema) = schema::item(schema) {
                    for (at, item) in items.iter().enumerate() {
                        self.path.extend(["[", &at.to_string(), "]"]);
                        self.value(item, schema);
                        self.path.truncate(length);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn field(&mut self, name: &str, value: &Value, parent: &JSONSchemaProps) {
        match schema::member(parent, name) {
            Member::Known(schema) => self.value(value, schema),
            Member::Any => {}
            Member::Unknown => {
                self.dropped.insert(Dropped {
                    kind: self.kind,
                    path: self.path.clone(),
                    suggestion: suggestion(name, parent),
                });
            }
        }
    }
}

/// What a name was probably meant for: a field that lies one level deeper, or one that is nearly
/// called so.
fn suggestion(name: &str, parent: &JSONSchemaProps) -> Option<String> {
    let fields = parent.properties.as_ref()?;
    let deeper = fields.iter().find(|(_, field)| {
        let below = field.properties.as_ref();
        below.is_some_and(|below| below.contains_key(name))
    });
    if let Some((field, _)) = deeper {
        return Some(format!("{field}.{name}"));
    }
    let tolerance = (name.chars().count() / 3).max(1);
    fields
        .keys()
        .filter(|field| field.len().abs_diff(name.len()) <= tolerance)
        .map(|field| (distance(name, field), field))
        .filter(|(distance, _)| *distance <= tolerance)
        .min()
        .map(|(_, field)| field.clone())
}

/// How many letters have to be added, removed or replaced to make one name of the other, letter
/// case aside (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let mut costs: Vec<usize> = (0..=to.len()).collect();
    for (row, from) in from.to_lowercase().chars().enumerate() {
        let mut above_left = row;
        costs[0] = row + 1;
        for (column, to) in to.iter().enumerate() {
            let above = costs[column + 1];
            let replaced = above_left + usize::from(from != *to);
            costs[column + 1] = replaced.min(above + 1).min(costs[column] + 1);
            above_left = above;
        }
    }
    costs[to.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(spec: &Value) -> Value {
        json!({
            "apiVersion": "networking.mesh.gloo.solo.io/v1",
            "kind": "TrafficPolicy",
            "metadata": {"name": "p", "namespace": "n", "anything": 1},
            "spec": spec,
        })
    }

    /// What `kubectl apply` of this spec has left, once its unknown fields were dropped.
    fn applied(spec: &Value) -> Value {
        let mut stored = policy(&json!({}));
        let annotations = json!({LAST_APPLIED_ANNOTATION: policy(spec).to_string()});
        stored["metadata"]["annotations"] = annotations;
        stored
    }

    fn texts(object: &Value, before: Option<&Value>) -> Vec<String> {
        let remarks = remarks(Kind::TrafficPolicy, object, before);
        remarks.into_iter().map(|remark| remark.text).collect()
    }

    #[test]
    fn a_field_that_the_schema_does_not_know_is_named_with_what_was_probably_meant() {
        for (spec, expected) in [
            (
                json!({"destinationSelectors": []}),
                "spec.destinationSelectors is no field of TrafficPolicy and is dropped; did you mean destinationSelector?",
            ),
            (
                json!({"sourceSelector": [{}, {"kubeWorkloadMatcher": {"lables": {"a": "b"}}}]}),
                "spec.sourceSelector[1].kubeWorkloadMatcher.lables is no field of TrafficPolicy and is dropped; did you mean labels?",
            ),
            (
                json!({"httpRequestMatchers": [{"prefix": "/a"}]}),
                "spec.httpRequestMatchers[0].prefix is no field of TrafficPolicy and is dropped; did you mean uri.prefix?",
            ),
            (
                json!({"requestTimeout": "1s"}),
                "spec.requestTimeout is no field of TrafficPolicy and is dropped; did you mean policy.requestTimeout?",
            ),
            (
                json!({"policy": {"unheardOf": 1}}),
                "spec.policy.unheardOf is no field of TrafficPolicy and is dropped",
            ),
        ] {
            assert_eq!(texts(&policy(&spec), None), [expected], "as it was written");
            assert_eq!(texts(&applied(&spec), None), [expected], "as it was stored");
        }
    }

    #[test]
    fn a_field_beside_the_spec_is_named() {
        let mut misspelt = policy(&json!({}));
        misspelt["specs"] = json!({});
        assert_eq!(
            texts(&misspelt, None),
            ["specs is no field of TrafficPolicy and is dropped; did you mean spec?"]
        );
    }

    #[test]
    fn what_the_schema_knows_is_passed_over_and_keys_of_maps_are_data() {
        let spec = json!({
            "destinationSelector": [{"kubeServiceMatcher": {"labels": {"a": "b"}}}],
            "policy": {"requestTimeout": "1s", "retries": null},
        });
        assert_eq!(texts(&policy(&spec), None), [""; 0]);
        assert_eq!(texts(&applied(&spec), None), [""; 0]);
    }

    #[test]
    fn an_annotation_that_this_change_did_not_write_says_nothing() {
        let before = applied(&json!({"requestTimeout": "1s"}));
        // `kubectl edit` leaves the annotation as it is.
        let mut after = before.clone();
        after["spec"] = json!({"policy": {}});
        assert_eq!(texts(&after, Some(&before)), [""; 0]);
        assert_eq!(texts(&after, None).len(), 1);
    }

    #[test]
    fn an_annotation_that_is_no_object_says_nothing() {
        for text in ["", "[]", "nonsense", "{\"spec\": "] {
            let mut object = policy(&json!({}));
            object["metadata"]["annotations"] = json!({LAST_APPLIED_ANNOTATION: text});
            assert_eq!(texts(&object, None), [""; 0], "{text}");
        }
    }

    #[test]
    fn many_dropped_fields_are_counted() {
        let spec = json!({"a1": 1, "a2": 1, "a3": 1, "a4": 1, "a5": 1, "a6": 1, "a7": 1});
        let texts = texts(&applied(&spec), None);
        assert_eq!(texts.len(), 6);
        assert_eq!(texts[5], "2 more unknown fields are dropped");
    }

    #[test]
    fn distances_count_letters() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("labels", "label", 1),
            ("Labels", "labels", 0),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
            assert_eq!(distance(right, left), expected, "{right} {left}");
        }
    }
}
