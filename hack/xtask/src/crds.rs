//! The definitions of our kinds as files: one for each, named `<plural>.<group>.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

const BANNER: &str = "# Written by hack/crds from the types in crds/src. Do not edit.\n";

/// Makes the files in `directory` what they should be, or with `check` only names those that are
/// not.
pub(crate) fn run(directory: &Path, check: bool) -> anyhow::Result<ExitCode> {
    let wanted = files()?;
    let stale = stale(directory, &wanted)?;
    let mut out = io::stdout().lock();
    for name in &stale {
        let path = directory.join(name);
        if check {
            writeln!(out, "stale: {}", path.display())?;
            continue;
        }
        if let Some(text) = wanted.get(name) {
            fs::create_dir_all(directory)
                .and_then(|()| fs::write(&path, text))
                .with_context(|| format!("cannot write {}", path.display()))?;
            writeln!(out, "wrote {}", path.display())?;
        } else {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            writeln!(out, "removed {}", path.display())?;
        }
    }
    if check && !stale.is_empty() {
        writeln!(out, "run hack/crds and commit what it writes")?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The files that there should be, by name.
fn files() -> anyhow::Result<BTreeMap<String, String>> {
    ferromesh_crds::all()
        .iter()
        .map(|definition| {
            let name = definition
                .metadata
                .name
                .clone()
                .context("a definition has no name")?;
            let text = text(definition).with_context(|| format!("cannot print {name}"))?;
            // A definition's own name is `<plural>.<group>`.
            Ok((format!("{name}.yaml"), text))
        })
        .collect()
}

fn text(definition: &CustomResourceDefinition) -> anyhow::Result<String> {
    Ok(format!("{BANNER}{}", serde_saphyr::to_string(definition)?))
}

/// Names of files that are missing, differ, or should not be there.
fn stale(directory: &Path, wanted: &BTreeMap<String, String>) -> anyhow::Result<BTreeSet<String>> {
    let reading = || format!("cannot read {}", directory.display());
    let mut stale: BTreeSet<String> = wanted.keys().cloned().collect();
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(stale),
        Err(error) => return Err(error).with_context(reading),
    };
    for entry in entries {
        let entry = entry.with_context(reading)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let found = fs::read_to_string(entry.path())
            .with_context(|| format!("cannot read {}", entry.path().display()))?;
        if wanted.get(&name) == Some(&found) {
            stale.remove(&name);
        } else {
            stale.insert(name);
        }
    }
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_reads_back_from_its_file_as_it_was() {
        for definition in ferromesh_crds::all() {
            let read: CustomResourceDefinition =
                serde_saphyr::from_str(&text(&definition).unwrap()).unwrap();
            assert_eq!(read, definition);
        }
    }

    #[test]
    fn the_committed_files_are_what_would_be_written() {
        let directory = crate::repository().join("crds/crds");
        let stale = stale(&directory, &files().unwrap()).unwrap();
        assert!(
            stale.is_empty(),
            "run hack/crds and commit what it writes: {stale:?}"
        );
    }

    #[test]
    fn a_file_that_is_missing_edited_or_left_over_is_stale() {
        let directory = std::env::temp_dir().join(format!("xtask-crds-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("good"), "1").unwrap();
        fs::write(directory.join("edited"), "1").unwrap();
        fs::write(directory.join("left-over"), "1").unwrap();
        let wanted = [("good", "1"), ("edited", "2"), ("missing", "3")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into();
        let stale = stale(&directory, &wanted).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(
            stale.into_iter().collect::<Vec<_>>(),
            ["edited", "left-over", "missing"]
        );
    }
}
