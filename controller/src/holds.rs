//! Mass deletes that are held, and how a person lets them go ahead.
//!
//! The annotation that releases one is taken away first: whatever happens in between, it stands for one
//! deletion and never for the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferromesh_apply::Error;
use ferromesh_apply::ssa::{Address, Writer};
use ferromesh_crds::meta::RELEASE_MASS_DELETE_ANNOTATION;
use ferromesh_runtime::backoff::{ExponentialBackoff, Jitter, Schedule};
use ferromesh_runtime::telemetry::Chain;
use serde_json::json;
use tokio::task::JoinSet;

use crate::outputs::Target;

/// A mass delete that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// How many objects would be deleted.
    pub(crate) would_delete: usize,
    /// Of how many.
    pub(crate) owned: usize,
}

/// What is held, and what is being released.
pub(crate) struct Holds {
    held: BTreeMap<Target, Hold>,
    /// Clusters whose annotation is being taken away.
    busy: BTreeSet<Arc<str>>,
    takings: JoinSet<Taking>,
    jitter: Jitter,
}

/// What came of taking an annotation away.
pub(crate) struct Taking {
    pub(crate) cluster: Arc<str>,
    /// How many objects the person had been told of; none if the cluster is not there any more.
    count: Option<usize>,
}

impl Holds {
    pub(crate) fn new(jitter: Jitter) -> Self {
        Self {
            held: BTreeMap::new(),
            busy: BTreeSet::new(),
            takings: JoinSet::new(),
            jitter,
        }
    }

    /// What is held of a target.
    pub(crate) fn get(&self, target: &Target) -> Option<Hold> {
        self.held.get(target).copied()
    }

    /// A mass delete is held.
    pub(crate) fn hold(&mut self, target: Target, hold: Hold) {
        let Hold {
            would_delete,
            owned,
        } = hold;
        if !self.held.contains_key(&target) {
            tracing::error!(%target, would_delete, owned, "a mass delete is held");
        }
        self.held.insert(target, hold);
    }

    /// None is held any more.
    pub(crate) fn end(&mut self, target: &Target) {
        self.held.remove(target);
    }

    /// Forgets all but those of which `is_kept`.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&Target) -> bool) {
        self.held.retain(|target, _| is_kept(target));
    }

    /// Takes the annotation of a cluster away if it releases something; `annotation` is its value.
    pub(crate) fn look(
        &mut self,
        cluster: &Arc<str>,
        annotation: Option<&str>,
        writer: &Writer,
        address: &Address,
    ) {
        let count = annotation.and_then(|it| it.trim().parse().ok());
        let Some(count) = count.filter(|count| !self.released(cluster, *count).is_empty()) else {
            return;
        };
        if !self.busy.insert(Arc::clone(cluster)) {
            return;
        }
        let backoff = ExponentialBackoff::new(Schedule::default(), self.jitter.fork());
        let (writer, address) = (writer.clone(), address.clone());
        let cluster = Arc::clone(cluster);
        self.takings.spawn(async move {
            let is_taken = take_away(&writer, &address, backoff).await;
            let count = is_taken.then_some(count);
            Taking { cluster, count }
        });
    }

    /// The next annotation that has been taken away; never returns while there is none.
    pub(crate) async fn taken(&mut self) -> Option<Taking> {
        match self.takings.join_next().await {
            Some(taking) => taking.ok(),
            None => std::future::pending().await,
        }
    }

    /// What is released by an annotation that has been taken away.
    pub(crate) fn release(&mut self, taking: &Taking) -> Vec<Target> {
        self.busy.remove(&taking.cluster);
        let Some(count) = taking.count else {
            return Vec::new();
        };
        let targets = self.released(&taking.cluster, count);
        for target in &targets {
            tracing::warn!(%target, would_delete = count, "a mass delete is released");
        }
        targets
    }

    /// Ends what is being done.
    pub(crate) async fn stop(mut self) {
        self.takings.shutdown().await;
    }

    /// What goes ahead if a person says so of this number. More may have come since that person was told.
    fn released(&self, cluster: &Arc<str>, count: usize) -> Vec<Target> {
        let mut targets = Target::all(cluster).to_vec();
        targets.retain(|target| {
            self.get(target)
                .is_some_and(|hold| hold.would_delete == count)
        });
        targets
    }
}

/// Takes the annotation away, however often it takes; false if the object is gone.
async fn take_away(writer: &Writer, address: &Address, mut backoff: ExponentialBackoff) -> bool {
    let patch = json!({
        "metadata": { "annotations": { RELEASE_MASS_DELETE_ANNOTATION: null } },
    });
    loop {
        match writer.merge(address, &patch).await {
            Ok(_) => return true,
            Err(Error::NotFound { .. }) => return false,
            Err(error) => {
                let (cluster, error) = (&address.name, Chain(&error));
                tracing::warn!(cluster, %error, "the annotation of a release could not be removed");
            }
        }
        tokio::time::sleep(backoff.delay()).await;
    }
}
