//! What the benches share: lines, records and rivals.
