//! All of it, for fleets of several sizes, as a table.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// The runs that fill the table.
const RUNS: [&str; 3] = ["translation", "discovery", "review"];

/// A row: what it is, in which run it is measured, the name of the figure there, and its unit.
struct Row {
    what: &'static str,
    work: &'static str,
    figure: &'static [&'static str],
    unit: Unit,
}

enum Unit {
    Milliseconds,
    Megabytes,
    Kilobytes,
    Count,
}

const ROWS: &[Row] = &[
    row(
        "objects of Istio and others",
        "translation",
        &["outputs"],
        Unit::Count,
    ),
    row(
        "full translation from cold: step",
        "translation",
        &["cold_step"],
        Unit::Milliseconds,
    ),
    row(
        "… rendering every object",
        "translation",
        &["render_all"],
        Unit::Milliseconds,
    ),
    row(
        "… memory of the process, most",
        "translation",
        &["peak_memory"],
        Unit::Megabytes,
    ),
    row(
        "objects of one cluster, serialised",
        "translation",
        &["render_cluster"],
        Unit::Milliseconds,
    ),
    row(
        "edit of a policy for 10 destinations, p50",
        "translation",
        &["policy_edit", "p50"],
        Unit::Milliseconds,
    ),
    row(
        "… p99",
        "translation",
        &["policy_edit", "p99"],
        Unit::Milliseconds,
    ),
    row(
        "edit of a policy for all destinations, p50",
        "translation",
        &["broad_edit", "p50"],
        Unit::Milliseconds,
    ),
    row(
        "discovery and translation from cold: step",
        "discovery",
        &["cold_step"],
        Unit::Milliseconds,
    ),
    row(
        "… memory for each destination",
        "discovery",
        &["memory_per_destination"],
        Unit::Kilobytes,
    ),
    row(
        "… and with what was freed a moment ago",
        "discovery",
        &["memory_at_once"],
        Unit::Kilobytes,
    ),
    row(
        "what discovery has stored is read back: step",
        "discovery",
        &["stored_step"],
        Unit::Milliseconds,
    ),
    row(
        "… memory for each destination",
        "discovery",
        &["memory_with_stored"],
        Unit::Kilobytes,
    ),
    row(
        "a pod moves to another node, p99",
        "discovery",
        &["pod_moves", "p99"],
        Unit::Milliseconds,
    ),
    row(
        "an endpoint comes or goes, p99",
        "discovery",
        &["endpoint_goes", "p99"],
        Unit::Milliseconds,
    ),
    row(
        "review of a policy for one destination, alone, p50",
        "review",
        &["review_alone", "p50"],
        Unit::Milliseconds,
    ),
    row(
        "… 64 in flight, p50",
        "review",
        &["review_of_one_64_in_flight", "p50"],
        Unit::Milliseconds,
    ),
    row(
        "… p99",
        "review",
        &["review_of_one_64_in_flight", "p99"],
        Unit::Milliseconds,
    ),
    row(
        "… reviews in a second",
        "review",
        &["reviews_per_second"],
        Unit::Count,
    ),
    row(
        "review of a policy for all destinations, p99",
        "review",
        &["review_of_all", "p99"],
        Unit::Milliseconds,
    ),
];

const fn row(
    what: &'static str,
    work: &'static str,
    figure: &'static [&'static str],
    unit: Unit,
) -> Row {
    Row {
        what,
        work,
        figure,
        unit,
    }
}

/// Measures fleets of these sizes, and prints the table.
#[expect(clippy::print_stdout, reason = "this is what the command says")]
pub(crate) fn report(clusters: u32, seed: u64, sizes: &[u32]) -> anyhow::Result<()> {
    let column = |size: &u32| -> anyhow::Result<Vec<Value>> {
        RUNS.iter()
            .map(|work| run(clusters, seed, *size, work))
            .collect()
    };
    let columns: Vec<_> = sizes.iter().map(column).collect::<Result<_, _>>()?;
    let heads: Vec<_> = sizes
        .iter()
        .map(|size| format!("{size} destinations"))
        .collect();
    println!("| {clusters} clusters | {} |", heads.join(" | "));
    println!("|---|{}", "---|".repeat(sizes.len()));
    for Row {
        what,
        work,
        figure,
        unit,
    } in ROWS
    {
        let at = RUNS
            .iter()
            .position(|known| known == work)
            .context("a run of that name")?;
        let cells: Vec<_> = columns
            .iter()
            .map(|column| cell(&column[at], figure, unit))
            .collect();
        println!("| {what} | {} |", cells.join(" | "));
    }
    Ok(())
}

fn cell(figures: &Value, path: &[&str], unit: &Unit) -> String {
    let found = path.iter().try_fold(figures, |value, name| value.get(name));
    let Some(number) = found.and_then(Value::as_f64) else {
        return "–".to_owned();
    };
    match unit {
        Unit::Milliseconds => format!("{:.2} ms", number / 1_000.0),
        Unit::Megabytes => format!("{:.0} MB", number / 1e6),
        Unit::Kilobytes => format!("{:.1} KB", number / 1e3),
        Unit::Count => format!("{number:.0}"),
    }
}

/// One run, in a process of its own.
fn run(clusters: u32, seed: u64, services: u32, work: &str) -> anyhow::Result<Value> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--clusters", &clusters.to_string()])
        .args(["--seed", &seed.to_string()])
        .args(["--services", &services.to_string(), work])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "{work} of {services} services");
    serde_json::from_slice(&output.stdout).context("figures")
}
