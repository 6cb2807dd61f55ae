//! A choice that needs no parameters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A choice that needs no parameters: written as `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}
