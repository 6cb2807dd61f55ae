//! How the binary is called, and what it answers to wrong calls.

use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::bench::{files, meshctl};

#[test]
fn a_wrong_call_ends_with_2_and_says_what_to_write() {
    for (arguments, hint) in [
        (&["translate"][..], "--filename"),
        (&["translate", "-f", "/nowhere/at/all"], "/nowhere/at/all"),
        (&["translate", "-f", ".", "-o", "xml"], "yaml, json"),
        (&["discover", "-o", "json"], "--cluster"),
        (&["discover", "--cluster", "east"], "NAME=PATH"),
        (
            &["discover", "--cluster", "East=."],
            "`East` is not a cluster name",
        ),
        (&["discover", "--cluster", "east=/nowhere"], "/nowhere"),
        (&["transalte"], "translate"),
        (&["get", "mesh", "--kubeconfig", "/nowhere"], "/nowhere"),
        (&["get", "moosh"], "virtualmesh"),
        (&["check", "--only", "X9"], "K1"),
        (
            &["check", "--only", "K1", "--skip", "K1"],
            "leaves no check",
        ),
        (
            &["discover", "--cluster", "east=-", "--cluster", "west=-"],
            "stdin",
        ),
        (&["discover", "--cluster", "east=-", "-f", "-"], "stdin"),
        (&["completion", "cobol"], "bash"),
        (
            &["translate", "-f", ".", "--request-timeout", "soon"],
            "duration",
        ),
    ] {
        let ran = meshctl(arguments);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {ran:?}"
        );
        assert!(ran.stderr.contains(hint), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn completions_are_written_for_each_shell() {
    for (shell, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef meshctl"),
        ("fish", "complete -c meshctl"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let ran = meshctl(&["completion", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert!(ran.stdout.contains(word), "{shell}");
        assert!(ran.stdout.contains("translate"), "{shell}");
    }
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let mesh = |at| {
        format!(
            "---\napiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Mesh\n\
             metadata: {{name: m-{at}, namespace: gloo-mesh}}\nspec: {{istio: {{}}}}\n"
        )
    };
    let text: String = (0..5_000).map(mesh).collect();
    let path = files("many", [("all.yaml", &*text)]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_meshctl"))
        .args(["translate", "-f", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let mut told = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert_eq!((child.wait().unwrap().code(), told.as_str()), (Some(0), ""));
}
