//! No record that can match is dropped, and what is dropped holds no needle.

#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::config::Isa;
use crate::index::Indexer;
use crate::newline_search::NewlineSearcher;
use crate::tests::generate;

fn needles(texts: &[(&str, bool)]) -> Needles {
    let needle = |&(text, quoted): &(&str, bool)| Needle {
        text: text.into(),
        quoted,
    };
    Needles {
        any: texts.iter().map(needle).collect(),
    }
}

fn naive(record: &[u8], lists: &[Needles]) -> bool {
    lists.iter().all(|list| {
        let special = |needle: &Needle| needle.text.contains(['"', '\\', '/', '\t']);
        let escape = if list.any.iter().any(special) {
            "\\"
        } else {
            "\\u"
        };
        let has = |text: &str| {
            record
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        };
        let quote = |needle: &Needle| if needle.quoted { "\"" } else { "" };
        has(escape)
            || list
                .any
                .iter()
                .any(|needle| has(&format!("{0}{1}{0}", quote(needle), needle.text)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 512 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn candidates_are_those_of_a_search_in_each_record(batch in generate::batch(), which in 0..6_usize) {
        let lists = [
            vec![needles(&[("true", false)])],
            vec![needles(&[("a", true), ("message", true)])],
            vec![needles(&[("2", false)]), needles(&[("e", false), ("x/y", false)])],
            vec![needles(&[("q\"uote", true)])],
            vec![needles(&[("nested", true)]), needles(&[("\u{e9}", false)])],
            vec![needles(&[(":", false)])],
        ];
        let lists = &lists[which];
        let mut prefilter = Prefilter::new(lists).unwrap();
        let records = batch.records();
        let expect: Vec<u32> = (0..)
            .zip(records.records)
            .filter(|(_, record)| naive(bytes(&records, record), lists))
            .map(|(number, _)| number)
            .collect();
        let first = records.buffers.first().cloned().unwrap_or_default();
        let searcher = NewlineSearcher { indexer: Indexer::new(Isa::Auto), texts: prefilter.texts() };
        let searched = searcher.over(&first).finish();
        for searched in [None, Some(&searched)] {
            prefilter.off = 0;
            match prefilter.candidates(&Records { searched, ..records }) {
                Some(candidates) => prop_assert_eq!(candidates, &expect[..]),
                None => prop_assert!(expect.len() * 100 > records.records.len() * CANDIDATES_PERCENT_MAX),
            }
        }
    }
}

#[test]
fn searching_stops_where_it_does_not_pay_and_starts_again() {
    let mut prefilter = Prefilter::new(&[needles(&[("x", false)])]).unwrap();
    let hit = crate::tests::Batch::of_lines(&["x", "x", "y"], 0);
    let miss = crate::tests::Batch::of_lines(&["x", "y", "y"], 0);
    assert_eq!(prefilter.candidates(&miss.records()), Some(vec![0]));
    assert_eq!(prefilter.candidates(&hit.records()), None);
    for _ in 0..BATCHES_OFF {
        assert_eq!(prefilter.candidates(&miss.records()), None);
    }
    assert_eq!(prefilter.candidates(&miss.records()), Some(vec![0]));
}

#[test]
fn what_stands_between_two_records_is_nobodys() {
    let mut batch = crate::tests::Batch::of_lines(&["x y", "x x", "y x"], 0);
    for record in &mut batch.records {
        record.start += 2;
    }
    batch.records[2].end -= 1;
    let mut prefilter = Prefilter::new(&[needles(&[("x", false)])]).unwrap();
    let searcher = NewlineSearcher {
        indexer: Indexer::new(Isa::Auto),
        texts: prefilter.texts(),
    };
    let searched = searcher.over(&batch.buffers[0]).finish();
    for searched in [None, Some(&searched)] {
        let candidates = prefilter.candidates(&Records {
            searched,
            ..batch.records()
        });
        assert_eq!(candidates, Some(vec![1]));
    }
}

#[test]
fn hits_of_another_buffer_are_not_trusted() {
    let mut prefilter = Prefilter::new(&[needles(&[("x", false)])]).unwrap();
    let searcher = NewlineSearcher {
        indexer: Indexer::new(Isa::Auto),
        texts: prefilter.texts(),
    };
    // As long, and of the same text but for a byte.
    let batch = crate::tests::Batch::of_lines(&["y", "y", "x"], 0);
    let other: Vec<u8> = batch.buffers[0]
        .iter()
        .map(|&byte| byte.max(b'y'))
        .collect();
    let searched = searcher.over(&other.into()).finish();
    let records = Records {
        searched: Some(&searched),
        ..batch.records()
    };
    assert_eq!(prefilter.candidates(&records), Some(vec![2]));
}

#[test]
fn a_range_that_does_not_exist_is_passed_on() {
    let record = |buffer, start, end| Record {
        buffer,
        start,
        end,
        flags: 0,
    };
    let mut batch = crate::tests::Batch::of_lines(&["xyz", "-", "-", "-", "-", "-", "x"], 0);
    batch.records[1] = record(0, 3, 1);
    batch.records[3] = record(7, 0, 1);
    let mut prefilter = Prefilter::new(&[needles(&[("x", false)])]).unwrap();
    assert_eq!(
        prefilter.candidates(&batch.records()),
        Some(vec![0, 1, 3, 6])
    );
}
