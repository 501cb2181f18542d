//! The seed corpus of the fuzz target `otlp`, replayed.
#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/bodies/otlp.rs"]
mod body;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_seed_holds() {
    replay::replay("otlp", body::run);
}
