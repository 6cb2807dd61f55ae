//! Texts that somebody might give for manifests.

use serde_json::Value;

use crate::bomb::{aliases, repeated_text};
use crate::dice::Dice;

/// Pieces of YAML, put together without sense.
const PIECES: &[&str] = &[
    "---\n",
    "--- |\n",
    "...\n",
    "- ",
    "? ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&a ",
    "*a",
    "!!str ",
    "!!binary ",
    "!<tag:x> ",
    "|+\n",
    ">-\n",
    "\"",
    "'",
    "#",
    "%YAML 1.2\n",
    "%TAG ! x\n",
    "<<: *a\n",
    "\t",
    "\r\n",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\0",
    "  ",
    "\n",
    "apiVersion: v1\n",
    "kind: List\n",
    "items:\n",
    "kind: TrafficPolicy\n",
    "apiVersion: networking.mesh.gloo.solo.io/v1\n",
    "metadata: {name: a}\n",
    "spec: ",
    "0x",
    "1e999",
    "null",
    "~",
    "\\x",
    "\\u{d800}",
    "!include x",
    "${x}",
    "😀",
    "a",
    "=",
];

/// What stands in a file for an object, or where one should be.
pub(crate) fn text(dice: &mut Dice, object: &Value) -> String {
    match dice.below(10) {
        0 => pieces(dice),
        1 => cut(dice, &object.to_string()),
        2 => cut(dice, &serde_saphyr::to_string(object).unwrap_or_default()),
        3 => overgrown(dice),
        4 => format!("{object}\n---\n{}", pieces(dice)),
        5 => in_lists(dice, object),
        _ => object.to_string(),
    }
}

fn pieces(dice: &mut Dice) -> String {
    let count = dice.below(60);
    (0..count).map(|_| *dice.pick(PIECES)).collect()
}

/// A text that ends early, or of which a piece is another.
fn cut(dice: &mut Dice, text: &str) -> String {
    let at = text.floor_char_boundary(dice.below(text.len() + 1));
    if dice.one_in(2) {
        return text[..at].to_owned();
    }
    format!("{}{}{}", &text[..at], pieces(dice), &text[at..])
}

/// Lists of lists of an object.
fn in_lists(dice: &mut Dice, object: &Value) -> String {
    let mut object = object.clone();
    for _ in 0..dice.below(70) {
        object = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": [object] });
    }
    object.to_string()
}

/// More than is read.
fn overgrown(dice: &mut Dice) -> String {
    let many = *dice.pick(&[100, 3_000, 60_000]);
    match dice.below(12) {
        0 => "[".repeat(many),
        1 => "{a: ".repeat(many),
        2 => "- ".repeat(many),
        3 => {
            let lines = (0..many.min(1_500)).map(|at| " ".repeat(at) + "a:");
            lines.collect::<Vec<_>>().join(
                "
",
            )
        }
        4 => aliases(dice.below(12)),
        5 => repeated_text(many * 16),
        6 => "---\n".repeat(many),
        7 => "a: &a [*a]\n".repeat(many),
        8 => format!("a: {}", "\"\\n".repeat(many)),
        9 => format!("\"{}", "\\u0000".repeat(many)),
        10 => format!(
            "kind: List\nitems: [{}]",
            "{kind: List, items: []}, ".repeat(many)
        ),
        _ => "x: 1\n".repeat(many),
    }
}
