//! Values of any kind inside expressions: a text and its JSON kind, as one Arrow struct.
//!
//! Reads arrays of the types that keys and expressions have row by row, and builds such arrays. Functions that only
//! choose a value hand on the record's own value and kind through them, and arithmetic gives an integer or a float
//! as the row's operands say. NULL is an absent key, a JSON null and SQL's NULL. Never rounds an integer.

pub(crate) mod array;
mod convert;
pub(crate) mod counts;
mod functions;
mod number;

pub use self::array::split;
pub(crate) use self::array::with_nulls_inside;
pub(crate) use self::functions::{Function, all};
pub(crate) use self::number::Operation;
