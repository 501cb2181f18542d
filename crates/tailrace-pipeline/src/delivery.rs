//! From requests to acks: tickets, outputs, the order and the bound of what is in flight, dead letters.

pub(crate) mod crashed;
pub(crate) mod credit;
pub(crate) mod dead_letters;
pub(crate) mod delay;
pub(crate) mod driver;
pub(crate) mod encoding;
pub(crate) mod failures;
pub(crate) mod in_flight;
pub(crate) mod metrics;
pub(crate) mod order;
pub(crate) mod output_config;
pub(crate) mod outputs;
pub(crate) mod record_locations;
pub(crate) mod replay;
pub(crate) mod request;
pub(crate) mod standing;
