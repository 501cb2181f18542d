//! Tests of whole queries: what they need, what they give, and that every way of running them agrees.
#![allow(clippy::unwrap_used)]

mod conditions;
mod data;
mod extremes;
mod lint;
mod literals;
mod numbers;
mod oracle;
mod paths;
mod phases;
mod refusals;
mod results;
mod sizes;
mod times;
mod typing;
mod wide_integers;

pub(crate) use data::compile;
