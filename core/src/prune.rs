//! What an API server would drop of an object before anybody sees it.
//!
//! A field that the schema does not know is pruned, and what is left may mean something else
//! altogether: a selector with a misspelt field selects everything. Whoever has an object as it was
//! written, in a file or in the annotation of `kubectl apply`, can ask here.

use std::collections::BTreeMap;
use std::fmt;

use ferromesh_crds as crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// The fields of our kinds, as an API server knows them. Making it takes milliseconds.
#[derive(Clone, Debug)]
pub struct Fields(BTreeMap<(String, String), JSONSchemaProps>);

/// A field that would be dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The kind that has no such field.
    pub kind: String,
    /// Where it is written, as one would write it: `spec.policy.retries.atempts`.
    pub path: String,
    /// What its author may have meant, as it would be written in its place.
    pub suggestion: Option<String>,
}

impl Fields {
    /// The fields of all our kinds.
    pub fn new() -> Self {
        let schemas = crds::all().into_iter().filter_map(|definition| {
            let spec = definition.spec;
            let schema = spec.versions.into_iter().next()?.schema?;
            Some(((spec.group, spec.names.kind), schema.open_api_v3_schema?))
        });
        Self(schemas.collect())
    }

    /// What of an object's spec would be dropped, in the order in which it is found. Nothing of an
    /// object of another kind.
    ///
    /// Kubernetes: custom resources, "Field pruning".
    pub fn dropped(&self, object: &Value) -> Vec<Dropped> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("");
        let group = text("apiVersion")
            .split_once('/')
            .map_or("", |(group, _)| group);
        let mut walk = Walk {
            kind: text("kind"),
            path: "spec".to_owned(),
            dropped: Vec::new(),
        };
        let schema = self.0.get(&(group.to_owned(), text("kind").to_owned()));
        let spec = schema
            .and_then(|schema| schema.properties.as_ref()?.get("spec"))
            .zip(object.get("spec"));
        if let Some((schema, spec)) = spec {
            walk.value(spec, schema);
        }
        walk.dropped
    }
}

impl Default for Fields {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            path,
            suggestion,
        } = self;
        write!(f, "{path} is no field of {kind} and is dropped")?;
        match suggestion {
            Some(suggestion) => write!(f, "; did you mean {suggestion}?"),
            None => Ok(()),
        }
    }
}

/// An object, looked through from the top.
struct Walk<'a> {
    kind: &'a str,
    path: String,
    dropped: Vec<Dropped>,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value, schema: &JSONSchemaProps) {
        let length = self.path.len();
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.path.extend([".", name]);
                    self.field(name, value, schema);
                    self.path.truncate(length);
                }
            }
            Value::Array(items) => {
                if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
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
        let known = parent.properties.as_ref().and_then(|it| it.get(name));
        let others = parent.additional_properties.as_ref();
        match (known, others) {
            (Some(schema), _) => self.value(value, schema),
            (None, Some(JSONSchemaPropsOrBool::Schema(schema))) => self.value(value, schema),
            (None, Some(JSONSchemaPropsOrBool::Bool(true))) => {}
            (None, _) if parent.x_kubernetes_preserve_unknown_fields == Some(true) => {}
            (None, _) => self.dropped.push(Dropped {
                kind: self.kind.to_owned(),
                path: self.path.clone(),
                suggestion: suggestion(name, parent),
            }),
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
    let tolerance = (name.len() / 3).max(1);
    fields
        .keys()
        .map(|field| (edits(name, field), field))
        .filter(|(edits, _)| *edits <= tolerance)
        .min()
        .map(|(_, field)| field.clone())
}

/// How many letters have to be added, removed or replaced to make one name of the other, letter
/// case aside (Levenshtein).
fn edits(from: &str, to: &str) -> usize {
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

    #[expect(
        clippy::needless_pass_by_value,
        reason = "a literal is made for it alone"
    )]
    fn policy(spec: Value) -> Value {
        json!({
            "apiVersion": "networking.mesh.gloo.solo.io/v1",
            "kind": "TrafficPolicy",
            "metadata": {"name": "p", "namespace": "n", "anything": 1},
            "spec": spec,
        })
    }

    fn said(object: &Value) -> Vec<String> {
        let dropped = Fields::new().dropped(object);
        dropped.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_the_schema_does_not_know_is_dropped() {
        let spec = json!({
            "sourceSelector": [{}, {"kubeWorkloadMatcher": {"lables": {"a": "b"}}}],
            "destinationSelectors": [],
            "policy": {"retries": {"attempts": 3, "atempts": 4}, "unheardOf": 1},
            "requestTimeout": "1s",
        });
        assert_eq!(
            said(&policy(spec)),
            [
                "spec.destinationSelectors is no field of TrafficPolicy and is dropped; did you mean destinationSelector?",
                "spec.policy.retries.atempts is no field of TrafficPolicy and is dropped; did you mean attempts?",
                "spec.policy.unheardOf is no field of TrafficPolicy and is dropped",
                "spec.requestTimeout is no field of TrafficPolicy and is dropped; did you mean policy.requestTimeout?",
                "spec.sourceSelector[1].kubeWorkloadMatcher.lables is no field of TrafficPolicy and is dropped; did you mean labels?",
            ]
        );
    }

    #[test]
    fn keys_of_maps_are_data() {
        let spec = json!({"destinationSelector": [{"kubeServiceMatcher": {"labels": {"a": "b"}}}]});
        assert_eq!(said(&policy(spec)), [""; 0]);
    }

    #[test]
    fn of_other_kinds_nothing_is_known() {
        let service = json!({"apiVersion": "v1", "kind": "Service", "spec": {"porst": []}});
        assert_eq!(said(&service), [""; 0]);
    }
}
