//! Who has set which field, as `metadata.managedFields` tells it (Kubernetes: `FieldsV1`).
//!
//! A tree has an entry `f:name` per field of a map, `k:{…}` per item of an associative list, `v:…` per
//! item of a set, `i:n` per position, and `.` for the thing itself. A leaf is a whole value.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

/// A tree of fields, by their elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(BTreeMap<String, Fields>);

impl Fields {
    /// The fields of an object, from the entries that `of` selects. Those of subresources are left out.
    pub(crate) fn of<'a>(
        entries: impl IntoIterator<Item = &'a ManagedFieldsEntry>,
        of: impl Fn(&ManagedFieldsEntry) -> bool,
    ) -> Self {
        let mut fields = Self::default();
        for entry in entries {
            let is_main = entry.subresource.as_deref().unwrap_or_default().is_empty();
            if let Some(tree) = entry.fields_v1.as_ref().filter(|_| is_main && of(entry)) {
                fields.add(&tree.0);
            }
        }
        fields
    }

    /// The fields below a field of a map.
    pub(crate) fn below(&self, field: &str) -> Option<&Self> {
        self.0.get(&format!("f:{field}"))
    }

    /// Adds those of a tree. The parser of JSON bounds its depth.
    fn add(&mut self, tree: &Value) {
        for (element, below) in tree.as_object().into_iter().flatten() {
            if element != "." {
                self.0.entry(element.clone()).or_default().add(below);
            }
        }
    }

    /// What of `value` is set in these fields.
    pub(crate) fn project(&self, value: &Value) -> Value {
        match value {
            _ if self.0.is_empty() => value.clone(),
            Value::Object(map) => {
                let set = self.0.iter().filter_map(|(element, below)| {
                    let name = element.strip_prefix("f:")?;
                    Some((name.to_owned(), below.project(map.get(name)?)))
                });
                set.collect()
            }
            Value::Array(items) => {
                let elements = Elements::of(self);
                let set = items.iter().enumerate().filter_map(|(position, item)| {
                    Some(elements.find(position, item)?.project(item))
                });
                set.collect()
            }
            _ => value.clone(),
        }
    }

    /// A merge patch that takes these fields away from a value as far as they are not in `wanted`; none
    /// if all of them are.
    ///
    /// Items cannot be taken out of a list by a merge patch, so that the list is put as it is wanted.
    pub(crate) fn surplus(&self, wanted: &Value) -> Option<Value> {
        match wanted {
            Value::Object(map) => {
                let mut patch = Map::new();
                for (element, below) in &self.0 {
                    let Some(name) = element.strip_prefix("f:") else {
                        continue;
                    };
                    match map.get(name).filter(|value| !value.is_null()) {
                        None => drop(patch.insert(name.to_owned(), Value::Null)),
                        Some(value) => {
                            let below = below.surplus(value);
                            patch.extend(below.map(|below| (name.to_owned(), below)));
                        }
                    }
                }
                (!patch.is_empty()).then_some(Value::Object(patch))
            }
            Value::Array(items) => {
                let elements = Elements::of(self);
                let mut wanted_elements = BTreeSet::new();
                let has_more = items.iter().enumerate().any(|(position, item)| {
                    let found = elements.find_element(position, item);
                    found.is_some_and(|(element, below)| {
                        wanted_elements.insert(element);
                        below.surplus(item).is_some()
                    })
                });
                let is_surplus = has_more || wanted_elements.len() < self.0.len();
                is_surplus.then(|| wanted.clone())
            }
            _ => None,
        }
    }
}

/// The items of a list that a tree speaks of, made ready to be found.
struct Elements<'a> {
    /// The fields by which items are told apart.
    keys: Vec<String>,
    /// By the values of those fields, or by the item itself.
    by_value: BTreeMap<String, (&'a str, &'a Fields)>,
    by_position: BTreeMap<usize, (&'a str, &'a Fields)>,
}

