//! Features of a route, one file each.

pub mod fault;
pub mod order;
pub mod shift;
