//! Leaves a cluster alone that cannot answer: nothing is sent for a while, then one request at a time
//! until one is answered.

use std::time::Duration;

use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use kube::runtime::utils::Backoff;
use tokio::time::Instant;

/// How many requests may be under way.
#[derive(Debug)]
pub(crate) struct Gate {
    backoff: ExponentialBackoff,
    /// Counts closings: what was sent before one says nothing about what came after.
    closings: u64,
    closed: Option<Closed>,
}

#[derive(Debug)]
struct Closed {
    until: Instant,
    is_probing: bool,
}

/// Let through when so many closings had been.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass(u64);

impl Gate {
    pub(crate) fn new(jitter: Jitter) -> Self {
        Self {
            backoff: ExponentialBackoff::new(Schedule::default(), jitter),
            closings: 0,
            closed: None,
        }
    }

    /// Whether one more request may be sent, where `in_flight` are under way and `most` may be.
    pub(crate) fn is_open(&self, now: Instant, in_flight: usize, most: usize) -> bool {
        match &self.closed {
            None => in_flight < most,
            Some(closed) => now >= closed.until && !closed.is_probing && in_flight < most,
        }
    }

    /// A request is sent.
    pub(crate) fn pass(&mut self) -> Pass {
        if let Some(closed) = &mut self.closed {
            closed.is_probing = true;
        }
        Pass(self.closings)
    }

    /// The cluster has answered, be it with a refusal.
    pub(crate) fn answered(&mut self) {
        self.closed = None;
        self.backoff.reset();
    }

    /// The cluster has not answered, or asked to be left alone, perhaps for `after`.
    pub(crate) fn failed(&mut self, pass: Pass, now: Instant, after: Option<Duration>) {
        if pass.0 < self.closings {
            return;
        }
        self.closings += 1;
        let delay = after.unwrap_or_else(|| self.backoff.delay());
        self.closed = Some(Closed {
            until: now + delay,
            is_probing: false,
        });
    }

    /// When the next request may be sent, if none may now.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let closed = self.closed.as_ref().filter(|closed| !closed.is_probing);
        closed.map(|closed| closed.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_a_failure_one_request_at_a_time_asks_whether_the_cluster_is_back() {
        let mut gate = Gate::new(Jitter::seeded(1));
        let (first, second) = (gate.pass(), gate.pass());
        gate.failed(first, Instant::now(), None);
        assert!(!gate.is_open(Instant::now(), 1, 16));
        let until = gate.next_due().unwrap();
        gate.failed(second, Instant::now(), None);
        assert_eq!(
            gate.next_due(),
            Some(until),
            "it was sent before the gate closed"
        );

        assert!(gate.is_open(until, 0, 16));
        let probe = gate.pass();
        assert!(!gate.is_open(until, 1, 16));
        gate.failed(probe, until, None);
        let later = gate.next_due().unwrap();
        assert!(later > until);
        gate.pass();
        gate.answered();
        assert!(gate.is_open(until, 15, 16));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_is_left_alone_for_as_long_as_it_asks() {
        let mut gate = Gate::new(Jitter::seeded(1));
        let pass = gate.pass();
        let now = Instant::now();
        gate.failed(pass, now, Some(Duration::from_secs(7)));
        assert_eq!(gate.next_due(), Some(now + Duration::from_secs(7)));
    }
}
