//! The seed corpus of the fuzz target `scan`, replayed.
#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/bodies/scan.rs"]
mod body;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_seed_holds() {
    replay::replay("scan", body::run);
}
