//! A look at 32 bytes, or at 64 of a long string, and work that takes many of them.
//!
//! Masks tell which bytes are of a kind: bit `i` is byte `i`. What is given here is plain Rust, for every machine;
//! an instruction set may do better. Never reads beyond the bytes.

use super::scalar;

/// How many bytes are looked at.
pub(crate) const PROBE_BYTES: usize = 32;

/// How many bytes of a long string are looked at.
pub(crate) const STRING_BYTES: usize = 2 * PROBE_BYTES;

/// What 64 bytes of a string are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StringMasks {
    /// `"`, escaped or not.
    pub(crate) quotes: u64,
    /// `\`.
    pub(crate) backslashes: u64,
    /// Those below 0x20.
    pub(crate) controls: u64,
}

/// What 64 bytes of an object or array are, in strings or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenMasks {
    /// `"`, escaped or not.
    pub(crate) quotes: u64,
    /// `\`.
    pub(crate) backslashes: u64,
    /// Those below 0x20.
    pub(crate) controls: u64,
    /// `:`
    pub(crate) colons: u64,
    /// `,`
    pub(crate) commas: u64,
    /// `{`
    pub(crate) braces: u64,
    /// `[`
    pub(crate) squares: u64,
    /// `}` and `]`
    pub(crate) closes: u64,
    /// Space, tab, line feed, carriage return.
    pub(crate) whitespace: u64,
    /// `0` to `9`
    pub(crate) digits: u64,
}

/// One instruction set. A value of the type proves that the machine has it.
pub(crate) trait Probe: Copy {
    /// The bytes that end a string, or must not stand in one as they are: `"`, `\` and those below 0x20.
    #[inline(always)]
    fn string_ends(self, bytes: &[u8; PROBE_BYTES]) -> u32 {
        mask(bytes, |_, byte| matches!(byte, b'"' | b'\\' | 0..0x20))
    }

    /// The same of more bytes.
    #[inline(always)]
    fn long_string_ends(self, bytes: &[u8; STRING_BYTES]) -> u64 {
        let masks = self.string_masks(bytes);
        masks.quotes | masks.backslashes | masks.controls
    }

    /// What the bytes of a long string are.
    #[inline(always)]
    fn string_masks(self, bytes: &[u8; STRING_BYTES]) -> StringMasks {
        let mut masks = StringMasks::default();
        for (i, &byte) in bytes.iter().enumerate() {
            masks.quotes |= u64::from(byte == b'"') << i;
            masks.backslashes |= u64::from(byte == b'\\') << i;
            masks.controls |= u64::from(byte < 0x20) << i;
        }
        masks
    }

    /// The bytes that make an escape with a backslash before them, and those of them that are `u`.
    #[inline(always)]
    fn escape_letters(self, bytes: &[u8; STRING_BYTES]) -> [u64; 2] {
        let mut letters = [0; 2];
        for (i, &byte) in bytes.iter().enumerate() {
            letters[0] |= u64::from(b"\"\\/bfnrtu".contains(&byte)) << i;
            letters[1] |= u64::from(byte == b'u') << i;
        }
        letters
    }

    /// What the bytes of an object or array are.
    #[inline(always)]
    fn token_masks(self, bytes: &[u8; STRING_BYTES]) -> TokenMasks {
        let mut masks = TokenMasks::default();
        for (i, &byte) in bytes.iter().enumerate() {
            let bit = 1 << i;
            match byte {
                b'"' => masks.quotes |= bit,
                b'\\' => masks.backslashes |= bit,
                b':' => masks.colons |= bit,
                b',' => masks.commas |= bit,
                b'{' => masks.braces |= bit,
                b'[' => masks.squares |= bit,
                b'}' | b']' => masks.closes |= bit,
                b'0'..=b'9' => masks.digits |= bit,
                b' ' | b'\t' | b'\n' | b'\r' => masks.whitespace |= bit,
                _ => {}
            }
            masks.controls |= u64::from(byte < 0x20) << i;
        }
        masks
    }

    /// Bit `i` of the result is the xor of bits `0..=i`.
    #[inline(always)]
    fn xor_before(self, bits: u64) -> u64 {
        scalar::prefix_xor(bits)
    }

    /// The bytes that are this one.
    #[inline(always)]
    fn equal(self, bytes: &[u8; STRING_BYTES], byte: u8) -> u64 {
        scalar::equal_bytes(bytes, byte)
    }

    /// 0 if all bytes are ASCII.
    #[inline(always)]
    fn not_ascii(self, bytes: &[u8; STRING_BYTES]) -> u64 {
        let all = bytes.iter().fold(0, |all, byte| all | byte);
        u64::from(all & 0x80)
    }

    /// The places where `one` has the one byte and `other` the other one.
    #[inline(always)]
    fn equal_both(
        self,
        one: &[u8; STRING_BYTES],
        byte: u8,
        other: &[u8; STRING_BYTES],
        other_byte: u8,
    ) -> u64 {
        self.equal(one, byte) & self.equal(other, other_byte)
    }

    /// The bytes that are not `0` to `9`.
    #[inline(always)]
    fn not_digits(self, bytes: &[u8; PROBE_BYTES]) -> u32 {
        mask(bytes, |_, byte| !byte.is_ascii_digit())
    }

    /// The bytes that are not those of `other`.
    #[inline(always)]
    fn differences(self, bytes: &[u8; PROBE_BYTES], other: &[u8; PROBE_BYTES]) -> u32 {
        mask(bytes, |i, byte| byte != other[i])
    }

    /// Tells the machine that these bytes will be looked at soon. It may do without.
    #[inline(always)]
    fn prefetch(self, _bytes: &[u8; STRING_BYTES]) {}

    /// Does work that is rare in a function of its own.
    #[cold]
    #[inline(never)]
    fn apart<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }
}

#[inline(always)]
fn mask(bytes: &[u8; PROBE_BYTES], is_one: impl Fn(usize, u8) -> bool) -> u32 {
    let bits = bytes.iter().enumerate();
    bits.fold(0, |mask, (i, &byte)| mask | u32::from(is_one(i, byte)) << i)
}

/// Work that is compiled once for each instruction set.
pub(crate) trait Task {
    /// What it gives.
    type Output;

    /// Does it. To be inlined always: only then is it compiled for the instruction set.
    fn run<P: Probe>(self, probe: P) -> Self::Output;
}
