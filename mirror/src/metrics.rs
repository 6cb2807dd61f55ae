//! What keeping the state costs, and how far behind it may be.
//!
//! Labels are kinds, words of this crate, and names of registered clusters.

use std::{fmt, time::Duration};

use ferromesh_core::Kind;
use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder,
    },
    metrics::{
        counter::Counter, family::Family, gauge::ConstGauge, gauge::Gauge, histogram::Histogram,
    },
    registry::{Registry, Unit},
};

use crate::handle::Handle;

/// From a policy's edit to the first list of a fleet, in seconds.
const STEP_BUCKETS: [f64; 10] = [
    0.000_1, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 1.0, 5.0,
];

/// The metrics of one mirror.
pub(crate) struct Metrics {
    events: Family<EventLabels, Counter>,
    step_duration: Histogram,
    revision: Gauge,
}

/// How often objects of one kind were seen, by what was seen.
#[derive(Clone)]
pub(crate) struct Counters {
    pub(crate) present: Counter,
    pub(crate) gone: Counter,
    pub(crate) unreadable: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    kind: KindLabel,
    event: EventLabel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct KindLabel(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum EventLabel {
    Present,
    Gone,
    Unreadable,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClusterLabels {
    cluster: String,
}

/// How long ago each cluster was last known to be followed in full. Worked out when it is asked for.
pub(crate) struct Staleness {
    handle: Handle,
}

// === impl Metrics ===

impl Default for Metrics {
    fn default() -> Self {
        Self {
            events: Family::default(),
            step_duration: Histogram::new(STEP_BUCKETS),
            revision: Gauge::default(),
        }
    }
}

impl Metrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "events",
            "Objects seen by watches, by kind and by what was seen",
            self.events.clone(),
        );
        registry.register_with_unit(
            "step_duration",
            "Time in which a batch of changes was worked out",
            Unit::Seconds,
            self.step_duration.clone(),
        );
        registry.register(
            "revision",
            "Number of the state that was published last",
            self.revision.clone(),
        );
    }

    /// The counters of a kind, looked up once and not with each event.
    pub(crate) fn counters(&self, kind: Kind) -> Counters {
        let counter = |event| {
            let labels = EventLabels {
                kind: KindLabel(kind),
                event,
            };
            self.events.get_or_create(&labels).clone()
        };
        Counters {
            present: counter(EventLabel::Present),
            gone: counter(EventLabel::Gone),
            unreadable: counter(EventLabel::Unreadable),
        }
    }

    pub(crate) fn stepped(&self, after: Duration) {
        self.step_duration.observe(after.as_secs_f64());
    }

    pub(crate) fn revised(&self, revision: u64) {
        self.revision
            .set(i64::try_from(revision).unwrap_or(i64::MAX));
    }
}

impl EncodeLabelValue for KindLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        EncodeLabelValue::encode(&self.0.name(), encoder)
    }
}

impl EncodeLabelValue for EventLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        let word = match self {
            Self::Present => "present",
            Self::Gone => "gone",
            Self::Unreadable => "unreadable",
        };
        EncodeLabelValue::encode(&word, encoder)
    }
}

// === impl Staleness ===

impl Staleness {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }
}

impl fmt::Debug for Staleness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staleness").finish_non_exhaustive()
    }
}

impl Collector for Staleness {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let clusters = self.handle.clusters();
        if clusters.iter().next().is_none() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(
            "cluster_stale",
            "Time since a registered cluster was last followed in full; 0 while it is",
            Some(&Unit::Seconds),
            prometheus_client::metrics::MetricType::Gauge,
        )?;
        for (name, view) in clusters.iter() {
            let labels = ClusterLabels {
                cluster: name.to_owned(),
            };
            let gauge = ConstGauge::new(view.stale().as_secs_f64());
            gauge.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
