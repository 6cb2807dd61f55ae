//! `docs/cli.md`.

use std::fs;
use std::path::Path;

use crate::bench::meshctl;

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
