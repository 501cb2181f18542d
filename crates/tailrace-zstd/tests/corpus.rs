//! The seed corpus of the fuzz target `zstd`, replayed.
#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/bodies/zstd.rs"]
mod body;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_seed_holds() {
    replay::replay("zstd", body::run);
}
