//! The keys of the records that are looked at.

use std::collections::HashMap;

use arrow::array::Array;
use tailrace_model::json::{Members, unescaped};
use tailrace_scan::{Scanned, Scanner};

use super::SAMPLE_BYTES;
use super::kinds::Kinds;
use crate::partition::Part;
use crate::reader::{Once, Reader};

/// Keys that become columns: a plan of more takes DataFusion many seconds.
const COLUMNS_MAX: usize = 4096;

/// The keys of some records, in the order in which they are met.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) names: Vec<String>,
    pub(super) kinds: HashMap<String, Kinds>,
    pub(super) left_out: u64,
}

impl Keys {
    pub(super) fn add(&mut self, scanned: &Scanned) {
        for column in &scanned.star {
            match self.kinds_of(&column.key) {
                Some(kinds) => kinds.add(&column.values, &column.kinds),
                None => {
                    self.left_out += (column.kinds.len() - column.kinds.null_count()) as u64;
                }
            }
        }
        // Members for which the scanner had no column.
        for object in scanned.overflow.iter().flatten().flatten() {
            for (key, value) in Members::new(object) {
                match unescaped(&key).and_then(|key| self.kinds_of(&key)) {
                    Some(kinds) => kinds.add_value(value.kind, value.text),
                    None => self.left_out += 1,
                }
            }
        }
    }

    /// Adds the keys of a part of a plain file; says whether there are records without any.
    pub(super) fn add_part(
        &mut self,
        part: &Part,
        once: &Once,
        scanner: &mut Scanner,
    ) -> anyhow::Result<bool> {
        let mut has_text = false;
        let mut reader = Reader::new(part, once, SAMPLE_BYTES)?;
        while let Some(chunk) = reader.next(scanner.searcher(false))? {
            let scanned = scanner.scan(&chunk.records(0));
            has_text |= scanned.stats.text > 0 || scanned.stats.malformed > 0;
            self.add(&scanned);
        }
        Ok(has_text)
    }

    /// What is known of a key, unless there are too many.
    fn kinds_of(&mut self, key: &str) -> Option<&mut Kinds> {
        if !self.kinds.contains_key(key) {
            if self.names.len() >= COLUMNS_MAX {
                return None;
            }
            self.names.push(key.to_owned());
            self.kinds.insert(key.to_owned(), Kinds::default());
        }
        self.kinds.get_mut(key)
    }
}
