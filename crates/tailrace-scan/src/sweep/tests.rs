//! A sweep against a search byte by byte.

#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::tests::ISAS;

fn check(bytes: &[u8], texts: &[&str], any_escape: bool) {
    let newlines: Vec<usize> = (0..)
        .zip(bytes)
        .filter(|&(_, &byte)| byte == b'\n')
        .map(|(at, _)| at)
        .collect();
    let escape = if any_escape { "\\" } else { "\\u" };
    let wanted = Texts::new(texts, any_escape);
    let mut hits: Vec<u32> = Vec::new();
    for at in 0..bytes.len() {
        let starts = |text: &str| bytes[at..].starts_with(text.as_bytes());
        let found = texts.iter().zip(wanted.pairs());
        let found = found.filter(|(text, _)| starts(text));
        hits.extend(found.map(|(_, pair)| (at + pair.at) as u32));
        hits.extend(starts(escape).then_some(at as u32));
    }
    hits.sort_unstable();
    hits.dedup();
    for isa in ISAS {
        for texts in [None, Some(&wanted)] {
            let indexer = Indexer::new(isa);
            let mut sweep = Sweeper { indexer, texts }.over(bytes);
            // Part by part, as chunks of several sources stand in one buffer.
            let mut found = Vec::new();
            for end in [0, bytes.len() / 3, bytes.len() / 2, bytes.len()] {
                found.extend(std::iter::from_fn(|| sweep.next_before(end)).map(|at| (at, end)));
            }
            assert!(found.iter().all(|(at, end)| at < end), "{isa:?}");
            assert!(found.iter().map(|(at, _)| at).eq(&newlines), "{isa:?}");
            check_hits(sweep.finish(), texts.map(|_| &hits), bytes);
        }
        let sweeper = Sweeper {
            indexer: Indexer::new(isa),
            texts: Some(&wanted),
        };
        check_hits(sweeper.over(bytes).finish(), Some(&hits), bytes);
    }
}

/// Those that are expected, unless there are too many of them.
fn check_hits(hits: Option<Hits>, expect: Option<&Vec<u32>>, bytes: &[u8]) {
    let are_few = |hits: &&Vec<u32>| hits.len() <= bytes.len() / BYTES_PER_HIT_MIN;
    assert_eq!(hits.map(|hits| hits.0), expect.filter(are_few).cloned());
}

#[test]
fn a_text_and_a_newline_are_found_at_every_offset() {
    let long = "a text that is longer than the thirty-two bytes that are looked at; z";
    for len in (0..200).step_by(if cfg!(miri) { 61 } else { 1 }) {
        let filler = |byte: u8| vec![byte; len];
        for text in ["x", "xy", "\"ERROR\"", long] {
            let bytes = [
                &filler(b'o'),
                text.as_bytes(),
                b"\n\\u",
                &filler(text.as_bytes()[0]),
            ];
            check(&bytes.concat(), &[text], false);
        }
    }
}

#[test]
fn masks_are_noted_in_order_however_many_there_are() {
    let text = b"a\nb\\ c\\u and more that is neither; and more of the same, lest".repeat(300);
    check(&text, &["b", "c"], true);
    // Hits everywhere are not kept.
    check(&b"a\nb\\ c\\u".repeat(600), &["b", "c"], true);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 512 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_found_is_what_is_there(
        bytes in proptest::collection::vec(proptest::sample::select(&b"aab\n\\u\"\xff"[..]), 0..400),
        texts in proptest::collection::vec("[ab]{1,5}|\"a{0,3}\"|\\\\u?", 1..4),
        any_escape in any::<bool>(),
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        check(&bytes, &texts, any_escape);
    }
}
