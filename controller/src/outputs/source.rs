//! What is wanted, for whoever applies it: nothing is kept, each object is rendered when its turn comes.

use ferromesh_apply::{Answer, ObjectId, Source};
use ferromesh_core::{OutputKey, State};
use ferromesh_mirror::Handle;

use super::target::{Target, desired};

/// What is wanted of one target.
pub(crate) struct Wanted {
    pub(crate) mirror: Handle,
    pub(crate) target: Target,
}

impl Source for Wanted {
    fn ask(&self, id: &ObjectId) -> Answer {
        let Some(key) = self.target.key(id) else {
            return Answer::Unknown;
        };
        let state = self.mirror.state();
        match state.output(&key) {
            Some(output) => Answer::Wanted(desired(output)),
            None if !self.is_known(&state, &key) => Answer::Unknown,
            None if self.is_forsaken(&state, &key) => Answer::Forsaken,
            None => Answer::Unwanted,
        }
    }
}

impl Wanted {
    /// Whether everything is known that an object could be made of: only then is it known that it is not
    /// to be there. What discovery stored stands in for a cluster that has not told all it has, but
    /// somebody may have deleted that.
    fn is_known(&self, state: &State, key: &OutputKey) -> bool {
        is_ready(state, &self.target)
            && match self.target {
                Target::Discovered(_) => true,
                Target::Pushed(_) => self
                    .mirror
                    .clusters()
                    .iter()
                    .filter(|(cluster, _)| !state.is_complete(cluster))
                    .all(|(cluster, _)| !key.may_derive_from(cluster)),
            }
    }

    /// Whether it was made of what was in a cluster whose registration a person has taken away, perhaps while nobody
    /// looked. An object that may as well come from a registered cluster is not.
    fn is_forsaken(&self, state: &State, key: &OutputKey) -> bool {
        let clusters = self.mirror.clusters();
        match &self.target {
            Target::Discovered(cluster) => clusters.get(cluster).is_none(),
            Target::Pushed(own) => {
                let mut gone = state.deregistered();
                let mut others = clusters.iter().filter(|(cluster, _)| *cluster != &**own);
                gone.any(|cluster| key.may_derive_from(cluster))
                    && !others.any(|(cluster, _)| key.may_derive_from(cluster))
            }
        }
    }
}

/// Whether anything can be known to be unwanted there: the management cluster has told all it has, and so
/// has the cluster itself, or it is registered no more.
pub(crate) fn is_ready(state: &State, target: &Target) -> bool {
    state.is_complete("")
        && match target {
            Target::Discovered(cluster) => state.speaks_for(cluster),
            Target::Pushed(cluster) => state.is_complete(cluster),
        }
}
