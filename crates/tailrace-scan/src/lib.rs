//! Records to a RecordBatch of the wanted columns.
//!
//! A [`Scanner`] reads buffers and the ranges of records in them, and makes Arrow columns for the keys that were asked
//! for (or for all of them, `SELECT *`); string values are views of the buffers. In this order: leave out what cannot
//! meet the condition (`prefilter`, and `newline_search`, which finds the newlines on the way), check and repair UTF-8
//! (`text`), follow each record along the orders of keys that are known (`template`, `follow`) and put the values that
//! were met into their columns, one after the other (`gather`). A record that cannot be followed takes the long way,
//! which is also the specification: find the structural characters outside strings (`index`), check the record's shape,
//! walk its members (`walker`, `rows`), learn its template.
//!
//! * A record is malformed if it has not the shape of an object (outside whitespace it starts with `{`, its strings and
//!   brackets close, and it ends at the closing `}`), or if anything that is read of it is not JSON: a value to its
//!   bottom, a member without a proper key while wanted keys are missing, with `SELECT *` or `json` the whole record.
//!   Then the raw record is kept, beside those members that are JSON; a bad value is NULL. What is not read decides
//!   nothing. The verdict depends on the record and on what is read alone.
//! * Of duplicate keys the first wins. Types come from the caller, never from the data.
//!
//! Never does I/O, never knows SQL, never fails: bad input is data. The only crate with `unsafe` code, in two places:
//! the vector instructions of the index, and the text that was checked once and is not checked again.

mod config;
mod records;
mod scanned;
mod scanner;

mod text;

mod index;
mod shape;

mod extract;
mod follow;
mod gather;
mod groups;
mod keys;
mod newline_search;
mod number;
mod plan;
mod prefilter;
mod template;
mod walker;

mod columns;
mod convert;
mod overflow;
mod reserved;
mod rows;
mod star_columns;
mod token;
mod unescape;
mod unwanted;

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

pub use config::{Column, ColumnSource, Config, Isa, Star, Type, Unwanted};
pub use newline_search::{NewlineSearch, NewlineSearcher, Searched};
pub use records::{BROKEN, Record, Records, TEXT, TEXT_ALLOWED, TRUNCATED};
pub use scanned::{First, Scanned, StarColumn, Stats};
pub use scanner::Scanner;
pub use tailrace_model::needle::{Needle, Needles};
