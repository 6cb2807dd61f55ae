//! Which files there are. Everything is bounded: what can be cloned from anywhere may hold anything.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::STDIN;
use super::part::MAX_FILE;
use crate::error::Error;

/// The most directories and files that are looked at.
const MAX_ENTRIES: usize = 100_000;
/// How deep directories may lie in each other.
const MAX_DEPTH: usize = 64;
/// How much is read in all, in bytes: dumps of a hundred clusters of usual size.
const MAX_TOTAL: u64 = 4 << 30;

/// What paths lead to.
#[derive(Default)]
pub(super) struct Walk {
    /// The files to read, in an order that depends on their names alone.
    pub(super) files: Vec<PathBuf>,
    /// What cannot be looked at, and why.
    pub(super) faults: Vec<(PathBuf, String)>,
    /// Directories that were asked for and hold nothing to read.
    pub(super) empty: Vec<PathBuf>,
    /// Directories and files by what they are: links may lead to one of them twice, or in circles.
    seen: BTreeSet<PathBuf>,
    entries: usize,
    /// The size of the files, in bytes.
    total: u64,
}

impl Walk {
    /// Finds the files that a path leads to, which somebody has asked for by name.
    pub(super) fn find(&mut self, path: &Path) -> Result<(), Error> {
        if path == Path::new(STDIN) {
            if self.seen.insert(path.to_owned()) {
                self.files.push(path.to_owned());
            }
            return Ok(());
        }
        let failed = |source| Error::Path {
            path: path.to_owned(),
            source,
        };
        let metadata = fs::metadata(path).map_err(failed)?;
        if metadata.is_dir() {
            let (files, faults) = (self.files.len(), self.faults.len());
            let is_new = self.directory(path, 0).map_err(failed)?;
            if is_new && (files, faults) == (self.files.len(), self.faults.len()) {
                self.empty.push(path.to_owned());
            }
        } else if self.is_new(path).map_err(failed)? {
            self.file(path, metadata.len());
        }
        Ok(())
    }

    /// Walks through a directory; says whether it is seen for the first time.
    fn directory(&mut self, directory: &Path, depth: usize) -> io::Result<bool> {
        if !self.is_new(directory)? {
            return Ok(false);
        }
        let mut paths = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                paths.push(entry.path());
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                let problem =
                    format!("is not read: there are more than {MAX_ENTRIES} files before it");
                self.faults.push((directory.to_owned(), problem));
                return Ok(true);
            }
        }
        paths.sort();
        for path in paths {
            if let Err(error) = self.entry(&path, depth) {
                self.faults.push((path, error.to_string()));
            }
        }
        Ok(true)
    }

    fn entry(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            // A link that leads nowhere, or to itself, is nothing that was to be read.
            Err(_) if !is_manifest(path) => return Ok(()),
            Err(error) => return Err(error),
        };
        if metadata.is_dir() && depth == MAX_DEPTH {
            let problem = format!("is not read: it lies {MAX_DEPTH} directories deep");
            self.faults.push((path.to_owned(), problem));
        } else if metadata.is_dir() {
            self.directory(path, depth + 1)?;
        } else if metadata.is_file() && is_manifest(path) && self.is_new(path)? {
            self.file(path, metadata.len());
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, size: u64) {
        // Of a larger one no more is looked at.
        let total = self.total + size.min(MAX_FILE);
        if total > MAX_TOTAL {
            let problem = format!(
                "is not read: with it, it would be more than {} GiB",
                MAX_TOTAL >> 30
            );
            self.faults.push((path.to_owned(), problem));
        } else {
            self.total = total;
            self.files.push(path.to_owned());
        }
    }

    fn is_new(&mut self, path: &Path) -> io::Result<bool> {
        Ok(self.seen.insert(fs::canonicalize(path)?))
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        let known = ["yaml", "yml", "json"];
        known.iter().any(|it| extension.eq_ignore_ascii_case(it))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn no_more_is_read_than_there_is_room_for() {
        let directory = std::env::temp_dir().join(format!("meshctl-walk-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        for at in 0..18 {
            // Files with nothing in them take no room.
            let file = File::create(directory.join(format!("{at:02}.yaml"))).unwrap();
            file.set_len(MAX_FILE + at).unwrap();
        }
        let mut walk = Walk::default();
        walk.find(&directory).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(walk.files.len(), 16);
        let (path, problem) = &walk.faults[0];
        assert!(path.ends_with("16.yaml"), "{path:?}");
        assert_eq!(problem, "is not read: with it, it would be more than 4 GiB");
        assert_eq!(walk.faults.len(), 2);
    }
}
