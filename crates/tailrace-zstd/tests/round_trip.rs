//! Frames of any request and any marks, right or wrong, are decoded by libzstd to the same bytes.
#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use tailrace_zstd::{Column, Compressor, Marks, REQUEST_MAX};

const BLOCK: usize = 128 << 10;

#[track_caller]
fn check(compressor: &mut Compressor, request: &[u8], marks: &Marks) -> usize {
    let frame = compressor.compress(request, marks).unwrap();
    let plain = zstd::bulk::decompress(frame, request.len()).unwrap();
    assert!(plain == request, "{} bytes differ", request.len());
    frame.len()
}

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// How the values of a column are made.
#[derive(Clone, Copy, Debug)]
enum Values {
    One,
    Few(usize),
    Prefixed,
    Words,
    Noise,
}

/// A request of records as an encoder would write them.
fn records(numbers: &mut Numbers, columns: &[(Values, usize)], len: usize) -> (Vec<u8>, Marks) {
    let (mut request, mut marks) = (vec![b'h'; numbers.below(90)], Marks::default());
    let all: Vec<Column> = (0..columns.len())
        .map(|at| marks.column(&format!("key{at}")))
        .collect();
    while request.len() < len {
        request.extend_from_slice(&[0x12, numbers.below(3) as u8, 9]);
        let time = 1_768_473_600_000_000_000 + numbers.next() % 1_000_000_000;
        request.extend_from_slice(&time.to_le_bytes());
        marks.value(Column::TIME, request.len(), 8);
        for (at, (values, size)) in columns.iter().enumerate() {
            let value = match values {
                Values::One => vec![b'a' + at as u8; *size],
                Values::Few(few) => {
                    let value = numbers.below(*few);
                    format!("{value:0width$}", width = 1 + size % 60).into_bytes()
                }
                Values::Prefixed => {
                    format!("/api/v1/items/{at}/{}", numbers.below(1000)).into_bytes()
                }
                Values::Words => {
                    let words = [
                        "error", "while", "reading", "the", "response", "of", "node-17",
                    ];
                    let words = (0..=size % 30).map(|_| words[numbers.below(words.len())]);
                    words.collect::<Vec<_>>().join(" ").into_bytes()
                }
                Values::Noise => numbers.bytes(*size),
            };
            request.extend_from_slice(format!("2key{at}").as_bytes());
            request.push(value.len() as u8);
            request.extend_from_slice(&value);
            marks.value(all[at], request.len(), value.len());
        }
        marks.end(request.len());
    }
    (request, marks)
}

fn values() -> impl Strategy<Value = (Values, usize)> {
    let kinds = prop_oneof![
        Just(Values::One),
        (1usize..400).prop_map(Values::Few),
        Just(Values::Prefixed),
        Just(Values::Words),
        Just(Values::Noise),
    ];
    (kinds, prop_oneof![4 => 0usize..40, 1 => 0usize..3000])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn records_come_back(seed in 1u64.., columns in vec(values(), 0..12), len in 0usize..400_000) {
        let mut compressor = Compressor::new();
        let mut numbers = Numbers(seed);
        // The second one is compressed with what was learned and said of the first.
        for len in [len, len / 3, len] {
            let (request, marks) = records(&mut numbers, &columns, len);
            check(&mut compressor, &request, &marks);
        }
    }

    #[test]
    fn wrong_marks_change_nothing(
        seed in 1u64..,
        columns in vec(values(), 1..6),
        wrong in vec((any::<u8>(), 0usize..70_000, 0usize..70_000), 0..200),
        len in 0usize..60_000,
    ) {
        let mut numbers = Numbers(seed);
        let (request, right) = records(&mut numbers, &columns, len);
        let mut compressor = Compressor::new();
        check(&mut compressor, &request, &right);
        let mut marks = right;
        if numbers.below(2) == 0 {
            marks.clear();
        }
        let names: Vec<Column> = (0..20).map(|at| marks.column(&format!("key{at}"))).collect();
        for (column, end, len) in wrong {
            match column {
                0..20 => marks.value(names[usize::from(column)], end, len % 60_000),
                20..60 => marks.value(Column::BODY, end, len % 300),
                60..120 => marks.end(end),
                120..150 => marks.value(Column::TIME, end, 8),
                _ => marks.value(Column::OTHER, end, len % 50),
            }
        }
        for _ in 0..3 {
            check(&mut compressor, &request, &marks);
        }
        // Those of another request, moved.
        let by = numbers.below(5) as isize - 2;
        marks.shift(marks.len() / 2, by);
        check(&mut compressor, &request[numbers.below(request.len() + 1)..], &marks);
    }

    #[test]
    fn random_bytes_with_random_marks_come_back(
        bytes in vec(prop_oneof![3 => 0u8..3, 1 => any::<u8>()], 0..5000),
        places in vec((1usize..90, 0u8..12), 0..400),
    ) {
        let mut marks = Marks::default();
        let mut end = 0;
        for (step, column) in places {
            end += step;
            let column = match column {
                0 => Column::TIME,
                1 => Column::BODY,
                2 => { marks.end(end); continue }
                name => marks.column(&name.to_string()),
            };
            marks.value(column, end, step * 2 / 3);
        }
        let mut compressor = Compressor::new();
        for _ in 0..4 {
            check(&mut compressor, &bytes, &marks);
        }
    }
}

