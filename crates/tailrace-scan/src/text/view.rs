//! Views of text, as Arrow keeps them: 16 bytes each.
//!
//! A view is made of a text's first bytes, its length and its place. Never looks whether it is text: whoever calls has
//! found that it is.

/// Longest text that lies in its view.
const INLINE_BYTES_MAX: usize = 12;

/// Where a text is, as Arrow's string views say it: length and either the text itself (up to 12 bytes) or its first
/// four bytes, its buffer and its offset there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StringView(u128);

/// What a view refers to.
pub(super) enum Seen {
    /// A text of so many bytes, in the view itself.
    Inline([u8; INLINE_BYTES_MAX], usize),
    /// A part of a buffer.
    Part {
        buffer: usize,
        start: usize,
        len: usize,
    },
}

/// What of a text's first four bytes and of the eight after them a view of a text of so many bytes holds, and whether
/// it refers to the buffer.
#[repr(align(32))]
struct Parts {
    /// The first four bytes are the high half.
    head: u64,
    tail: u64,
    reference: u64,
}

/// By length; the last one for all longer ones.
static PARTS: [Parts; INLINE_BYTES_MAX + 2] = {
    let mut parts = [const {
        Parts {
            head: !0 << 32,
            tail: 0,
            reference: !0,
        }
    }; INLINE_BYTES_MAX + 2];
    let mut len = 0;
    while len <= INLINE_BYTES_MAX {
        let used = (1_u128 << (8 * len)) - 1;
        parts[len] = Parts {
            head: (used as u64) << 32,
            tail: (used >> 32) as u64,
            reference: 0,
        };
        len += 1;
    }
    parts
};

impl StringView {
    /// Of the first `len` bytes of `reach`, which is what the buffer holds from `offset` on. No branch on the length.
    #[inline(always)]
    pub(super) fn of_part(reach: &[u8], len: usize, buffer: u32, offset: u32) -> StringView {
        let Some(block) = reach.first_chunk::<16>() else {
            return StringView::at_the_end(&reach[..len], buffer, offset);
        };
        StringView::of_block(block, len, buffer, offset)
    }

    /// Of the `len` bytes at `offset` of a buffer, the first of which are `block`.
    #[inline(always)]
    pub(super) fn of_block(block: &[u8; 16], len: usize, buffer: u32, offset: u32) -> StringView {
        let [first, second] = words(block);
        StringView::of_words(first << 32, first >> 32 | second << 32, len, buffer, offset)
    }

    /// Of the `len` bytes at `offset` of a buffer: the first four are the high half of `head`, the next eight are `tail`.
    #[inline(always)]
    pub(super) fn of_words(
        head: u64,
        tail: u64,
        len: usize,
        buffer: u32,
        offset: u32,
    ) -> StringView {
        let parts = &PARTS[len.min(INLINE_BYTES_MAX + 1)];
        let low = (head & parts.head) | u64::from(len as u32);
        let reference = u64::from(buffer) | u64::from(offset) << 32;
        let high = (tail & parts.tail) | (reference & parts.reference);
        StringView(u128::from(high) << 64 | u128::from(low))
    }

    #[cold]
    pub(super) fn at_the_end(text: &[u8], buffer: u32, offset: u32) -> StringView {
        if text.len() > INLINE_BYTES_MAX {
            StringView::long(text, buffer, offset)
        } else {
            StringView::short(text)
        }
    }

    #[inline]
    fn long(text: &[u8], buffer: u32, offset: u32) -> StringView {
        let prefix = text
            .first_chunk::<4>()
            .map_or(0, |prefix| u32::from_le_bytes(*prefix));
        let high = u64::from(buffer) | u64::from(offset) << 32;
        StringView(u128::from(high) << 64 | u128::from(prefix) << 32 | text.len() as u128)
    }

    /// A view of a text that lies in the view itself; `None` if it is too long for that.
    pub(crate) fn inline(text: &str) -> Option<StringView> {
        (text.len() <= INLINE_BYTES_MAX).then(|| StringView::short(text.as_bytes()))
    }

    /// What it is a view of.
    pub(super) fn seen(&self) -> Seen {
        let bytes = self.0.to_le_bytes();
        let [len, _, buffer, offset] = [0, 4, 8, 12]
            .map(|at| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
        let len = len as usize;
        if len > INLINE_BYTES_MAX {
            return Seen::Part {
                buffer: buffer as usize,
                start: offset as usize,
                len,
            };
        }
        let mut text = [0; INLINE_BYTES_MAX];
        text.copy_from_slice(&bytes[4..]);
        Seen::Inline(text, len)
    }

    fn short(text: &[u8]) -> StringView {
        let mut block = [0; 16];
        block[4..4 + text.len()].copy_from_slice(text);
        StringView(u128::from_le_bytes(block) | text.len() as u128)
    }
}

/// The place of one view.
#[derive(Debug)]
pub(crate) struct ViewSlot<'v>(&'v mut u128);

impl ViewSlot<'_> {
    /// Puts a view there.
    #[inline(always)]
    pub(crate) fn set(self, view: StringView) {
        *self.0 = view.0;
    }
}

/// The views of one column: one slot per record, empty until set.
#[derive(Debug)]
pub(crate) struct StringViews(Vec<u128>);

impl StringViews {
    /// Room for so many slots, none of them there.
    pub(crate) fn new(slots: usize) -> StringViews {
        StringViews(Vec::with_capacity(slots))
    }

    /// So many slots.
    pub(crate) fn grow(&mut self, slots: usize) {
        self.0.resize(slots, 0);
    }

    /// The slots of so many rows from row `row` on.
    #[inline]
    pub(crate) fn slots(
        &mut self,
        row: usize,
        count: usize,
    ) -> impl ExactSizeIterator<Item = ViewSlot<'_>> {
        self.0[row..row + count].iter_mut().map(ViewSlot)
    }

    pub(super) fn into_inner(self) -> Vec<u128> {
        self.0
    }

    /// The view in a slot.
    pub(crate) fn get(&self, row: usize) -> StringView {
        StringView(self.0[row])
    }

    /// Puts a view into a slot.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, view: StringView) {
        self.0[row] = view.0;
    }
}

/// Sixteen bytes as two words.
#[inline(always)]
pub(super) fn words(block: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(*block);
    [both as u64, (both >> 64) as u64]
}
