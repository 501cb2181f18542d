//! The newline search against a search byte by byte.

#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::tests::ISAS;

fn check(bytes: &[u8], texts: &[&str], any_escape: bool) {
    let buffer = Bytes::copy_from_slice(bytes);
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
            let mut search = NewlineSearcher { indexer, texts }.over(&buffer);
            // Part by part, as chunks of several sources stand in one buffer.
            let mut found = Vec::new();
            for end in [0, bytes.len() / 3, bytes.len() / 2, bytes.len()] {
                found.extend(std::iter::from_fn(|| search.next_before(end)).map(|at| (at, end)));
            }
            assert!(found.iter().all(|(at, end)| at < end), "{isa:?}");
            assert!(found.iter().map(|(at, _)| at).eq(&newlines), "{isa:?}");
            let searched = search.finish();
            assert_eq!(searched.is_ascii(&buffer), bytes.is_ascii(), "{isa:?}");
            check_hits(searched, &hits, texts.is_some());
        }
        let searcher = NewlineSearcher {
            indexer: Indexer::new(isa),
            texts: Some(&wanted),
        };
        check_hits(searcher.over(&buffer).finish(), &hits, true);
        check_skips(searcher, &buffer, &newlines, &hits);
    }
}

/// What is expected, or nothing, because there would have been too much of it.
fn check_hits(searched: Searched, expect: &[u32], are_wanted: bool) {
    let Some(hits) = searched.hits else {
        return assert!(!are_wanted || expect.len() > 40);
    };
    assert!(are_wanted);
    assert_eq!(hits.places, expect);
}

/// Where a part is passed over, what stands in the others is found as before.
fn check_skips(searcher: NewlineSearcher<'_>, buffer: &Bytes, newlines: &[usize], hits: &[u32]) {
    let bytes = buffer.as_ref();
    let quarter = bytes.len() / 4;
    for skipped in [0..quarter, quarter..2 * quarter, 3 * quarter..bytes.len()] {
        let mut search = searcher.over(buffer);
        let mut found = Vec::new();
        let kept = [0..skipped.start, skipped.end..bytes.len()];
        for part in kept.clone() {
            search.skip_to(part.start);
            found.extend(std::iter::from_fn(|| search.next_before(part.end)));
        }
        let is_kept = |place: usize| kept.iter().any(|part| part.contains(&place));
        assert!(
            found
                .iter()
                .eq(newlines.iter().filter(|&&place| is_kept(place)))
        );
        let searched = search.finish();
        assert!(!searched.is_ascii(buffer) || bytes.is_ascii());
        if let Some(found) = searched.hits {
            let all = hits.iter().filter(|&&hit| is_kept(hit as usize));
            assert!(all.clone().all(|hit| found.places.contains(hit)));
            assert!(found.places.iter().all(|hit| hits.contains(hit)));
        }
    }
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
    let text = b"a\nb\\ c\\u and more that is neither; and more of the same, lest";
    let times = if cfg!(miri) { 1 } else { 300 };
    let text = text.repeat(times);
    check(&text, &["b", "c"], true);
    // Hits everywhere are not kept.
    check(&b"a\nb\\ c\\u".repeat(2 * times), &["b", "c"], true);
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
