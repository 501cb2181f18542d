//! Open columns: values of any kind as their text, the kind beside it.
//!
//! [`OpenColumn`] borrows the slices of a view array and of the kinds, so that reading a value costs a few loads. A value that is
//! null although its kind is not was unreadable: it counts as absent. Nothing is copied or written.

use arrow::array::{Array, StringViewArray, UInt8Array};
use arrow::buffer::{Buffer, NullBuffer};
use tailrace_model::json::Kind;

use crate::cell::Cell;
use crate::number::{INLINE_MAX, float, inline_float, inline_integer, integer, view_len};

/// An open column.
#[derive(Clone, Copy)]
pub(crate) struct OpenColumn<'a> {
    text: &'a StringViewArray,
    views: &'a [u128],
    buffers: &'a [Buffer],
    kinds: &'a [u8],
    text_nulls: Option<&'a NullBuffer>,
    kind_nulls: Option<&'a NullBuffer>,
}

/// The text of a value where it lies.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// In the view: the first byte is the lowest; up to [`INLINE_MAX`] bytes.
    Inline(u128, usize),
    /// In a buffer: what stands there from the text's first byte on, and the text's length.
    Buffer(&'a [u8], usize),
}

/// An absent value; any other state is a [`Kind`] as a number.
pub(crate) const ABSENT: u8 = u8::MAX;

impl<'a> OpenColumn<'a> {
    pub(crate) fn new(text: &'a StringViewArray, kinds: &'a UInt8Array) -> OpenColumn<'a> {
        OpenColumn {
            text,
            views: text.views(),
            buffers: text.data_buffers(),
            kinds: kinds.values(),
            text_nulls: text.nulls(),
            kind_nulls: kinds.nulls(),
        }
    }

    /// The kind of a value that is present.
    #[inline]
    pub(crate) fn kind(&self, at: usize) -> u8 {
        self.kinds[at]
    }

    /// Reads something of every cache line that holds views of these values or the kind of the first.
    #[inline]
    pub(crate) fn touch(&self, first: usize, last: usize) -> u64 {
        const VIEWS_PER_LINE: usize = 64 / size_of::<u128>();
        let views = self.views[first..=last].iter().step_by(VIEWS_PER_LINE);
        views.fold(u64::from(self.kinds[first]), |sum, view| sum ^ *view as u64)
    }

    /// The kind of a value, or [`ABSENT`].
    #[inline]
    pub(crate) fn state(&self, at: usize) -> u8 {
        if self.kind_nulls.is_some_and(|nulls| nulls.is_null(at)) {
            return ABSENT;
        }
        let kind = self.kinds[at];
        if kind != Kind::Null as u8 && self.text_nulls.is_some_and(|nulls| nulls.is_null(at)) {
            return ABSENT;
        }
        kind
    }

    /// Whether a value may be absent.
    pub(crate) fn is_sparse(&self) -> bool {
        self.kind_nulls.is_some() || self.text_nulls.is_some()
    }

    /// 64 values at a time: where a kind is, and where of these no text is.
    pub(crate) fn validity(&self) -> impl Iterator<Item = (u64, u64)> {
        let len = self.kinds.len();
        let inside = move |word: usize| match len - 64 * word {
            left @ 0..64 => (1 << left) - 1,
            _ => u64::MAX,
        };
        let words = (0..len.div_ceil(64)).map(inside);
        words
            .zip(words_of(self.kind_nulls).zip(words_of(self.text_nulls)))
            .map(|(inside, (kinds, texts))| (kinds & inside, kinds & inside & !texts))
    }

    /// Where the text of a value is that is neither absent nor null.
    #[inline]
    pub(crate) fn place(&self, at: usize) -> Place<'a> {
        let view = self.views[at];
        let len = view_len(view);
        if len <= INLINE_MAX {
            return Place::Inline(view >> 32, len);
        }
        let (buffer, offset) = ((view >> 64) as u32 as usize, (view >> 96) as usize);
        Place::Buffer(&self.buffers[buffer][offset..], len)
    }

    #[inline]
    pub(crate) fn text(&self, at: usize) -> &'a str {
        self.text.value(at)
    }

    /// The integer at `at`, if it is within `i64`.
    #[inline]
    pub(crate) fn integer(&self, at: usize) -> Option<i64> {
        inline_integer(self.views[at]).or_else(|| integer(self.text(at)))
    }

    /// The number at `at`, unless it is beyond what `f64` holds.
    #[inline]
    pub(crate) fn float(&self, at: usize) -> Option<f64> {
        inline_float(self.views[at]).or_else(|| float(self.text(at)))
    }

    /// Whether a value of kind bool is `true`.
    #[inline]
    pub(crate) fn is_true(&self, at: usize) -> bool {
        const TRUE: u64 = 4 | (u32::from_le_bytes(*b"true") as u64) << 32;
        self.views[at] as u64 == TRUE
    }

    /// The value as a cell.
    #[inline]
    pub(crate) fn cell(&self, at: usize) -> Cell<'a> {
        const NULL: u8 = Kind::Null as u8;
        const INTEGER: u8 = Kind::Integer as u8;
        const FLOAT: u8 = Kind::Float as u8;
        const BOOL: u8 = Kind::Bool as u8;
        const OBJECT: u8 = Kind::Object as u8;
        const ARRAY: u8 = Kind::Array as u8;
        match self.state(at) {
            ABSENT => Cell::Absent,
            NULL => Cell::Null,
            INTEGER => Cell::Integer(self.text(at)),
            FLOAT => Cell::Number(self.text(at)),
            BOOL => Cell::Bool(self.is_true(at)),
            OBJECT | ARRAY => Cell::Json(self.text(at)),
            _ => Cell::Str(self.text(at)),
        }
    }
}

/// The bits of `nulls`, 64 a word, and set bits without end behind them.
fn words_of(nulls: Option<&NullBuffer>) -> impl Iterator<Item = u64> {
    let chunks = nulls.map(|nulls| nulls.inner().bit_chunks());
    let words = chunks.map(|chunks| chunks.iter().chain([chunks.remainder_bits()]));
    words
        .into_iter()
        .flatten()
        .chain(std::iter::repeat(u64::MAX))
}
