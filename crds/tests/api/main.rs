//! What the definitions of our kinds accept, keep and promise.

mod definitions;
mod reading;
mod rules;
mod tree;
mod upstream;
