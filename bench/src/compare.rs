//! Instructions that were counted, against those of the baseline.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// How much more one may take than in the baseline: other compilers and C libraries make small differences.
const PERCENT: u64 = 5;

/// Instructions by the name of the bench.
type Counts = BTreeMap<String, u64>;

/// Compares what was counted, whose summaries are below a directory, with a baseline.
///
/// # Errors
///
/// Fails where one takes more than it may, or is only in one of the two.
#[expect(clippy::print_stdout, reason = "this is what the command says")]
pub(crate) fn compare(counted: &Path, baseline: &Path) -> anyhow::Result<()> {
    let (now, before) = (counts(counted)?, read(baseline)?);
    let mut worse = Vec::new();
    println!("| instructions | baseline | now |");
    println!("|---|---|---|");
    for (name, now) in &now {
        let before = before.get(name).copied();
        let told = before.map_or_else(|| "–".to_owned(), |before| before.to_string());
        println!("| {name} | {told} | {now} |");
        if before.is_none_or(|before| now * 100 > before * (100 + PERCENT)) {
            worse.push(name.as_str());
        }
    }
    let missing = before.keys().filter(|name| !now.contains_key(*name));
    worse.extend(missing.map(String::as_str));
    ensure!(
        worse.is_empty(),
        "more than {PERCENT} % above {}, or only in one of the two: {}; if that is meant, hack/bench --bless",
        baseline.display(),
        worse.join(", ")
    );
    Ok(())
}

/// Makes what was counted the baseline.
pub(crate) fn bless(counted: &Path, baseline: &Path) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(&counts(counted)?)?;
    text.push('\n');
    fs::write(baseline, text).with_context(|| baseline.display().to_string())
}

fn read(baseline: &Path) -> anyhow::Result<Counts> {
    let text = fs::read(baseline).with_context(|| baseline.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| baseline.display().to_string())
}

fn counts(directory: &Path) -> anyhow::Result<Counts> {
    let mut counts = Counts::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory);
        for entry in entries.with_context(|| directory.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.ends_with("summary.json") {
                let summary: Value = serde_json::from_slice(&fs::read(&path)?)?;
                let (name, count) = count(&summary)
                    .with_context(|| format!("{} has no instructions", path.display()))?;
                counts.insert(name, count);
            }
        }
    }
    ensure!(
        !counts.is_empty(),
        "{}: nothing was counted",
        directory.display()
    );
    Ok(counts)
}

/// The name and the instructions of one bench.
fn count(summary: &Value) -> Option<(String, u64)> {
    let name = format!(
        "{} {}",
        summary["function_name"].as_str()?,
        summary["id"].as_str()?
    );
    let mut profiles = summary["profiles"].as_array()?.iter();
    let metrics = profiles.find_map(|profile| profile["data"]["total"]["metrics"].get("Ir"))?;
    Some((name, number(metrics)?))
}

/// The first number in a value: there is but one where nothing was counted before.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::Array(values) => values.iter().find_map(number),
        Value::Object(fields) => fields.values().find_map(number),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}
