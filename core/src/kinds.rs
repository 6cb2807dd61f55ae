//! The kind list: every kind of object that is read, written once.
//!
//! Each line of [`for_each_kind`] is one kind: its name, its parsed form, the table that holds it,
//! where it is watched, and how it is read. The list makes [`Kind`], [`Object`] and
//! [`Snapshot`] here, the watches of a mirror, the dispatch of a webhook and the reader of a
//! command line elsewhere.

use std::sync::Arc;

use ferromesh_crds::core::Resource;
use serde::de::DeserializeOwned;

use crate::diagnose::Code;
use crate::key::Key;
use crate::model::kubernetes::{
    ConfigMap, Controller, EndpointSlice, Namespace, Node, Pod, Secret, Service,
};
use crate::model::{
    AccessPolicy, Destination, KubernetesCluster, Mesh, Rejection, Settings, TrafficPolicy,
    VirtualMesh, Workload,
};
use crate::table::Table;

/// Wire forms of the kinds, under the paths that the kind list names them by.
pub mod wire {
    pub use ferromesh_crds as crds;
    pub use k8s_openapi::api::{apps, core, discovery};
}

/// Where objects of a kind are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In the management cluster.
    Management,
    /// In every managed cluster.
    Managed,
    /// In every managed cluster, and in the management cluster too.
    Everywhere,
    /// In directories of files alone: a newer kind says the same in a cluster.
    Files,
}

/// Calls a macro with the kind list.
///
/// Each entry reads `Kind, table: Parsed, Scope, path::of::Wire => parse;`, where `parse` takes the
/// wire form and the name of its cluster. It names functions of this crate: other crates pass
/// over it and call [`Input::parse`].
#[macro_export]
macro_rules! for_each_kind {
    ($callback:ident) => {
        $callback! {
            KubernetesCluster, clusters: KubernetesCluster, Management, $crate::kinds::wire::crds::KubernetesCluster => |object, _| KubernetesCluster::parse(object);
            Settings, settings: Settings, Management, $crate::kinds::wire::crds::Settings => |object, _| Settings::parse(object);
            Mesh, meshes: Mesh, Management, $crate::kinds::wire::crds::Mesh => |object, _| Mesh::parse(object);
            Workload, workloads: Workload, Management, $crate::kinds::wire::crds::Workload => |object, _| Workload::parse(object);
            Destination, destinations: Destination, Management, $crate::kinds::wire::crds::Destination => |object, _| Destination::parse(object);
            VirtualMesh, virtual_meshes: VirtualMesh, Management, $crate::kinds::wire::crds::VirtualMesh => |object, _| VirtualMesh::parse(object);
            TrafficPolicy, traffic_policies: TrafficPolicy, Management, $crate::kinds::wire::crds::TrafficPolicy => |object, _| TrafficPolicy::parse(object);
            AccessPolicy, access_policies: AccessPolicy, Management, $crate::kinds::wire::crds::AccessPolicy => |object, _| AccessPolicy::parse(object);
            Secret, secrets: Secret, Management, $crate::kinds::wire::core::v1::Secret => Secret::parse;
            Namespace, namespaces: Namespace, Everywhere, $crate::kinds::wire::core::v1::Namespace => Namespace::parse;
            Node, nodes: Node, Managed, $crate::kinds::wire::core::v1::Node => Node::parse;
            ConfigMap, config_maps: ConfigMap, Managed, $crate::kinds::wire::core::v1::ConfigMap => ConfigMap::parse;
            Deployment, deployments: Controller, Managed, $crate::kinds::wire::apps::v1::Deployment => Controller::deployment;
            ReplicaSet, replica_sets: Controller, Managed, $crate::kinds::wire::apps::v1::ReplicaSet => Controller::replica_set;
            DaemonSet, daemon_sets: Controller, Managed, $crate::kinds::wire::apps::v1::DaemonSet => Controller::daemon_set;
            StatefulSet, stateful_sets: Controller, Managed, $crate::kinds::wire::apps::v1::StatefulSet => Controller::stateful_set;
            Pod, pods: Pod, Managed, $crate::kinds::wire::core::v1::Pod => Pod::parse;
            Service, services: Service, Managed, $crate::kinds::wire::core::v1::Service => Service::parse;
            EndpointSlice, endpoint_slices: EndpointSlice, Managed, $crate::kinds::wire::discovery::v1::EndpointSlice => EndpointSlice::parse;
            Endpoints, endpoints: EndpointSlice, Files, $crate::kinds::wire::core::v1::Endpoints => EndpointSlice::of_endpoints;
        }
    };
}

