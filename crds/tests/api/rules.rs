//! Each rule of the schemas accepts what it should and refuses what it should.
//!
//! The cases are in `../rules`, one file for each kind, so that a real API server can be asked the
//! same: `object` lacks only what `kind` says (and a name, where it has no metadata), and a refusal
//! contains `message`. Here the CEL rules run in a library, and ranges in a few lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use kube_core::cel::{ErrorKind, ValidationErrors, Validator};
use serde::Deserialize;
use serde_json::Value;

use crate::tree::{nodes, schemas};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    kind: String,
    accept: bool,
    #[serde(default)]
    message: String,
    object: Value,
}

/// A rule, or a bound, that refused an object.
struct Refusal {
    /// The rule's place in the schema, and what it says there.
    rule: (String, String),
    /// What an API server would answer.
    message: String,
}

fn cases() -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let mut cases = Vec::new();
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let found: Vec<Case> = serde_saphyr::from_multiple(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let kind = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            found.iter().all(|case| case.kind.to_lowercase() == kind),
            "{}",
            path.display()
        );
        cases.extend(found);
    }
    cases
}

#[test]
fn cases_are_accepted_and_refused_as_they_say() {
    let schemas = schemas();
    for case in cases() {
        let refusals = judge(&schemas[&case.kind], &case.object);
        let messages: Vec<_> = refusals.iter().map(|refusal| &*refusal.message).collect();
        let context = format!("{}: {}: {messages:#?}", case.kind, case.name);
        assert_eq!(case.accept, refusals.is_empty(), "{context}");
        assert_eq!(
            case.accept,
            case.message.is_empty(),
            "a refused case has a message: {context}"
        );
        assert!(
            case.accept
                || messages
                    .iter()
                    .any(|message| message.contains(&case.message)),
            "{context}"
        );
    }
}

#[test]
fn each_rule_refuses_some_case() {
    let schemas = schemas();
    let mut refusing: BTreeMap<&str, BTreeSet<(String, String)>> = BTreeMap::new();
    let cases = cases();
    for case in cases.iter().filter(|case| !case.accept) {
        refusing.entry(&case.kind).or_default().extend(
            judge(&schemas[&case.kind], &case.object)
                .into_iter()
                .map(|it| it.rule),
        );
    }
    let none = BTreeSet::new();
    for (kind, schema) in &schemas {
        let missing: Vec<_> = rules(schema)
            .into_iter()
            .filter(|rule| !refusing.get(&**kind).unwrap_or(&none).contains(rule))
            .collect();
        assert!(missing.is_empty(), "{kind}: no case breaks {missing:#?}");
    }
}

#[test]
fn each_field_with_a_rule_is_in_some_accepted_case() {
    let schemas = schemas();
    let cases = cases();
    for (kind, schema) in &schemas {
        let accepted: Vec<&Value> = cases
            .iter()
            .filter(|case| case.accept && case.kind == *kind)
            .map(|case| &case.object)
            .collect();
        let missing: BTreeSet<_> = rules(schema)
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| !accepted.iter().any(|object| has(object, path)))
            .collect();
        assert!(
            missing.is_empty(),
            "{kind}: no accepted case has {missing:#?}"
        );
    }
}

#[test]
fn each_rule_has_a_message_of_one_line() {
    for (kind, schema) in &schemas() {
        for (path, node) in nodes(schema) {
            for rule in node["x-kubernetes-validations"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let message = rule["message"].as_str().unwrap_or_default();
                assert!(
                    message.len() > 15 && !message.contains(['\n', '`']),
                    "{kind}{path}: {message}"
                );
            }
        }
    }
}

/// The rules of a schema that somebody can break in good faith: CEL, ranges and empty texts. What
/// only bounds the size of an object is left out.
fn rules(schema: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, node) in nodes(schema) {
        for rule in node["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            found.push((path.clone(), rule["rule"].as_str().unwrap().to_owned()));
        }
        for keyword in ["minimum", "maximum", "minLength"] {
            if !node[keyword].is_null() {
                found.push((path.clone(), keyword.to_owned()));
            }
        }
    }
    found
}

