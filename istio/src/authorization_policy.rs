//! `AuthorizationPolicy`: who may call a workload.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What requests the selected workloads allow.
///
/// Without `action` and rules the policy allows nothing: that is how everything is denied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthorizationPolicy {
    /// The workloads; absent for all of the namespace (of the mesh in the root namespace).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<WorkloadSelector>,
    /// What a matching rule does; absence is ALLOW.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// A request is allowed when one rule matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// Pods that carry all the labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSelector {
    /// The labels.
    pub match_labels: BTreeMap<String, String>,
}

/// Actions that we set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    /// Allow what a rule matches, deny the rest.
    Allow,
}

/// Sources and operations; empty means any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// Alternatives of who calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<From>,
    /// Alternatives of what is called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<To>,
}

/// Wrapper that Istio's API puts around a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct From {
    /// The source.
    pub source: Source,
}

/// Who calls: every field that is set must match, one of its entries each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Source {
    /// SPIFFE identities without the scheme; a leading or trailing `*` is a wildcard.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub principals: Vec<String>,
    /// Namespaces, as the caller's identity names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// Wrapper that Istio's API puts around an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct To {
    /// The operation.
    pub operation: Operation,
}

/// What is called: every field that is set must match, one of its entries each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Operation {
    /// Paths; a leading or trailing `*` is a wildcard.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Methods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Ports of the workload, decimal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<String>,
}
