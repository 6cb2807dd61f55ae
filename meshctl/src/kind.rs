//! The kinds that can be asked for.

use clap::ValueEnum;
use ferromesh_crds as crds;
use kube::core::ApiResource;
use serde_json::Value;

/// A kind that can be asked for, by its name, its plural or its short name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shown {
    /// Control planes that discovery found
    #[value(name = "mesh", aliases = ["meshes", "msh"])]
    Mesh,
    /// Workloads that discovery found
    #[value(name = "workload", aliases = ["workloads", "mwl", "wl"])]
    Workload,
    /// Destinations that discovery found
    #[value(name = "destination", aliases = ["destinations", "dst"])]
    Destination,
    /// Traffic policies
    #[value(name = "trafficpolicy", aliases = ["trafficpolicies", "tp"])]
    TrafficPolicy,
    /// Access policies
    #[value(name = "accesspolicy", aliases = ["accesspolicies", "acp", "ap"])]
    AccessPolicy,
    /// Virtual meshes
    #[value(name = "virtualmesh", aliases = ["virtualmeshes", "vmesh", "vmeshes", "vm"])]
    VirtualMesh,
    /// Registered clusters
    #[value(name = "kubernetescluster", aliases = ["kubernetesclusters", "kc"])]
    KubernetesCluster,
}

impl Shown {
    /// How the API server knows it.
    pub(crate) fn resource(self) -> ApiResource {
        match self {
            Self::Mesh => ApiResource::erase::<crds::Mesh>(&()),
            Self::Workload => ApiResource::erase::<crds::Workload>(&()),
            Self::Destination => ApiResource::erase::<crds::Destination>(&()),
            Self::TrafficPolicy => ApiResource::erase::<crds::TrafficPolicy>(&()),
            Self::AccessPolicy => ApiResource::erase::<crds::AccessPolicy>(&()),
            Self::VirtualMesh => ApiResource::erase::<crds::VirtualMesh>(&()),
            Self::KubernetesCluster => ApiResource::erase::<crds::KubernetesCluster>(&()),
        }
    }

    /// The cluster that an object of this kind tells about; none for what concerns several.
    pub(crate) fn cluster(self, object: &Value) -> Option<&str> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        match self {
            Self::Mesh => {
                let mut types = object.get("spec")?.as_object()?.values();
                types.find_map(|mesh| mesh.pointer("/installation/cluster")?.as_str())
            }
            Self::Workload => text("/spec/kubernetes/controller/clusterName"),
            Self::Destination => text("/spec/kubeService/ref/clusterName"),
            Self::KubernetesCluster => text("/metadata/name"),
            Self::TrafficPolicy | Self::AccessPolicy | Self::VirtualMesh => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_goes_by_its_name_its_plural_and_its_short_name() {
        let definitions = crds::all();
        for shown in Shown::value_variants() {
            let resource = shown.resource();
            let definition = definitions
                .iter()
                .find(|definition| definition.spec.names.kind == resource.kind)
                .unwrap();
            let names = &definition.spec.names;
            let short = names.short_names.iter().flatten();
            let all = [&names.kind, &names.plural].into_iter().chain(short);
            for name in all {
                assert_eq!(Shown::from_str(name, true), Ok(*shown), "{name}");
            }
        }
    }

    #[test]
    fn a_kind_goes_by_the_short_names_of_other_command_lines() {
        for (name, shown) in [
            ("wl", Shown::Workload),
            ("ap", Shown::AccessPolicy),
            ("vm", Shown::VirtualMesh),
        ] {
            assert_eq!(Shown::from_str(name, true), Ok(shown), "{name}");
        }
    }
}
