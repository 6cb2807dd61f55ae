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
        MetricType, counter::Counter, family::Family, gauge::ConstGauge, gauge::Gauge,
        histogram::Histogram,
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

/// How things stand. Worked out when it is asked for.
pub(crate) struct Standing {
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

// === impl Standing ===

impl Standing {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing").finish_non_exhaustive()
    }
}

impl Collector for Standing {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let pending = encoder.encode_descriptor(
            "pending_batches",
            "Sets of changes that wait to be worked out",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(number(self.handle.pending())).encode(pending)?;
        let (state, clusters) = (self.handle.state(), self.handle.clusters());
        if clusters.iter().next().is_none() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(
            "cluster_stale",
            "Time since a registered cluster was last followed in full; 0 while it is",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        for (name, view) in clusters.iter() {
            let gauge = ConstGauge::new(view.stale().as_secs_f64());
            gauge.encode(family.encode_family(&ClusterLabels::new(name))?)?;
        }
        let mut family = encoder.encode_descriptor(
            "cluster_unlisted_kinds",
            "Kinds of a registered cluster that have not been listed yet",
            None,
            MetricType::Gauge,
        )?;
        for (name, _) in clusters.iter() {
            let gauge = ConstGauge::new(number(state.unsynced(name).count()));
            gauge.encode(family.encode_family(&ClusterLabels::new(name))?)?;
        }
        Ok(())
    }
}

// === impl ClusterLabels ===

impl ClusterLabels {
    fn new(cluster: &str) -> Self {
        let cluster = cluster.to_owned();
        Self { cluster }
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
