//! What alerts, the dashboard and the documents speak of is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A path in the repository.
fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(relative)
}

fn text(relative: &str) -> String {
    fs::read_to_string(path(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
}

/// The Rust files below a directory, as far as they are there.
fn sources(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(fs::read_to_string(&path).unwrap());
        }
    }
    found
}

/// What follows each occurrence of `start`.
fn after<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(start)
        .map(move |(at, _)| &text[at + start.len()..])
}

/// The first string literal.
fn literal(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix('"')?.split('"').next()
}

/// The names, as Prometheus knows them, of a metric that is registered by a call in a source.
fn names(source: &str, call: &str) -> Vec<String> {
    let call = call.split(");").next().unwrap();
    let Some(name) = literal(call) else {
        return Vec::new();
    };
    let unit = if call.contains("Unit::Seconds") {
        "_seconds"
    } else {
        ""
    };
    // What is registered is a field, and its type tells the suffixes.
    let field = call.rsplit_once(".clone()").map(|(field, _)| {
        let start = field.rfind(|letter: char| !letter.is_alphanumeric() && letter != '_');
        &field[start.map_or(0, |at| at + 1)..]
    });
    let declared = field.and_then(|field| {
        let declaration = format!("{field}: ");
        source
            .lines()
            .find(|line| line.contains(&declaration) && line.trim_end().ends_with(','))
    });
    let suffixes: &[&str] = match declared.unwrap_or(call) {
        line if line.contains("Histogram") => &["_bucket", "_sum", "_count"],
        line if line.contains("Counter") => &["_total"],
        line if line.contains("Gauge") => &[""],
        line => panic!("of what type is the metric {name}? {line}"),
    };
    let suffixes = suffixes.iter();
    suffixes
        .map(|suffix| format!("{name}{unit}{suffix}"))
        .collect()
}

/// Every metric that the code registers.
fn registered() -> BTreeSet<String> {
    let mut registered = BTreeSet::new();
    for room in fs::read_dir(path("")).unwrap() {
        let sources = sources(&room.unwrap().path().join("src"));
        let prefixes = sources
            .iter()
            .flat_map(|source| after(source, "sub_registry_with_prefix("));
        let prefixes: BTreeSet<_> = prefixes.filter_map(literal).collect();
        for source in &sources {
            let calls = [".register(", ".register_with_unit(", ".encode_descriptor("];
            let calls = calls.iter().flat_map(|start| after(source, start));
            for name in calls.flat_map(|call| names(source, call)) {
                let full = prefixes
                    .iter()
                    .map(|prefix| format!("ferromesh_{prefix}_{name}"));
                registered.extend(full);
            }
        }
    }
    registered
}

#[test]
fn every_metric_of_the_alerts_and_the_dashboard_is_registered() {
    let registered = registered();
    for file in [
        "manifests/monitoring/alerts.yaml",
        "manifests/monitoring/dashboard.json",
        "docs/operations/metrics-and-alerts.md",
    ] {
        let text = text(file);
        let used: BTreeSet<String> = after(&text, "ferromesh_")
            .map(|rest| {
                let end =
                    rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                format!("ferromesh_{}", &rest[..end.unwrap_or(rest.len())])
            })
            .collect();
        assert!(used.len() > 5, "{file} speaks of metrics");
        let unknown: Vec<_> = used.difference(&registered).collect();
        assert!(
            unknown.is_empty(),
            "{file} speaks of {unknown:?}; there are {registered:#?}"
        );
    }
}

#[test]
fn every_metric_is_explained() {
    let explained = text("docs/operations/metrics-and-alerts.md");
    for name in registered() {
        let family = ["_sum", "_count"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix));
        let name = family.map_or(name.clone(), |family| format!("{family}_bucket"));
        assert!(explained.contains(&name), "nothing is said of {name}");
    }
}

/// The anchor of a heading, as the forges make it.
fn anchor(heading: &str) -> String {
    let letters = heading.trim().to_lowercase();
    let letters = letters.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        letter if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter),
        _ => None,
    });
    letters.collect()
}

#[test]
fn every_alert_says_where_its_remedy_is() {
    let alerts = text("manifests/monitoring/alerts.yaml");
    let count = after(&alerts, "- alert: ").count();
    let runbooks: Vec<_> = after(&alerts, "runbook: ")
        .map(|rest| rest.lines().next().unwrap())
        .collect();
    assert_eq!(count, runbooks.len());
    for runbook in runbooks {
        let (file, place) = runbook.split_once('#').unwrap_or((runbook, ""));
        let text = text(file);
        let mut anchors = text
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .map(|heading| anchor(heading.trim_start_matches('#')));
        assert!(
            place.is_empty() || anchors.any(|anchor| anchor == place),
            "{runbook} is not there"
        );
    }
}

#[test]
fn every_reason_that_a_condition_may_have_is_explained() {
    let definition = text("crds/src/condition.rs");
    let explained = text("docs/operations/troubleshooting.md");
    let rooms = ["core/src", "controller/src"];
    let code: String = rooms.iter().flat_map(|room| sources(&path(room))).collect();
    let mut count = 0;
    for line in definition.lines() {
        // `Self::CaExpired => "CAExpired",`
        let Some((variant, word)) = line.trim().split_once(" => ") else {
            continue;
        };
        let (Some(variant), Some(word)) = (variant.strip_prefix("Self::"), literal(word)) else {
            continue;
        };
        if code.contains(&format!("Reason::{variant}")) {
            count += 1;
            let quoted = format!("`{word}`");
            assert!(explained.contains(&quoted), "nothing is said of {word}");
        }
    }
    assert!(count > 10, "{count} reasons are in use");
}
