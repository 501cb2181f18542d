//! Codes against the RFC's example, and against a decoder made from its text.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn code_of(codes: &Codes, byte: usize) -> (u64, u32) {
    let entry = codes.entries[byte];
    let len = (entry & 0xff) as u32;
    (if len > 0 { entry >> (64 - len) } else { 0 }, len)
}

/// Section 4.2.1.3: weights 4, 3, 2, 0, 1, 1 give these codes.
#[test]
fn codes_are_those_of_the_rfcs_example() {
    let mut counts = [0; 256];
    for (at, count) in [8, 4, 2, 0, 1, 1].into_iter().enumerate() {
        counts[at] = count;
    }
    let codes = Codes::of(&counts).unwrap();
    let expected = [(1, 1), (1, 2), (1, 3), (0, 0), (0, 4), (1, 4)];
    for (byte, code) in expected.into_iter().enumerate() {
        assert_eq!(code_of(&codes, byte), code);
    }
    // Five weights are listed, the last one follows from them.
    assert_eq!(codes.description, [127 + 5, 0x43, 0x20, 0x10]);
}

#[test]
fn what_has_no_codes_gets_none() {
    assert!(Codes::of(&[0; 256]).is_none());
    let mut counts = [0; 256];
    counts[3] = 9;
    assert!(Codes::of(&counts).is_none(), "one byte");
    counts[255] = 1;
    assert!(Codes::of(&counts).is_some());
    assert!(
        Codes::of(&[5; 256]).is_none(),
        "equal weights, too many to be listed"
    );
}

/// The cheapest lengths of at most `BITS_MAX` bits by brute force over sorted lengths.
fn best_cost(counts: &[u32]) -> u64 {
    fn go(counts: &[u32], least: usize, left: u32) -> Option<u64> {
        let Some((&count, rest)) = counts.split_first() else {
            return (left == 0).then_some(0);
        };
        (least..=BITS_MAX)
            .filter_map(|len| {
                let part = 1u32 << (BITS_MAX - len);
                let rest = go(rest, len, left.checked_sub(part)?)?;
                Some(rest + u64::from(count) * len as u64)
            })
            .min()
    }
    let mut counts: Vec<u32> = counts.iter().copied().filter(|&count| count > 0).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    go(&counts, 1, 1 << BITS_MAX).unwrap()
}

fn decode(stream: &[u8], codes: &Codes, count: usize) -> Vec<u8> {
    let mut at = 8 * stream.len() - 1 - stream.last().unwrap().leading_zeros() as usize;
    let mut decoded = Vec::new();
    while decoded.len() < count {
        let (mut code, mut len) = (0, 0);
        let byte = loop {
            at -= 1;
            code = code << 1 | u64::from(stream[at / 8] >> (at % 8) & 1);
            len += 1;
            if let Some(byte) = (0..256).find(|&byte| code_of(codes, byte) == (code, len)) {
                break byte;
            }
        };
        decoded.push(byte as u8);
    }
    assert_eq!(at, 0, "all of the stream");
    decoded
}

proptest! {
    #[test]
    fn codes_are_complete_and_the_best(counts in proptest::collection::vec(0..200_000u32, 2..9)) {
        let mut all = [0; 256];
        all[..counts.len()].copy_from_slice(&counts);
        let Some(codes) = Codes::of(&all) else {
            prop_assert!(counts.iter().filter(|&&count| count > 0).count() < 2);
            return Ok(());
        };
        prop_assert_eq!(codes.cost(&all), best_cost(&counts));
    }

    #[test]
    fn long_tails_keep_to_the_limit(steep in 1.0..3.0f64, symbols in 2usize..=256) {
        let mut counts = [0; 256];
        for (nth, count) in counts[..symbols].iter_mut().enumerate() {
            *count = (1e6 / steep.powi(nth as i32)) as u32 + 1;
        }
        let lens = lengths(&counts).unwrap();
        let kraft: u32 = lens.iter().filter(|&&len| len > 0).map(|&len| 1 << (BITS_MAX - usize::from(len))).sum();
        prop_assert_eq!(kraft, 1 << BITS_MAX);
        prop_assert!(lens.iter().all(|&len| usize::from(len) <= BITS_MAX));
    }

    #[test]
    fn streams_decode(bytes in proptest::collection::vec(0..40u8, 2..300), middle in any::<usize>()) {
        let mut counts = [1; 256];
        for &byte in &bytes {
            counts[usize::from(byte)] += 20;
        }
        let codes = Codes::of(&counts).unwrap();
        let middle = 1 + middle % (bytes.len() - 1);
        let (mut one, mut two) = (vec![0; 700], vec![0; 700]);
        let (len, len_2) = codes.pair(&bytes, middle, &mut one, &mut two);
        prop_assert_eq!(decode(&one[..len], &codes, middle), &bytes[..middle]);
        prop_assert_eq!(decode(&two[..len_2], &codes, bytes.len() - middle), &bytes[middle..]);
    }
}
