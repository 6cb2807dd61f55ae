//! Running the binary, and directories to run it on.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run came to.
#[derive(Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary.
pub(crate) fn meshctl<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Ran {
    with_input(arguments, "")
}

/// Runs the binary on a machine that has no list of certificate authorities.
pub(crate) fn without_authorities<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Ran {
    let mut command = command(arguments);
    command.env("SSL_CERT_FILE", "/dev/null");
    run(command.env_remove("SSL_CERT_DIR"), "")
}

/// Runs the binary with a text on its stdin.
pub(crate) fn with_input<A: AsRef<std::ffi::OsStr>>(arguments: &[A], input: &str) -> Ran {
    run(&mut command(arguments), input)
}

fn command<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshctl"));
    command.args(arguments).env_remove("KUBECONFIG");
    command
}

fn run(command: &mut Command, input: &str) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    /// The JSON document on stdout of a run that found nothing wrong.
    pub(crate) fn json(&self) -> Value {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// An empty directory of a test's own.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::remove_dir_all(&path).ok();
    fs::create_dir_all(&path).unwrap();
    path
}

/// A directory of a test's own with these files.
pub(crate) fn files<const N: usize>(name: &str, files: [(&str, &str); N]) -> PathBuf {
    let path = directory(name);
    for (file, text) in files {
        let file = path.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    path
}

/// Every scenario of the corpus.
pub(crate) fn scenarios() -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let found: Vec<_> = directories(&corpus)
        .iter()
        .flat_map(|area| directories(area))
        .collect();
    assert!(!found.is_empty(), "the corpus is empty");
    found
}

/// The scenarios that have objects of the management cluster.
pub(crate) fn inputs() -> Vec<PathBuf> {
    let mut found = scenarios();
    found.retain(|scenario| scenario.join("input").is_dir());
    found
}

/// The directories in a directory, by name; none where there is none.
pub(crate) fn directories(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(path)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    found.retain(|path| path.is_dir());
    found.sort();
    found
}

/// What a scenario expects; an empty list where it expects nothing.
pub(crate) fn expected(scenario: &Path, name: &str) -> Value {
    match fs::read_to_string(scenario.join(format!("expect/{name}.yaml"))) {
        Ok(text) => serde_saphyr::from_str(&text).unwrap(),
        Err(_) => Value::Array(Vec::new()),
    }
}

/// Every document of a directory's files, as text.
pub(crate) fn documents(path: &Path) -> Vec<String> {
    let mut files: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .flat_map(|file| {
            let text = fs::read_to_string(file).unwrap();
            text.split("\n---\n").map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}
