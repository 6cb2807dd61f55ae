//! Regular expressions: whether Envoy can compile them, found out at a bounded cost.
//!
//! An expression of a few letters can stand for a program of any size, and one of many letters takes
//! long to read. So the expressions of a policy have room together, and each is looked at once.

use std::collections::BTreeMap;
use std::fmt;

use regex::RegexBuilder;

use crate::model::reject::{Code, Door};

/// Sizes up to which an expression is compiled, in bytes, one after the other: what it takes of the
/// room is the size that it fitted into.
const SIZES: [usize; 3] = [64 << 10, 1 << 20, LARGEST];
/// One that is larger cannot be compiled.
const LARGEST: usize = 10 << 20;
/// Room for the compiled expressions of one policy, in bytes: 256 small ones.
const MAX_COMPILED: usize = 16 << 20;
/// Room for the expressions of one policy as they are written, in bytes.
const MAX_WRITTEN: usize = 32 << 10;

/// The regular expressions of one policy.
pub(super) struct Expressions<'a> {
    /// Those that were looked at; or what is wrong with them.
    known: BTreeMap<&'a str, Result<(), String>>,
    compiled: usize,
    written: usize,
    is_told: bool,
}

impl<'a> Expressions<'a> {
    pub(super) fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            compiled: MAX_COMPILED,
            written: MAX_WRITTEN,
            is_told: false,
        }
    }

    /// Envoy refuses a route whose expression it cannot compile, and the whole configuration with it.
    pub(super) fn check(&mut self, door: &mut Door, path: fmt::Arguments<'_>, pattern: &'a str) {
        if pattern.is_empty() {
            let message = "is an empty regular expression, which Istio refuses; write `.*` for any";
            door.refuse(path, Code::Invalid, message);
            return;
        }
        if !self.known.contains_key(pattern) {
            let Some(found) = self.compile(pattern) else {
                if !self.is_told {
                    self.is_told = true;
                    let message = "the regular expressions of the policy are too long or too large to be looked at together; split the policy, or use prefix and exact";
                    door.refuse(path, Code::TooLarge, message);
                }
                return;
            };
            self.known.insert(pattern, found);
        }
        if let Some(Err(reason)) = self.known.get(pattern) {
            let message = format!("`{pattern}` is not a regular expression (RE2 syntax): {reason}");
            door.refuse(path, Code::Invalid, message);
        }
    }

    /// Whether it can be compiled, or why not; none where there is no room left for it.
    fn compile(&mut self, pattern: &str) -> Option<Result<(), String>> {
        self.written = self.written.checked_sub(pattern.len())?;
        for size in SIZES {
            let left = self.compiled.checked_sub(size)?;
            let result = RegexBuilder::new(pattern).size_limit(size).build();
            if matches!(result, Err(regex::Error::CompiledTooBig(_))) && size < LARGEST {
                continue;
            }
            self.compiled = left;
            return Some(result.map(drop).map_err(|error| reason(&error)));
        }
        None
    }
}

/// The gist of what the compiler says, which quotes the expression first.
fn reason(error: &regex::Error) -> String {
    let told = error.to_string();
    let gist = told.lines().last().unwrap_or("cannot be compiled").trim();
    gist.strip_prefix("error: ").unwrap_or(gist).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Vec<(String, Code)> {
        let mut door = Door::default();
        let mut expressions = Expressions::new();
        for (at, pattern) in patterns.into_iter().enumerate() {
            expressions.check(&mut door, format_args!("{at}"), pattern);
        }
        let rejections = door.close().into_iter();
        rejections.map(|it| (it.path, it.code)).collect()
    }

    #[test]
    fn as_many_small_expressions_as_a_policy_has_matchers_find_room() {
        let paths: Vec<_> = (0..256)
            .map(|at| format!("/api/v{at}/(users|orders)/[^/]+"))
            .collect();
        assert_eq!(checked(paths.iter().map(String::as_str)), []);
    }

    #[test]
    fn expressions_that_stand_for_large_programs_find_no_room_together() {
        let large: Vec<_> = (0..40).map(|at| format!("(\\w{{{at}}}){{90}}")).collect();
        let told = checked(large.iter().map(String::as_str));
        assert_eq!(told.last().map(|(_, code)| *code), Some(Code::TooLarge));
        let too_large = told.iter().filter(|(_, code)| *code == Code::TooLarge);
        assert_eq!(too_large.count(), 1, "it is said once");
    }

    #[test]
    fn an_expression_that_is_longer_than_all_may_be_is_not_looked_at() {
        let long = "[\\pL\\pN]".repeat(5_000);
        assert_eq!(checked([&*long]), [("0".to_owned(), Code::TooLarge)]);
    }

    #[test]
    fn the_same_expression_is_looked_at_once_and_told_of_each_time() {
        let told = checked(std::iter::repeat_n("(", 500));
        assert_eq!(told.len(), 500);
        let fine = checked(std::iter::repeat_n("(a{100}){100}", 500));
        assert_eq!(fine, []);
    }
}
