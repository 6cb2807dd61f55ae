//! The ranks that make outputs: records, subsets, and what is made for a mesh as a whole.

use std::sync::Arc;

use super::draft::Draft;
use super::{Dirty, State};
use crate::delta::StatusKind;
use crate::graph::{PolicyKey, Unit};
use crate::key::Key;
use crate::kinds::Kind;
use crate::model::{AccessPolicy, TrafficPolicy};
use crate::output::mesh::MeshOutputs;
use crate::record::{Bound, Part, Record, Subsets, subset_targets};

impl State {
    // Rank 6: records.

    pub(super) fn translate(
        &mut self,
        key: &Key,
        part: Part,
        dirty: &mut Dirty,
        draft: &mut Draft,
    ) {
        let before = self.graph.records.get(key).cloned();
        let reader = self.reader();
        let now = match part {
            Part::Whole => {
                let destination = self.graph.destinations.effective().get(key);
                destination.map(|destination| Record::new(&reader, destination))
            }
            Part::Traffic => {
                let before = before.as_deref().cloned();
                before.map(|record| record.with_traffic(&reader))
            }
            Part::Access => {
                let before = before.as_deref().cloned();
                before.map(|record| record.with_access(&reader))
            }
        };
        // Access policies name nobody.
        if part != Part::Access {
            let names = reader.into_names();
            self.graph.remember(&Unit::Record(key.clone()), &names);
        }
        if before.as_deref() == now.as_ref() {
            return;
        }
        let now = now.map(Arc::new);
        draft.touch_status(StatusKind::Destination, key);
        self.account(key, before.as_deref(), now.as_deref(), dirty, draft);
        match now.clone() {
            Some(now) => self.graph.records.insert(key.clone(), now),
            None => {
                self.graph.records.remove(key);
            }
        }
        draft.move_record(key, before, now);
    }

    /// Keeps the books of what policies come to, from one record to the next.
    fn account(
        &mut self,
        key: &Key,
        before: Option<&Record>,
        now: Option<&Record>,
        dirty: &mut Dirty,
        draft: &mut Draft,
    ) {
        let has_moved = before.map(|record| &record.destination.mesh)
            != now.map(|record| &record.destination.mesh);
        let (old, new) = (traffic(before), traffic(now));
        if old != new || has_moved {
            // All of them: who is accepted first counts for those that come after.
            for bound in old.iter().chain(new) {
                draft.touch_status(StatusKind::TrafficPolicy, &bound.policy.key);
            }
        }
        for bound in old.iter().filter(|bound| !new.contains(bound)) {
            self.book_traffic(key, bound, false, dirty);
        }
        for bound in new.iter().filter(|bound| !old.contains(bound)) {
            self.book_traffic(key, bound, true, dirty);
        }
        let (old, new) = (access(before), access(now));
        if old != new || has_moved {
            for bound in old.iter().chain(new) {
                draft.touch_status(StatusKind::AccessPolicy, &bound.policy.key);
            }
        }
        for bound in old.iter().filter(|bound| !new.contains(bound)) {
            self.book(Kind::AccessPolicy, key, &bound.policy.key, bound, false);
        }
        for bound in new.iter().filter(|bound| !old.contains(bound)) {
            self.book(Kind::AccessPolicy, key, &bound.policy.key, bound, true);
        }
        let federation = |record: Option<&Record>| record.and_then(|it| it.federation.clone());
        let (old, new) = (federation(before), federation(now));
        if old != new {
            for federation in [&old, &new].into_iter().flatten() {
                let owner = &federation.virtual_mesh;
                draft.touch_status(StatusKind::VirtualMesh, owner);
                self.book_federation(owner, key, new.as_deref());
            }
        }
    }

