//! Outputs of discovery: what was found in a cluster, for the management cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use ferromesh_crds::meta;

use super::{Output, OutputKey, OutputKind, Spec};
use crate::key::Key;
use crate::model::{Destination, Labels, Mesh, Workload};

/// Something that was found.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum Discovered {
    Mesh(Arc<Mesh>),
    Workload(Arc<Workload>),
    Destination(Arc<Destination>),
}

impl Discovered {
    fn parts(&self) -> (OutputKind, &Key, &Arc<str>, &Labels) {
        match self {
            Self::Mesh(mesh) => (
                OutputKind::Mesh,
                &mesh.key,
                &mesh.discovered_in,
                &mesh.annotations,
            ),
            Self::Workload(workload) => (
                OutputKind::Workload,
                &workload.key,
                &workload.discovered_in,
                &workload.annotations,
            ),
            Self::Destination(destination) => (
                OutputKind::Destination,
                &destination.key,
                &destination.discovered_in,
                &destination.annotations,
            ),
        }
    }

    /// Which object of the management cluster it is.
    pub fn key(&self) -> OutputKey {
        let (kind, key, _, _) = self.parts();
        OutputKey {
            cluster: "".into(),
            kind,
            namespace: key.namespace().into(),
            name: key.name().into(),
        }
    }

    /// The cluster in which it was found.
    pub fn cluster(&self) -> &Arc<str> {
        self.parts().2
    }

    /// Renders the object; `owner` is our namespace.
    pub(crate) fn render(&self, owner: &str) -> Output {
        let (_, _, cluster, annotations) = self.parts();
        Output {
            key: self.key(),
            labels: BTreeMap::from([
                (meta::DISCOVERY_OWNER_LABEL.to_owned(), owner.to_owned()),
                (
                    meta::DISCOVERED_CLUSTER_LABEL.to_owned(),
                    cluster.to_string(),
                ),
                (meta::CLUSTER_LABEL.to_owned(), String::new()),
            ]),
            annotations: annotations.to_map(),
            spec: match self {
                Self::Mesh(mesh) => Spec::Mesh(Box::new(mesh.to_spec())),
                Self::Workload(workload) => Spec::Workload(Box::new(workload.to_spec())),
                Self::Destination(destination) => {
                    Spec::Destination(Box::new(destination.to_spec()))
                }
            },
        }
    }
}
