//! Warnings as an API client shows them: short lines, not too many, the most important first.

use std::collections::BTreeSet;

/// Most characters of one warning (Kubernetes: admission responses, "limit warnings to 120
/// characters if possible").
const MAX_CHARACTERS: usize = 120;
/// Most bytes of all warnings of one answer. API servers cut warnings short once they exceed
/// 4 KiB together with those of other webhooks.
const MAX_BYTES: usize = 2048;

/// Most lines of one text; what is longer is cut.
const MAX_LINES: usize = 3;
/// What a line begins with that continues the one before.
const CONTINUED: &str = "… ";
/// What a text ends with that was cut.
const CUT: &str = "…";
/// Bytes that are kept for saying how much was left out.
const RESERVED: usize = 40;

/// Takes as many texts as there is room for, the first ones first, each in as many lines as it
/// needs. A text that finds no room is counted.
pub(super) fn fit<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut told = BTreeSet::new();
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    let mut omitted = 0;
    for text in texts {
        if !told.insert(text) {
            continue;
        }
        let wrapped = wrap(text);
        let size: usize = wrapped.iter().map(String::len).sum();
        if bytes + size + RESERVED > MAX_BYTES {
            omitted += 1;
            continue;
        }
        bytes += size;
        lines.extend(wrapped);
    }
    if omitted > 0 {
        lines.push(format!("{omitted} more warnings are left out"));
    }
    lines
}

/// Breaks a text into lines between words; a word that is longer than a line is broken too.
fn wrap(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    // No header takes control characters, and an API server drops a warning that has any.
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    for word in words.filter(|word| !word.is_empty()).flat_map(pieces) {
        let length = characters(&line) + 1 + characters(word);
        if line.is_empty() {
            line.push_str(word);
        } else if length <= MAX_CHARACTERS {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(std::mem::take(&mut line));
            line.push_str(CONTINUED);
            line.push_str(word);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES);
        if let Some(last) = lines.last_mut() {
            let kept: String = last
                .chars()
                .take(MAX_CHARACTERS - characters(CUT))
                .collect();
            *last = kept + CUT;
        }
    }
    lines
}

/// A word in pieces that fit into a line, with room for the mark of a continued one.
fn pieces(word: &str) -> impl Iterator<Item = &str> {
    let most = MAX_CHARACTERS - characters(CONTINUED);
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .char_indices()
            .nth(most)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fitted(texts: &[&str]) -> Vec<String> {
        fit(texts.iter().copied())
    }

    #[test]
    fn short_texts_are_lines_as_they_are() {
        assert_eq!(fitted(&["one", "two"]), ["one", "two"]);
    }

    #[test]
    fn what_is_said_twice_is_said_once() {
        assert_eq!(fitted(&["one", "two", "one", ""]), ["one", "two"]);
    }

    #[test]
    fn a_long_text_goes_on_in_a_second_line() {
        let text = format!("{} end", "word ".repeat(24).trim());
        assert_eq!(
            fitted(&[&text]),
            ["word ".repeat(24).trim().to_owned(), "… end".to_owned()]
        );
    }

    #[test]
    fn a_very_long_text_is_cut() {
        let lines = fitted(&["word ".repeat(500).as_str()]);
        assert_eq!(lines.len(), MAX_LINES);
        assert!(lines[2].ends_with(CUT));
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let texts: Vec<String> = (0..100)
            .map(|n| format!("{n} {}", "x".repeat(100)))
            .collect();
        let lines = fit(texts.iter().map(String::as_str));
        assert_eq!(lines.len(), 20);
        assert_eq!(lines[19], "81 more warnings are left out");
    }

    #[test]
    fn control_characters_become_spaces() {
        assert_eq!(fitted(&["a\nb\u{7}c\t d"]), ["a b c d"]);
    }

    proptest! {
        #[test]
        fn warnings_are_bounded_and_can_be_headers(
            texts in prop::collection::vec("\\PC{0,400}|[a-z]{0,500}|(\\s|.){0,300}", 0..40)
        ) {
            let count = texts.len();
            let lines = fit(texts.iter().map(String::as_str));
            let total: usize = lines.iter().map(String::len).sum();
            prop_assert!(total <= MAX_BYTES, "{total} bytes");
            prop_assert!(lines.len() <= count * MAX_LINES + 1);
            for line in &lines {
                prop_assert!(characters(line) <= MAX_CHARACTERS, "{line}");
                prop_assert!(!line.is_empty() && !line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
}
