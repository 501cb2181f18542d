//! Distributions and tables against the examples of the RFC, and against a decoder made from its text.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// Reads what [`Distribution::describe`] wrote, as section 4.1.1 says.
fn read_description(bytes: &[u8]) -> (Vec<i16>, u32) {
    let mut at = 0;
    let mut take = |count: u32, advance: u32| {
        let value = (0..count)
            .map(|bit| at + bit)
            .enumerate()
            .map(|(nth, bit)| {
                let byte = bytes.get(bit as usize / 8).copied().unwrap_or(0);
                u32::from(byte >> (bit % 8) & 1) << nth
            })
            .sum::<u32>();
        at += advance;
        value as i32
    };
    let log = take(4, 4) as u32 + 5;
    let mut remaining = (1i32 << log) + 1;
    let mut states = Vec::new();
    while remaining > 1 {
        let width = 32 - (remaining as u32).leading_zeros();
        let short = (1 << width) - 1 - remaining;
        let low = take(width - 1, 0);
        let value = if low < short {
            take(width - 1, width - 1)
        } else {
            let value = take(width, width);
            if value >= 1 << (width - 1) {
                value - short
            } else {
                value
            }
        };
        states.push((value - 1) as i16);
        remaining -= (value - 1).abs();
        if value == 1 {
            loop {
                let more = take(2, 2);
                states.extend(std::iter::repeat_n(0, more as usize));
                if more < 3 {
                    break;
                }
            }
        }
    }
    (states, log)
}

/// Decodes a stream of one state, backwards.
fn decode(stream: &[u8], distribution: &Distribution, count: usize) -> Vec<usize> {
    let size = 1usize << distribution.log;
    let symbols = spread(distribution);
    let mut seen = distribution
        .states
        .map(|states| usize::from(states.unsigned_abs()));
    let rows: Vec<(usize, u32, usize)> = (0..size)
        .map(|state| {
            let symbol = symbols[state];
            let nth = seen[symbol];
            seen[symbol] += 1;
            let bits = distribution.log - nth.ilog2();
            (symbol, bits, (nth << bits) - size)
        })
        .collect();
    let mut at = 8 * stream.len() - 1 - stream.last().unwrap().leading_zeros() as usize;
    let mut take = |count: u32| {
        (0..count).fold(0usize, |value, _| {
            at -= 1;
            value << 1 | usize::from(stream[at / 8] >> (at % 8) & 1)
        })
    };
    let mut state = take(distribution.log);
    let mut decoded = vec![rows[state].0];
    while decoded.len() < count {
        let (_, bits, base) = rows[state];
        state = base + take(bits);
        decoded.push(rows[state].0);
    }
    assert_eq!(at, 0);
    decoded
}

fn encode(symbols: &[usize], table: &Table) -> Vec<u8> {
    let mut out = vec![0; symbols.len() * 2 + 64];
    let mut bits = Bits::new(&mut out);
    let (last, before) = symbols.split_last().unwrap();
    let mut state = table.first_state(*last as u32);
    for &symbol in before.iter().rev() {
        state = table.encode(state, symbol as u32, &mut bits);
        bits.flush();
    }
    table.finish(state, &mut bits);
    let len = bits.finish_marked();
    out.truncate(len);
    out
}

#[test]
fn values_have_the_bits_of_the_rfcs_example() {
    // Section 4.1.1: with 157 left, values to 97 have seven bits, the others eight.
    let mut states = [0; SYMBOLS];
    // 256 states: 100 of them given, so 156 and one more are left.
    for (at, value) in [100, 97, 59].into_iter().enumerate() {
        states[at] = value;
    }
    let distribution = Distribution { states, log: 8 };
    let mut bytes = Vec::new();
    distribution.describe(&mut bytes);
    // 4 bits of the log; 101 of at most 257: 9 bits less one; then 98, the first one of eight bits.
    let word = u64::from_le_bytes(std::array::from_fn(|at| {
        bytes.get(at).copied().unwrap_or(0)
    }));
    assert_eq!(word & 15, 3);
    assert_eq!(word >> 4 & 255, 101);
    assert_eq!(word >> 12 & 255, 98);
    assert_eq!(read_description(&bytes), (vec![100, 97, 59], 8));
}

