//! Which certificates the meshes of virtual meshes are to have.

use std::collections::{BTreeMap, BTreeSet};

use ferromesh_crds::ObjectRef;
use ferromesh_crds::cert_options::CommonCertOptions;

/// The certificate that one mesh is to have, as the engine wants it: what its cluster says of itself has
/// no part in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The cluster of the mesh.
    pub cluster: String,
    /// Name of the `Mesh`, and of the `IssuedCertificate` in its cluster.
    pub mesh: String,
    /// Namespace of the `IssuedCertificate`, in its cluster.
    pub agent_namespace: String,
    /// Namespace of istiod, in its cluster: that of the Secret `cacerts`.
    pub control_plane_namespace: String,
    /// The virtual mesh that wants it.
    pub virtual_mesh: ObjectRef,
    /// The root that is to sign it.
    pub root: RootSource,
    /// What it is to be like.
    pub options: CommonCertOptions,
    /// The names that it is for.
    pub hosts: Vec<String>,
}

/// Where the root of a virtual mesh comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum RootSource {
    /// Made here, once.
    Generated(CommonCertOptions),
    /// Given by the user: a Secret of the management cluster.
    Provided(ObjectRef),
}

/// All certificates that are wanted, by cluster and mesh. Two virtual meshes never want a certificate for
/// the same mesh: the engine gives a mesh to one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedSet(BTreeMap<MeshKey, Wanted>);

/// Which mesh.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeshKey {
    /// The cluster of the mesh.
    pub cluster: String,
    /// Its name.
    pub mesh: String,
}

impl Wanted {
    /// Which mesh.
    pub fn key(&self) -> MeshKey {
        MeshKey {
            cluster: self.cluster.clone(),
            mesh: self.mesh.clone(),
        }
    }
}

impl WantedSet {
    /// One of them.
    pub fn get(&self, key: &MeshKey) -> Option<&Wanted> {
        self.0.get(key)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&MeshKey, &Wanted)> {
        self.0.iter()
    }

    /// Those of one cluster, in order.
    pub fn of<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a Wanted> {
        let wanted = self.0.values();
        wanted.filter(move |wanted| wanted.cluster == cluster)
    }

    /// The clusters of all of them.
    pub fn clusters(&self) -> BTreeSet<&str> {
        self.0.keys().map(|key| key.cluster.as_str()).collect()
    }
}

impl FromIterator<Wanted> for WantedSet {
    fn from_iter<I: IntoIterator<Item = Wanted>>(wanted: I) -> Self {
        let wanted = wanted.into_iter();
        Self(wanted.map(|wanted| (wanted.key(), wanted)).collect())
    }
}
