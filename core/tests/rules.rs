//! The rules about one object alone stand in the schema, where they hold even when nobody is
//! there to answer a review, and in the parsers, which files without a cluster come through. Both
//! must give the same answer: these are the schema's own cases, given to the parsers.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "what a test cannot read, or does not expect, fails it"
)]

use std::fs;
use std::path::Path;

use ferromesh_core::manifest::{self, Entry};
use ferromesh_core::{Code, Finding, Object};
use serde_json::{Value, json};

/// What the parser has against an object, apart from what is not built yet.
fn objections(object: &Object) -> Vec<Finding> {
    let rejections = match object {
        Object::TrafficPolicy(policy) => &*policy.rejections,
        Object::AccessPolicy(policy) => &*policy.rejections,
        Object::VirtualMesh(virtual_mesh) => &*virtual_mesh.rejections,
        Object::Settings(settings) => &*settings.rejections,
        other => panic!("{} has no rules", other.kind().name()),
    };
    rejections.iter().map(Finding::from).collect()
}

fn cases() -> Vec<Value> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds/tests/rules");
    ["trafficpolicy", "accesspolicy", "virtualmesh", "settings"]
        .iter()
        .flat_map(|kind| {
            let text = fs::read_to_string(rules.join(format!("{kind}.yaml"))).unwrap();
            serde_saphyr::from_multiple::<Value>(&text).unwrap()
        })
        .collect()
}

#[test]
fn schema_and_parser_agree_about_every_rule() {
    let mut disagreements = Vec::new();
    for case in cases() {
        let kind = case["kind"].as_str().unwrap();
        let group = if kind == "Settings" {
            "settings"
        } else {
            "networking"
        };
        let mut object = case["object"].clone();
        object["apiVersion"] = json!(format!("{group}.mesh.gloo.solo.io/v1"));
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": "case", "namespace": "gloo-mesh"});
        let mut entries = Vec::new();
        manifest::read_value(&object, "", &mut entries);
        let [entry] = &*entries else { panic!("{case}") };
        let findings = match entry {
            Entry::Object(object) => objections(object),
            Entry::Unreadable { rejection, .. } => vec![Finding::from(rejection)],
            Entry::Ignored { .. } => panic!("{case}"),
        };
        let refused: Vec<_> = findings
            .iter()
            .filter(|finding| finding.code != Code::Unsupported)
            .collect();
        let is_accepted = case["accept"].as_bool().unwrap();
        // What is not built has a place in the schema, unless it never will be.
        let agrees = if is_accepted {
            refused.is_empty()
        } else {
            !findings.is_empty()
        };
        if !agrees {
            disagreements.push(format!("{kind}: {}: {refused:?}", case["name"]));
        }
    }
    assert!(disagreements.is_empty(), "{disagreements:#?}");
}
