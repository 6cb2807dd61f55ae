//! What is done to the clusters themselves, by `hack/testbed`.

use std::path::Path;
use std::process::{Command, Stdio};

/// Ends the API server of a cluster at once.
pub fn stop(cluster: usize) {
    run("stop", cluster, &[]);
}

/// Starts the API server that was stopped, and waits until it is ready.
pub fn start(cluster: usize) {
    run("start", cluster, &[]);
}

/// Has the API server of a cluster hang.
pub fn pause(cluster: usize) {
    run("pause", cluster, &[]);
}

/// Has the API server of a cluster go on that hangs.
pub fn resume(cluster: usize) {
    run("resume", cluster, &[]);
}

/// Saves what the etcd of a cluster holds.
pub fn snapshot(cluster: usize, file: &Path) {
    run("snapshot", cluster, &[file.to_str().unwrap()]);
}

/// Has the etcd of a cluster go back to a snapshot, as an operator does it (`etcdutl snapshot restore
/// --bump-revision 1000000000 --mark-compacted`), and its API server start anew.
pub fn restore(cluster: usize, file: &Path) {
    run("restore", cluster, &[file.to_str().unwrap()]);
}

/// As [`restore`], but revisions go back in time, too.
pub fn rewind(cluster: usize, file: &Path) {
    run(
        "restore",
        cluster,
        &[file.to_str().unwrap(), "--bump-revision=0"],
    );
}

/// Runs kubectl against a cluster, which must succeed, and returns what it says.
pub fn kubectl(cluster: usize, arguments: &[&str]) -> String {
    run("kubectl", cluster, arguments)
}

fn run(command: &str, cluster: usize, arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let done = Command::new(root.join("hack/testbed"))
        .args([command, &(cluster + 1).to_string()])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "hack/testbed {command} of cluster {cluster}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}
