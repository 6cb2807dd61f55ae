//! What the definitions of our kinds accept, keep and promise.

// An integration test is one always; saying so lets its helper functions panic like a test.
#![cfg(test)]

mod definitions;
mod reading;
mod rules;
mod tree;
mod upstream;
