//! The seed corpus of the fuzz target `config`, replayed.
#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/bodies/config.rs"]
mod body;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_seed_holds() {
    replay::replay("config", body::run);
}
