//! Working out what changes have touched, in slices of bounded work.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::draft::Draft;
use super::{Dirty, State};
use crate::change::Change;
use crate::delta::{Delta, StatusKind};
use crate::estate::{Estate, Inputs};
use crate::graph::PolicyKey;
use crate::key::Key;
use crate::kinds::{Kind, Object};
use crate::model::{Destination, Workload};
use crate::record::Part;
use crate::status::caller::{is_identity, is_source};
use crate::table::Set;

/// Changed workloads beyond which every policy's status is looked at, rather than those of the
/// policies that the workloads concern.
const MANY_WORKLOADS: usize = 256;

/// A step that is under way.
///
/// Whoever has a deadline to keep advances it in slices and looks at the time in between; a step
/// that is dropped half way has changed nothing.
#[derive(Debug)]
pub struct Step {
    state: State,
    dirty: Dirty,
    draft: Draft,
}

impl Step {
    /// Takes changes in; nothing is worked out yet.
    pub fn new(state: State, changes: impl IntoIterator<Item = Change>) -> Self {
        let mut step = Self {
            draft: Draft::new(state.clone()),
            dirty: Dirty::default(),
            state,
        };
        for change in changes {
            step.state.ingest(change, &mut step.dirty, &mut step.draft);
        }
        step
    }

    /// Works out at most `fuel` things, each of bounded size; says whether everything is done.
    pub fn advance(&mut self, fuel: usize) -> bool {
        for _ in 0..fuel {
            if !self.work_one() {
                return true;
            }
        }
        false
    }

    /// The state with everything worked out so far, and what changed.
    pub fn finish(self) -> (State, Delta) {
        let delta = self.draft.finish(self.state.clone());
        (self.state, delta)
    }

    /// Works out the next thing; each rank looks only at what earlier ranks have settled.
    fn work_one(&mut self) -> bool {
        let Self {
            state,
            dirty,
            draft,
        } = self;
        if let Some(cluster) = dirty.meshes.pop_first() {
            state.find_meshes(&cluster, dirty, draft);
        } else if let Some(source) = dirty.workloads.pop_first() {
            state.find_workload(&source, dirty, draft);
        } else if let Some(service) = dirty.destinations.pop_first() {
            state.find_destination(&service, dirty, draft);
        } else if dirty.estate {
            dirty.estate = false;
            state.survey(dirty, draft);
        } else if let Some(policy) = dirty.references.pop_first() {
            state.look_up_references(&policy, dirty, draft);
        } else if let Some(destination) = dirty.records.pop_first() {
            dirty.traffic.remove(&destination);
            dirty.access.remove(&destination);
            state.translate(&destination, Part::Whole, dirty, draft);
        } else if let Some(destination) = dirty.traffic.pop_first() {
            state.translate(&destination, Part::Traffic, dirty, draft);
        } else if let Some(destination) = dirty.access.pop_first() {
            state.translate(&destination, Part::Access, dirty, draft);
        } else if let Some(destination) = dirty.subsets.pop_first() {
            state.gather_subsets(&destination, draft);
        } else if let Some(mesh) = dirty.mesh_outputs.pop_first() {
            state.translate_mesh(&mesh, draft);
        } else if !dirty.callers.is_empty() {
            state.find_callers(&std::mem::take(&mut dirty.callers), draft);
        } else {
            return false;
        }
        true
    }
}

/// The change that puts an object there.
impl From<Object> for Change {
    fn from(object: Object) -> Self {
        Self::Upsert(object)
    }
}

impl State {
    // Rank 4: the estate.

