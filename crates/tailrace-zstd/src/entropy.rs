//! Blocks of literals and sequences as bytes (RFC 8878, sections 3.1.1.3.1 and 3.1.1.3.2).
//!
//! Tables are kept across blocks and frames and replaced only where that pays. One block in eight is looked at for that.
//! Every byte and every code has a place in them, so that a later block can be written whatever it holds.

use crate::fse::{self, Distribution, Table};
use crate::huffman::Codes;
use crate::sequences::{self, CODES, LITERALS, LOGS, MATCHES, OFFSETS, Packed};

/// One block in so many is looked at for new tables.
const LOOK_EVERY: u32 = 8;
/// Fewer literals are not coded.
const LITERALS_MIN: usize = 64;
/// Fewer sequences are not worth the description of a table.
const SEQUENCES_MIN: usize = 256;
/// A new table must save one part in so many.
const SAVING: u64 = 32;

/// The tables of a stream of frames.
pub(crate) struct Entropy {
    codes: Option<Codes>,
    /// What a literal took when the codes were made, in 1/256 bit.
    literal_cost: u64,
    /// The frame's decoder knows the codes.
    is_sent: bool,
    /// Of literal lengths, offsets and match lengths.
    tables: [Option<OwnTable>; 3],
    predefined: [Table; 3],
    /// Blocks of the frame so far.
    blocks: u32,
}

struct OwnTable {
    table: Table,
    description: Vec<u8>,
    /// What a code took when the table was made, in 1/256 bit.
    code_cost: u64,
    /// The frame's decoder has it, and used it last.
    is_sent: bool,
}

/// What a block is looked at for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Not,
    /// Whether the tables cost more than when they were made. That is cheap, and other data may have come.
    ForWorse,
    /// Whether new tables would cost less.
    ForBetter,
}

/// Whether a cost is so much more than another one that a new table pays.
fn is_worse(cost: u64, than: u64) -> bool {
    cost > than.saturating_add(than / SAVING)
}

/// How a table is given to a decoder.
#[derive(Clone, Copy)]
enum Mode {
    Predefined = 0,
    Described = 2,
    Repeated = 3,
}

impl Entropy {
    pub(crate) fn new() -> Entropy {
        Entropy {
            codes: None,
            literal_cost: 0,
            is_sent: false,
            tables: [None, None, None],
            predefined: sequences::predefined(),
            blocks: 0,
        }
    }

    /// A frame starts: its decoder knows nothing.
    pub(crate) fn start(&mut self) {
        self.blocks = 0;
        self.forget();
    }

    /// What was sent with the last block did not arrive, because it was stored.
    pub(crate) fn forget(&mut self) {
        self.is_sent = false;
        for own in self.tables.iter_mut().flatten() {
            own.is_sent = false;
        }
    }

    /// How much room [`Self::write`] needs.
    pub(crate) fn room(literals: usize, sequences: usize) -> usize {
        2 * literals + 16 * sequences + 2048
    }

    /// Writes the content of a compressed block and gives its length.
    pub(crate) fn write(&mut self, literals: &[u8], all: &[Packed], out: &mut [u8]) -> usize {
        let look = match self.blocks {
            0 => Look::ForWorse,
            at if at.is_multiple_of(LOOK_EVERY) => Look::ForBetter,
            _ => Look::Not,
        };
        self.blocks += 1;
        let coded = self.coded_literals(literals, look, out);
        let at = coded.unwrap_or_else(|| raw_literals(literals, out));
        at + self.sequences(all, look, &mut out[at..])
    }

