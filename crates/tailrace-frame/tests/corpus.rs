//! The seed corpus of the fuzz target `frame`, replayed.
#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/bodies/frame.rs"]
mod body;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_seed_holds() {
    replay::replay("frame", body::run);
}
