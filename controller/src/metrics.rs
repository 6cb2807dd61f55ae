//! What is counted, and how appliers stand.

use ferromesh_apply as apply;
use ferromesh_crds::meta;
use jiff::Timestamp;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use crate::certs::TrustReports;

/// Metrics of what writes. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub(crate) apply: apply::Metrics,
    certificate_expiry: Family<MeshLabels, Gauge>,
    credential_expiry: Family<ClusterLabels, Gauge>,
}

/// How the two appliers of a registered cluster stand; none of one that does not work here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// What is made of policies and virtual meshes, in the cluster itself.
    pub pushed: Option<apply::Standing>,
    /// What was found in it, in the management cluster.
    pub discovered: Option<apply::Standing>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MeshLabels {
    cluster: String,
    mesh: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClusterLabels {
    cluster: String,
}

/// When the credential of one cluster expires. What it shows goes with it.
#[derive(Debug)]
pub(crate) struct CredentialMeter {
    metrics: Metrics,
    labels: ClusterLabels,
}

// === impl Metrics ===

impl Metrics {
    /// Registers them below the prefix of `registry`: `apply_…` and `controller_…`.
    pub fn register(&self, registry: &mut Registry) {
        self.apply.register(registry);
        let registry = registry.sub_registry_with_prefix("controller");
        registry.register_with_unit(
            "certificate_expiry_timestamp",
            "Until when the certificate authority of a mesh is valid, in seconds since 1970",
            Unit::Seconds,
            self.certificate_expiry.clone(),
        );
        registry.register_with_unit(
            "credential_expiry_timestamp",
            "When the credential of a registered cluster expires, in seconds since 1970",
            Unit::Seconds,
            self.credential_expiry.clone(),
        );
    }

    /// How what is written for a registered cluster stands.
    pub fn standing(&self, cluster: &str) -> Standing {
        Standing {
            pushed: self.apply.standing(cluster, meta::NETWORKING_OWNER_LABEL),
            discovered: self.apply.standing(cluster, meta::DISCOVERY_OWNER_LABEL),
        }
    }

    pub(crate) fn trusted(&self, reports: &TrustReports) {
        self.certificate_expiry.clear();
        for (key, report) in reports {
            if let Some(not_after) = report.not_after {
                let labels = MeshLabels {
                    cluster: key.cluster.clone(),
                    mesh: key.mesh.clone(),
                };
                let gauge = self.certificate_expiry.get_or_create(&labels);
                gauge.set(not_after.as_second());
            }
        }
    }

    pub(crate) fn credential(&self, cluster: &str) -> CredentialMeter {
        CredentialMeter {
            metrics: self.clone(),
            labels: ClusterLabels {
                cluster: cluster.to_owned(),
            },
        }
    }
}

// === impl CredentialMeter ===

impl CredentialMeter {
    pub(crate) fn expires(&self, at: Timestamp) {
        let family = &self.metrics.credential_expiry;
        family.get_or_create(&self.labels).set(at.as_second());
    }
}

impl Drop for CredentialMeter {
    fn drop(&mut self) {
        self.metrics.credential_expiry.remove(&self.labels);
    }
}
