//! Delays between attempts: exponential, capped, with jitter from a generator that the caller passes.
//!
//! The same seed gives the same delays, so that a simulation can be repeated byte by byte.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use kube::runtime::utils::Backoff;
use tokio::time::Instant;

/// A tiny deterministic generator (`SplitMix64`, by Steele, Lea and Flood) for spreading moments in time.
///
/// Not for anything secret.
#[derive(Clone, Debug)]
pub struct Jitter(u64);

impl Jitter {
    /// The generator that `seed` names; equal seeds give equal sequences.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator that differs from process to process.
    pub fn from_entropy() -> Self {
        Self(RandomState::new().hash_one("jitter"))
    }

    /// A generator of its own for one more user, so that users do not shift each other's sequences.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number in `0.0..1.0`.
    pub fn fraction(&mut self) -> f64 {
        let [a, b, c, d, ..] = self.next().to_be_bytes();
        f64::from(u32::from_be_bytes([a, b, c, d])) / (f64::from(u32::MAX) + 1.0)
    }

    /// `base` and up to `share` of it on top: `spread(10 s, 0.2)` lies in 10 s to 12 s.
    pub fn spread(&mut self, base: Duration, share: f64) -> Duration {
        base + base.mul_f64(self.fraction() * share)
    }
}

/// The shape of an [`ExponentialBackoff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The first delay, before jitter.
    pub first: Duration,
    /// No delay is longer than this, jitter included.
    pub longest: Duration,
    /// When no delay has been asked for during this time, the next one is `first` again.
    pub quiet: Duration,
}

/// 0.5 s doubling to at most 30 s; from the start again after two quiet minutes.
impl Default for Schedule {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
            quiet: Duration::from_mins(2),
        }
    }
}

/// Delays that double until the longest one, each of them shortened by up to half at random.
///
/// An endless iterator. It starts over on [`Backoff::reset`] and after a quiet period.
#[derive(Clone, Debug)]
pub struct ExponentialBackoff {
    schedule: Schedule,
    jitter: Jitter,
    ceiling: Duration,
    /// When the delay that was given last is over.
    due: Option<Instant>,
}

impl ExponentialBackoff {
    /// A backoff of this shape.
    pub fn new(schedule: Schedule, jitter: Jitter) -> Self {
        Self {
            ceiling: schedule.first,
            schedule,
            jitter,
            due: None,
        }
    }

    /// The next delay. Reads Tokio's clock for the quiet period.
    pub fn delay(&mut self) -> Duration {
        let now = Instant::now();
        if self
            .due
            .is_some_and(|due| now.saturating_duration_since(due) >= self.schedule.quiet)
        {
            self.ceiling = self.schedule.first;
        }
        let ceiling = self.ceiling.min(self.schedule.longest);
        self.ceiling = ceiling.saturating_mul(2).min(self.schedule.longest);
        let delay = ceiling.mul_f64(1.0 - self.jitter.fraction() / 2.0);
        self.due = Some(now + delay);
        delay
    }
}

impl Iterator for ExponentialBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.delay())
    }
}

impl Backoff for ExponentialBackoff {
    fn reset(&mut self) {
        self.ceiling = self.schedule.first;
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff(seed: u64) -> ExponentialBackoff {
        ExponentialBackoff::new(Schedule::default(), Jitter::seeded(seed))
    }

    #[tokio::test(start_paused = true)]
    async fn equal_seeds_give_equal_delays() {
        let one: Vec<_> = backoff(7).take(20).collect();
        let same: Vec<_> = backoff(7).take(20).collect();
        let other: Vec<_> = backoff(8).take(20).collect();
        assert_eq!(one, same);
        assert_ne!(one, other);
    }

    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_the_longest_and_are_shortened_by_at_most_half() {
        let mut ceiling = Duration::from_millis(500);
        for delay in backoff(1).take(12) {
            assert!(
                delay <= ceiling && delay >= ceiling / 2,
                "{delay:?} of {ceiling:?}"
            );
            ceiling = (ceiling * 2).min(Duration::from_secs(30));
        }
        assert_eq!(ceiling, Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_period_starts_the_delays_over() {
        let mut backoff = backoff(1);
        let tenth = backoff.nth(9).unwrap();
        assert!(tenth >= Duration::from_secs(15));

        tokio::time::advance(tenth + Duration::from_secs(119)).await;
        assert!(
            backoff.delay() >= Duration::from_secs(15),
            "not quiet for long enough"
        );

        tokio::time::advance(Duration::from_secs(30 + 120)).await;
        assert!(backoff.delay() <= Duration::from_millis(500));
    }

    #[tokio::test(start_paused = true)]
    async fn reset_starts_the_delays_over() {
        let mut backoff = backoff(1);
        assert!(backoff.nth(9).unwrap() >= Duration::from_secs(15));
        backoff.reset();
        assert!(backoff.delay() <= Duration::from_millis(500));
    }

    #[test]
    fn fractions_stay_below_one_and_forks_differ() {
        let mut jitter = Jitter::seeded(3);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&jitter.fraction())));
        let (mut one, mut other) = (jitter.fork(), jitter.fork());
        assert_ne!(one.next(), other.next());
    }

    #[test]
    fn spread_adds_at_most_its_share() {
        let mut jitter = Jitter::seeded(3);
        let base = Duration::from_secs(10);
        assert!((0..1000).all(|_| {
            let spread = jitter.spread(base, 0.2);
            spread >= base && spread < Duration::from_secs(12)
        }));
    }
}
