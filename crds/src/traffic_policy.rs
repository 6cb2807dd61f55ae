//! `TrafficPolicy`: how requests are treated on their way.

mod cors;
mod csrf;
mod fault_injection;
mod http_matcher;
mod mirror;
mod mtls;
mod outlier_detection;
mod rate_limit;
mod retries;
mod traffic_shift;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::cors::CorsPolicy;
pub use self::csrf::CsrfPolicy;
pub use self::fault_injection::{Abort, FaultInjection};
pub use self::http_matcher::{HeaderMatcher, HttpMatcher, QueryParameterMatcher};
pub use self::mirror::Mirror;
pub use self::mtls::{IstioMtls, Mtls, TlsMode};
pub use self::outlier_detection::OutlierDetection;
pub use self::rate_limit::{
    AdvancedRateLimit, BasicRateLimit, GenericKey, HeaderValueMatch, HeaderValueMatcher,
    Int64Range, RateLimit, RateLimitAction, RateLimitActions, RateLimitConfigRefs, RateLimitRatio,
    RateLimitUnit, RequestHeadersKey,
};
pub use self::retries::Retries;
pub use self::traffic_shift::{
    DestinationOptions, KubeServiceTarget, TrafficShift, VirtualDestinationTarget,
    WeightedDestination,
};
use crate::approval::{ApprovalState, ApprovalStatus};
use crate::header_manipulation::HeaderManipulation;
use crate::selector::{DestinationSelector, WorkloadSelector};
use crate::{schema, wire};

/// Applies a policy to requests from the selected sources to the selected destinations.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.mesh.gloo.solo.io",
    version = "v1",
    kind = "TrafficPolicy",
    plural = "trafficpolicies",
    shortname = "tp",
    category = "gloo-mesh",
    namespaced,
    status = "TrafficPolicyStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "How requests from selected workloads to selected destinations are treated on their way.",
    printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#,
    printcolumn = r#"{"name": "Programmed", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Programmed\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct TrafficPolicySpec {
    /// Where requests come from; none means every workload.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub source_selector: Vec<WorkloadSelector>,
    /// Where requests are sent to; none means every destination.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 256))]
    pub destination_selector: Vec<DestinationSelector>,
    /// Which requests; one match is enough, none means all.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(length(max = 256))]
    pub http_request_matchers: Vec<HttpMatcher>,
    /// What is done to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}

/// What is done to requests. Each member is independent of the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Sends requests elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_shift: Option<TrafficShift>,
    /// Delays or aborts requests on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_injection: Option<FaultInjection>,
    /// Time after which a request fails, all its retries included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration_or_zero")]
    pub request_timeout: Option<String>,
    /// Repeats requests that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Answers browsers' cross-origin questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors_policy: Option<CorsPolicy>,
    /// Sends copies of requests elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Mirror>,
    /// Adds and removes headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_manipulation: Option<HeaderManipulation>,
    /// Takes failing endpoints out of load balancing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlier_detection: Option<OutlierDetection>,
    /// TLS on the way to the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtls: Option<Mtls>,
    /// Refuses requests that other sites forged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<CsrfPolicy>,
    /// Limits the rate of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
}

/// What became of a traffic policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrafficPolicyStatus {
    /// Generation of the policy that this status speaks of.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub observed_generation: i64,
    /// Verdict on the whole policy.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub state: ApprovalState,
    /// Verdict on each destination that the policy selects, by the destination's key
    /// (`name.namespace.`).
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub destinations: BTreeMap<String, ApprovalStatus>,
    /// Keys of the workloads that the policy selects.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub workloads: Vec<String>,
    /// Why the whole policy is not accepted.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub errors: Vec<String>,
    /// Number of entries that were left out to keep this status small.
    #[serde(default, deserialize_with = "wire::int64")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub omitted: i64,
    /// Conditions, one of each type.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
