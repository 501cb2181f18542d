//! Finite State Entropy (RFC 8878, section 4.1): distributions, their descriptions, and tables that encode.
//!
//! From counts of symbols it makes a distribution, from that a table and the bytes that describe it to a decoder.
//! Counts are those of codes (lengths, offsets) or of Huffman weights, never of bytes.

use crate::bits::Bits;

/// There are fewer symbols than this.
pub(crate) const SYMBOLS: usize = 64;
/// The largest accuracy log that the format has, that of literal lengths and match lengths.
pub(crate) const LOG_MAX: u32 = 9;
/// No description is longer.
pub(crate) const DESCRIPTION_MAX: usize = 128;

const STATES_MAX: usize = 1 << LOG_MAX;

/// How many of `1 << log` states each symbol has; -1 is one state of the lowest probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Distribution {
    states: [i16; SYMBOLS],
    log: u32,
}

impl Distribution {
    /// One that the format predefines.
    pub(crate) fn predefined(states: &[i16], log: u32) -> Distribution {
        let mut all = [0; SYMBOLS];
        all[..states.len()].copy_from_slice(states);
        Distribution { states: all, log }
    }

    /// One close to `counts`; `None` unless there are two symbols and a state for each.
    pub(crate) fn of(counts: &[u32; SYMBOLS], log: u32) -> Option<Distribution> {
        let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        let present = counts.iter().filter(|&&count| count > 0).count();
        let size = 1i64 << log;
        if present < 2 || present as i64 > size {
            return None;
        }
        let mut states = [0; SYMBOLS];
        let mut left = size;
        for (states, &count) in states.iter_mut().zip(counts) {
            if count > 0 {
                let share = (u64::from(count) << log) as f64 / total as f64;
                *states = (share.round() as i16).max(1);
                left -= i64::from(*states);
            }
        }
        // What rounding made too much or too little: where there is most of it, a step at a time.
        while left != 0 {
            let step = left.signum();
            let largest = states.iter_mut().max()?;
            *largest += step as i16;
            left -= step;
        }
        Some(Distribution { states, log })
    }

    /// The highest symbol that has a state.
    fn last(&self) -> usize {
        let last = self.states.iter().rposition(|&states| states != 0);
        last.unwrap_or(0)
    }

    /// What a decoder reads it from (section 4.1.1).
    pub(crate) fn describe(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; DESCRIPTION_MAX + 8];
        let mut bits = Bits::new(&mut bytes);
        bits.add(u64::from(self.log - 5), 4);
        let last = self.last();
        // One more than the states that are not given yet, so that a value may be of all of them.
        let mut remaining = (1i32 << self.log) + 1;
        let (mut at, mut after_zero) = (0, false);
        while at <= last {
            if after_zero {
                let next = (at..=last).find(|&at| self.states[at] != 0);
                let mut zeros = next.unwrap_or(last) - at;
                at += zeros;
                while zeros >= 3 {
                    bits.add(3, 2);
                    bits.flush();
                    zeros -= 3;
                }
                bits.add(zeros as u64, 2);
            }
            let states = i32::from(self.states[at]);
            let width = 32 - (remaining as u32).leading_zeros();
            // Values below `short` take a bit less.
            let short = (1 << width) - 1 - remaining;
            let half = 1 << (width - 1);
            let value = states + 1;
            let coded = if value < half { value } else { value + short };
            let is_short = value < short;
            bits.add(coded as u64, width - u32::from(is_short));
            bits.flush();
            remaining -= states.abs();
            after_zero = states == 0;
            at += 1;
        }
        let len = bits.finish();
        out.extend_from_slice(&bytes[..len]);
    }
}

/// What encodes symbols.
#[derive(Clone)]
pub(crate) struct Table {
    /// Of each symbol: in the low half what added to a state has the number of bits to write in its high half, in the
    /// high half what added to the rest of the state is the place of the next one.
    symbols: [u64; SYMBOLS],
    next: [u16; STATES_MAX],
    log: u32,
    /// What each symbol costs, in 1/256 bit; `u32::MAX` without a code.
    costs: [u32; SYMBOLS],
}

