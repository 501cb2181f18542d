//! The distinct values of a column that has few of them, numbered in the order in which they came.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{ArrowNativeType, DataType};
use datafusion::common::Result;
use hashbrown::DefaultHashBuilder;

use super::table::Table;

/// The numbers of a column are below this.
pub(super) const NUMBERS_MAX: u32 = 1 << NUMBER_BITS;
pub(super) const NUMBER_BITS: u32 = 10;
/// The texts of a column that are kept, together.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// A view with so many bytes of text holds all of them.
const INLINE_BYTES_MAX: u32 = 12;

/// Whether the values of such a column can be numbered.
pub(super) fn has_numbers(ty: &DataType) -> bool {
    ty.is_integer()
        || matches!(
            ty,
            DataType::Utf8View | DataType::Timestamp(..) | DataType::Date32 | DataType::Date64
        )
}

/// The values of a column.
pub(super) struct Numbers {
    /// Texts by their views, if these hold all of them; else by their lengths, beginnings and hashes.
    views: Table<u128>,
    words: Table<u64>,
    of_null: Option<u32>,
    /// How many there are.
    count: u32,
    /// The values in parts, in the order of their numbers.
    values: Vec<ArrayRef>,
    /// The long texts, by number; nothing for other values.
    texts: Vec<Box<[u8]>>,
    text_bytes: usize,
    hasher: DefaultHashBuilder,
    /// The rows of a batch that have a value for the first time.
    new: Vec<u32>,
}

impl Numbers {
    pub(super) fn new() -> Numbers {
        Numbers {
            views: Table::new(),
            words: Table::new(),
            of_null: None,
            count: 0,
            values: Vec::new(),
            texts: Vec::new(),
            text_bytes: 0,
            hasher: DefaultHashBuilder::default(),
            new: Vec::new(),
        }
    }

    /// Adds the number of each row's value, shifted, to `keys`. False if there are too many values; `keys` are of no use then.
    pub(super) fn number(
        &mut self,
        column: &ArrayRef,
        shift: u32,
        keys: &mut [u64],
    ) -> Result<bool> {
        self.new.clear();
        let fits = match column.data_type() {
            DataType::Utf8View => self.number_texts(column.as_string_view(), shift, keys),
            _ => self.number_words(column, shift, keys),
        };
        if fits && !self.new.is_empty() {
            let rows = UInt32Array::from(std::mem::take(&mut self.new));
            let values = take(column, &rows, None)?;
            self.values.push(match values.data_type() {
                DataType::Utf8View => Arc::new(values.as_string_view().gc()),
                _ => values,
            });
        }
        Ok(fits)
    }

    fn number_words(&mut self, column: &ArrayRef, shift: u32, keys: &mut [u64]) -> bool {
        let data = column.to_data();
        match column.data_type().primitive_width() {
            Some(1) => self.number_each(column, data.buffer::<u8>(0), shift, keys),
            Some(2) => self.number_each(column, data.buffer::<u16>(0), shift, keys),
            Some(4) => self.number_each(column, data.buffer::<u32>(0), shift, keys),
            Some(8) => self.number_each(column, data.buffer::<u64>(0), shift, keys),
            _ => false,
        }
    }

    fn number_each<T: ArrowNativeType>(
        &mut self,
        column: &ArrayRef,
        values: &[T],
        shift: u32,
        keys: &mut [u64],
    ) -> bool {
        let number = |this: &mut Numbers, row: usize| {
            let value = values[row].as_usize() as u64;
            match this.words.find(value) {
                Some(number) => Some(number),
                None => this.add_word(row, value),
            }
        };
        self.rows(column, shift, keys, number)
    }

    fn number_texts(&mut self, texts: &StringViewArray, shift: u32, keys: &mut [u64]) -> bool {
        let views = texts.views();
        let number = |this: &mut Numbers, row: usize| {
            let view = views[row];
            if view as u32 > INLINE_BYTES_MAX {
                return this.long(row, view, texts.value(row).as_bytes());
            }
            match this.views.find(view) {
                Some(number) => Some(number),
                None => this.add_view(row, view),
            }
        };
        self.rows(texts, shift, keys, number)
    }

    /// Adds the number of each row to its key; false if one has none.
    #[inline(always)]
    fn rows(
        &mut self,
        column: &dyn Array,
        shift: u32,
        keys: &mut [u64],
        number: impl Fn(&mut Numbers, usize) -> Option<u32>,
    ) -> bool {
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
        for (row, key) in keys.iter_mut().enumerate() {
            let number = match nulls {
                Some(nulls) if nulls.is_null(row) => self.null(row),
                _ => number(self, row),
            };
            let Some(number) = number else { return false };
            *key |= u64::from(number) << shift;
        }
        true
    }

    /// The number of a text whose view does not hold it. Texts of one hash, length and beginning are too many.
    fn long(&mut self, row: usize, view: u128, text: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        let key = u128::from(view as u64) | u128::from(hash) << 64;
        if let Some(number) = self.views.find(key) {
            return (*self.texts[number as usize] == *text).then_some(number);
        }
        let number = self.add_view(row, key)?;
        self.text_bytes += text.len();
        self.texts.resize_with(number as usize, Box::default);
        self.texts.push(text.into());
        (self.text_bytes <= TEXT_BYTES_MAX).then_some(number)
    }

    #[cold]
    fn add_view(&mut self, row: usize, view: u128) -> Option<u32> {
        let number = self.next(row)?;
        self.views.insert(view, number).then_some(number)
    }

    #[cold]
    fn add_word(&mut self, row: usize, word: u64) -> Option<u32> {
        let number = self.next(row)?;
        self.words.insert(word, number).then_some(number)
    }

    fn null(&mut self, row: usize) -> Option<u32> {
        if self.of_null.is_none() {
            self.of_null = Some(self.next(row)?);
        }
        self.of_null
    }

    fn next(&mut self, row: usize) -> Option<u32> {
        if self.count == NUMBERS_MAX {
            return None;
        }
        self.new.push(row as u32);
        self.count += 1;
        Some(self.count - 1)
    }

    /// How many bytes of memory they take.
    pub(super) fn bytes(&self) -> usize {
        let values = self.values.iter();
        let values: usize = values.map(|values| values.get_array_memory_size()).sum();
        let tables = self.views.bytes() + self.words.bytes();
        values + tables + self.text_bytes + size_of_val(self.texts.as_slice())
    }

    /// The values with these numbers.
    pub(super) fn values(&self, numbers: &UInt32Array) -> Result<ArrayRef> {
        let parts: Vec<&dyn Array> = self.values.iter().map(AsRef::as_ref).collect();
        Ok(take(&concat(&parts)?, numbers, None)?)
    }
}
