//! What the certificate controller is told, and whose statuses speak of what it reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use ferromesh_core::{StatusKey, StatusKind};
use ferromesh_mirror::Clusters;

use super::Reconciler;
use crate::{certs, trust};

impl Reconciler {
    /// Tells the certificate controller which clusters it can ask.
    pub(super) fn offer(&self, clusters: &Clusters) {
        let askable = clusters.iter().filter_map(|(name, view)| {
            let cluster = certs::Cluster {
                client: view.client.clone()?,
                connection: view.connection(),
            };
            Some((name.to_owned(), cluster))
        });
        let offered: BTreeMap<_, _> = askable.collect();
        self.askable.send_if_modified(|askable| {
            let connections = |it: &BTreeMap<String, certs::Cluster>| -> Vec<(String, u64)> {
                let each = it.iter();
                each.map(|(name, cluster)| (name.clone(), cluster.connection))
                    .collect()
            };
            let differs = connections(askable) != connections(&offered);
            if differs {
                *askable = Arc::new(offered);
            }
            differs
        });
    }

    /// Tells the certificate controller what is wanted.
    pub(super) fn want_certificates(&mut self) {
        let wanted = trust::wanted(&self.state);
        let differs = self.wanted.send_if_modified(|last| {
            let differs = last.as_deref() != wanted.as_ref();
            if differs {
                *last = wanted.map(Arc::new);
            }
            differs
        });
        if differs {
            self.touch_virtual_meshes();
        }
    }

    /// Certificates fare otherwise.
    pub(super) fn trust(&mut self) {
        self.metrics.trusted(&self.trust.borrow_and_update());
        self.touch_virtual_meshes();
    }

    fn touch_virtual_meshes(&mut self) {
        let virtual_meshes = self.state.snapshot().virtual_meshes.keys();
        let virtual_meshes: Vec<_> = virtual_meshes
            .map(|key| StatusKey {
                kind: StatusKind::VirtualMesh,
                key: key.clone(),
            })
            .collect();
        self.statuses.touch_all(&virtual_meshes);
    }
}