    fn book_traffic(
        &mut self,
        key: &Key,
        bound: &Bound<TrafficPolicy>,
        is_new: bool,
        dirty: &mut Dirty,
    ) {
        let policy = &bound.policy;
        self.book(Kind::TrafficPolicy, key, &policy.key, bound, is_new);
        if !bound.is_applied || subset_targets(policy).is_empty() {
            return;
        }
        let count = self
            .graph
            .applied
            .get(&policy.key)
            .copied()
            .unwrap_or_default();
        let count = if is_new {
            count + 1
        } else {
            count.saturating_sub(1)
        };
        if count == 0 {
            self.graph.applied.remove(&policy.key);
        } else {
            self.graph.applied.insert(policy.key.clone(), count);
        }
        self.touch_subsets(policy, dirty);
    }

    fn book<P>(
        &mut self,
        kind: Kind,
        destination: &Key,
        policy: &Key,
        bound: &Bound<P>,
        is_new: bool,
    ) {
        if bound.errors.is_empty() {
            return;
        }
        let policy = PolicyKey {
            kind,
            key: policy.clone(),
        };
        if is_new {
            self.graph.faults.insert(&policy, destination.clone());
        } else {
            self.graph.faults.remove(&policy, destination);
        }
    }

    /// Which destinations a virtual mesh federates, and which of them not everywhere.
    fn book_federation(
        &mut self,
        virtual_mesh: &Key,
        destination: &Key,
        now: Option<&crate::federate::Federation>,
    ) {
        let now = now.filter(|federation| federation.virtual_mesh == *virtual_mesh);
        if now.is_some() {
            self.graph
                .federated
                .insert(virtual_mesh, destination.clone());
        } else {
            self.graph.federated.remove(virtual_mesh, destination);
        }
        let key = PolicyKey {
            kind: Kind::VirtualMesh,
            key: virtual_mesh.clone(),
        };
        if now.is_some_and(|federation| !federation.errors.is_empty()) {
            self.graph.faults.insert(&key, destination.clone());
        } else {
            self.graph.faults.remove(&key, destination);
        }
    }

    // Rank 7: subsets.

    pub(super) fn gather_subsets(&mut self, key: &Key, draft: &mut Draft) {
        let destination = self.graph.destinations.effective().get(key);
        let service = destination
            .and_then(|destination| destination.service.as_ref())
            // A Service that is there twice has its outputs once.
            .filter(|it| self.graph.destination_index.of_service(&it.reference) == Some(key));
        let policies: Vec<_> = service
            .into_iter()
            .flat_map(|it| {
                self.graph
                    .traffic_index
                    .targeting(&it.reference)
                    .filter(|policy| self.graph.applied.contains_key(*policy))
                    .filter_map(|policy| self.snapshot.traffic_policies.get(policy))
                    .filter(|policy| subset_targets(policy).contains(&it.reference))
            })
            .cloned()
            .collect();
        let now = (!policies.is_empty()).then(|| Arc::new(Subsets(policies)));
        if self.graph.subsets.get(key) == now.as_ref() {
            return;
        }
        let record = self.graph.records.get(key).cloned();
        draft.move_record(key, record.clone(), record);
        draft.touch_status(StatusKind::Destination, key);
        match now {
            Some(now) => self.graph.subsets.insert(key.clone(), now),
            None => {
                self.graph.subsets.remove(key);
            }
        }
    }

    // Rank 8: what is made for a mesh as a whole.

    pub(super) fn translate_mesh(&mut self, key: &Key, draft: &mut Draft) {
        let site = self.graph.estate.site(key);
        let now = site
            .and_then(|site| {
                MeshOutputs::new(&self.options.namespace, site, || self.workloads_of(key))
            })
            .map(Arc::new);
        if self.graph.mesh_outputs.get(key) == now.as_ref() {
            return;
        }
        draft.meshes.insert(key.clone());
        match now {
            Some(now) => self.graph.mesh_outputs.insert(key.clone(), now),
            None => {
                self.graph.mesh_outputs.remove(key);
            }
        }
    }
}

fn traffic(record: Option<&Record>) -> &[Bound<TrafficPolicy>] {
    record
        .map(|record| &*record.traffic_policies)
        .unwrap_or_default()
}

fn access(record: Option<&Record>) -> &[Bound<AccessPolicy>] {
    record
        .map(|record| &*record.access_policies)
        .unwrap_or_default()
}
