//! Sending copies of requests elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::ClusterObjectRef;
use crate::{schema, wire};

/// Sends a copy of a share of the requests elsewhere. Answers to copies are dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::rule("has(self.kubeService)", "say where the copies go: set kubeService")]))]
pub struct Mirror {
    /// The Kubernetes Service that takes the copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::cluster_object_ref")]
    pub kube_service: Option<ClusterObjectRef>,
    /// Share of the requests in percent; 100 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::percentage")]
    pub percentage: Option<f64>,
    /// Port of the Service; may be left out when the Service has only one.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::port")]
    pub port: i32,
}