    /// Literals with codes in four streams; `None` if that is not shorter.
    fn coded_literals(&mut self, bytes: &[u8], look: Look, out: &mut [u8]) -> Option<usize> {
        if bytes.len() < LITERALS_MIN {
            return None;
        }
        if look != Look::Not || self.codes.is_none() {
            self.look_at_literals(bytes, look);
        }
        let codes = self.codes.as_ref()?;
        // Both lengths have so many bits.
        let (format, bits, head) = match bytes.len() {
            ..0x400 => (1, 10, 3),
            0x400..0x4000 => (2, 14, 4),
            _ => (3, 18, 5),
        };
        let mut at = head;
        let kind = if self.is_sent {
            3
        } else {
            out[at..at + codes.description.len()].copy_from_slice(&codes.description);
            at += codes.description.len();
            2
        };
        let jump = at;
        at += 6;
        let part = bytes.len().div_ceil(4);
        let room = 2 * part + 24;
        let mut lens = [0; 4];
        let pairs = bytes.chunks(2 * part);
        for (lens, bytes) in lens.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
            let both = &mut out[at..at + 2 * room];
            let (first, second) = both.split_at_mut(room);
            (lens[0], lens[1]) = codes.pair(bytes, part, first, second);
            both.copy_within(room..room + lens[1], lens[0]);
            at += lens[0] + lens[1];
        }
        for (nth, len) in lens[..3].iter().enumerate() {
            out[jump + 2 * nth..][..2].copy_from_slice(&(*len as u16).to_le_bytes());
        }
        let size = at - head;
        if size >= bytes.len() {
            return None;
        }
        let word = kind | format << 2 | (bytes.len() as u64) << 4 | (size as u64) << (4 + bits);
        out[..head].copy_from_slice(&word.to_le_bytes()[..head]);
        self.is_sent = true;
        Some(at)
    }

    /// Makes new codes where they save enough, their description included.
    #[inline(never)]
    fn look_at_literals(&mut self, bytes: &[u8], look: Look) {
        let counts = count_bytes(bytes);
        let of_literal = |cost: u64| (cost << 8) / bytes.len() as u64;
        let now = match &self.codes {
            Some(codes)
                if look == Look::ForWorse
                    && !is_worse(of_literal(codes.cost(&counts)), self.literal_cost) =>
            {
                return;
            }
            Some(codes) if self.is_sent => codes.cost(&counts),
            Some(codes) => codes.cost(&counts) + 8 * codes.description.len() as u64,
            None => u64::MAX,
        };
        // Every byte has a code: a later block may hold it.
        let Some(fresh) = Codes::of(&counts.map(|count| 16 * count + 1)) else {
            return;
        };
        let cost = fresh.cost(&counts) + 8 * fresh.description.len() as u64;
        if is_worse(now, cost) {
            self.literal_cost = of_literal(fresh.cost(&counts));
            self.codes = Some(fresh);
            self.is_sent = false;
        }
    }

    /// The number of sequences, the tables, and the bit stream.
    fn sequences(&mut self, all: &[Packed], look: Look, out: &mut [u8]) -> usize {
        let mut at = sequence_count(all.len(), out);
        if all.is_empty() {
            return at;
        }
        let are_sent = |own: &Option<OwnTable>| own.as_ref().is_some_and(|own| own.is_sent);
        let are_few = all.len() < SEQUENCES_MIN && !self.tables.iter().all(are_sent);
        if !are_few && (look != Look::Not || self.tables.iter().any(Option::is_none)) {
            self.look_at_sequences(all, look);
        }
        let modes_at = at;
        at += 1;
        let mut modes = 0;
        for (own, shift) in self.tables.iter_mut().zip([6, 4, 2]) {
            let mode = match own {
                Some(own) if are_few => {
                    own.is_sent = false;
                    Mode::Predefined
                }
                None => Mode::Predefined,
                Some(own) if own.is_sent => Mode::Repeated,
                Some(own) => {
                    out[at..at + own.description.len()].copy_from_slice(&own.description);
                    at += own.description.len();
                    own.is_sent = true;
                    Mode::Described
                }
            };
            modes |= (mode as u8) << shift;
        }
        out[modes_at] = modes;
        let table = |kind: usize| match &self.tables[kind] {
            Some(own) if !are_few => &own.table,
            _ => &self.predefined[kind],
        };
        let tables = [table(LITERALS), table(OFFSETS), table(MATCHES)];
        at + sequences::write(all, tables, &mut out[at..])
    }

    /// Makes new tables where they save enough.
    #[inline(never)]
    fn look_at_sequences(&mut self, all: &[Packed], look: Look) {
        let of_code = |cost: u64| cost / all.len() as u64;
        let counts = sequences::count(all);
        for (kind, own) in self.tables.iter_mut().enumerate() {
            let counts = &counts[kind];
            let now = own.as_ref().and_then(|own| {
                let cost = own.table.cost(counts)?;
                Some((cost, own.code_cost))
            });
            if let Some((now, before)) = now {
                let is_good = match look {
                    Look::ForWorse => !is_worse(of_code(now), before),
                    _ => !is_worse(now, fse::entropy(counts)),
                };
                if is_good {
                    continue;
                }
            }
            // Every code has a place: a later block may hold it.
            let mut floored = [0; fse::SYMBOLS];
            for (floored, &count) in floored[..CODES[kind]].iter_mut().zip(counts) {
                *floored = if count > 0 { 4 * count } else { 1 };
            }
            *own = Distribution::of(&floored, LOGS[kind]).map(|distribution| {
                let mut description = Vec::new();
                distribution.describe(&mut description);
                let table = Table::new(&distribution);
                OwnTable {
                    code_cost: of_code(table.cost(counts).unwrap_or(0)),
                    table,
                    description,
                    is_sent: false,
                }
            });
        }
    }
}

fn count_bytes(bytes: &[u8]) -> [u32; 256] {
    // Apart, since counting equal bytes one after the other is slow.
    let mut parts = [[0; 256]; 4];
    let (fours, rest) = bytes.as_chunks::<4>();
    for four in fours {
        for (part, &byte) in parts.iter_mut().zip(four) {
            part[usize::from(byte)] += 1;
        }
    }
    for &byte in rest {
        parts[0][usize::from(byte)] += 1;
    }
    std::array::from_fn(|byte| parts.iter().map(|part| part[byte]).sum())
}

fn raw_literals(bytes: &[u8], out: &mut [u8]) -> usize {
    let len = bytes.len() as u32;
    let (word, head) = match len {
        ..32 => (len << 3, 1),
        32..0x1000 => (1 << 2 | len << 4, 2),
        _ => (3 << 2 | len << 4, 3),
    };
    out[..head].copy_from_slice(&word.to_le_bytes()[..head]);
    out[head..head + bytes.len()].copy_from_slice(bytes);
    head + bytes.len()
}

fn sequence_count(count: usize, out: &mut [u8]) -> usize {
    const LONG: usize = 0x7f00;
    match count {
        ..128 => {
            out[0] = count as u8;
            1
        }
        128..LONG => {
            out[..2].copy_from_slice(&[(count >> 8) as u8 + 128, count as u8]);
            2
        }
        _ => {
            out[0] = 255;
            out[1..3].copy_from_slice(&((count - LONG) as u16).to_le_bytes());
            3
        }
    }
}
