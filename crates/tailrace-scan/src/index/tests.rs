//! The index against the loop of its module's text, byte by byte.

use proptest::prelude::*;

use super::{Index, Indexer};
use crate::config::Isa;

#[derive(Debug, PartialEq, Eq)]
struct Expect {
    structurals: Vec<u32>,
    quotes: Vec<usize>,
    brackets: u32,
    has_backslash: bool,
    has_control: bool,
    unclosed: bool,
}

fn naive(record: &[u8]) -> Expect {
    let (mut escaped, mut in_string, mut has_control) = (false, false, false);
    let (mut structurals, mut quotes, mut brackets) = (Vec::new(), Vec::new(), 0);
    for (i, &byte) in record.iter().enumerate() {
        if byte == b'"' && !escaped {
            quotes.push(i);
            in_string = !in_string;
        }
        has_control |= in_string && byte < 0x20;
        if !in_string && b"{}[]:,".contains(&byte) {
            structurals.push(i as u32);
            brackets += u32::from(b"{}[]".contains(&byte));
        }
        escaped = byte == b'\\' && !escaped;
    }
    Expect {
        structurals,
        quotes,
        brackets,
        has_backslash: record.contains(&b'\\'),
        has_control,
        unclosed: in_string,
    }
}

fn indexed(index: &Index) -> Expect {
    let mut quotes = Vec::new();
    while let Some(at) = index.next_quote(quotes.last().map_or(0, |last| last + 1)) {
        quotes.push(at);
    }
    Expect {
        structurals: index.structurals().to_vec(),
        quotes,
        brackets: index.brackets(),
        has_backslash: index.has_backslash(),
        has_control: index.has_control(),
        unclosed: index.unclosed(),
    }
}

/// The record alone, and with bytes behind it that must not count.
fn check(record: &[u8], index: &mut Index) {
    let expect = naive(record);
    let behind = [record, &b"\"\\{}[]:,\x01".repeat(16)].concat();
    for isa in [Isa::Scalar, Isa::Avx2, Isa::Auto] {
        for reach in [record, &behind] {
            Indexer::new(isa).index(reach, record.len(), index);
            assert_eq!(
                indexed(index),
                expect,
                "{isa:?} {:?}",
                String::from_utf8_lossy(record)
            );
        }
    }
}

#[test]
fn seeds_at_every_offset() {
    let seeds: [&[u8]; 9] = [
        b"{\"a\":\"b\",\"c\":[1,{}]}",
        b"\"\\\"\"",
        b"\"\\\\\"{",
        b"\\\\\\\"\"\\\\\"",
        b"{\"a\":\"x\\\\\\\\\\\"y\"}",
        b"\"{}[]:,\"{}[]:,",
        b"\"\t\"\t",
        b"\xff\xfe\"\x80\x1a\x0c\"\x1a\x0c",
        b"",
    ];
    let mut index = Index::default();
    for seed in seeds {
        for before in [b' ', b'\\', b'"', b'{'] {
            for offset in 0..=130 {
                check(&[&vec![before; offset], seed].concat(), &mut index);
            }
        }
    }
}

#[test]
fn plain_rust_is_what_was_asked_for() {
    assert!(Indexer::new(Isa::Scalar).is_scalar());
    #[cfg(target_arch = "x86_64")]
    assert_eq!(
        Indexer::new(Isa::Auto).is_scalar(),
        super::avx2::Avx2::new().is_none()
    );
}

#[test]
fn memory_of_a_large_record_is_given_back() {
    let mut index = Index::default();
    let record = b"{".repeat(1 << 20);
    Indexer::new(Isa::Auto).index(&record, record.len(), &mut index);
    assert_eq!(index.structurals().len(), 1 << 20);
    index.shrink();
    assert!(index.structurals.capacity() < 1 << 17);
    check(b"{\"a\":1}", &mut index);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn masks_equal_the_loop(
        record in proptest::collection::vec(
            prop_oneof![
                6 => proptest::sample::select(&b"\"\\\\\\{}[]:,"[..]),
                2 => any::<u8>(),
                1 => 0..0x20_u8,
            ],
            0..300,
        ),
    ) {
        check(&record, &mut Index::default());
    }
}
