//! Texts, each once.

use arrow::array::{Array, ArrayBuilder, StringViewArray, StringViewBuilder};
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::common::{Result, exec_datafusion_err};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Another one than that by which rows are given to partitions: else all texts of a partition would have a part of the hash in common.
const SEED: u64 = 0x7461_696c_7261_6365;

/// A set of texts.
#[derive(Default)]
pub(super) struct Texts {
    /// For each text, a part of its hash and its number.
    places: HashTable<(u32, u32)>,
    texts: StringViewBuilder,
    has_null: bool,
    hashes: Vec<u64>,
}

/// The hash by which a text is found, from the part that is kept.
fn spread(kept: u32) -> u64 {
    u64::from(kept).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Texts {
    /// Adds those that are new.
    ///
    /// # Errors
    ///
    /// There are more than 2^32 texts.
    pub(super) fn add(&mut self, texts: &StringViewArray) -> Result<()> {
        self.hashes.clear();
        self.hashes.resize(texts.len(), 0);
        let seed = RandomState::with_seed(SEED);
        create_hashes([texts as &dyn Array], &seed, &mut self.hashes)?;
        for (row, hash) in self.hashes.iter().enumerate() {
            if texts.is_null(row) {
                if !self.has_null {
                    self.has_null = true;
                    self.texts.append_null();
                }
                continue;
            }
            let text = texts.value(row);
            let kept = (hash >> 32) as u32;
            let known = &self.texts;
            let is_it = |&(of, number): &(u32, u32)| {
                of == kept && known.get_value(number as usize) == text.as_bytes()
            };
            let rehashed = |place: &(u32, u32)| spread(place.0);
            let Entry::Vacant(place) = self.places.entry(spread(kept), is_it, rehashed) else {
                continue;
            };
            let number = u32::try_from(known.len());
            let number =
                number.map_err(|_| exec_datafusion_err!("more than 2^32 distinct texts"))?;
            place.insert((kept, number));
            self.texts.append_value(text);
        }
        Ok(())
    }

    /// How many bytes of memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.places.allocation_size()
            + self.texts.allocated_size()
            + self.hashes.capacity() * size_of::<u64>()
    }

    /// The texts in the order in which they came, so many at a time.
    pub(super) fn finish(mut self, rows: usize) -> impl Iterator<Item = StringViewArray> {
        let all = self.texts.finish();
        let parts = (0..all.len()).step_by(rows);
        parts.map(move |first| all.slice(first, rows.min(all.len() - first)))
    }
}