impl<'a> Elements<'a> {
    fn of(fields: &'a Fields) -> Self {
        let mut elements = Self {
            keys: Vec::new(),
            by_value: BTreeMap::new(),
            by_position: BTreeMap::new(),
        };
        for (element, below) in &fields.0 {
            let entry = (element.as_str(), below);
            match element.split_at_checked(2) {
                Some(("k:", key)) => {
                    let Ok(key) = serde_json::from_str::<BTreeMap<String, Value>>(key) else {
                        continue;
                    };
                    let value = key
                        .values()
                        .map(Value::to_string)
                        .collect::<Vec<_>>()
                        .join(",");
                    elements.keys = key.into_keys().collect();
                    elements.by_value.insert(value, entry);
                }
                Some(("v:", value)) => {
                    elements.by_value.insert(value.to_owned(), entry);
                }
                Some(("i:", position)) => {
                    elements
                        .by_position
                        .extend(position.parse().map(|at: usize| (at, entry)));
                }
                _ => {}
            }
        }
        elements
    }

    fn find(&self, position: usize, item: &Value) -> Option<&'a Fields> {
        self.find_element(position, item).map(|(_, below)| below)
    }

    fn find_element(&self, position: usize, item: &Value) -> Option<(&'a str, &'a Fields)> {
        let value = if self.keys.is_empty() {
            item.to_string()
        } else {
            let values = self.keys.iter().map(|key| item[key].to_string());
            values.collect::<Vec<_>>().join(",")
        };
        let found = self.by_value.get(&value);
        found.or_else(|| self.by_position.get(&position)).copied()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
    use serde_json::json;

    use super::*;

    fn fields(trees: &[Value]) -> Fields {
        let entries: Vec<_> = trees
            .iter()
            .map(|tree| ManagedFieldsEntry {
                fields_v1: Some(FieldsV1(tree.clone())),
                ..ManagedFieldsEntry::default()
            })
            .collect();
        Fields::of(&entries, |_| true)
    }

    #[test]
    fn a_projection_leaves_out_what_nobody_has_set() {
        let set = fields(&[json!({ "f:a": {}, "f:b": { ".": {}, "f:c": {} }, "f:gone": {} })]);
        let value = json!({ "a": [1, 2], "b": { "c": 1, "defaulted": 2 }, "defaulted": 3 });
        assert_eq!(set.project(&value), json!({ "a": [1, 2], "b": { "c": 1 } }));
    }

    #[test]
    fn a_projection_finds_the_items_of_associative_lists_and_sets() {
        let set = fields(&[json!({
            "f:ports": { r#"k:{"name":"http"}"#: { ".": {}, "f:name": {}, "f:number": {} } },
            "f:tags": { r#"v:"b""#: {} },
        })]);
        let value = json!({
            "ports": [{ "name": "grpc", "number": 1 }, { "name": "http", "number": 2, "defaulted": 3 }],
            "tags": ["a", "b"],
        });
        let projected = json!({ "ports": [{ "name": "http", "number": 2 }], "tags": ["b"] });
        assert_eq!(set.project(&value), projected);
    }

    #[test]
    fn surplus_is_what_somebody_has_set_and_nobody_wants() {
        let set = fields(&[
            json!({ "f:hosts": {}, "f:tls": { "f:mode": {}, "f:sni": {} } }),
            json!({ "f:exportTo": {} }),
        ]);
        let wanted = json!({ "hosts": ["a"], "tls": { "mode": "SIMPLE" } });
        let patch = json!({ "exportTo": null, "tls": { "sni": null } });
        assert_eq!(set.surplus(&wanted), Some(patch));
        assert_eq!(fields(&[json!({ "f:hosts": {} })]).surplus(&wanted), None);
    }

    #[test]
    fn an_item_that_nobody_wants_puts_its_whole_list_as_it_is_wanted() {
        let wanted = json!({ "ports": [{ "name": "http", "number": 1 }] });
        let shared = json!({ "f:ports": { r#"k:{"name":"http"}"#: { "f:number": {} } } });
        assert_eq!(fields(&[shared]).surplus(&wanted), None);
        for tree in [
            json!({ "f:ports": { r#"k:{"name":"more"}"#: { "f:name": {} } } }),
            json!({ "f:ports": { r#"k:{"name":"http"}"#: { "f:targetPort": {} } } }),
        ] {
            assert_eq!(fields(&[tree]).surplus(&wanted), Some(wanted.clone()));
        }
    }

    #[test]
    fn entries_of_subresources_do_not_count() {
        let entry = ManagedFieldsEntry {
            fields_v1: Some(FieldsV1(json!({ "f:spec": {} }))),
            subresource: Some("status".to_owned()),
            ..ManagedFieldsEntry::default()
        };
        assert_eq!(Fields::of(&[entry], |_| true), Fields::default());
    }
}
