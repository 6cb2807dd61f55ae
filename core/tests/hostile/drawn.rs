//! Objects drawn after the schemas of our kinds, and objects that once were right.

use std::sync::LazyLock;

use ferromesh_core::Kind;
use ferromesh_core::manifest;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::value::{anything, deep, expression, length, number, text};

/// How deep a schema is followed: some of them contain themselves.
const MAX_DEPTH: usize = 9;

/// The schemas of the kinds that are read, with the API version.
static SCHEMAS: LazyLock<Vec<(Kind, String, JSONSchemaProps)>> = LazyLock::new(|| {
    let definitions = ferromesh_crds::all().into_iter();
    let read = definitions.filter_map(|definition| {
        let spec = definition.spec;
        let mut kinds = Kind::ALL.iter();
        let kind = kinds
            .find(|kind| kind.name() == spec.names.kind && kind.group() == spec.group.as_str())?;
        let version = spec.versions.into_iter().next()?;
        let api_version = format!("{}/{}", spec.group, version.name);
        Some((*kind, api_version, version.schema?.open_api_v3_schema?))
    });
    read.collect()
});

/// What the engine's histories are drawn from.
static UNIVERSE: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let files = [
        include_str!("../universe/cluster.yaml"),
        include_str!("../universe/management.yaml"),
        include_str!("../universe/one.yaml"),
    ];
    let documents = files.into_iter().flat_map(manifest::documents);
    documents.map(|document| document.unwrap()).collect()
});

/// An object of one of our kinds with fields that the schema knows, and some that it does not.
pub(crate) fn by_schema(dice: &mut Dice) -> Value {
    let (kind, api_version, schema) = dice.pick(&SCHEMAS);
    let properties = schema.properties.as_ref();
    let part = |name: &str| properties.and_then(|all| all.get(name));
    let mut object = json!({
        "apiVersion": api_version,
        "kind": kind.name(),
        "metadata": metadata(dice),
    });
    let spec = part("spec").map(|spec| value(dice, spec, 0));
    object["spec"] = spec.unwrap_or_default();
    if dice.one_in(8)
        && let Some(status) = part("status")
    {
        object["status"] = value(dice, status, 0);
    }
    object
}

fn metadata(dice: &mut Dice) -> Value {
    let namespace = if dice.one_in(6) {
        text(dice)
    } else {
        "gloo-mesh".to_owned()
    };
    let mut metadata = json!({
        "name": text(dice),
        "namespace": namespace,
        "generation": number(dice).as_i64().unwrap_or(1),
    });
    if dice.one_in(8) {
        metadata["labels"] = json!({ "cluster.discovery.mesh.gloo.solo.io": text(dice) });
    }
    if dice.one_in(8) {
        metadata["annotations"] = json!({
            "kubectl.kubernetes.io/last-applied-configuration": text(dice),
            text(dice): text(dice),
        });
    }
    metadata
}

fn value(dice: &mut Dice, schema: &JSONSchemaProps, depth: usize) -> Value {
    if dice.one_in(60) {
        return anything(dice, 3);
    }
    if let Some(names) = &schema.enum_ {
        return dice.pick(names).0.clone();
    }
    match schema.type_.as_deref() {
        Some("object") => Value::Object(members(dice, schema, depth)),
        Some("array") => {
            let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items else {
                return json!([]);
            };
            // Lists in lists would grow beyond any object that an API server stores.
            let length = if depth > 4 {
                dice.below(3)
            } else {
                length(dice)
            };
            (0..length).map(|_| value(dice, item, depth + 1)).collect()
        }
        Some("integer" | "number") => number(dice),
        Some("boolean") => json!(dice.one_in(2)),
        Some("string") => json!(text(dice)),
        _ => anything(dice, 2),
    }
}

fn members(dice: &mut Dice, schema: &JSONSchemaProps, depth: usize) -> Map<String, Value> {
    let mut members = Map::new();
    if depth > MAX_DEPTH {
        return members;
    }
    for (name, member) in schema.properties.iter().flatten() {
        // Few at a time, or something is always wrong before what is deeper is looked at.
        if dice.one_in(3) {
            let drawn = match name.as_str() {
                "regex" if member.type_.as_deref() == Some("string") => json!(expression(dice)),
                "regex" => json!(true),
                _ => value(dice, member, depth + 1),
            };
            members.insert(name.clone(), drawn);
        }
    }
    if let Some(JSONSchemaPropsOrBool::Schema(each)) = &schema.additional_properties {
        for _ in 0..length(dice) {
            members.insert(text(dice), value(dice, each, depth + 1));
        }
    }
    if dice.one_in(100) {
        members.insert(text(dice), anything(dice, 2));
    }
    members
}

/// An object that once was right, with some of its parts made wrong.
pub(crate) fn mutated(dice: &mut Dice) -> Value {
    let mut object = dice.pick(&UNIVERSE).clone();
    for _ in 0..=dice.below(4) {
        mutate(dice, &mut object, 0);
    }
    object
}

/// Changes something below a value.
fn mutate(dice: &mut Dice, value: &mut Value, depth: usize) {
    // Which kind it is, is found at the top.
    let stops = depth > 0 && dice.one_in(3);
    match value {
        Value::Object(members) if !stops && !members.is_empty() => {
            let keys: Vec<_> = members
                .keys()
                .filter(|key| depth > 0 || !matches!(key.as_str(), "kind" | "apiVersion"))
                .cloned()
                .collect();
            if keys.is_empty() {
                return;
            }
            let key = dice.pick(&keys).clone();
            match dice.below(24) {
                0 => drop(members.remove(&key)),
                1 => {
                    let moved = members.remove(&key).unwrap_or_default();
                    members.insert(text(dice), moved);
                }
                2 => {
                    let twin = members[&key].clone();
                    members.insert(text(dice), twin);
                }
                _ => mutate(dice, &mut members[&key], depth + 1),
            }
        }
        Value::Array(items) if !stops && !items.is_empty() => {
            let at = dice.below(items.len());
            match dice.below(12) {
                0 => drop(items.remove(at)),
                1 => {
                    let twins = vec![items[at].clone(); length(dice)];
                    items.extend(twins);
                }
                2 => items.reverse(),
                _ => mutate(dice, &mut items[at], depth + 1),
            }
        }
        Value::String(_) => *value = json!(text(dice)),
        Value::Number(_) => *value = number(dice),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            *value = match dice.below(8) {
                0 => deep(100),
                1 => Value::Null,
                _ => anything(dice, 3),
            }
        }
    }
}
