//! What is counted.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Metrics of all appliers of a process. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    outcomes: Family<OutcomeLabels, Counter>,
    owned: Family<ClusterLabels, Gauge>,
    pending: Family<ClusterLabels, Gauge>,
    held: Family<ClusterLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    cluster: String,
    /// A word of [`Outcome::as_str`](crate::Outcome::as_str).
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClusterLabels {
    cluster: String,
    /// The label key of the owner: scopes share clusters.
    scope: String,
}

/// How an applier stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Objects of ours that stand.
    pub owned: usize,
    /// Objects that wait for their turn, for another attempt or for their kind.
    pub pending: usize,
    /// Deletions that are held.
    pub held: usize,
}

/// Those of one applier. What it shows of the present goes with it.
#[derive(Debug)]
pub(crate) struct Meter {
    metrics: Metrics,
    labels: ClusterLabels,
}

// === impl Metrics ===

impl Metrics {
    /// Registers them as `apply_…` below the prefix of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("apply");
        registry.register(
            "outcomes",
            "What became of objects that were to be written or deleted",
            self.outcomes.clone(),
        );
        registry.register(
            "owned_objects",
            "Objects of ours that stand",
            self.owned.clone(),
        );
        registry.register(
            "pending_objects",
            "Objects that wait for their turn, for another attempt or for their kind",
            self.pending.clone(),
        );
        registry.register(
            "held_deletions",
            "Deletions that are held as part of a mass delete",
            self.held.clone(),
        );
    }

    /// How the applier of a cluster stands that is in charge of what carries the label key `scope`; none
    /// while there is none.
    pub fn standing(&self, cluster: &str, scope: &str) -> Option<Standing> {
        let labels = ClusterLabels {
            cluster: cluster.to_owned(),
            scope: scope.to_owned(),
        };
        let count = |family: &Family<ClusterLabels, Gauge>| {
            let gauge = family.get(&labels)?;
            usize::try_from(gauge.get()).ok()
        };
        Some(Standing {
            owned: count(&self.owned)?,
            pending: count(&self.pending)?,
            held: count(&self.held)?,
        })
    }

    pub(crate) fn meter(&self, cluster: &str, scope: &str) -> Meter {
        Meter {
            metrics: self.clone(),
            labels: ClusterLabels {
                cluster: cluster.to_owned(),
                scope: scope.to_owned(),
            },
        }
    }
}

// === impl Meter ===

impl Meter {
    pub(crate) fn outcome(&self, outcome: &'static str) {
        let labels = OutcomeLabels {
            cluster: self.labels.cluster.clone(),
            outcome,
        };
        self.metrics.outcomes.get_or_create(&labels).inc();
    }

    pub(crate) fn present(&self, standing: Standing) {
        let Standing {
            owned,
            pending,
            held,
        } = standing;
        let number = |count| i64::try_from(count).unwrap_or(i64::MAX);
        let Metrics {
            owned: owned_objects,
            pending: pending_objects,
            held: held_deletions,
            ..
        } = &self.metrics;
        for (family, count) in [
            (owned_objects, owned),
            (pending_objects, pending),
            (held_deletions, held),
        ] {
            family.get_or_create(&self.labels).set(number(count));
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        for family in [
            &self.metrics.owned,
            &self.metrics.pending,
            &self.metrics.held,
        ] {
            family.remove(&self.labels);
        }
    }
}
