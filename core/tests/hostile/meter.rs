//! What something costs: the time of this thread on a processor, and the memory of this process.
//!
//! Other programs on the machine cost time too, so a clock on the wall would tell of them. Where the
//! operating system does not tell (other than Linux), nothing seems to cost anything.

use std::fs;
use std::time::Duration;

/// What something has cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) time: Duration,
    /// Bytes at the most beyond what there was before.
    pub(crate) memory: u64,
}

/// Does something and tells what it has cost.
pub(crate) fn measured<T>(something: impl FnOnce() -> T) -> (T, Cost) {
    // Linux: from here on the peak is counted anew (proc(5)).
    let counts = fs::write("/proc/self/clear_refs", "5").is_ok();
    let memory_before = memory("VmRSS:").unwrap_or_default();
    let before = processor().unwrap_or_default();
    let done = something();
    let time = processor().unwrap_or_default().saturating_sub(before);
    let peak = memory("VmHWM:").filter(|_| counts).unwrap_or_default();
    let memory = peak.saturating_sub(memory_before);
    (done, Cost { time, memory })
}

fn processor() -> Option<Duration> {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = told.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

fn memory(field: &str) -> Option<u64> {
    let told = fs::read_to_string("/proc/self/status").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}
