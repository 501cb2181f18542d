//! JSONTestSuite: which of its texts the scanner takes, as records and as values.
//!
//! A record is judged by its shape alone (strings and brackets close, it ends where it should); tokens are judged where
//! they are read. So a few `n_` texts are accepted as records: [`ACCEPTED_RECORDS`] lists them all, each with what is
//! left of it under `SELECT *`. As a value that is read, no `n_` text is accepted.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "json_test_suite/cases.rs"]
mod cases;

use arrow::array::{Array, AsArray};
use bytes::Bytes;
use cases::{EITHER, INVALID, VALID};
use tailrace_model::json::{Kind, Step};
use tailrace_scan::{Column, Config, Isa, Record, Records, Scanned, Scanner, Source, Star, Type};

/// `n_` texts that have the shape of an object: why that is all there is to say against them, the members that are left
/// under `SELECT *`, and how many members and values are counted as bad.
const ACCEPTED_RECORDS: &[(&str, &str, &str, u64, u64)] = &[
    (
        "n_object_comma_instead_of_colon",
        "two members without a colon",
        "",
        2,
        0,
    ),
    (
        "n_object_double_colon",
        "the value is `:\"b\"`, no JSON value",
        "",
        0,
        1,
    ),
    ("n_object_emoji", "one member without a key", "", 1, 0),
    (
        "n_object_garbage_at_end",
        "the value is `\"a\" 123`, no JSON value",
        "",
        0,
        1,
    ),
    (
        "n_object_key_with_single_quotes",
        "the key is no string",
        "",
        1,
        0,
    ),
    (
        "n_object_lone_continuation_byte_in_key_and_trailing_comma",
        "the byte is repaired; nothing stands behind the comma",
        "\u{fffd}=0",
        0,
        0,
    ),
    (
        "n_object_missing_colon",
        "one member without a colon",
        "",
        1,
        0,
    ),
    (
        "n_object_missing_key",
        "the key is empty, not an empty string",
        "",
        1,
        0,
    ),
    (
        "n_object_missing_semicolon",
        "one member without a colon",
        "",
        1,
        0,
    ),
    ("n_object_non_string_key", "the key is no string", "", 1, 0),
    (
        "n_object_non_string_key_but_huge_number_instead",
        "the key is no string",
        "",
        1,
        0,
    ),
    (
        "n_object_repeated_null_null",
        "the keys are no strings",
        "",
        2,
        0,
    ),
    (
        "n_object_several_trailing_commas",
        "nothing stands between and behind the commas",
        "id=0",
        0,
        0,
    ),
    ("n_object_single_quote", "the key is no string", "", 1, 0),
    (
        "n_object_trailing_comma",
        "nothing stands behind the comma",
        "id=0",
        0,
        0,
    ),
    (
        "n_object_two_commas_in_a_row",
        "nothing stands between the commas",
        "a=b c=d",
        0,
        0,
    ),
    ("n_object_unquoted_key", "the key is no string", "", 1, 0),
    (
        "n_object_with_single_string",
        "the second member has no colon",
        "foo=bar",
        1,
        0,
    ),
    (
        "n_structure_object_with_comment",
        "the value is `/*comment*/\"b\"`, no JSON value",
        "",
        0,
        1,
    ),
];

/// `n_` texts that, put behind a colon, leave a value: what is wrong with them stands outside it.
const ACCEPTED_VALUES: &[(&str, &str)] = &[(
    "n_array_comma_after_close",
    "`[\"\"]` is the value, the comma is one behind the last member",
)];

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

/// The text read as the value of a key: its kind, or `None` if it is refused (as a bad value or with the record).
fn check_value(text: &[u8]) -> Option<Kind> {
    let column = Column {
        name: "v".into(),
        source: Source::Key(vec![Step::Key("v".into())]),
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
            assert_eq!(scanned.stats.bad_values + scanned.stats.malformed, 0);
        } else {
            assert_eq!(
                scanned.stats.bad_values + scanned.stats.malformed,
                1,
                "refused once"
            );
        }
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
fn invalid_texts_are_refused_but_for_those_listed() {
    for (name, text) in INVALID {
        let listed = ACCEPTED_RECORDS.iter().find(|(listed, ..)| listed == name);
        let (scanned, members) = check_record(text);
        assert_eq!(
            scanned.stats.malformed,
            u64::from(listed.is_none()),
            "{name} as a record"
        );
        match listed {
            Some((_, why, left, bad_members, bad_values)) => {
                assert_eq!(members, *left, "{name}: {why}");
                let counted = (scanned.stats.bad_members, scanned.stats.bad_values);
                assert_eq!(counted, (*bad_members, *bad_values), "{name}: {why}");
            }
            None => {
                let raw = scanned.raw.unwrap();
                assert_eq!(
                    raw.value(0),
                    String::from_utf8_lossy(text),
                    "{name}: nothing of it is lost"
                );
            }
        }
        let is_listed = ACCEPTED_VALUES.iter().any(|(listed, _)| listed == name);
        assert_eq!(check_value(text).is_some(), is_listed, "{name} as a value");
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
    for (name, text) in [
        ("n_structure_100000_opening_arrays", arrays),
        ("n_structure_open_array_object", objects),
        ("i_structure_500_nested_arrays", nested),
    ] {
        assert_eq!(check_value(&text), None, "{name} as a value");
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
    assert!(ACCEPTED_RECORDS.iter().all(|(name, ..)| exists(name)));
    assert!(ACCEPTED_VALUES.iter().all(|(name, _)| exists(name)));
    assert!(VALID.len() + INVALID.len() + EITHER.len() > 300);
}
