//! `tailrace tap`: live samples of what a running agent reads, and what becomes of each record. `server` is the agent's side
//! of the socket and `client` the command's. `entry` is one sampled record as both sides, and the admin endpoint, write it.

pub(crate) mod client;
pub(crate) mod entry;
mod print;
pub(crate) mod request;
pub(crate) mod server;
mod socket;

pub(crate) use client::{Args, run};
