//! Chance, from a seed.

use std::time::Duration;

use ferromesh_runtime::backoff::Jitter;

/// Everything that is left to chance in a simulated day.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Jitter);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        let mut seeds = Jitter::seeded(seed);
        // Seeds are small numbers that differ by one.
        Self(seeds.fork())
    }

    /// Dice of its own for one more player, so that players do not shift each other's luck.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.0.fork())
    }

    /// The chance of one process.
    pub(crate) fn jitter(&mut self) -> Jitter {
        self.0.fork()
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, share: u32) -> bool {
        self.0.fraction() * 100.0 < f64::from(share)
    }

    /// A number below `bound`, which is small.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let at = self.0.fraction() * f64::from(bound);
        let number = (0..bound).find(|number| at < f64::from(*number) + 1.0);
        number.unwrap_or_default()
    }

    /// One of these, of which there is at least one.
    pub(crate) fn one<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        let count = u32::try_from(among.len()).unwrap_or(u32::MAX);
        let at = usize::try_from(self.below(count)).unwrap_or_default();
        &among[at]
    }

    /// A while, from `least` to below `most`.
    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        least + most.saturating_sub(least).mul_f64(self.0.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_up_and_none_beyond_the_bound() {
        let mut dice = Dice::new(1);
        let thrown: Vec<_> = (0..1000).map(|_| dice.below(6)).collect();
        assert!((0..6).all(|number| thrown.contains(&number)));
        assert!(thrown.iter().all(|number| *number < 6));
    }

    #[test]
    fn neighbouring_seeds_have_other_luck() {
        let thrown = |seed| -> Vec<_> {
            let mut dice = Dice::new(seed);
            (0..20).map(|_| dice.below(100)).collect()
        };
        assert_eq!(thrown(1), thrown(1));
        assert_ne!(thrown(1), thrown(2));
    }
}
