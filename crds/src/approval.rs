//! Verdicts on a policy, as the compatible part of a status tells them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, wire};

/// Verdict on an object, or on an object in one place where it applies.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ApprovalState {
    /// Not judged yet.
    #[default]
    Pending,
    /// Valid and in effect.
    Accepted,
    /// Wrong, or in conflict with an object that has precedence.
    Invalid,
    /// Valid, but it could not be put into effect.
    Failed,
}

/// Verdict on an object in one place where it applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalStatus {
    /// Rank among the policies that are accepted in this place, counted from 0. The lower rank
    /// wins a conflict.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    #[schemars(schema_with = "schema::uint32")]
    pub acceptance_order: i64,
    /// The verdict.
    #[serde(default, deserialize_with = "wire::enumeration")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub state: ApprovalState,
    /// Why the object is not accepted here.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub errors: Vec<String>,
    /// What is accepted but probably not meant.
    #[serde(default, deserialize_with = "wire::nullable")]
    #[serde(skip_serializing_if = "wire::is_default")]
    pub warnings: Vec<String>,
}
