//! Every field of the API that we are compatible with exists in ours.
//!
//! `../upstream_paths.txt` lists them: kind, path, type and, for an enum, its values.

use crate::tree::{nodes, schemas};

#[test]
fn every_field_of_the_compatible_api_exists_with_its_type() {
    let schemas = schemas();
    let facts = include_str!("../upstream_paths.txt");
    assert!(facts.lines().count() > 800, "the list is complete");
    for fact in facts.lines() {
        let mut words = fact.split(' ');
        let (kind, path, kind_of_value) = (
            words.next().unwrap(),
            words.next().unwrap(),
            words.next().unwrap(),
        );
        let names: Vec<&str> = words
            .next()
            .map_or(Vec::new(), |names| names.split(',').collect());
        let node = nodes(&schemas[kind])
            .into_iter()
            .find(|(found, _)| found == path);
        let (_, node) = node.unwrap_or_else(|| panic!("missing: {fact}"));
        assert_eq!(node["type"], kind_of_value, "{fact}");
        let ours = node["enum"].as_array().map_or(Vec::new(), |names| {
            names.iter().map(|name| name.as_str().unwrap()).collect()
        });
        assert_eq!(names.is_empty(), ours.is_empty(), "{fact}");
        assert!(
            names.iter().all(|name| ours.contains(name)),
            "{fact}: {ours:?}"
        );
    }
}
