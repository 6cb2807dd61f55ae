//! Where outputs go: to a registered cluster, or to the management cluster.

use std::fmt;
use std::sync::Arc;

use ferromesh_apply::{Desired, Kind, Label, ObjectId, Scope};
use ferromesh_core::{Output, OutputKey, OutputKind};
use ferromesh_crds::meta;

/// What one applier is in charge of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// What discovery has found in a cluster, in the management cluster.
    Discovered(Arc<str>),
    /// What was made of policies and virtual meshes, in a registered cluster.
    Pushed(Arc<str>),
}

impl Target {
    /// The target of an output. `discovered_in` is the cluster where it was found, if it was.
    pub(crate) fn of(key: &OutputKey, discovered_in: Option<&Arc<str>>) -> Self {
        match discovered_in {
            Some(cluster) => Self::Discovered(Arc::clone(cluster)),
            None => Self::Pushed(Arc::clone(&key.cluster)),
        }
    }

    /// All that are about a registered cluster.
    pub(crate) fn all(cluster: &Arc<str>) -> [Self; 2] {
        [Self::Pushed, Self::Discovered].map(|of| of(Arc::clone(cluster)))
    }

    /// The registered cluster that it is about.
    pub(crate) fn cluster(&self) -> &Arc<str> {
        match self {
            Self::Discovered(cluster) | Self::Pushed(cluster) => cluster,
        }
    }

    fn kinds(&self) -> &'static [OutputKind] {
        match self {
            Self::Discovered(_) => &OutputKind::DISCOVERED,
            Self::Pushed(_) => &OutputKind::PUSHED,
        }
    }

    /// What the applier is in charge of; `owner` is our namespace.
    pub(crate) fn scope(&self, owner: &str) -> Scope {
        let (owner_label, place) = match self {
            Self::Discovered(cluster) => (
                meta::DISCOVERY_OWNER_LABEL,
                Label::new(meta::DISCOVERED_CLUSTER_LABEL, &**cluster),
            ),
            Self::Pushed(cluster) => (
                meta::NETWORKING_OWNER_LABEL,
                Label::new(meta::CLUSTER_LABEL, &**cluster),
            ),
        };
        let kinds = self.kinds().iter();
        let kinds =
            kinds.map(|kind| Kind::new(kind.group(), kind.name(), kind.plural(), kind.versions()));
        Scope {
            cluster: Arc::clone(self.cluster()),
            owner: Label::new(owner_label, owner),
            place,
            kinds: kinds.collect(),
        }
    }

    /// The kind of an output that this is, if it is one.
    pub(crate) fn kind(&self, group: &str, name: &str) -> Option<OutputKind> {
        let mut kinds = self.kinds().iter().copied();
        kinds.find(|kind| kind.group() == group && kind.name() == name)
    }

    /// The output that an object of the applier is.
    pub(crate) fn key(&self, id: &ObjectId) -> Option<OutputKey> {
        let kind = self.kind(&id.group, &id.kind)?;
        Some(OutputKey {
            cluster: match self {
                Self::Discovered(_) => "".into(),
                Self::Pushed(cluster) => Arc::clone(cluster),
            },
            kind,
            namespace: Arc::clone(&id.namespace),
            name: Arc::clone(&id.name),
        })
    }
}

/// The object that an output is, for the applier of its target.
pub(crate) fn id(key: &OutputKey) -> ObjectId {
    ObjectId {
        group: key.kind.group().into(),
        kind: key.kind.name().into(),
        namespace: Arc::clone(&key.namespace),
        name: Arc::clone(&key.name),
    }
}

/// An output as it is applied.
pub(crate) fn desired(output: Output) -> Desired {
    Desired {
        rank: output.rank(),
        labels: output.labels,
        annotations: output.annotations,
        spec: serde_json::to_value(&output.spec).expect("specs are JSON"),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discovered(cluster) => write!(f, "what was discovered in {cluster}"),
            Self::Pushed(cluster) => write!(f, "what is written to {cluster}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_found_again_by_its_object() {
        for kind in OutputKind::PUSHED.into_iter().chain(OutputKind::DISCOVERED) {
            let is_found = OutputKind::DISCOVERED.contains(&kind);
            let key = OutputKey {
                cluster: if is_found { "" } else { "east" }.into(),
                kind,
                namespace: "shop".into(),
                name: "reviews".into(),
            };
            let east = Arc::from("east");
            let target = Target::of(&key, is_found.then_some(&east));
            assert_eq!(&**target.cluster(), "east");
            assert_eq!(target.key(&id(&key)), Some(key));
        }
    }
}
