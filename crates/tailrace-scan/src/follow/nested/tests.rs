//! Blocks against values one by one, and both against the grammar.

use proptest::prelude::*;
use proptest::sample::select;
use tailrace_model::json;

use super::*;
use crate::config::Isa;
use crate::index::{Indexer, Task};

/// The end of what starts at `at`, and how many bytes of it were read in blocks.
struct Ends<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Task for Ends<'_> {
    type Output = ([Option<usize>; 3], usize);

    #[inline(always)]
    fn run<P: Probe>(self, probe: P) -> Self::Output {
        let Ends { bytes, at } = self;
        let none = Open { kinds: 0, depth: 0 };
        let open = none.open(bytes[at]).expect("it is the first one");
        let (mut block, mut next) = (Block { at, open }, Some(Block { at, open }));
        while let Some(found) = next.filter(|found| found.open.depth > 0) {
            block = found;
            next = Block::read(probe, bytes, block.at, block.open);
        }
        let behind = next.map_or(block.at, |last| last.at);
        let one_by_one = value_by_value(probe, bytes, at, none, Place::Value);
        let in_blocks = in_blocks(probe, bytes, at, open);
        let ends = [end(probe, bytes, at), in_blocks, one_by_one];
        (ends, behind - at)
    }
}

/// Says how many bytes were read in blocks.
fn check(text: &str, before: usize) -> usize {
    let behind = ",\"x\":[1,{}]}\n";
    let bytes = [&"x".repeat(before), text, behind, &" ".repeat(128)].concat();
    let is_deep = text.matches(['[', '{']).count() > DEPTH_MAX as usize;
    let ends = [Isa::Scalar, Isa::Auto].map(|isa| {
        let ends = Ends {
            bytes: bytes.as_bytes(),
            at: before,
        };
        Indexer::new(isa).run(ends)
    });
    assert_eq!(ends[0], ends[1], "{text}");
    let ([end, all_in_blocks, one_by_one], in_blocks) = ends[0];
    assert_eq!([end, all_in_blocks], [one_by_one; 2], "{text}");
    // What is no value may be one with what stands after it, or in its first part.
    let expect = json::first_value(&bytes, before).map(|(_, end)| end);
    match end {
        Some(_) => assert_eq!(end, expect, "{text}"),
        None => assert!(is_deep || expect.is_none(), "{text}"),
    }
    in_blocks
}

/// A value of JSON with some whitespace.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => select(&["0", "7", "-1", "120", "1.5", "-0.25e-7", "1E+2", "true", "false", "null", "NaN", "-Infinity"][..])
            .prop_map(str::to_owned),
        4 => select(&["", "a", "{", "],", ":", "\\\"", "\\\\", "x,y]", "\\u00e9", "\u{e9}", "a key", "\\n\\t"][..])
            .prop_map(|text| format!("\"{text}\"")),
        1 => "[a-z ]{20,90}".prop_map(|text| format!("\"{text}\"")),
        1 => Just("{}".to_owned()),
        1 => Just("[ ]".to_owned()),
    ];
    let space = || select(&["", "", "", " ", "\n\t "][..]);
    leaf.prop_recursive(6, 40, 5, move |inner| {
        let key = select(
            &[
                "a",
                "",
                "key",
                "k\\\"",
                "a long key of more than sixteen bytes",
            ][..],
        );
        let member = (key, space(), space(), inner.clone(), space());
        let member = member.prop_map(|(key, a, b, value, c)| format!("\"{key}\"{a}:{b}{value}{c}"));
        let element = (space(), inner, space()).prop_map(|(a, value, b)| format!("{a}{value}{b}"));
        prop_oneof![
            proptest::collection::vec(member, 1..5)
                .prop_map(|all| format!("{{{}}}", all.join(","))),
            proptest::collection::vec(element, 1..5).prop_map(|all| format!("[{}]", all.join(","))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 3000 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_equal_values_one_by_one(text in value(), before in 0..70_usize) {
        prop_assume!(text.starts_with(['{', '[']));
        check(&text, before);
    }

    /// One change makes most of them invalid, anywhere.
    #[test]
    fn what_is_bent_is_found(text in value(), at in any::<proptest::sample::Index>(), other in select(&b"\"\\{}[]:, 0-.x\x01\n"[..]), kind in 0..3) {
        prop_assume!(text.starts_with(['{', '[']) && text.is_ascii());
        let mut bytes = text.into_bytes();
        let at = 1 + at.index(bytes.len() - 1);
        match kind {
            0 => bytes[at] = other,
            1 => bytes.insert(at, other),
            _ => _ = bytes.remove(at),
        }
        check(std::str::from_utf8(&bytes).unwrap(), 3);
    }

    /// Any order of tokens at all.
    #[test]
    fn tokens_in_any_order(tokens in proptest::collection::vec(select(&["{", "}", "[", "]", ":", ",", "\"a\"", "1", "01", "true", " ", "\"k\":", ",\"k\":"][..]), 0..24), first in select(&["[", "{"][..])) {
        check(&[first, &tokens.concat()].concat(), 5);
    }
}

#[test]
fn every_pair_and_triple_of_tokens() {
    let tokens = [
        "{", "}", "[", "]", ":", ",", "\"a\"", "1", "01", "true", " ",
    ];
    let all = || tokens.into_iter();
    for first in ["{", "[", "{\"a\":", "[[", "{\"a\":[1", "[1,{\"a\":2"] {
        for (a, b, c) in all().flat_map(|a| all().flat_map(move |b| all().map(move |c| (a, b, c))))
        {
            for last in ["", "]", "}", "}]", "]}"] {
                check(&[first, a, b, c, last].concat(), 0);
            }
        }
    }
}

#[test]
fn ordinary_values_are_read_in_blocks() {
    let item =
        r#"{"sku":"SKU-123","count":3,"sizes":[[1,2],[],[{"w":1.5}]],"ok":true,"a b":"x,\"y\""}"#;
    let text = format!("[{item},{item}, {item} ,{item}]");
    assert_eq!(check(&text, 9), text.len() - 1);
    // After a string that is longer than a block it goes on value by value.
    let long = format!("[{item},\"{}\",{item}]", "x".repeat(100));
    let in_blocks = check(&long, 0);
    assert!(
        (item.len()..item.len() + 3).contains(&in_blocks),
        "{in_blocks}"
    );
}
