//! Schemas as trees of JSON, walked by path: `.spec.hosts[]` is an element, `.spec.labels{}` a
//! value of a map.

use std::collections::BTreeMap;

use serde_json::Value;

/// The schema of each kind.
pub(crate) fn schemas() -> BTreeMap<String, Value> {
    ferromesh_crds::all()
        .iter()
        .map(|definition| {
            let definition = serde_json::to_value(definition).unwrap();
            let spec = &definition["spec"];
            let kind = spec["names"]["kind"].as_str().unwrap().to_owned();
            (
                kind,
                spec["versions"][0]["schema"]["openAPIV3Schema"].clone(),
            )
        })
        .collect()
}

/// A schema and all schemas within it, with their paths.
pub(crate) fn nodes(schema: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    collect(String::new(), schema, &mut found);
    found
}

fn collect<'a>(path: String, schema: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(format!("{path}.{name}"), property, found);
    }
    if schema["items"].is_object() {
        collect(format!("{path}[]"), &schema["items"], found);
    }
    if schema["additionalProperties"].is_object() {
        collect(
            format!("{path}{{}}"),
            &schema["additionalProperties"],
            found,
        );
    }
    found.push((path, schema));
}
