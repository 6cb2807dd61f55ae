//! Who set which field: what server-side apply keeps in `metadata.managedFields`, and how it merges.
//!
//! Maps are granular, lists are atomic unless a kind says by which fields their items are told apart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Elements as in `FieldsV1`: `f:name` of a map, `k:{…}` of an associative list.
pub(super) type Path = Vec<String>;

/// Paths of fields.
pub(super) type Set = BTreeSet<Path>;

/// Associative lists: the path with dots, and the field that tells items apart.
pub(super) type Lists = BTreeMap<String, String>;

/// Manager, operation and subresource.
pub(super) type Manager = (String, &'static str, &'static str);

/// Who set which field, and in which version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Managers(BTreeMap<Manager, (String, Set)>);

/// Fields that a manager would take away from others: theirs and the path.
pub(super) struct Conflicts(pub(super) Vec<(String, String)>);

pub(super) const APPLY: &str = "Apply";
pub(super) const UPDATE: &str = "Update";

impl Managers {
    /// Takes what `applied` says into `live`, as manager `by`.
    pub(super) fn apply(
        &mut self,
        by: Manager,
        version: &str,
        live: &Value,
        applied: &Value,
        lists: &Lists,
        is_forced: bool,
    ) -> Result<Value, Conflicts> {
        if self.0.is_empty() && !leaves(live, lists).is_empty() {
            let before = ("before-first-apply".to_owned(), UPDATE, "");
            self.0
                .insert(before, (version.to_owned(), leaves(live, lists)));
        }
        let wanted = leaves(applied, lists);
        let mut conflicts = Vec::new();
        for (manager, (_, owned)) in self.0.iter_mut().filter(|(manager, _)| **manager != by) {
            let taken: Vec<Path> = owned
                .intersection(&wanted)
                .filter(|path| at(live, path) != at(applied, path))
                .cloned()
                .collect();
            for path in taken {
                conflicts.push((manager.0.clone(), dotted(&path)));
                owned.remove(&path);
            }
        }
        if !is_forced && !conflicts.is_empty() {
            return Err(Conflicts(conflicts));
        }
        let mut merged = merge(live, applied, lists, "");
        let before = self.0.remove(&by).map(|(_, owned)| owned);
        // An item goes before its fields, as long as it still has its key.
        let dropped: Set = &before.unwrap_or_default() - &wanted;
        for path in &dropped {
            // A map that was empty, and has fields now, has not gone.
            let has_fields = wanted.iter().any(|it| it.starts_with(path));
            if !has_fields && !self.0.values().any(|(_, owned)| owned.contains(path)) {
                self.remove(&mut merged, path, &wanted);
            }
        }
        self.0.insert(by, (version.to_owned(), wanted));
        self.0.retain(|_, (_, owned)| !owned.is_empty());
        Ok(merged)
    }

    /// Notes that `by` has turned `live` into `new`.
    pub(super) fn update(
        &mut self,
        by: Manager,
        version: &str,
        live: &Value,
        new: &Value,
        lists: &Lists,
    ) {
        // What nobody is known to have set stays so until the first apply.
        if self.0.is_empty() && !live.is_null() {
            return;
        }
        let changed: Set = leaves(new, lists)
            .into_iter()
            .filter(|path| at(live, path) != at(new, path))
            .collect();
        for (manager, (_, owned)) in &mut self.0 {
            owned.retain(|path| {
                at(new, path).is_some() && (*manager == by || !changed.contains(path))
            });
        }
        let mine = self.0.entry(by).or_default();
        if !changed.is_empty() {
            version.clone_into(&mut mine.0);
        }
        mine.1.extend(changed);
        self.0.retain(|_, (_, owned)| !owned.is_empty());
    }

    /// `metadata.managedFields`.
    pub(super) fn to_json(&self) -> Value {
        let entries = self
            .0
            .iter()
            .map(|((name, operation, subresource), (version, set))| {
                let mut entry = json!({
                    "manager": name, "operation": operation, "apiVersion": version,
                    "fieldsType": "FieldsV1", "fieldsV1": tree(set), "time": "2026-01-01T00:00:00Z",
                });
                if !subresource.is_empty() {
                    entry["subresource"] = json!(subresource);
                }
                entry
            });
        entries.collect()
    }