/// Appendix A.1 of the RFC: rows of the predefined table of literal lengths, as state, symbol.
#[test]
fn states_are_spread_as_in_appendix_a() {
    let states = [
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ];
    let symbols = spread(&Distribution::predefined(&states, 6));
    let first = [
        0, 0, 1, 3, 4, 6, 7, 9, 10, 12, 14, 16, 18, 19, 21, 22, 24, 25, 26, 27, 29, 31,
    ];
    assert_eq!(symbols[..22], first);
    assert_eq!(symbols[60..64], [35, 34, 33, 32]);
}

#[test]
fn what_has_no_distribution_gets_none() {
    let mut counts = [0; SYMBOLS];
    assert_eq!(Distribution::of(&counts, 6), None);
    counts[7] = 5;
    assert_eq!(Distribution::of(&counts, 6), None, "one symbol");
    counts = [1; SYMBOLS];
    assert_eq!(
        Distribution::of(&counts, 5),
        None,
        "more symbols than states"
    );
    assert!(Distribution::of(&counts, 6).is_some());
}

fn counts() -> impl Strategy<Value = [u32; SYMBOLS]> {
    let count = prop_oneof![3 => Just(0u32), 3 => 1..5u32, 2 => 1..3000u32, 1 => 1..40_000_000u32];
    (2..=SYMBOLS).prop_flat_map(move |len| {
        proptest::collection::vec(count.clone(), len).prop_map(|counts| {
            let mut all = [0; SYMBOLS];
            all[..counts.len()].copy_from_slice(&counts);
            all
        })
    })
}

proptest! {
    #[test]
    fn distributions_are_complete_and_read_back(counts in counts(), log in 5u32..=9) {
        let Some(distribution) = Distribution::of(&counts, log) else {
            return Ok(());
        };
        let sum: i32 = distribution.states.iter().map(|&states| i32::from(states)).sum();
        prop_assert_eq!(sum, 1 << log);
        for (states, count) in distribution.states.iter().zip(counts) {
            prop_assert_eq!(*states > 0, count > 0);
        }
        let mut bytes = Vec::new();
        distribution.describe(&mut bytes);
        prop_assert!(bytes.len() <= DESCRIPTION_MAX);
        let (mut states, read_log) = read_description(&bytes);
        states.resize(SYMBOLS, 0);
        prop_assert_eq!(states, distribution.states.to_vec());
        prop_assert_eq!(read_log, log);
    }

    #[test]
    fn streams_decode(counts in counts(), log in 5u32..=9, picks in proptest::collection::vec(any::<usize>(), 1..400)) {
        let Some(distribution) = Distribution::of(&counts, log) else {
            return Ok(());
        };
        let present: Vec<usize> = (0..SYMBOLS).filter(|&at| counts[at] > 0).collect();
        let symbols: Vec<usize> = picks.iter().map(|pick| present[pick % present.len()]).collect();
        let table = Table::new(&distribution);
        let stream = encode(&symbols, &table);
        prop_assert_eq!(decode(&stream, &distribution, symbols.len()), symbols.clone());
        let mut of_symbols = [0; SYMBOLS];
        for &symbol in &symbols {
            of_symbols[symbol] += 1;
        }
        // The stream holds the state and the mark besides.
        let cost = table.cost(&of_symbols).unwrap() / 256;
        let bits = 8 * stream.len() as u64;
        prop_assert!(bits.abs_diff(cost) <= 24 + 4 * symbols.len() as u64 / 10, "{} {}", bits, cost);
    }
}
