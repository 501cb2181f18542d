//! What an encoder says of a request: where each value is, and to which column it belongs.
//!
//! Marks are advice. A wrong one costs bytes and never changes the content.

/// A column, in the marks of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column(pub(crate) u8);

impl Column {
    /// Times, of which the low bytes are always new.
    pub const TIME: Column = Column(0);
    /// Trace ids: always new.
    pub const TRACE_ID: Column = Column(1);
    /// Span ids and other ids: always new.
    pub const SPAN_ID: Column = Column(2);
    /// Values that are equal in all records of a batch.
    pub const CONSTANT: Column = Column(3);
    /// The end of a record.
    pub const END: Column = Column(4);
    /// Texts of severities.
    pub const SEVERITY: Column = Column(5);
    /// Bodies.
    pub const BODY: Column = Column(6);
    /// Values without a column of their own.
    pub const OTHER: Column = Column(7);
}

/// Columns without a name.
pub(crate) const UNNAMED: usize = 8;
/// All columns; those beyond are [`Column::OTHER`].
pub(crate) const COLUMNS_MAX: usize = 256;
/// No mark's value is longer.
pub(crate) const VALUE_MAX: usize = u16::MAX as usize;

/// The marks of a request, in the order of its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    marks: Vec<Mark>,
    /// Hashes of the names of columns.
    names: Vec<u64>,
    /// A value is longer than a mark can say.
    has_huge: bool,
}

/// The place of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Where it ends.
    pub(crate) end: u32,
    /// Its length in bytes.
    pub(crate) len: u16,
    /// Column and length, as [`Mark::key`] makes them.
    pub(crate) key: u16,
}

/// Values of one column are told apart by the low bits of their lengths.
pub(crate) const KEYS_PER_COLUMN: usize = 16;

impl Mark {
    /// The mark of a value of `len` bytes that ends at `end`; of one that is too long for a mark, a wrong one.
    #[inline(always)]
    pub fn new(column: Column, end: usize, len: usize) -> Mark {
        Mark {
            end: end as u32,
            len: len as u16,
            key: Mark::key(column, len),
        }
    }

    fn key(column: Column, len: usize) -> u16 {
        u16::from(column.0) * KEYS_PER_COLUMN as u16 + (len % KEYS_PER_COLUMN) as u16
    }

    pub(crate) fn column(self) -> usize {
        usize::from(self.key) / KEYS_PER_COLUMN
    }
}

impl Marks {
    /// The column of a name.
    pub fn column(&mut self, name: &str) -> Column {
        // FNV-1a: names that share a hash share what is learned of their values.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        if let Some(at) = self.names.iter().position(|&known| known == hash) {
            return Column((UNNAMED + at) as u8);
        }
        if UNNAMED + self.names.len() == COLUMNS_MAX {
            return Column::OTHER;
        }
        self.names.push(hash);
        Column((UNNAMED + self.names.len() - 1) as u8)
    }

    /// Marks a value of `len` bytes that ends at `end`. Marks are made in the order of ends.
    #[inline(always)]
    pub fn value(&mut self, column: Column, end: usize, len: usize) {
        if len > VALUE_MAX {
            self.has_huge = true;
        }
        self.marks.push(Mark::new(column, end, len));
    }

    /// Appends the marks of a record that was written elsewhere, of bytes that now are `by` bytes further.
    #[inline]
    pub fn extend(&mut self, marks: &[Mark], by: usize) {
        let moved = |mark: &Mark| Mark {
            end: mark.end.wrapping_add(by as u32),
            ..*mark
        };
        self.marks.extend(marks.iter().map(moved));
    }

    /// Marks the end of a record.
    #[inline(always)]
    pub fn end(&mut self, end: usize) {
        self.value(Column::END, end, 0);
    }

    /// Number of marks.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether there is no mark.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Moves the marks from the nth on, because their bytes were moved.
    pub fn shift(&mut self, from: usize, by: isize) {
        for mark in &mut self.marks[from..] {
            mark.end = mark.end.wrapping_add_signed(by as i32);
        }
    }

    /// Removes the marks from the nth on and gives them, for a request with the same columns.
    pub fn split_off(&mut self, from: usize) -> Marks {
        Marks {
            marks: self.marks.split_off(from),
            names: Vec::new(),
            has_huge: self.has_huge,
        }
    }

    /// Appends the marks of bytes that now are `by` bytes further.
    pub fn append(&mut self, moved: Marks, by: isize) {
        let from = self.marks.len();
        self.marks.extend_from_slice(&moved.marks);
        self.has_huge |= moved.has_huge;
        self.shift(from, by);
    }

    /// Where the marked values are, from first byte to end.
    pub fn places(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let place = |mark: &Mark| {
            let end = mark.end as usize;
            end.saturating_sub(usize::from(mark.len))..end
        };
        self.marks.iter().map(place)
    }

    /// Forgets all marks; the columns stay.
    pub fn clear(&mut self) {
        self.marks.clear();
        self.has_huge = false;
    }

    /// Forgets all marks and columns.
    pub fn reset(&mut self) {
        self.clear();
        self.names.clear();
    }

    /// Keeps at most so many bytes of memory.
    pub fn release(&mut self, bytes: usize) {
        self.clear();
        self.marks.shrink_to(bytes / size_of::<Mark>());
    }

    /// A value is longer than a mark can say.
    pub(crate) fn has_huge(&self) -> bool {
        self.has_huge
    }

    pub(crate) fn all(&self) -> &[Mark] {
        &self.marks
    }

    pub(crate) fn names(&self) -> &[u64] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_numbers_until_there_are_too_many() {
        let mut marks = Marks::default();
        let first = marks.column("a");
        assert_eq!(first, Column(UNNAMED as u8));
        assert_eq!(marks.column("b"), Column(UNNAMED as u8 + 1));
        assert_eq!(marks.column("a"), first);
        let of_many: Vec<_> = (0..300).map(|n| marks.column(&format!("c{n}"))).collect();
        assert_eq!(of_many[245], Column(255));
        assert!(of_many[246..].iter().all(|&column| column == Column::OTHER));
        marks.reset();
        assert_eq!(marks.column("b"), first);
    }

    #[test]
    fn marks_move_with_their_bytes() {
        let mut marks = Marks::default();
        marks.value(Column::TIME, 20, 8);
        marks.value(Column::BODY, 50, 21);
        marks.end(60);
        marks.shift(1, -3);
        let moved = marks.split_off(1);
        marks.append(moved, 100);
        let places: Vec<_> = marks
            .all()
            .iter()
            .map(|mark| (mark.end, mark.len))
            .collect();
        assert_eq!(places, [(20, 8), (147, 21), (157, 0)]);
        assert_eq!(marks.all()[1].column(), 6);
        assert!(!marks.has_huge());
        marks.value(Column::BODY, 100_000, VALUE_MAX + 1);
        assert!(marks.has_huge());
        marks.clear();
        assert!(marks.is_empty() && !marks.has_huge());
    }
}
