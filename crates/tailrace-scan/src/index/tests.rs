//! The index against the loop of its module's text, byte by byte.

use proptest::prelude::*;

use super::{Index, Indexer, PROBE_BYTES, Probe, STRING_BYTES, StringMasks, Task, TokenMasks};
use crate::config::Isa;
use crate::tests::ISAS;
use crate::text::Span;

#[derive(Debug, Default, PartialEq, Eq)]
struct Expect {
    structurals: Vec<u32>,
    brackets: u32,
    unclosed: bool,
}

/// The loop of the module's text.
fn naive(buffer: &[u8], span: Span) -> Expect {
    let mut expect = Expect::default();
    let (mut escaped, mut in_string) = (false, false);
    let record = &buffer[span.start()..span.end()];
    for (i, &byte) in (span.start()..).zip(record) {
        if byte == b'"' && !escaped {
            in_string = !in_string;
        }
        if !in_string {
            expect.brackets += u32::from(b"{}[]".contains(&byte));
            if b"{}[]:,".contains(&byte) {
                expect.structurals.push(i as u32);
            }
        }
        escaped = byte == b'\\' && !escaped;
    }
    expect.unclosed = in_string;
    expect
}

fn indexed(index: &mut Index, record: usize) -> Expect {
    let (outline, structurals) = index.record_mut(record);
    Expect {
        structurals: structurals.to_vec(),
        brackets: outline.brackets,
        unclosed: outline.is_unclosed,
    }
}

/// The records one after the other with these bytes before and after each: none decides anything about another.
fn check_all(records: &[&[u8]], gap: &[u8], index: &mut Index) {
    let mut buffer = gap.to_vec();
    let mut spans = Vec::new();
    for record in records {
        let start = buffer.len();
        buffer.extend_from_slice(record);
        spans.push(Span::of(start, buffer.len()));
        buffer.extend_from_slice(gap);
    }
    for isa in ISAS {
        index.clear();
        Indexer::new(isa).index(&buffer, &spans, index);
        assert_eq!(index.outlines.len(), spans.len());
        for (i, &span) in spans.iter().enumerate() {
            assert_eq!(
                indexed(index, i),
                naive(&buffer, span),
                "{isa:?} record {i} of {:?}",
                String::from_utf8_lossy(&buffer)
            );
        }
    }
}

/// The record alone, and with bytes around it that must not count.
fn check(record: &[u8], index: &mut Index) {
    check_all(&[record], b"", index);
    check_all(&[record], &b"\"\\{}[]:,\x01".repeat(16), index);
    check_all(&[record, record, b"", record], b"\n", index);
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
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

/// All that a probe can tell of 64 bytes.
struct Looks<'a>(&'a [u8; STRING_BYTES]);

impl Task for Looks<'_> {
    type Output = ([u32; 3], [u64; 5], StringMasks, TokenMasks);

    #[inline(always)]
    fn run<P: Probe>(self, probe: P) -> Self::Output {
        let [first, second] = *self.0.as_chunks::<PROBE_BYTES>().0 else {
            unreachable!("twice as many");
        };
        let looks = [
            probe.string_ends(&first),
            probe.not_digits(&first),
            probe.differences(&first, &second),
        ];
        let mut turned = *self.0;
        turned.rotate_left(1);
        let [letters, us] = probe.escape_letters(self.0);
        let places = [
            letters,
            us,
            probe.equal(self.0, b'"'),
            probe.equal_both(self.0, b'\\', &turned, b'/'),
            probe.xor_before(probe.equal(self.0, b'"')),
        ];
        let (of_string, of_tokens) = (probe.string_masks(self.0), probe.token_masks(self.0));
        (looks, places, of_string, of_tokens)
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
#[cfg_attr(miri, ignore = "takes too long")]
fn memory_of_a_large_record_is_given_back() {
    let mut index = Index::default();
    let record = b"{".repeat(1 << 20);
    Indexer::new(Isa::Auto).index(&record, &[Span::of(0, record.len())], &mut index);
    assert_eq!(index.count, 1 << 20);
    index.clear();
    index.clear();
    assert!(index.structurals.capacity() <= 1 << 19);
    check(b"{\"a\":1}", &mut index);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 512 }, failure_persistence: None, ..ProptestConfig::default() })]

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

    #[test]
    fn looks_equal_those_of_plain_rust(
        bytes in proptest::collection::vec(
            prop_oneof![
                2 => proptest::sample::select(&b"\"\\/bfnrtuv\x01\x00 09:[]{},;\x1f\x20\t\n\r\x0b"[..]),
                1 => any::<u8>(),
            ],
            STRING_BYTES,
        ),
    ) {
        let bytes = bytes.first_chunk().unwrap();
        let plain = Indexer::new(Isa::Scalar).run(Looks(bytes));
        for isa in ISAS {
            prop_assert_eq!(Indexer::new(isa).run(Looks(bytes)), plain, "{:?}", isa);
        }
    }

    #[test]
    fn borders_anywhere_equal_the_loop(
        records in proptest::collection::vec(
            proptest::collection::vec(proptest::sample::select(&b"\"\"\\\\{}[]:,x"[..]), 0..90),
            1..12,
        ),
        gap in prop_oneof![
            proptest::sample::select(vec![&b""[..], b"\n", b"\r\n", b"\"\\", b"2026 stdout F "]).prop_map(<[u8]>::to_vec),
            (60..70_usize).prop_map(|len| b"{".repeat(len)),
            (120..140_usize).prop_map(|len| b"\"".repeat(len)),
        ],
    ) {
        let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        check_all(&records, &gap, &mut Index::default());
    }
}

#[test]
fn what_a_batch_needed_is_given_back() {
    let text = b"{\"a\":[1,2,3]}".repeat(100_000);
    let mut index = Index::default();
    let span = Span::of(0, text.len());
    Indexer::new(Isa::Scalar).index(&text, &[span], &mut index);
    assert!(index.structurals.capacity() * size_of::<u32>() > 1 << 20);
    index.release(64 * 1024);
    assert!(index.structurals.capacity() * size_of::<u32>() <= 64 * 1024);
}
