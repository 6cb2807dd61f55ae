//! What is measured, and how it is written.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

/// Figures by name.
#[derive(Debug, Default)]
pub(crate) struct Figures(Map<String, Value>);

impl Figures {
    /// One time.
    pub(crate) fn time(&mut self, name: &str, time: Duration) {
        self.number(name, time.as_micros());
    }

    /// Median, 99th percentile and longest of many times.
    pub(crate) fn times(&mut self, name: &str, mut times: Vec<Duration>) {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
        let (p50, p99, max) = (at(50), at(99), at(100));
        let figure = json!({ "p50": u64_of(p50), "p99": u64_of(p99), "max": u64_of(max), "of": times.len() });
        self.0.insert(name.to_owned(), figure);
    }

    /// A count, or a size in bytes.
    pub(crate) fn number(&mut self, name: &str, number: u128) {
        self.0.insert(name.to_owned(), u64_of(number).into());
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Value::Object(self.0.clone()))
    }
}

fn u64_of(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// How long something takes, and what comes of it.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let made = work();
    (start.elapsed(), made)
}

/// Memory of this process in bytes: what is resident now, and the most that ever was.
pub(crate) fn memory() -> anyhow::Result<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").context("reading memory")?;
    let kilobytes = |name: &str| -> anyhow::Result<u64> {
        let line = status.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        Ok(number.context("a field of /proc/self/status")?.parse()?)
    };
    Ok((kilobytes("VmRSS:")? * 1024, kilobytes("VmHWM:")? * 1024))
}