    /// Removes a field, and the maps that are empty without it and that nobody has set.
    fn remove(&self, object: &mut Value, path: &Path, wanted: &Set) {
        remove(object, path);
        for length in (1..path.len()).rev() {
            let parent = path[..length].to_vec();
            let is_empty = at(object, &parent).is_some_and(|value| *value == json!({}));
            let is_set = wanted.contains(&parent)
                || self.0.values().any(|(_, owned)| owned.contains(&parent));
            if !is_empty || is_set {
                return;
            }
            remove(object, &parent);
        }
    }
}

/// The fields that an object sets, but for those that identify it.
fn leaves(object: &Value, lists: &Lists) -> Set {
    let mut set = Set::new();
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
        if let Some(Value::Object(meta)) = fields.get_mut("metadata") {
            meta.retain(|name, _| SET_METADATA.contains(&name.as_str()));
        }
        fields.retain(|name, value| name != "metadata" || *value != json!({}));
    }
    if object != json!({}) {
        collect(&object, lists, &mut Path::new(), &mut set);
    }
    set
}

/// What of the metadata somebody sets and the API server does not.
const SET_METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

fn collect(value: &Value, lists: &Lists, path: &mut Path, set: &mut Set) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                path.push(format!("f:{name}"));
                collect(value, lists, path, set);
                path.pop();
            }
        }
        Value::Array(items) => match lists.get(&dotted(path)) {
            Some(key) => {
                for item in items {
                    path.push(element(key, item));
                    set.insert(path.clone());
                    collect(item, lists, path, set);
                    path.pop();
                }
            }
            None => drop(set.insert(path.clone())),
        },
        _ => drop(set.insert(path.clone())),
    }
}

fn element(key: &str, item: &Value) -> String {
    format!("k:{}", json!({ key: item[key] }))
}

/// The path of names, as in `spec.ports`.
fn dotted(path: &Path) -> String {
    let names = path.iter().filter_map(|element| element.strip_prefix("f:"));
    names.collect::<Vec<_>>().join(".")
}

fn at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter()
        .try_fold(object, |value, element| match element.split_at(2) {
            ("f:", name) => value.get(name),
            (_, key) => {
                let key: Map<String, Value> = serde_json::from_str(key).ok()?;
                let is_it = |item: &&Value| key.iter().all(|(name, value)| item[name] == *value);
                value.as_array()?.iter().find(is_it)
            }
        })
}

fn remove(object: &mut Value, path: &[String]) {
    let Some((last, parent)) = path.split_last() else {
        return;
    };
    let found = at(object, path).cloned();
    let parent = parent
        .iter()
        .try_fold(object, |value, element| match element.split_at(2) {
            ("f:", name) => value.get_mut(name),
            (_, key) => {
                let key: Map<String, Value> = serde_json::from_str(key).ok()?;
                let is_it =
                    |item: &&mut Value| key.iter().all(|(name, value)| item[name] == *value);
                value.as_array_mut()?.iter_mut().find(is_it)
            }
        });
    match (parent, found) {
        (Some(Value::Object(fields)), _) => drop(fields.remove(&last[2..])),
        (Some(Value::Array(items)), Some(found)) => items.retain(|item| *item != found),
        _ => {}
    }
}

fn merge(live: &Value, applied: &Value, lists: &Lists, path: &str) -> Value {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) => {
            let mut merged = live.clone();
            for (name, value) in applied {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                let value = merge(live.get(name).unwrap_or(&Value::Null), value, lists, &path);
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(live), Value::Array(applied)) if lists.contains_key(path) => {
            let key = &lists[path];
            let twin = |item: &Value, of: &[Value]| {
                of.iter().find(|other| other[key] == item[key]).cloned()
            };
            let ours = applied.iter().map(|item| match twin(item, live) {
                Some(live) => merge(&live, item, lists, path),
                None => item.clone(),
            });
            let theirs = live.iter().filter(|item| twin(item, applied).is_none());
            ours.chain(theirs.cloned()).collect()
        }
        (_, applied) => applied.clone(),
    }
}

/// `FieldsV1`.
fn tree(set: &Set) -> Value {
    let mut root = json!({});
    for path in set {
        let mut node = &mut root;
        for element in path {
            node = &mut node[element.as_str()];
            if node.is_null() {
                *node = json!({});
            }
        }
        let has_children = set
            .range(path.clone()..)
            .nth(1)
            .is_some_and(|next| next.starts_with(path));
        if has_children {
            node["."] = json!({});
        }
    }
    root
}

/// RFC 7396.
pub(super) fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            if let Value::Object(fields) = target {
                fields.remove(name);
            }
        } else {
            merge_patch(&mut target[name.as_str()], value);
        }
    }
}
