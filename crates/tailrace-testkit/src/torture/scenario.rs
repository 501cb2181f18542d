//! placeholder
/// x
#[derive(Clone, Copy, Debug)]
pub enum Scenario {}
