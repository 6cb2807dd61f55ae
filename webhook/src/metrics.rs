//! What is counted.

use std::time::Duration;

use ferromesh_core::Kind;
use ferromesh_core::review::judged;
use kube_core::GroupVersionKind;
use kube_core::admission::Operation;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::review::Verdict;

/// Bounds of the latency histogram in seconds: from what a small policy takes to what an API
/// server waits for.
const SECONDS: [f64; 12] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0,
];

/// Metrics of the webhook. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    reviews: Family<Review, Counter>,
    seconds: Family<Half, Histogram>,
    in_flight: Gauge,
    pub(crate) certificate_expiry: Gauge,
    pub(crate) is_registered: Gauge,
    pub(crate) has_passed_self_test: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Review {
    kind: KindLabel,
    operation: OperationLabel,
    verdict: VerdictLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Half {
    half: HalfLabel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum KindLabel {
    TrafficPolicy,
    AccessPolicy,
    VirtualMesh,
    Settings,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum OperationLabel {
    Create,
    Update,
    Delete,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum VerdictLabel {
    Allowed,
    Warned,
    Denied,
    Unfinished,
    Busy,
    SelfTest,
}

/// Which of the two webhooks is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum HalfLabel {
    Validating,
    Mutating,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            reviews: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            in_flight: Gauge::default(),
            certificate_expiry: Gauge::default(),
            is_registered: Gauge::default(),
            has_passed_self_test: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Shows the metrics in a registry.
    pub fn register(&self, registry: &mut Registry) {
        let Self {
            reviews,
            seconds,
            in_flight,
            certificate_expiry,
            is_registered,
            has_passed_self_test,
        } = self;
        let registry = registry.sub_registry_with_prefix("webhook");
        registry.register(
            "reviews",
            "Reviews by the kind of the object, the operation and the verdict",
            reviews.clone(),
        );
        registry.register_with_unit(
            "review_duration",
            "Time from the first byte of a request to its answer",
            Unit::Seconds,
            seconds.clone(),
        );
        registry.register(
            "requests_in_flight",
            "Requests that are being read or answered",
            in_flight.clone(),
        );
        registry.register_with_unit(
            "certificate_expiry_timestamp",
            "When the serving certificate expires, in seconds since 1970",
            Unit::Seconds,
            certificate_expiry.clone(),
        );
        registry.register(
            "registered",
            "Whether API servers are told to ask the webhook: 0 if not yet, or switched off by break-glass",
            is_registered.clone(),
        );
        registry.register(
            "self_test_passed",
            "Whether an API server asked the webhook when it was tested last",
            has_passed_self_test.clone(),
        );
    }

    pub(crate) fn reviewed(
        &self,
        kind: &GroupVersionKind,
        operation: &Operation,
        verdict: &Verdict,
    ) {
        let review = Review {
            kind: match judged(&kind.group, &kind.kind) {
                Some(Kind::TrafficPolicy) => KindLabel::TrafficPolicy,
                Some(Kind::AccessPolicy) => KindLabel::AccessPolicy,
                Some(Kind::VirtualMesh) => KindLabel::VirtualMesh,
                Some(Kind::Settings) => KindLabel::Settings,
                Some(_) | None => KindLabel::Other,
            },
            operation: match operation {
                Operation::Create => OperationLabel::Create,
                Operation::Update => OperationLabel::Update,
                Operation::Delete => OperationLabel::Delete,
                Operation::Connect => OperationLabel::Other,
            },
            verdict: match verdict {
                Verdict::Passed => VerdictLabel::Allowed,
                Verdict::Judged(outcome) if !outcome.is_allowed() => VerdictLabel::Denied,
                Verdict::Judged(outcome) if !outcome.is_complete => VerdictLabel::Unfinished,
                Verdict::Judged(outcome) if outcome.remarks.is_empty() => VerdictLabel::Allowed,
                Verdict::Judged(_) => VerdictLabel::Warned,
                Verdict::Unjudged => VerdictLabel::Unfinished,
                Verdict::Busy => VerdictLabel::Busy,
                Verdict::SelfTest => VerdictLabel::SelfTest,
            },
        };
        self.reviews.get_or_create(&review).inc();
    }

    /// Counts a request until what is returned is dropped.
    pub(crate) fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    pub(crate) fn took(&self, half: HalfLabel, time: Duration) {
        self.seconds
            .get_or_create(&Half { half })
            .observe(time.as_secs_f64());
    }
}

/// A request that is being answered.
pub(crate) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}
