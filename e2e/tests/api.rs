//! Our API on a real API server.

#[path = "api/rules.rs"]
mod rules;
