//! Writing bits, the first ones into the low bits of the first byte.
//!
//! The format's entropy-coded streams are read from their end, so what is written last is read first.

/// Appends bits to a buffer that has room for them.
pub(crate) struct Bits<'a> {
    out: &'a mut [u8],
    /// Whole bytes that are written.
    at: usize,
    /// Bits that are not written yet; those from `count` on are zero.
    bits: u64,
    /// How many they are: at most 63, at most 7 after [`Self::flush`].
    count: u32,
}

impl<'a> Bits<'a> {
    /// Starts at the front of `out`, which must have 8 bytes more than will be written.
    pub(crate) fn new(out: &'a mut [u8]) -> Bits<'a> {
        Bits {
            out,
            at: 0,
            bits: 0,
            count: 0,
        }
    }

    /// Adds the low `count` bits of `value`, whose others are zero. Between two flushes at most 56 bits are added.
    #[inline(always)]
    pub(crate) fn add(&mut self, value: u64, count: u32) {
        debug_assert!(count == 64 || value >> count == 0);
        self.bits |= value << (self.count & 63);
        self.count += count;
        debug_assert!(self.count < 64);
    }

    /// Writes the whole bytes.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        let room = self.out[self.at..].first_chunk_mut();
        *room.expect("there is room for eight bytes") = self.bits.to_le_bytes();
        self.at += (self.count >> 3) as usize;
        self.bits >>= self.count & 0x38;
        self.count &= 7;
    }

    /// Bits that wait for the next flush.
    #[inline(always)]
    pub(crate) fn waiting(&self) -> u32 {
        self.count
    }

    /// Ends a stream that is read forwards; gives its length in bytes.
    pub(crate) fn finish(mut self) -> usize {
        self.flush();
        self.at + usize::from(self.count > 0)
    }

    /// Ends a stream that is read backwards: a set bit behind the last one shows where it ends.
    pub(crate) fn finish_marked(mut self) -> usize {
        self.flush();
        self.add(1, 1);
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn low_bits_come_first() {
        let mut out = [0xff; 24];
        let mut bits = Bits::new(&mut out);
        bits.add(0b101, 3);
        bits.add(0, 0);
        bits.flush();
        bits.add((1 << 50) - 1, 50);
        bits.flush();
        bits.add(0b01, 2);
        assert_eq!(bits.waiting(), 7);
        assert_eq!(bits.finish_marked(), 7);
        assert_eq!(out[0], 0b1111_1101);
        assert_eq!(out[6], 0b1011_1111, "five ones, 01, the mark");
        let mut bits = Bits::new(&mut out);
        bits.add(1, 9);
        assert_eq!(bits.finish(), 2);
        assert_eq!(&out[..2], [1, 0]);
    }
}
