//! What of a cluster has been listed.

use std::collections::BTreeSet;

use ferromesh_core::Kind;

use crate::pumps::Watch;

/// What of a cluster has not been listed yet, and which kinds have been told to be.
#[derive(Debug, Default)]
pub(super) struct Listing {
    waiting: BTreeSet<Watch>,
    untold: BTreeSet<Kind>,
}

impl Listing {
    /// Nothing of it has been listed.
    pub(super) fn new(watches: impl IntoIterator<Item = Watch>) -> Self {
        let waiting: BTreeSet<_> = watches.into_iter().collect();
        Self {
            untold: waiting.iter().map(|watch| watch.kind).collect(),
            waiting,
        }
    }

    /// A watch more. A kind that was told to be listed stays so.
    pub(super) fn add(&mut self, watch: Watch) {
        self.waiting.insert(watch);
    }

    /// A watch has listed everything, or will never list anything.
    pub(super) fn finish(&mut self, watch: &Watch) {
        self.waiting.remove(watch);
    }

    /// Kinds of which everything has been listed, each of them once.
    ///
    /// Which `ConfigMap`s are watched hangs on the Deployments, so these come first.
    pub(super) fn complete(&mut self) -> Vec<Kind> {
        let is_waited_for =
            |kind: Kind, waiting: &BTreeSet<Watch>| waiting.iter().any(|watch| watch.kind == kind);
        let mut complete = Vec::new();
        self.untold.retain(|kind| {
            let is_complete = !is_waited_for(*kind, &self.waiting)
                && (*kind != Kind::ConfigMap || !is_waited_for(Kind::Deployment, &self.waiting));
            if is_complete {
                complete.push(*kind);
            }
            !is_complete
        });
        complete
    }

    /// Whether a kind was told to be listed.
    pub(super) fn has_told(&self, kind: Kind) -> bool {
        !self.untold.contains(&kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pumps::Place;

    fn watch(kind: Kind) -> Watch {
        Watch {
            kind,
            place: Place::Everywhere,
        }
    }

    #[test]
    fn what_can_be_listed_is_told_once_and_config_maps_after_deployments() {
        let kinds = [Kind::ConfigMap, Kind::Deployment, Kind::Pod];
        let mut listing = Listing::new(kinds.map(watch));
        assert!(listing.complete().is_empty());
        listing.finish(&watch(Kind::ConfigMap));
        assert!(listing.complete().is_empty(), "more may be wanted");

        let revision = Watch {
            kind: Kind::ConfigMap,
            place: Place::Object {
                namespace: "istio-system".into(),
                name: "istio-canary".into(),
            },
        };
        listing.add(revision.clone());
        listing.finish(&watch(Kind::Deployment));
        assert_eq!(listing.complete(), [Kind::Deployment]);
        listing.finish(&revision);
        assert_eq!(listing.complete(), [Kind::ConfigMap]);

        listing.add(revision);
        assert!(listing.complete().is_empty());
        assert!(listing.has_told(Kind::ConfigMap) && !listing.has_told(Kind::Pod));
    }
}