/// Lines that repeat in all but a number.
fn plain(len: usize) -> (Vec<u8>, Marks) {
    let (mut request, mut marks) = (Vec::new(), Marks::default());
    let column = marks.column("path");
    let mut numbers = Numbers(7);
    while request.len() < len {
        request.extend_from_slice(b"a constant start of each line, ");
        request.extend_from_slice(numbers.next().to_string().as_bytes());
        marks.value(column, request.len(), 12);
        request.extend_from_slice(b" and an end");
        marks.end(request.len());
    }
    request.truncate(len);
    (request, marks)
}

#[test]
fn every_length_comes_back() {
    let mut compressor = Compressor::new();
    let (request, marks) = plain(2 * BLOCK + 100);
    let near_block = (BLOCK - 40..BLOCK + 40).chain(2 * BLOCK - 3..2 * BLOCK + 3);
    for len in (0..700).chain(near_block) {
        check(&mut compressor, &request[..len], &marks);
        check(&mut compressor, &request[..len], &Marks::default());
    }
}

#[test]
fn large_requests_come_back_and_larger_ones_are_left_to_others() {
    let mut compressor = Compressor::new();
    let (request, marks) = plain(REQUEST_MAX + 1);
    assert!(compressor.compress(&request, &marks).is_none());
    let len = check(&mut compressor, &request[..REQUEST_MAX], &marks);
    assert!(len < REQUEST_MAX / 5, "{len}");
    let mut huge = Marks::default();
    huge.value(Column::BODY, 70_000, 65_536);
    assert!(compressor.compress(&request[..80_000], &huge).is_none());
}

#[test]
fn runs_and_noise_come_back_at_about_their_size() {
    let mut compressor = Compressor::new();
    let noise = Numbers(3).bytes(3 * BLOCK + 17);
    let mut marks = Marks::default();
    for end in (100..3 * BLOCK).step_by(60) {
        marks.value(Column::BODY, end, 50);
        marks.end(end);
    }
    for marks in [&Marks::default(), &marks] {
        let len = check(&mut compressor, &noise, marks);
        assert!(len <= noise.len() + 100, "{len}");
    }
    let zeros = vec![0; 5 * BLOCK];
    let len = check(&mut Compressor::new(), &zeros, &marks);
    assert!(
        len < 2 * BLOCK + 1000,
        "what no mark is near is stored: {len}"
    );
    // All bytes, equally often: no codes are of use.
    let all: Vec<u8> = (0..4 * BLOCK).map(|at| (at * 167 / 13) as u8).collect();
    check(&mut compressor, &all, &marks);
    check(&mut compressor, &all, &Marks::default());
}

#[test]
fn one_value_may_be_longer_than_a_block_leaves_room_for() {
    let mut compressor = Compressor::new();
    let mut numbers = Numbers(11);
    let long = numbers.bytes(60_000);
    let (mut request, mut marks) = (
        b"start of the request, which is not looked at.".to_vec(),
        Marks::default(),
    );
    let column = marks.column("stack");
    for nth in 0..40 {
        request.extend_from_slice(format!("{nth:04} record ").as_bytes());
        request.extend_from_slice(&long[nth..]);
        marks.value(column, request.len(), long.len() - nth);
        request.extend_from_slice(b"tail");
        marks.end(request.len());
    }
    for _ in 0..3 {
        let len = check(&mut compressor, &request, &marks);
        assert!(len < request.len(), "{len}");
    }
}

#[test]
fn what_was_learned_makes_the_next_request_shorter() {
    let mut compressor = Compressor::new();
    let mut numbers = Numbers(5);
    let columns = [
        (Values::Few(5), 9),
        (Values::Prefixed, 0),
        (Values::Noise, 16),
    ];
    let (first, marks) = records(&mut numbers, &columns, 300_000);
    let first = check(&mut compressor, &first, &marks) as f64;
    let (request, marks) = records(&mut numbers, &columns, 300_000);
    let second = check(&mut compressor, &request, &marks) as f64;
    let libzstd = zstd::bulk::compress(&request, 1).unwrap().len() as f64;
    assert!(second < 1.02 * first, "{second} {first}");
    assert!(second < libzstd, "{second} {libzstd}");
    // Without marks next to nothing is found.
    let without = check(&mut compressor, &request, &Marks::default()) as f64;
    assert!(without > 1.5 * second, "{without} {second}");
}