impl Table {
    /// The table of a distribution (section 4.1.1, turned round).
    pub(crate) fn new(distribution: &Distribution) -> Table {
        let log = distribution.log;
        let size = 1usize << log;
        let mut table = Table {
            symbols: [0; SYMBOLS],
            next: [0; STATES_MAX],
            log,
            costs: [u32::MAX; SYMBOLS],
        };
        // Where the states of each symbol start, by symbol.
        let mut start = 0u32;
        let mut starts = [0usize; SYMBOLS];
        for (symbol, &states) in distribution.states.iter().enumerate() {
            starts[symbol] = start as usize;
            let count = u32::from(states.unsigned_abs());
            if count == 0 {
                continue;
            }
            let find = start.wrapping_sub(count);
            // Of count states, those from here on write a bit more.
            let bits = match count {
                1 => log,
                _ => log - (31 - (count - 1).leading_zeros()),
            };
            let add = (bits << 16).wrapping_sub(count << bits);
            table.symbols[symbol] = u64::from(add) | u64::from(find) << 32;
            table.costs[symbol] = ((size as f64 / f64::from(count)).log2() * 256.0) as u32;
            start += count;
        }
        for (state, symbol) in spread(distribution).into_iter().take(size).enumerate() {
            table.next[starts[symbol]] = (size + state) as u16;
            starts[symbol] += 1;
        }
        table
    }

    /// The state in which a stream starts, behind which `symbol` is its last one.
    #[inline(always)]
    pub(crate) fn first_state(&self, symbol: u32) -> u32 {
        let entry = self.symbols[symbol as usize % SYMBOLS];
        let bits = (entry as u32).wrapping_add(1 << 15) >> 16;
        let state = (bits << 16).wrapping_sub(entry as u32);
        self.step(state, bits, entry)
    }

    /// Encodes `symbol`: adds at most [`LOG_MAX`] bits, gives the next state.
    #[inline(always)]
    pub(crate) fn encode(&self, state: u32, symbol: u32, bits: &mut Bits<'_>) -> u32 {
        let entry = self.symbols[symbol as usize % SYMBOLS];
        let count = state.wrapping_add(entry as u32) >> 16 & 31;
        bits.add(u64::from(state & LOW[count as usize]), count);
        self.step(state, count, entry)
    }

    #[inline(always)]
    fn step(&self, state: u32, bits: u32, entry: u64) -> u32 {
        let at = (state >> bits).wrapping_add((entry >> 32) as u32);
        u32::from(self.next[at as usize % STATES_MAX])
    }

    /// Writes the state that a decoder starts with.
    pub(crate) fn finish(&self, state: u32, bits: &mut Bits<'_>) {
        bits.add(u64::from(state & LOW[self.log as usize]), self.log);
        bits.flush();
    }

    /// What so many symbols cost, in 1/256 bit; `None` if one of them has no code.
    pub(crate) fn cost(&self, counts: &[u32; SYMBOLS]) -> Option<u64> {
        let mut sum = 0;
        for (&count, &cost) in counts.iter().zip(&self.costs) {
            if count > 0 {
                if cost == u32::MAX {
                    return None;
                }
                sum += u64::from(count) * u64::from(cost);
            }
        }
        Some(sum)
    }
}

/// The low bits, by their number.
const LOW: [u32; 32] = {
    let mut masks = [0; 32];
    let mut count = 0;
    while count < 32 {
        masks[count] = (1 << count) - 1;
        count += 1;
    }
    masks
};

/// The symbol of each state: those of -1 at the end, the others in steps over all.
fn spread(distribution: &Distribution) -> [usize; STATES_MAX] {
    let size = 1usize << distribution.log;
    let mut symbols = [0; STATES_MAX];
    let mut end = size;
    for (symbol, &states) in distribution.states.iter().enumerate() {
        if states == -1 {
            end -= 1;
            symbols[end] = symbol;
        }
    }
    let step = (size >> 1) + (size >> 3) + 3;
    let mut at = 0;
    for (symbol, &states) in distribution.states.iter().enumerate() {
        for _ in 0..states.max(0) {
            symbols[at] = symbol;
            at = (at + step) % size;
            while at >= end {
                at = (at + step) % size;
            }
        }
    }
    symbols
}

/// What so many symbols cost at best, in 1/256 bit.
pub(crate) fn entropy(counts: &[u32; SYMBOLS]) -> u64 {
    let total: u32 = counts.iter().sum();
    let bits = |count: u32| f64::from(count) * (f64::from(total) / f64::from(count)).log2();
    let present = counts.iter().filter(|&&count| count > 0);
    (present.map(|&count| bits(count)).sum::<f64>() * 256.0) as u64
}

#[cfg(test)]
mod tests;
