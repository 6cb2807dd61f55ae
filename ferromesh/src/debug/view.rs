//! A replica as JSON.

use std::time::Duration;

use ferromesh_controller::Standing;
use ferromesh_core::explain::{Bounded, Counts};
use ferromesh_core::{Key, Kind, State};
use ferromesh_mirror::ClusterView;
use ferromesh_runtime::lease::Claim;
use serde::Serialize;

use super::Replica;

/// What a replica knows and does.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    version: &'static str,
    identity: String,
    lease: Lease,
    /// Number of the state that was published last.
    revision: u64,
    /// What has not been listed yet.
    waiting_for: Bounded<String>,
    /// Sets of changes that wait to be worked out.
    pending_batches: usize,
    management: Option<Cluster>,
    clusters: Bounded<Cluster>,
    counts: Counts,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Lease {
    /// `held`, `foreign` or `unknown`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    name: String,
    server: Option<String>,
    is_declared: bool,
    condition: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    since_seconds: u64,
    stale_seconds: u64,
    /// Whether every kind has been listed.
    is_complete: bool,
    warnings: Vec<String>,
    kinds: Vec<KindView>,
    /// Of a registered cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    writing: Option<Writing>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KindView {
    kind: &'static str,
    is_listed: bool,
    /// What has changed since then, watches have told.
    #[serde(skip_serializing_if = "Option::is_none")]
    listed_seconds_ago: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failing: Option<Failing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<Unreadable>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failing {
    class: &'static str,
    since_seconds: u64,
    last_error: String,
}

#[derive(Serialize)]
struct Unreadable {
    count: usize,
    first: Vec<String>,
}

/// How what is written stands; null where this replica does not write.
#[derive(Serialize)]
struct Writing {
    pushed: Option<Applied>,
    discovered: Option<Applied>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Applied {
    owned_objects: usize,
    pending_objects: usize,
    held_deletions: usize,
}

// === impl Snapshot ===

impl Snapshot {
    /// What is so now; of the clusters the one of that name alone, if there is a name.
    pub(super) fn take(replica: &Replica, cluster: Option<&str>) -> Self {
        let Replica {
            mirror,
            claim,
            metrics,
            identity,
        } = replica;
        let revision = *mirror.revision().borrow();
        let (state, clusters) = (mirror.state(), mirror.clusters());
        let is_meant = |name: &str| cluster.is_none_or(|cluster| cluster == name);
        let mut counts = state.counts();
        counts.objects.retain(|name, _| is_meant(name));
        counts.outputs.retain(|name, _| is_meant(name));
        let management =
            is_meant("").then(|| Cluster::new(&state, "", clusters.management(), None));
        let meant = clusters.iter().filter(|(name, _)| is_meant(name));
        Self {
            version: env!("CARGO_PKG_VERSION"),
            identity: identity.clone(),
            lease: Lease::new(&claim.borrow()),
            revision,
            waiting_for: mirror.readiness().into_iter().collect(),
            pending_batches: mirror.pending(),
            management,
            clusters: meant
                .map(|(name, view)| Cluster::new(&state, name, view, Some(metrics.standing(name))))
                .collect(),
            counts,
        }
    }
}

impl Lease {
    fn new(claim: &Claim) -> Self {
        let (state, holder) = match claim {
            Claim::Held { .. } if claim.is_held() => ("held", None),
            Claim::Held { .. } | Claim::Unknown => ("unknown", None),
            Claim::Foreign { holder } => ("foreign", Some(holder.clone())),
        };
        Self { state, holder }
    }
}

// === impl Cluster ===

impl Cluster {
    fn new(state: &State, name: &str, view: &ClusterView, standing: Option<Standing>) -> Self {
        let expected = state.expected(name);
        Self {
            name: name.to_owned(),
            server: view.server.clone(),
            is_declared: view.is_declared,
            condition: view.condition.as_str(),
            last_error: view.condition.reason().map(str::to_owned),
            since_seconds: view.since.elapsed().as_secs(),
            stale_seconds: view.stale().as_secs(),
            is_complete: state.is_complete(name),
            warnings: view.warnings.iter().map(ToString::to_string).collect(),
            kinds: expected
                .map(|kind| KindView::new(state, name, kind, view))
                .collect(),
            writing: standing.map(Writing::from),
        }
    }
}

impl KindView {
    fn new(state: &State, cluster: &str, kind: Kind, view: &ClusterView) -> Self {
        let ago = |since: Duration| since.as_secs();
        let listed = view.listed.get(&kind);
        let failing = view.failing.get(&kind).map(|failing| Failing {
            class: failing.class.as_str(),
            since_seconds: ago(failing.since.elapsed()),
            last_error: failing.reason.clone(),
        });
        let unreadable = view.unreadable.get(&kind).map(|unreadable| Unreadable {
            count: unreadable.count,
            first: unreadable
                .first
                .iter()
                .map(|(key, reason)| told(kind, key, reason))
                .collect(),
        });
        Self {
            kind: kind.name(),
            is_listed: state.is_synced(cluster, kind),
            listed_seconds_ago: listed.map(|at| ago(at.elapsed())),
            failing,
            unreadable,
        }
    }
}

/// An object and why it cannot be read. What was read in vain may stand in the reason.
fn told(kind: Kind, key: &Key, reason: &str) -> String {
    let (namespace, name) = (key.namespace(), key.name());
    match kind {
        Kind::Secret => format!("{namespace}/{name}"),
        _ => format!("{namespace}/{name}: {reason}"),
    }
}

// === impl Writing ===

impl From<Standing> for Writing {
    fn from(standing: Standing) -> Self {
        let applied = |standing: Option<ferromesh_controller::Applied>| {
            standing.map(|standing| Applied {
                owned_objects: standing.owned,
                pending_objects: standing.pending,
                held_deletions: standing.held,
            })
        };
        Self {
            pushed: applied(standing.pushed),
            discovered: applied(standing.discovered),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_secret_cannot_be_read_is_not_told() {
        let key = Key::local("root", "gloo-mesh");
        let reason = "invalid type: string \"hunter2\"";
        assert_eq!(told(Kind::Secret, &key, reason), "gloo-mesh/root");
        assert!(told(Kind::Pod, &key, reason).ends_with(reason));
    }
}
