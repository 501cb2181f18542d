//! Tests of whole queries: what they need, what they give, and that every way of running them agrees.
#![allow(clippy::unwrap_used)]

mod data;
mod numbers;
mod oracle;
mod paths;
mod phases;
mod refusals;
mod results;
mod typing;

pub(crate) use data::compile;
