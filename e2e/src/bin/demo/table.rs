//! What was proven, and how long each step took.

use std::fmt;
use std::time::{Duration, Instant};

/// The steps that have been told.
#[derive(Debug, Default)]
pub(crate) struct Table {
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    title: &'static str,
    began: Instant,
    /// What was proven, and how long that took; none for a step that did not hold.
    proven: Option<(String, Duration)>,
}

impl Table {
    /// A step begins.
    pub(crate) fn begin(&mut self, title: &'static str) {
        println!("\n━━ {}. {title}", self.steps.len() + 1);
        self.steps.push(Step {
            title,
            began: Instant::now(),
            proven: None,
        });
    }

    /// The step holds.
    pub(crate) fn holds(&mut self, proven: impl Into<String>) {
        let step = self.steps.last_mut().expect("a step has begun");
        let proven = proven.into();
        println!("\n  ✔ {proven}");
        step.proven = Some((proven, step.began.elapsed()));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self
            .steps
            .iter()
            .map(|step| step.title.chars().count())
            .max();
        let width = width.unwrap_or_default();
        for (number, step) in self.steps.iter().enumerate() {
            let (sign, proven, took) = match &step.proven {
                Some((proven, took)) => ('✔', proven.as_str(), *took),
                None => ('✘', "did not hold", step.began.elapsed()),
            };
            writeln!(
                f,
                "{sign} {:>2}. {:width$}  {:>6.1} s  {proven}",
                number + 1,
                step.title,
                took.as_secs_f64()
            )?;
        }
        Ok(())
    }
}
