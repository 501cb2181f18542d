//! JSONTestSuite: which of its texts the scanner takes, as records and as values.
//!
//! `SELECT *` reads all of a record, so that each `n_` text is malformed and its raw text kept; so is it as a value that is
//! read. `NaN`, `Infinity` and `-Infinity` alone are taken beyond the RFC.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "json_test_suite/cases.rs"]
mod cases;

use arrow::array::{Array, AsArray};
use bytes::Bytes;
use cases::{EITHER, INVALID, VALID};
use tailrace_model::json::{Kind, Step};
use tailrace_scan::{
    Column, ColumnSource, Config, Isa, Record, Records, Scanned, Scanner, Star, Type,
};

/// `n_` texts that hold a number which is taken all the same.
const TAKEN: &[&str] = &[
    "n_number_NaN",
    "n_number_infinity",
    "n_number_minus_infinity",
];

/// After a colon this is a value, and a comma too many after it.
fn has_more(text: &[u8]) -> bool {
    text == b"[\"\"],"
}

fn raw_of(scanned: &Scanned) -> Option<&str> {
    let raw = scanned.raw.as_ref().filter(|raw| raw.is_valid(0));
    raw.map(|raw| raw.value(0))
}

fn scan(config: &Config, record: &[u8], isa: Isa) -> Scanned {
    let buffers = [Bytes::copy_from_slice(record)];
    let records = [Record {
        buffer: 0,
        start: 0,
        end: record.len() as u32,
        flags: 0,
    }];
    let records = Records {
        buffers: &buffers,
        records: &records,
        times: &[],
        streams: &[],
        observed_ns: 0,
        searched: None,
    };
    Scanner::new(Config {
        isa,
        ..config.clone()
    })
    .scan(&records)
}

/// With every instruction set: malformed, and the members as `key=value` under `SELECT *`.
fn check_record(record: &[u8]) -> (Scanned, String) {
    let config = Config {
        star: Some(Star::default()),
        ..Config::default()
    };
    let members = |scanned: &Scanned| {
        let member = |column: &tailrace_scan::StarColumn| {
            format!("{}={}", column.key, column.values.value(0))
        };
        scanned
            .star
            .iter()
            .map(member)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let scalar = scan(&config, record, Isa::Scalar);
    let best = scan(&config, record, Isa::Auto);
    assert_eq!(
        (scalar.stats, members(&scalar)),
        (best.stats, members(&best))
    );
    let members = members(&best);
    (best, members)
}

/// The text read as the value of a key: its kind, or `None` if it is refused, and the raw text kept.
fn check_value(text: &[u8]) -> Option<Kind> {
    let column = Column {
        name: "v".into(),
        source: ColumnSource::Key(vec![Step::Key("v".into())]),
        ty: Type::Open,
    };
    let config = Config {
        columns: vec![column],
        ..Config::default()
    };
    let record = [b"{\"v\":", text, b"}"].concat();
    let mut answers = [Isa::Scalar, Isa::Auto].map(|isa| {
        let scanned = scan(&config, &record, isa);
        let kinds = scanned.kinds[0].as_ref().unwrap();
        let kind = kinds
            .is_valid(0)
            .then(|| Kind::from_u8(kinds.value(0)).unwrap());
        if let Some(kind) = kind {
            let value = scanned.batch.column(0).as_string_view();
            assert_eq!(value.is_valid(0), kind != Kind::Null);
        }
        let is_malformed = scanned.stats.malformed == 1;
        assert_eq!(is_malformed, kind.is_none());
        assert_eq!(raw_of(&scanned).is_some(), is_malformed);
        kind
    });
    assert_eq!(answers[0], answers[1]);
    answers[0].take()
}

#[test]
fn valid_texts() {
    for (name, text) in VALID {
        assert!(check_value(text).is_some(), "{name} as a value");
        let (scanned, _) = check_record(text);
        let is_object = serde_json::from_slice::<serde_json::Value>(text)
            .unwrap()
            .is_object();
        assert_eq!(
            scanned.stats.malformed,
            u64::from(!is_object),
            "{name} as a record"
        );
        assert_eq!(
            scanned.stats.bad_values + scanned.stats.bad_members,
            0,
            "{name} as a record"
        );
    }
}

#[test]
fn invalid_texts_are_malformed_and_kept_to_the_byte() {
    for (name, text) in INVALID {
        let is_taken = TAKEN.contains(name);
        let expect = String::from_utf8_lossy(text);
        let (scanned, _) = check_record(text);
        // None of those that are taken is an object.
        assert_eq!(raw_of(&scanned), Some(&*expect), "{name} as a record");
        assert_eq!(scanned.stats.malformed, 1, "{name} as a record");
        // As a member of an object all of which is read.
        let record = [b"{\"v\":", *text, b",\"w\":1}"].concat();
        let (scanned, members) = check_record(&record);
        assert_eq!(
            scanned.stats.malformed,
            u64::from(!is_taken),
            "{name} as a value"
        );
        let expect = String::from_utf8_lossy(&record);
        let raw = raw_of(&scanned);
        assert_eq!(raw, (!is_taken).then_some(&*expect), "{name} as a value");
        let has_shape = !members.is_empty();
        assert!(!has_shape || members.contains("w=1"), "{name}: {members}");
        assert_eq!(
            check_value(text).is_some(),
            is_taken || has_more(text),
            "{name}"
        );
    }
}

#[test]
fn texts_with_which_a_parser_may_do_either() {
    for (name, text, accepted) in EITHER {
        assert_eq!(check_value(text).is_some(), *accepted, "{name} as a value");
        let (scanned, _) = check_record(text);
        assert_eq!(
            scanned.stats.malformed,
            u64::from(!text.starts_with(b"{")),
            "{name} as a record"
        );
    }
}

#[test]
fn generated_texts() {
    let arrays = b"[".repeat(100_000);
    let objects = b"[{\"\":".repeat(50_000);
    let nested = [b"[".repeat(500), b"]".repeat(500)].concat();
    for (name, text, is_valid) in [
        ("n_structure_100000_opening_arrays", arrays, false),
        ("n_structure_open_array_object", objects, false),
        ("i_structure_500_nested_arrays", nested, true),
    ] {
        assert_eq!(check_value(&text).is_some(), is_valid, "{name} as a value");
        assert_eq!(
            check_record(&text).0.stats.malformed,
            1,
            "{name} as a record"
        );
    }
}

#[test]
fn the_lists_name_cases_that_exist() {
    let exists = |name: &str| INVALID.iter().any(|(case, _)| *case == name);
    assert!(TAKEN.iter().all(|name| exists(name)));
    assert!(VALID.len() + INVALID.len() + EITHER.len() > 300);
}