/// Whether `object` has something at `path`.
fn has(object: &Value, path: &str) -> bool {
    if path.is_empty() {
        return true;
    }
    if let Some(rest) = path.strip_prefix("[]") {
        return object
            .as_array()
            .into_iter()
            .flatten()
            .any(|element| has(element, rest));
    }
    if let Some(rest) = path.strip_prefix("{}") {
        return object
            .as_object()
            .into_iter()
            .flatten()
            .any(|(_, value)| has(value, rest));
    }
    let path = path.strip_prefix('.').unwrap();
    let end = path.find(['.', '[', '{']).unwrap_or(path.len());
    object
        .get(&path[..end])
        .is_some_and(|member| has(member, &path[end..]))
}

/// Everything that refuses `object`.
fn judge(schema: &Value, object: &Value) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    check(schema, object, "", "", &mut refusals);
    let errors = Validator::new().validate(schema, object, None).err();
    for error in errors.map_or(Vec::new(), ValidationErrors::into_vec) {
        assert_eq!(error.kind, ErrorKind::ValidationFailure, "{error}");
        refusals.push(Refusal {
            rule: (schema_path(&error.field_path), error.rule),
            message: format!("{}: Invalid value: {}", error.field_path, error.message),
        });
    }
    refusals
}

/// The place in the schema of a place in an object: `spec.hosts[1]` is at `.spec.hosts[]`.
fn schema_path(path: &str) -> String {
    let mut out = if path.is_empty() {
        String::new()
    } else {
        ".".to_owned()
    };
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        out.push_str("[]");
        rest = after.split_once(']').unwrap().1;
    }
    out + rest
}

/// The part of `OpenAPI` validation that our schemas use, in the words of an API server.
fn check(schema: &Value, value: &Value, path: &str, at: &str, refusals: &mut Vec<Refusal>) {
    let field = at.trim_start_matches('.');
    let mut refuse = |keyword: &str, message: String| {
        refusals.push(Refusal {
            rule: (path.to_owned(), keyword.to_owned()),
            message,
        });
    };
    let is_of_type = match schema["type"].as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("{path} is of type {other}"),
    };
    if !is_of_type {
        return refuse(
            "type",
            format!("{field} in body must be of type {}", schema["type"]),
        );
    }
    if let Some(names) = schema["enum"].as_array()
        && !names.contains(value)
    {
        let names: Vec<_> = names.iter().map(Value::to_string).collect();
        refuse(
            "enum",
            format!("{field}: supported values: {}", names.join(", ")),
        );
    }
    if let Some(number) = value.as_f64() {
        if let Some(minimum) = schema["minimum"]
            .as_f64()
            .filter(|minimum| number < *minimum)
        {
            refuse(
                "minimum",
                format!("{field} in body should be greater than or equal to {minimum}"),
            );
        }
        if let Some(maximum) = schema["maximum"]
            .as_f64()
            .filter(|maximum| number > *maximum)
        {
            refuse(
                "maximum",
                format!("{field} in body should be less than or equal to {maximum}"),
            );
        }
    }
    if schema["minLength"] == 1 && value == "" {
        refuse(
            "minLength",
            format!("{field} in body should be at least 1 chars long"),
        );
    }
    for (index, element) in value.as_array().into_iter().flatten().enumerate() {
        let (path, at) = (format!("{path}[]"), format!("{at}[{index}]"));
        check(&schema["items"], element, &path, &at, refusals);
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        if schema["additionalProperties"].is_object() {
            let (path, at) = (format!("{path}{{}}"), format!("{at}.{name}"));
            check(
                &schema["additionalProperties"],
                member,
                &path,
                &at,
                refusals,
            );
        } else if schema["properties"][name].is_object() {
            let (path, at) = (format!("{path}.{name}"), format!("{at}.{name}"));
            check(&schema["properties"][name], member, &path, &at, refusals);
        } else {
            assert_eq!(
                at.to_owned() + name,
                "metadata",
                "{at}.{name} would be pruned"
            );
        }
    }
}
