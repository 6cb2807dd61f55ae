//! The clusters, what stands in them, and the server.

pub(crate) use ferromesh_e2e::account::NAMESPACE;
pub(crate) use ferromesh_e2e::world::{
    NAMES, Shop, World, found, is, is_current, meshctl, register,
};
