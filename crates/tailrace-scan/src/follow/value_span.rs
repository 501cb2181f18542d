//! Where the values of records are.
//!
//! Filled when records are followed, read when columns are made. Never looks at a byte of them.

use tailrace_model::json::Kind;

use crate::columns::state;

/// A value of a record, which lies between 0 and 4 GiB in its buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ValueSpan {
    start: u32,
    /// From bit 8 on the length; bit 7 says that a string holds a backslash; below is what a column holds beside the value.
    about: u32,
}

const ESCAPED: u32 = 0x80;

impl ValueSpan {
    /// Of the text from `start` to `end`.
    #[inline(always)]
    pub(crate) fn new(kind: Kind, escaped: bool, start: u32, end: u32) -> ValueSpan {
        let ValueSpan { about, .. } = ValueSpan::of_len(kind, start, end.wrapping_sub(start));
        ValueSpan {
            start,
            about: about | (u32::from(escaped) * ESCAPED),
        }
    }

    /// Of `len` bytes from `start` on.
    #[inline(always)]
    pub(super) fn of_len(kind: Kind, start: u32, len: u32) -> ValueSpan {
        ValueSpan {
            start,
            about: len << 8 | u32::from(state(kind)),
        }
    }

    /// First byte of the text: of a string what stands between the quotes.
    #[inline(always)]
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    /// First byte of the value: of a string its quote.
    #[inline(always)]
    pub(super) fn outer_start(self) -> u32 {
        self.start - self.quote()
    }

    /// The place after the value.
    #[inline(always)]
    pub(super) fn outer_end(self) -> u32 {
        self.start + (self.about >> 8) + self.quote()
    }

    #[inline(always)]
    fn quote(self) -> u32 {
        u32::from(self.state() & !(ESCAPED as u8) == state(Kind::String))
    }

    /// Bytes of the text.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        (self.about >> 8) as usize
    }

    /// A string with a backslash: its escapes are good, and still to be undone.
    #[inline(always)]
    pub(crate) fn is_escaped(self) -> bool {
        self.about & ESCAPED != 0
    }

    /// What it is.
    #[inline(always)]
    pub(crate) fn kind(self) -> Kind {
        Kind::from_u8((self.about as u8 & 7).wrapping_sub(1)).unwrap_or(Kind::Null)
    }

    /// What a column holds beside such a value, unless it is escaped.
    #[inline(always)]
    pub(crate) fn state(self) -> u8 {
        self.about as u8
    }
}

/// What following a record found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// Its template, or [`NONE`](crate::template::NONE).
    pub(crate) template: u32,
    /// Its first value span, by number.
    pub(crate) first: u32,
}

/// What following the records of a batch found. Reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct ValueSpans {
    /// The first `count` count; what follows is left over.
    pub(super) value_spans: Vec<ValueSpan>,
    pub(super) count: usize,
    pub(super) found: Vec<Found>,
    /// All records were followed one after the other.
    pub(super) is_in_order: bool,
    /// In the last record group records of several templates took turns.
    pub(super) is_mixed: bool,
}

impl ValueSpans {
    /// Forgets all records, and gives back memory that only an extraordinary batch needed.
    pub(crate) fn clear(&mut self) {
        const KEPT: usize = 256 * 1024;
        if self.value_spans.len() > KEPT && self.count < KEPT / 2 {
            self.value_spans.truncate(KEPT);
            self.value_spans.shrink_to_fit();
        }
        self.count = 0;
        self.found.clear();
        self.is_in_order = true;
    }

    /// Forgets all records, and keeps at most so many bytes of memory.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.clear();
        self.value_spans.truncate(bytes / size_of::<ValueSpan>());
        self.value_spans.shrink_to_fit();
        self.found.shrink_to(bytes / size_of::<Found>());
    }

    /// The value spans of all records, those of one record in the order of its template.
    #[inline]
    pub(crate) fn value_spans(&self) -> &[ValueSpan] {
        &self.value_spans[..self.count]
    }

    /// Whether of two records the later one has the later value spans.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    /// By record.
    #[inline]
    pub(crate) fn found(&self) -> &[Found] {
        &self.found
    }
}
