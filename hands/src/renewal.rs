//! When a certificate has lived long enough.

use ferromesh_ca::bundle::TrustBundle;
use ferromesh_ca::certificate::Certificate;
use jiff::{SignedDuration, Timestamp};

/// The share of its life that is left when a certificate is renewed, unless the user says otherwise.
const DEFAULT: f64 = 1.0 / 3.0;
/// More than this would renew for ever: a certificate starts an hour before it is issued, and may be
/// given a day.
const LARGEST: f64 = 0.8;
/// How much longer than the old certificate a new one must live to be worth it. Certificates end an
/// hour before their root.
const LEAST_GAIN: SignedDuration = SignedDuration::from_hours(2);

/// The share of its life that is left when a certificate is renewed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(f64);

impl Share {
    /// The share that the user asks for: between 0 and 0.8; 0 and what is no number stand for a third.
    pub fn new(asked: f64) -> Self {
        if asked > 0.0 {
            Self(asked.min(LARGEST))
        } else {
            Self(DEFAULT)
        }
    }
}

/// The life of a certificate that signs leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// From its first to its last instant.
    pub whole: SignedDuration,
    /// Its last instant.
    pub not_after: Timestamp,
    /// The last instant of the last root above it.
    pub root_not_after: Timestamp,
}

impl Life {
    /// The life of `certificate` below `roots`.
    pub fn of(certificate: &Certificate, roots: &TrustBundle) -> Self {
        let root_not_after = roots.roots().iter().map(Certificate::not_after).max();
        Self {
            whole: certificate.life(),
            not_after: certificate.not_after(),
            root_not_after: root_not_after.unwrap_or(certificate.not_after()),
        }
    }

    /// Whether it is time for a new one, and a new one would live longer: one under a root that ends
    /// would not.
    pub fn is_due(&self, share: Share, now: Timestamp) -> bool {
        let left = self.not_after.duration_since(now);
        let gain = self.root_not_after.duration_since(self.not_after);
        left <= self.whole.mul_f64(share.0) && gain >= LEAST_GAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    /// Issued at hour 1 for 90 hours.
    fn life(root_not_after: i64) -> Life {
        Life {
            whole: SignedDuration::from_hours(90),
            not_after: hours(90),
            root_not_after: hours(root_not_after),
        }
    }

    #[test]
    fn a_third_of_its_life_is_left_when_a_certificate_is_renewed() {
        let third = Share::new(0.0);
        assert!(!life(900).is_due(third, hours(59)));
        assert!(life(900).is_due(third, hours(61)));
        assert!(life(900).is_due(third, hours(1000)));
        assert!(!life(900).is_due(Share::new(0.1), hours(80)));
        assert!(life(900).is_due(Share::new(0.1), hours(82)));
    }

    #[test]
    fn a_certificate_that_ends_with_its_root_is_not_renewed() {
        assert!(!life(91).is_due(Share::new(0.0), hours(89)));
    }

    #[test]
    fn no_share_makes_a_new_certificate_due_at_once() {
        for asked in [0.8, 1.0, f64::INFINITY, f64::NAN, -1.0] {
            // A day, and the hour before.
            let short = Life {
                whole: SignedDuration::from_hours(25),
                not_after: hours(25),
                root_not_after: hours(1000),
            };
            assert!(!short.is_due(Share::new(asked), hours(1)), "{asked}");
        }
    }
}
