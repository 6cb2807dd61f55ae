//! Schemas that several fields share, and the rules in them.
//!
//! A range is said by `minimum` and `maximum`, whose refusal names the field, the value and the
//! bound by itself. Everything else is a CEL rule with a message that names the remedy. Lists on
//! the way to a rule are bounded, because an API server estimates a rule's cost before it accepts
//! the schema. Rules stand on what users write; of the numbers that discovery writes, only the
//! ranges are checked.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::reference::{ClusterObjectRef, ObjectRef};

/// Go's duration syntax with its units in order, bounded so that no sum overflows, and with no more
/// digits than whole milliseconds need.
const DURATION: &str = "^([0-9]{1,6}([.][0-9]{1,5}0*)?h)?([0-9]{1,7}([.][0-9]{1,4}0*)?m)?\
    ([0-9]{1,9}([.][0-9]{1,3}0*)?s)?([0-9]{1,12}([.]0+)?ms)?\
    ([0-9]{1,12}000[uµ]s)?([0-9]{1,12}000000ns)?$";

/// Labels of a DNS name in lower case (RFC 1123).
const DNS_NAME: &str =
    "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$";

/// A CEL rule; `message` says what to do when it does not hold.
pub(crate) fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

/// A CEL rule: no more than one of `members` is set.
pub(crate) fn at_most_one(members: &[&str]) -> Value {
    rule(
        &format!("{} <= 1", count(members)),
        &format!(
            "set only one of {}: they exclude each other",
            listing(members)
        ),
    )
}

/// A CEL rule: one of `members` is set, and no other.
pub(crate) fn exactly_one(members: &[&str]) -> Value {
    rule(
        &format!("{} == 1", count(members)),
        &format!("set one of {}, and only one", listing(members)),
    )
}

/// A CEL rule: all of `members`, which are strings, are set.
pub(crate) fn complete(members: &[&str]) -> Value {
    let set: Vec<_> = members
        .iter()
        .map(|member| {
            // A word that CEL reserves; this is how a field of that name is reached.
            if *member == "namespace" {
                "__namespace__"
            } else {
                member
            }
        })
        .map(|member| format!("has(self.{member}) && self.{member} != ''"))
        .collect();
    rule(
        &set.join(" && "),
        &format!("a reference needs {}", listing(members)),
    )
}

/// The CEL expression that counts which of `members` are set.
fn count(members: &[&str]) -> String {
    let set: Vec<_> = members
        .iter()
        .map(|member| format!("(has(self.{member}) ? 1 : 0)"))
        .collect();
    set.join(" + ")
}

fn listing(members: &[&str]) -> String {
    match members {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, last] => format!("{first} and {last}"),
        [first, rest @ ..] => format!("{first}, {}", listing(rest)),
    }
}

/// Adds `rules` to a schema that has none.
fn with_rules(mut schema: Schema, rules: Value) -> Schema {
    schema.insert("x-kubernetes-validations".to_owned(), rules);
    schema
}

/// Bounds the length of a list.
fn list(items: &Schema, max_items: usize) -> Schema {
    json_schema!({"type": "array", "items": items, "maxItems": max_items})
}

/// An unsigned 32-bit number. It is an `int64` for Kubernetes, which knows no `uint32`.
pub(crate) fn uint32(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "integer",
        "format": "int64",
        "minimum": 0,
        "maximum": 4_294_967_295_u32,
    })
}

/// A whole number of percent.
pub(crate) fn percent(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64", "minimum": 0, "maximum": 100})
}

/// A share in percent.
pub(crate) fn percentage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "format": "double", "minimum": 0, "maximum": 100})
}

/// A port; zero means that it is not set.
pub(crate) fn port(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535})
}

/// Ports that are set.
pub(crate) fn ports(_: &mut SchemaGenerator) -> Schema {
    let port = json_schema!({"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535});
    json_schema!({"type": "array", "items": port})
}

/// Ports by name.
pub(crate) fn port_map(generator: &mut SchemaGenerator) -> Schema {
    let values = port(generator);
    json_schema!({"type": "object", "additionalProperties": values})
}

/// A length of time in Go's syntax. Istio takes no duration below a millisecond, nor a finer one.
pub(crate) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 64,
        "x-kubernetes-validations": [
            rule(
                &format!(
                    "self.size() > 0 && self.matches('{DURATION}') && \
                     duration(self) >= duration('1ms')"
                ),
                "write a duration in whole milliseconds, at least 1ms, for example 100ms, 5s or \
                 1h30m; leave the field out for none",
            ),
        ],
    })
}

/// Like [`duration`], where no time at all says "without bound".
pub(crate) fn duration_or_zero(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 64,
        "x-kubernetes-validations": [
            rule(
                &format!(
                    "self.size() > 0 && self.matches('{DURATION}') && \
                     (duration(self) >= duration('1ms') || duration(self) == duration('0s'))"
                ),
                "write a duration in whole milliseconds, at least 1ms, for example 100ms, 5s or \
                 1h30m; 0s for no bound",
            ),
        ],
    })
}

/// A weight beside others; what counts is its part of their sum.
pub(crate) fn weight(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64", "minimum": 0, "maximum": 1_000_000})
}

/// A DNS name, or nothing.
pub(crate) fn dns_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 253,
        "x-kubernetes-validations": [
            rule(
                &format!("self == '' || self.matches('{DNS_NAME}')"),
                "write a DNS name in lower case, for example mesh.example.com",
            ),
        ],
    })
}

/// Texts, none of which is empty.
pub(crate) fn texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"type": "string", "minLength": 1}})
}

/// Headers to write, by name.
pub(crate) fn headers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": {"type": "string"},
        "x-kubernetes-validations": [
            rule("self.all(name, name != '')", "name each header: a name is empty"),
        ],
    })
}

/// Bytes, in base64.
pub(crate) fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "byte"})
}

/// A reference of which nothing may be missing.
pub(crate) fn object_ref(generator: &mut SchemaGenerator) -> Schema {
    with_rules(
        ObjectRef::json_schema(generator),
        json!([complete(&["name", "namespace"])]),
    )
}

/// A reference of which nothing may be missing.
pub(crate) fn cluster_object_ref(generator: &mut SchemaGenerator) -> Schema {
    with_rules(
        ClusterObjectRef::json_schema(generator),
        json!([complete(&["name", "namespace", "clusterName"])]),
    )
}

/// References to meshes.
pub(crate) fn mesh_refs(generator: &mut SchemaGenerator) -> Schema {
    list(&object_ref(generator), 256)
}

/// References to Services.
pub(crate) fn service_refs(generator: &mut SchemaGenerator) -> Schema {
    list(&cluster_object_ref(generator), 512)
}

/// Conditions, one of each type.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    let text = |description| json!({"type": "string", "description": description});
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": text("What the condition speaks of."),
                "status": text("Whether it is so: True, False or Unknown."),
                "reason": text("Why, in one word."),
                "message": text("Why, for a person."),
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "Generation of the object that the condition speaks of.",
                },
            },
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// A list of objects of which nothing is checked and nothing is pruned.
pub(crate) fn opaque_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}