    fn survey(&mut self, dirty: &mut Dirty, draft: &mut Draft) {
        let now = Estate::new(&Inputs {
            namespace: &self.options.namespace,
            meshes: self.graph.meshes.effective(),
            virtual_meshes: &self.snapshot.virtual_meshes,
            clusters: &self.snapshot.clusters,
            settings: self.snapshot.settings.get(&self.options.settings()),
            destinations: self.graph.destinations.effective(),
            index: &self.graph.destination_index,
        });
        let now = Arc::new(now.sharing(&self.graph.estate));
        let before = std::mem::replace(&mut self.graph.estate, Arc::clone(&now));
        for key in before
            .virtual_meshes
            .keys()
            .chain(now.virtual_meshes.keys())
        {
            if before.virtual_meshes.get(key) != now.virtual_meshes.get(key) {
                draft.touch_status(StatusKind::VirtualMesh, key);
            }
        }
        let changed: BTreeSet<&Key> = before
            .sites
            .keys()
            .chain(now.sites.keys())
            .filter(|mesh| before.sites.get(*mesh) != now.sites.get(*mesh))
            .collect();
        for mesh in &changed {
            dirty.mesh_outputs.insert((*mesh).clone());
            draft.touch_status(StatusKind::Mesh, mesh);
        }
        let everywhere = before.domains != now.domains || before.trust_domains != now.trust_domains;
        if changed.is_empty() && !everywhere {
            return;
        }
        let table = self.graph.destinations.effective().clone();
        let concerned = |it: &Destination| {
            everywhere || it.mesh.as_ref().is_some_and(|mesh| changed.contains(mesh))
        };
        for destination in table.values().filter(|it| concerned(it)) {
            self.touch_destination(destination, dirty);
            draft.touch_status(StatusKind::Destination, &destination.key);
        }
        if !changed.is_empty() {
            // Which workloads call a policy's destinations hangs on who shares a virtual mesh.
            self.touch_all_policies(draft);
        }
    }

    fn touch_all_policies(&self, draft: &mut Draft) {
        for policy in self.snapshot.traffic_policies.keys() {
            draft.touch_status(StatusKind::TrafficPolicy, policy);
        }
        for policy in self.snapshot.access_policies.keys() {
            draft.touch_status(StatusKind::AccessPolicy, policy);
        }
    }

    // Rank 5: references of policies.

    fn look_up_references(&mut self, policy: &PolicyKey, dirty: &mut Dirty, draft: &mut Draft) {
        let snapshot = &self.snapshot;
        let (selection, status, dirty) = if policy.kind == Kind::TrafficPolicy {
            let policy = snapshot.traffic_policies.get(&policy.key);
            let selection = policy.map(|policy| &policy.destinations);
            (selection, StatusKind::TrafficPolicy, &mut dirty.traffic)
        } else {
            let policy = snapshot.access_policies.get(&policy.key);
            let selection = policy.map(|policy| &policy.destinations);
            (selection, StatusKind::AccessPolicy, &mut dirty.access)
        };
        let missing: Arc<[Key]> = selection
            .iter()
            .flat_map(|selection| selection.services())
            .map(|listed| listed.service)
            .filter(|service| self.graph.destination_index.of_service(service).is_none())
            .cloned()
            .collect();
        let before = self.graph.missing.get(policy);
        if before.map(AsRef::as_ref).unwrap_or_default() == &*missing {
            return;
        }
        if let Some(selection) = selection {
            self.touch_selected(selection, dirty);
        }
        draft.touch_status(status, &policy.key);
        if missing.is_empty() {
            self.graph.missing.remove(policy);
        } else {
            self.graph.missing.insert(policy.clone(), missing);
        }
    }

    // Rank 9: policies whose status lists a workload among their callers, or did.

    fn find_callers(&self, workloads: &[Arc<Workload>], draft: &mut Draft) {
        if workloads.len() > MANY_WORKLOADS {
            self.touch_all_policies(draft);
            return;
        }
        for policy in self.snapshot.traffic_policies.values() {
            if workloads
                .iter()
                .any(|workload| is_source(&policy.sources, workload))
            {
                draft.touch_status(StatusKind::TrafficPolicy, &policy.key);
            }
        }
        for policy in self.snapshot.access_policies.values() {
            if workloads
                .iter()
                .any(|workload| is_identity(&policy.sources, workload))
            {
                draft.touch_status(StatusKind::AccessPolicy, &policy.key);
            }
        }
    }

    pub(super) fn workloads_of(&self, mesh: &Key) -> Vec<Arc<Workload>> {
        let table = self.graph.workloads.effective();
        let members = self
            .graph
            .workload_index
            .by_mesh
            .get(mesh)
            .into_iter()
            .flat_map(Set::iter);
        members
            .filter_map(|workload| table.get(workload).cloned())
            .collect()
    }
}
