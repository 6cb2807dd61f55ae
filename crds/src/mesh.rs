//! Mesh: one control plane that discovery found.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::ObjectRef;
use crate::virtual_mesh::VirtualMeshSpec;
use crate::{schema, wire};

/// Facts of one control plane. At most one of the mesh types is set.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "discovery.mesh.gloo.solo.io",
    version = "v1",
    kind = "Mesh",
    plural = "meshes",
    shortname = "msh",
    category = "gloo-mesh",
    namespaced,
    status = "MeshStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A service mesh's control plane in one cluster. Written by discovery.",
    printcolumn = r#"{"name": "Cluster", "type": "string", "jsonPath": ".spec.*.installation.cluster"}"#,
    printcolumn = r#"{"name": "Namespace", "type": "string", "jsonPath": ".spec.*.installation.namespace"}"#,
    printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".spec.*.installation.version"}"#,
    printcolumn = r#"{"name": "Trust Domain", "type": "string", "jsonPath": ".spec.istio.trustDomain"}"#,
    printcolumn = r#"{"name": "Virtual Mesh", "type": "string", "jsonPath": ".status.appliedVirtualMesh.ref.name"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::at_most_one(&["istio", "awsAppMesh", "linkerd", "consulConnect", "osm"])]))]
pub struct MeshSpec {
    /// Istio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub istio: Option<IstioMesh>,
    /// AWS App Mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws_app_mesh: Option<AwsAppMesh>,
    /// Linkerd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linkerd: Option<LinkerdMesh>,
    /// Consul Connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consul_connect: Option<ConsulConnectMesh>,
    /// Open Service Mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub osm: Option<OsmMesh>,
    /// The agent in the mesh's cluster; absent when the cluster has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_info: Option<AgentInfo>,
}

/// An Istio control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IstioMesh {
    /// Where the control plane runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<MeshInstallation>,
    /// Trust domain of the workloads' identities; empty means `cluster.local`.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub trust_domain: String,
    /// Network of the mesh's workloads, ours: clusters of one network reach each other's pods. Empty
    /// where istiod gives it no name.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub network: String,
    /// ServiceAccount under which istiod runs.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub istiod_service_account: String,
    /// Gateways that take traffic from other clusters. Deprecated, but honoured before any other
    /// way to find them.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 1024))]
    pub ingress_gateways: Vec<IngressGateway>,
    /// The sidecars answer DNS themselves by default.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub smart_dns_proxying_enabled: bool,
}

/// A gateway that takes traffic from other clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::at_most_one(&["dnsName", "ip"])]))]
pub struct IngressGateway {
    /// Name of the gateway's Service.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub name: String,
    /// Namespace of the gateway's Service.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub namespace: String,
    /// Labels by which the Service selects its pods.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub workload_labels: BTreeMap<String, String>,
    /// The same as `dnsName` or `ip`, for old readers.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub external_address: String,
    /// Host name at which other clusters reach the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_name: Option<String>,
    /// IP address at which other clusters reach the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// Port for mutual TLS as other clusters see it.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::port")]
    pub external_tls_port: i32,
    /// Port for mutual TLS on the gateway's pods.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::port")]
    pub tls_container_port: i32,
}

/// An AWS App Mesh, which is not bound to one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsAppMesh {
    /// Name of the mesh in AWS.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub aws_name: String,
    /// AWS region.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub region: String,
    /// AWS account.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub aws_account_id: String,
    /// Amazon resource name of the mesh.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub arn: String,
    /// Registered clusters that take part in the mesh.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub clusters: Vec<String>,
}

/// A Linkerd control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkerdMesh {
    /// Where the control plane runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<MeshInstallation>,
    /// DNS domain of the cluster.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub cluster_domain: String,
}

/// A Consul Connect control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsulConnectMesh {
    /// Where the control plane runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<MeshInstallation>,
}

/// An Open Service Mesh control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OsmMesh {
    /// Where the control plane runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<MeshInstallation>,
}

/// Where a control plane runs, and which release it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeshInstallation {
    /// Namespace of the control plane.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub namespace: String,
    /// Name under which the cluster is registered.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub cluster: String,
    /// Labels by which the control plane's Deployment selects its pods.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub pod_labels: BTreeMap<String, String>,
    /// Tag or digest of the control plane's image.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub version: String,
    /// Region of the nodes that the control plane runs on.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub region: String,
}

/// The agent in a mesh's cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Namespace of the agent.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub agent_namespace: String,
}

/// What applies to a mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeshStatus {
    /// Generation of the mesh that this status speaks of.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// The virtual mesh that groups this mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_virtual_mesh: Option<AppliedVirtualMesh>,
    /// Virtual destinations that this mesh serves.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub applied_virtual_destinations: Vec<AppliedObject>,
    /// The gateways through which other meshes reach this one.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub applied_east_west_ingress_gateways: Vec<AppliedIngressGateway>,
    /// Conditions, one of each type.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A virtual mesh as it applies to one of its meshes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedVirtualMesh {
    /// The `VirtualMesh`.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ObjectRef>,
    /// Generation of the `VirtualMesh` that applies.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// What the `VirtualMesh` asked for at that generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<VirtualMeshSpec>,
}

/// An object that applies to another one, and what is wrong with it there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedObject {
    /// The object.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ObjectRef>,
    /// Generation of the object that applies.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// Why it does not take effect.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub errors: Vec<String>,
}

/// A gateway through which other meshes reach a mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedIngressGateway {
    /// The gateway's Destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_ref: Option<ObjectRef>,
    /// Addresses at which other clusters reach it.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub external_addresses: Vec<String>,
    /// Port that other clusters connect to.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::port")]
    pub destination_port: i32,
    /// Port on the gateway's pods.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::port")]
    pub container_port: i32,
}