macro_rules! kinds {
    ($($kind:ident, $table:ident: $parsed:ty, $scope:ident, $wire:ty => $parse:expr;)*) => {
        /// A kind of object that is read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each is the Kubernetes kind of its name")]
        pub enum Kind { $($kind,)* }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The kind's name in the API.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind),)* }
            }

            /// Its API group, empty for the core group.
            pub fn group(self) -> std::borrow::Cow<'static, str> {
                match self { $(Self::$kind => <$wire as Resource>::group(&()),)* }
            }

            /// Where its objects are read.
            pub const fn scope(self) -> Scope {
                match self { $(Self::$kind => Scope::$scope,)* }
            }

            /// Reads an object of this kind from `cluster`, empty for the management cluster.
            ///
            /// Refuses what has not the shape of the kind, and says where.
            pub fn read(self, object: &serde_json::Value, cluster: &str) -> Result<Object, Rejection> {
                limit_names(object)?;
                match self { $(Self::$kind => decode::<$wire>(object).map(|object| object.parse(cluster)),)* }
            }
        }

        /// A parsed object.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "each is the parsed form of the kind of its name")]
        pub enum Object { $($kind(Arc<$parsed>),)* }

        impl Object {
            /// Its kind.
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)* }
            }

            /// Its name.
            pub fn key(&self) -> &Key {
                match self { $(Self::$kind(object) => &object.key,)* }
            }
        }

        $(impl Input for $wire {
            const KIND: Kind = Kind::$kind;

            fn parse(&self, cluster: &str) -> Object {
                let parse: fn(&Self, &str) -> $parsed = $parse;
                Object::$kind(Arc::new(parse(self, cluster)))
            }
        })*

        /// Every object that was read, as it was read last.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Snapshot {
            $(
                #[doc = concat!("Objects of kind ", stringify!($kind), ".")]
                pub $table: Table<Key, Arc<$parsed>>,
            )*
        }

        impl Snapshot {
            /// The object of this kind and name.
            pub fn get(&self, kind: Kind, key: &Key) -> Option<Object> {
                match kind { $(Kind::$kind => self.$table.get(key).cloned().map(Object::$kind),)* }
            }

            /// Every name of a kind's objects.
            pub fn keys(&self, kind: Kind) -> Vec<Key> {
                match kind { $(Kind::$kind => self.$table.keys().cloned().collect(),)* }
            }

            pub(crate) fn put(&mut self, object: Object) {
                match object { $(Object::$kind(object) => self.$table.insert(object.key.clone(), object),)* }
            }

            pub(crate) fn take(&mut self, kind: Kind, key: &Key) {
                match kind { $(Kind::$kind => { self.$table.remove(key); })* }
            }
        }
    };
}

/// A wire form that has a parsed form.
pub trait Input: DeserializeOwned {
    /// Its kind.
    const KIND: Kind;

    /// Reads it as an object of `cluster`, empty for the management cluster.
    fn parse(&self, cluster: &str) -> Object;
}

for_each_kind!(kinds);

/// Most bytes of a name or a namespace that an API server takes (`DNS1123SubdomainMaxLength` of apimachinery).
const MAX_NAME: usize = 253;

/// Refuses an object whose name could stand in no API server: statuses and objects of others repeat it.
fn limit_names(object: &serde_json::Value) -> Result<(), Rejection> {
    for field in ["name", "namespace"] {
        let name = object["metadata"][field].as_str();
        if name.is_some_and(|name| name.len() > MAX_NAME) {
            return Err(Rejection {
                path: format!("metadata.{field}"),
                code: Code::TooLarge,
                message: format!("is longer than {MAX_NAME} bytes, which no API server stores"),
            });
        }
    }
    Ok(())
}

/// Reads the wire form of a kind; an error names the field.
fn decode<T: DeserializeOwned>(object: &serde_json::Value) -> Result<T, Rejection> {
    // To follow the path takes as long again as to read.
    T::deserialize(object).or_else(|_| {
        serde_path_to_error::deserialize(object).map_err(|error| Rejection {
            path: error.path().to_string(),
            code: Code::Invalid,
            message: in_words(&error.inner().to_string()),
        })
    })
}

/// What serde says, without the names of Rust types.
fn in_words(message: &str) -> String {
    let Some((found, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    let expected = match expected.split(' ').next() {
        Some("struct") => "an object",
        Some("i32" | "i64" | "u8" | "u16" | "u32" | "u64") => "a whole number",
        Some("f64") => "a number",
        _ if expected == "a sequence" => "a list",
        _ if expected == "a map" => "an object",
        _ => expected,
    };
    format!("{found}, expected {expected}")
}
