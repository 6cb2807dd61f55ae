//! From bound policies to Istio objects.
//!
//! Two steps. The first, [`traffic`] and [`authorization`], works out what a destination's
//! policies amount to, errors included; its result is small and says nothing twice, however many
//! clusters it is for and however much the policies ask for: they are held and not copied. The
//! second renders one object of one cluster when somebody wants it: [`virtual_service`],
//! [`destination_rule`], [`service_entry`], [`gateway`], [`global_access`], [`certificate`].

pub mod authorization;
pub mod certificate;
pub mod conditions;
pub mod destination_rule;
pub mod gateway;
pub mod global_access;
pub mod route;
pub mod service_entry;
pub mod traffic;
pub mod virtual_service;
