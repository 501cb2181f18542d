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

    /// Where a kind is.
    pub(crate) fn kind_nulls(&self) -> Option<&'a NullBuffer> {
        self.kind_nulls
    }

    /// Where a text is.
    pub(crate) fn text_nulls(&self) -> Option<&'a NullBuffer> {
        self.text_nulls
    }

    /// The kinds of values, where they are present.
    pub(crate) fn kinds(&self) -> &'a [u8] {
        self.kinds
    }

    pub(crate) fn views(&self) -> &'a [u128] {
        self.views
    }

    pub(crate) fn buffers(&self) -> &'a [Buffer] {
        self.buffers
    }

    /// Where the text of a value is that is neither absent nor null.
    #[inline]
    pub(crate) fn place(&self, at: usize) -> Place<'a> {
        place(self.views[at], self.buffers)
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

/// Where the text of a view is.
#[inline(always)]
pub(crate) fn place(view: u128, buffers: &[Buffer]) -> Place<'_> {
    let len = view_len(view);
    if len <= INLINE_MAX {
        return Place::Inline(view >> 32, len);
    }
    let (buffer, offset) = ((view >> 64) as u32 as usize, (view >> 96) as usize);
    Place::Buffer(&buffers[buffer][offset..], len)
}

/// A range of one buffer in which texts are.
#[derive(Default)]
pub(crate) struct TextRange<'a> {
    buffer: Option<&'a Buffer>,
    start: usize,
    end: usize,
}

impl<'a> TextRange<'a> {
    /// Extends the range by the text of a value, if that is not in its view, nor in another buffer.
    #[inline]
    pub(crate) fn add(&mut self, column: &OpenColumn<'a>, at: usize) {
        let view = column.views[at];
        let (buffer, start) = ((view >> 64) as u32 as usize, (view >> 96) as usize);
        if view_len(view) <= INLINE_MAX {
            return;
        }
        let Some(buffer) = column.buffers.get(buffer) else {
            return;
        };
        let end = start + view_len(view);
        match self.buffer {
            None => (self.buffer, self.start, self.end) = (Some(buffer), start, end),
            Some(known) if known.as_ptr() == buffer.as_ptr() => {
                (self.start, self.end) = (self.start.min(start), self.end.max(end));
            }
            Some(_) => {}
        }
    }

    /// Reads something of every cache line of the range, unless that is long.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        const LONG: usize = 128 * 1024;
        const LINE: usize = 64;
        let bytes = self
            .buffer
            .and_then(|buffer| buffer.get(self.start..self.end));
        let bytes = bytes
            .filter(|bytes| bytes.len() <= LONG)
            .unwrap_or_default();
        let lines = bytes.iter().step_by(LINE);
        lines.fold(0, |sum, byte| sum ^ u64::from(*byte))
    }
}
