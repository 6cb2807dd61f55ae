//! Somebody else keeps changing an object of ours: how long to wait before it is put right again.
//!
//! The first time it is put right at once. After that ever later, so that two writers who cannot agree do
//! not wear down the API server.

use std::time::Duration;

use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use tokio::time::Instant;

use crate::report::Outcome;

/// So many repairs make it a contest.
const CONTESTED: u32 = 3;

/// After so long without a change by others it is over. Longer than the longest wait.
const QUIET: Duration = Duration::from_mins(10);

const SCHEDULE: Schedule = Schedule {
    first: Duration::from_secs(1),
    longest: Duration::from_mins(5),
    quiet: Duration::from_mins(20),
};

/// What has been put right of one object of late.
#[derive(Debug)]
pub(crate) struct Contest {
    repairs: u32,
    backoff: ExponentialBackoff,
    by: Option<String>,
    until: Instant,
    /// It is going to be put right.
    is_open: bool,
}

impl Contest {
    pub(crate) fn new(jitter: Jitter, now: Instant) -> Self {
        Self {
            repairs: 0,
            backoff: ExponentialBackoff::new(SCHEDULE, jitter),
            by: None,
            until: now + QUIET,
            is_open: false,
        }
    }

    /// It does not stand as it should. Returns when it is to be put right, unless that is known already.
    pub(crate) fn drifted(&mut self, by: Option<String>, now: Instant) -> Option<Instant> {
        self.by = by.or(self.by.take());
        if self.is_open {
            return None;
        }
        self.is_open = true;
        self.until = now + QUIET;
        Some(match self.repairs {
            0 => now,
            _ => now + self.backoff.delay(),
        })
    }

    /// It has been put right.
    pub(crate) fn repaired(&mut self, now: Instant) {
        self.repairs = self.repairs.saturating_add(u32::from(self.is_open));
        self.is_open = false;
        self.until = now + QUIET;
    }

    /// There is nothing to put right, without our doing.
    pub(crate) fn settled(&mut self) {
        self.is_open = false;
    }

    /// Whether it has not been changed for so long that the next time counts as the first.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    /// When it may be over.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// What to tell of it, once it has been put right so often that somebody should know.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let outcome = || Outcome::Contested {
            by: self.by.clone(),
            field: None,
        };
        (self.repairs >= CONTESTED).then(outcome)
    }
}
