//! `docs/cli.md`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bench::{directory, meshctl};

/// What a `--help` offers: its commands and its options.
fn offered(help: &str) -> (Vec<String>, Vec<String>) {
    let mut commands = Vec::new();
    let mut options = Vec::new();
    let mut is_list = false;
    for line in help.lines() {
        if !line.starts_with(' ') {
            is_list = line == "Commands:";
        }
        let words = line.split_whitespace().map(|word| word.trim_matches(','));
        if let (true, Some(command)) = (is_list, words.clone().next()) {
            commands.extend((command != "Commands:").then(|| command.to_owned()));
        }
        // Long options are indented and named before anything else.
        options.extend(
            words
                .take_while(|word| word.starts_with('-') || word.starts_with('<'))
                .filter(|word| word.starts_with("--"))
                .map(|word| word.trim_end_matches("...").to_owned()),
        );
    }
    (commands, options)
}

/// Every command with its options.
fn all(path: &[&str], found: &mut Vec<(String, Vec<String>)>) {
    let help = meshctl(&[path, &["--help"]].concat());
    assert_eq!(help.code, 0, "{path:?}");
    let (commands, options) = offered(&help.stdout);
    if commands.is_empty() {
        found.push((path.join(" "), options));
    }
    for command in commands {
        all(&[path, &[&*command]].concat(), found);
    }
}

#[test]
fn the_manual_names_every_command_every_option_and_every_exit_code() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let manual = fs::read_to_string(manual).unwrap();
    let mut found = Vec::new();
    all(&[], &mut found);
    assert!(found.len() > 10, "{found:?}");
    for (command, options) in found {
        assert!(manual.contains(&format!("`meshctl {command}")), "{command}");
        assert!(options.len() > 4, "{command}: {options:?}");
        for option in options {
            let quoted = [format!("`{option}`"), format!("`{option} ")];
            let is_told = quoted.iter().any(|quoted| manual.contains(quoted));
            assert!(is_told || option == "--help", "{command} {option}");
        }
    }
    for code in 0..=5 {
        assert!(manual.contains(&format!("\n| {code} | ")), "{code}");
    }
}

/// The commands of a console block, each with what it answers.
fn answers(block: &str) -> Vec<(&str, String)> {
    let mut answers: Vec<(&str, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), answers.last_mut()) {
            (Some(command), _) => answers.push((command, String::new())),
            (None, Some((_, answer))) => {
                answer.push_str(line);
                answer.push('\n');
            }
            (None, None) => panic!("no command comes before {line}"),
        }
    }
    answers
}

/// Whether a command needs nothing but files.
fn is_over_files(command: &str) -> bool {
    let over_files = [
        "printf ",
        "meshctl validate ",
        "meshctl translate ",
        "meshctl discover ",
        "meshctl version --client",
    ];
    over_files.iter().any(|start| command.starts_with(start))
}

#[cfg(unix)]
#[test]
fn what_the_manual_shows_over_files_is_what_comes_out() {
    let docs = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")).unwrap();
    let manual = fs::read_to_string(docs.join("cli.md")).unwrap();
    let place = directory("manual");
    std::os::unix::fs::symlink(docs, place.join("docs")).unwrap();
    let meshctl = Path::new(env!("CARGO_BIN_EXE_meshctl")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", meshctl.display());
    let mut shown = 0;
    let blocks = manual.split("```console\n").skip(1);
    for (command, expected) in blocks.flat_map(|block| answers(block.split("```").next().unwrap()))
    {
        if !is_over_files(command) {
            continue;
        }
        let ran = Command::new("sh")
            .args(["-c", command])
            .env("PATH", &path)
            .current_dir(&place)
            .output()
            .unwrap();
        let told = String::from_utf8([ran.stderr, ran.stdout].concat()).unwrap();
        // What is left out is told by a line of its own.
        let is_shown = match expected.split_once("…\n") {
            Some((start, end)) => told.starts_with(start) && told.ends_with(end),
            None => told == expected,
        };
        assert!(is_shown, "{command}\n{told}\nis not\n{expected}");
        shown += 1;
    }
    assert!(shown > 6, "{shown}");
}
