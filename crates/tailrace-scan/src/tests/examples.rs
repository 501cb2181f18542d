//! Rules by example: what each kind of value and record becomes.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, TimeUnit};
use tailrace_model::reserved::Reserved;

use super::{Batch, OBSERVED_NS, check_scan, key, path, plain, reserved, rich_config, star_config};
use crate::naive::{Cell, Plain};
use crate::{
    BROKEN, Column, Config, Record, Records, Scanner, TEXT, TEXT_ALLOWED, TRUNCATED, Type,
};
use tailrace_model::json::Step;

pub(super) fn scan(columns: Vec<Column>, lines: &[&str]) -> Plain {
    check_scan(
        &Config {
            columns,
            ..Config::default()
        },
        &Batch::of_lines(lines, 0),
    )
}

/// One column over some lines: the values' text, `-` for NULL.
pub(super) fn check(column: Column, lines: &[&str], expect: &[&str]) -> Plain {
    let scanned = scan(vec![column], lines);
    let values: Vec<_> = scanned.columns[0]
        .iter()
        .map(|(value, _)| value.as_deref().unwrap_or("-"))
        .collect();
    assert_eq!(values, expect);
    scanned
}

pub(super) fn cell(value: &str, kind: u8) -> Cell {
    (Some(value.to_string()), Some(kind))
}

#[test]
fn open_keeps_text_and_kind() {
    let line = r#"{"n":null,"s":"x","i":-12,"big":123456789012345678901,"f":1.50,"e":1E2,"b":true,"o":{ "a" : 1 },"l":[1, 2]}"#;
    let keys = ["n", "s", "i", "big", "f", "e", "b", "o", "l", "absent"];
    let scanned = scan(
        keys.iter().map(|name| key(name, Type::Open)).collect(),
        &[line],
    );
    let cells: Vec<_> = scanned
        .columns
        .into_iter()
        .map(|mut column| column.remove(0))
        .collect();
    let expect = [
        (None, Some(0)),
        cell("x", 1),
        cell("-12", 2),
        cell("123456789012345678901", 2),
        cell("1.50", 3),
        cell("1E2", 3),
        cell("true", 4),
        cell(r#"{ "a" : 1 }"#, 5),
        cell("[1, 2]", 6),
        (None, None),
    ];
    assert_eq!(cells, expect);
}

#[test]
fn int64_takes_what_is_exactly_an_integer() {
    let lines = [
        r#"{"a":200}"#,
        r#"{"a":200.0}"#,
        r#"{"a":2e2}"#,
        r#"{"a":"200"}"#,
        r#"{"a":200.5}"#,
        r#"{"a":9223372036854775807}"#,
        r#"{"a":9223372036854775808}"#,
        r#"{"a":" 200"}"#,
        r#"{"a":true}"#,
        r#"{"a":null}"#,
        r#"{}"#,
    ];
    let expect = [
        "200",
        "200",
        "200",
        "200",
        "-",
        "9223372036854775807",
        "-",
        "-",
        "-",
        "-",
        "-",
    ];
    let scanned = check(key("a", Type::Int64), &lines, &expect);
    assert_eq!(scanned.stats.type_mismatches, 4);
    assert_eq!(scanned.stats.bad_values, 0);
}

#[test]
fn one_key_feeds_columns_of_many_types() {
    let columns = [
        Type::Open,
        Type::Text,
        Type::Int64,
        Type::Float64,
        Type::Boolean,
        Type::Timestamp,
    ];
    let columns = columns.into_iter().map(|ty| key("a", ty)).collect();
    let scanned = scan(columns, &[r#"{"a":"1700000000"}"#]);
    let values: Vec<_> = scanned
        .columns
        .iter()
        .map(|column| column[0].0.as_deref())
        .collect();
    let float = format!("{:016x}", 1_700_000_000_f64.to_bits());
    let text = Some("1700000000");
    assert_eq!(
        values,
        [
            text,
            text,
            text,
            Some(float.as_str()),
            None,
            Some("1700000000000000000")
        ]
    );
    assert_eq!(scanned.stats.type_mismatches, 1);
}

#[test]
fn a_bad_token_is_null_and_makes_the_record_malformed_where_it_is_read() {
    let bad = [
        "tru",
        "01",
        "1.",
        "",
        "1 2",
        "\"a\" \"b\"",
        r#""\x""#,
        r#""\u12""#,
        "\"\t\"",
        "[1,]",
        "{\"b\"}",
        "'x'",
        "1:2",
    ];
    for token in bad {
        let line = format!(r#"{{"a":{token},"z":1}}"#);
        let scanned = scan(vec![key("a", Type::Open), key("z", Type::Open)], &[&line]);
        assert_eq!(scanned.columns, [[(None, None)], [cell("1", 2)]], "{line}");
        assert_eq!(
            (scanned.stats.bad_values, scanned.stats.malformed),
            (1, 1),
            "{line}"
        );
        assert_eq!(scanned.raw[0].as_deref(), Some(&*line));
        let unread = scan(vec![key("z", Type::Open)], &[&line]);
        assert_eq!(
            (unread.stats.bad_values, unread.stats.malformed),
            (0, 0),
            "{line}"
        );
        assert_eq!(unread.raw, [None]);
    }
}

#[test]
fn a_record_of_another_shape_is_malformed() {
    let lines = [
        "",
        " ",
        "x",
        "[]",
        "1",
        "\"{}\"",
        "{",
        "}",
        "{}}",
        "{}{}",
        "{} x",
        "{\"a\":1",
        "{\"a\":\"1}",
        "{\"a\":[1}",
        "{\"a\":[1}]}",
        "{\"a\":[1}}",
        "{\"a\":{]}",
        "{\"a\":[{]]}",
        "\u{feff}{}",
        "{\"a\":\"\\\"}",
        "{]",
        "{[}]",
        "{}\u{c}",
    ];
    for column in [key("a", Type::Open), reserved(Reserved::Json, Type::Open)] {
        let scanned = scan(vec![column, reserved(Reserved::Body, Type::Open)], &lines);
        assert_eq!(scanned.stats.malformed, lines.len() as u64);
        for (row, line) in lines.iter().enumerate() {
            assert_eq!(scanned.raw[row].as_deref(), Some(*line));
            assert_eq!(scanned.columns[0][row], (None, None));
            assert_eq!(scanned.columns[1][row], cell(line, 1));
        }
    }
}

#[test]
fn whitespace_stands_anywhere() {
    let line = " \t{ \"a\" \r\n: \t1 , \"b\"\n:\n[ 1 , 2 ]\r,\"c\"  :\"x\"\t} \r\n";
    let scanned = scan(
        ["a", "b", "c"].map(|name| key(name, Type::Open)).into(),
        &[line, "{ }", "{\t\"c\":2}"],
    );
    assert_eq!(
        scanned.columns[0],
        [cell("1", 2), (None, None), (None, None)]
    );
    assert_eq!(
        scanned.columns[1],
        [cell("[ 1 , 2 ]", 6), (None, None), (None, None)]
    );
    assert_eq!(
        scanned.columns[2],
        [cell("x", 1), (None, None), cell("2", 2)]
    );
}

#[test]
fn the_first_duplicate_wins() {
    let lines = [
        r#"{"a":1,"a":2}"#,
        r#"{"\u0061":1,"a":2}"#,
        r#"{"a":null,"a":2}"#,
        r#"{"a":tru,"a":2}"#,
        r#"{"a":1,"a":tru}"#,
    ];
    let scanned = check(key("a", Type::Open), &lines, &["1", "1", "-", "-", "1"]);
    assert_eq!(scanned.stats.bad_values, 1);
}

#[test]
fn keys_are_compared_unescaped() {
    let lines = [
        r#"{"\u0061.b":1}"#,
        r#"{"a\u002eb":2}"#,
        r#"{"a.b":3}"#,
        r#"{"a":{"b":4}}"#,
        r#"{"a\.b":5}"#,
    ];
    check(key("a.b", Type::Open), &lines, &["1", "2", "3", "-", "-"]);
    // A key that only looks like the wanted one before it is unescaped.
    check(
        key("a\\b", Type::Open),
        &[r#"{"a\b":1}"#, r#"{"a\\b":2}"#],
        &["-", "2"],
    );
    check(
        key("", Type::Open),
        &[r#"{"":1}"#, r#"{"a":1}"#],
        &["1", "-"],
    );
}

#[test]
fn a_key_is_exactly_one_string_also_where_it_is_predicted() {
    let lines = [
        r#"{"a":1,"b":1}"#,
        r#"{"a"x:2,"b":2}"#,
        r#"{"a""b":3,"b":3}"#,
        r#"{"a","b":4}"#,
        r#"{"a"{}:5,"b":5}"#,
        r#"{"a" :6,"b" :6}"#,
        r#"{x"a":7,"b":7}"#,
    ];
    check(
        key("a", Type::Open),
        &lines,
        &["1", "-", "-", "-", "-", "6", "-"],
    );
    check(
        key("b", Type::Open),
        &lines,
        &["1", "2", "3", "4", "5", "6", "7"],
    );
    let scanned = check_scan(&star_config(512), &Batch::of_lines(&lines, 0));
    assert_eq!(scanned.stats.bad_members, 5);
}

#[test]
fn escapes_and_surrogates() {
    let lines = [
        r#"{"a":"\"\\\/\b\f\n\r\t"}"#,
        r#"{"a":"\u0041\u00e9\u4e2d\ud83d\ude00"}"#,
        r#"{"a":"\ud83d"}"#,
        r#"{"a":"x\ude00y\ud83dz"}"#,
    ];
    let expect = [
        "\"\\/\u{8}\u{c}\n\r\t",
        "A\u{e9}\u{4e2d}\u{1f600}",
        "\u{fffd}",
        "x\u{fffd}y\u{fffd}z",
    ];
    let scanned = check(key("a", Type::Open), &lines, &expect);
    assert_eq!(scanned.stats.replaced_surrogates, 3);
}

#[test]
fn invalid_utf8_is_repaired_per_record() {
    let lines: [&[u8]; 4] = [
        b"{\"a\":\"ok \xc3\xa9\"}",
        b"{\"a\":\"\xff long enough to be a view\"}",
        b"{\"a\":\"\xe2\x82\"}",
        b"\xc3",
    ];
    let config = Config {
        columns: vec![key("a", Type::Open)],
        ..Config::default()
    };
    let scanned = check_scan(&config, &Batch::of_lines(&lines, 3));
    let values: Vec<_> = scanned.columns[0]
        .iter()
        .map(|(value, _)| value.as_deref())
        .collect();
    assert_eq!(
        values,
        [
            Some("ok \u{e9}"),
            Some("\u{fffd} long enough to be a view"),
            Some("\u{fffd}"),
            None
        ]
    );
    assert_eq!(scanned.stats.repaired, 3);
    assert_eq!(scanned.raw[3].as_deref(), Some("\u{fffd}"));
}

#[test]
fn a_record_that_cuts_a_character_is_repaired() {
    // One valid buffer; the records end and start in the middle of a character.
    let buffer = "{\"a\":\"\u{e9}\"}\u{e9}{}".as_bytes().to_vec();
    let record = |start, end| Record {
        buffer: 0,
        start,
        end,
        flags: 0,
    };
    let batch = Batch {
        buffers: vec![buffer.into()],
        records: vec![
            record(0, 10),
            record(0, 7),
            record(7, 10),
            record(10, 11),
            record(11, 14),
            record(12, 14),
        ],
        ..Batch::default()
    };
    let config = Config {
        columns: vec![key("a", Type::Open)],
        ..Config::default()
    };
    assert_eq!(check_scan(&config, &batch).stats.repaired, 4);
}

#[test]
fn ranges_that_do_not_exist_are_empty_records() {
    let record = |buffer, start, end| Record {
        buffer,
        start,
        end,
        flags: 0,
    };
    let batch = Batch {
        buffers: vec!["{}".into()],
        records: vec![
            record(0, 1, 0),
            record(0, 0, 3),
            record(1, 0, 0),
            record(7, 0, 0),
            record(u32::MAX, 5, 9),
            record(0, 0, 2),
        ],
        ..Batch::default()
    };
    let config = Config {
        columns: vec![key("a", Type::Open)],
        ..Config::default()
    };
    let scanned = plain(&Scanner::new(config).scan(&batch.records()));
    assert_eq!(scanned.malformed, [true, true, true, true, true, false]);
}

#[test]
fn nested_paths() {
    let steps = |steps: &[&str]| {
        steps
            .iter()
            .map(|step| Step::Key((*step).into()))
            .collect::<Vec<_>>()
    };
    let lines = [
        r#"{"http":{"status":200,"status":1,"path":"/a\u0062\n"}}"#,
        r#"{"http":{"status":"404"}}"#,
        r#"{"http":"{\"status\":1}"}"#,
        r#"{"http":{"status":tru}}"#,
        r#"{"http":null}"#,
    ];
    check(
        path(&steps(&["http", "status"]), Type::Int64),
        &lines,
        &["200", "404", "-", "-", "-"],
    );
    check(
        path(&steps(&["http", "path"]), Type::Text),
        &lines,
        &["/ab\n", "-", "-", "-", "-"],
    );
    let last = [Step::Key("l".into()), Step::Index(-1)];
    check(
        path(&last, Type::Text),
        &[r#"{"l":[1,[2,"x"]]}"#, r#"{"l":[]}"#],
        &[r#"[2,"x"]"#, "-"],
    );
    check(path(&[], Type::Text), &lines[..1], &["-"]);
    check(path(&[Step::Index(0)], Type::Text), &lines[..1], &["-"]);
}

#[test]
fn reserved_columns() {
    let lines = [
        r#"{"msg":"second","message":"first","level":"warn","ts":1700000000}"#,
        r#"{"level":30,"time":"2026-01-02T03:04:05Z"}"#,
        r#"{"level":"odd","severity_number":18,"time":"yesterday"}"#,
        "plain",
    ];
    let mut batch = Batch::of_lines(&lines, 0);
    batch.times = vec![0, 7, 8, 9];
    batch.streams = vec![1, 2, 0, 1];
    batch.records[2].flags = TRUNCATED;
    batch.records[3].flags = TEXT_ALLOWED;
    let columns = vec![
        reserved(Reserved::Body, Type::Open),
        reserved(Reserved::Timestamp, Type::Timestamp),
        reserved(Reserved::SeverityText, Type::Text),
        reserved(Reserved::SeverityNumber, Type::Int64),
        reserved(Reserved::Malformed, Type::Boolean),
        reserved(Reserved::Truncated, Type::Boolean),
        reserved(Reserved::Iostream, Type::Text),
        reserved(Reserved::ObservedTimestamp, Type::Timestamp),
        reserved(Reserved::Json, Type::Text),
    ];
    let scanned = check_scan(
        &Config {
            columns,
            ..Config::default()
        },
        &batch,
    );
    let observed = OBSERVED_NS.to_string();
    let observed = observed.as_str();
    let expect = [
        ["first", "-", "-", "plain"],
        ["1700000000000000000", "1767323045000000000", "8", "9"],
        ["warn", "30", "odd", "-"],
        ["13", "9", "18", "-"],
        ["false"; 4],
        ["false", "false", "true", "false"],
        ["stdout", "stderr", "-", "stdout"],
        [observed; 4],
        [lines[0], lines[1], lines[2], "-"],
    ];
    for (column, expect) in scanned.columns.iter().zip(expect) {
        assert_eq!(
            column
                .iter()
                .map(|(value, _)| value.as_deref().unwrap_or("-"))
                .collect::<Vec<_>>(),
            expect
        );
    }
    assert_eq!(
        scanned.stats.type_mismatches, 1,
        "the time that cannot be read"
    );
    assert_eq!(
        (
            scanned.stats.text,
            scanned.stats.malformed,
            scanned.stats.truncated
        ),
        (1, 0, 1)
    );
}

#[test]
fn flags_decide_what_is_text() {
    let line = |flags| {
        let mut batch = Batch::of_lines(&["{\"a\":1}", "x", "{"], 0);
        batch
            .records
            .iter_mut()
            .for_each(|record| record.flags = flags);
        let config = Config {
            columns: vec![key("a", Type::Open)],
            ..Config::default()
        };
        let scanned = check_scan(&config, &batch);
        (
            scanned.stats.text,
            scanned.stats.malformed,
            scanned.columns[0][0].0.is_some(),
        )
    };
    assert_eq!(line(0), (0, 2, true));
    assert_eq!(line(TEXT_ALLOWED), (1, 1, true));
    assert_eq!(line(TEXT), (3, 0, false));
    assert_eq!(line(BROKEN), (0, 3, false));
}

#[test]
fn star_gives_all_keys_in_order_of_first_appearance() {
    let config = Config {
        columns: Vec::new(),
        star: Some(Default::default()),
        ..Config::default()
    };
    let mut scanner = Scanner::new(config);
    let mut keys = |lines: &[&str]| {
        let scanned = scanner.scan(&Batch::of_lines(lines, 0).records());
        scanned
            .star
            .iter()
            .map(|column| column.key.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        keys(&[r#"{"b":1,"a":2}"#, r#"{"c":null,"a":2}"#]),
        ["b", "a", "c"]
    );
    assert_eq!(keys(&[r#"{"d":1,"c":2,"bad":tru}"#]), ["c", "d"]);
    assert_eq!(keys(&["[]", r#"{"e":"#]), [""; 0]);
    assert_eq!(keys(&[r#"{"bad":1,"b":1}"#]), ["b", "bad"]);
}

#[test]
fn keys_beyond_the_limit_overflow() {
    let line = r#"{"z":1,"y":2,"x":"\u0041","w":[1, 2],"x":9,"\u0077":3,"bad":tru,"v\n":null}"#;
    let scanned = check_scan(&star_config(2), &Batch::of_lines(&[line, r#"{"z":1}"#], 0));
    assert_eq!(scanned.star.len(), 2);
    let member = |key: &str, value: &str| (key.to_string(), value.to_string());
    assert!(scanned.malformed[0], "one value is bad");
    let expect = [
        member("x", "\"\\u0041\""),
        member("w", "[1, 2]"),
        member("v\n", "null"),
    ];
    assert_eq!(scanned.overflow, [Some(expect.to_vec()), None]);
    assert_eq!(
        (scanned.stats.overflow_members, scanned.stats.bad_values),
        (3, 1)
    );
}

#[test]
fn keys_with_a_place_of_their_own_never_overflow() {
    let long = "l".repeat(2000);
    let config = Config {
        star: Some(crate::Star {
            kept: vec!["level".into(), "msg".into(), long.clone(), "absent".into()],
            columns_max: 3,
            ..Default::default()
        }),
        ..Config::default()
    };
    let wide: Vec<String> = (0..600).map(|i| format!("\"k{i}\":{i}")).collect();
    let wide = format!("{{{}}}", wide.join(","));
    let normal = format!(r#"{{"k0":1,"level":"a","other":2,"msg":"b","{long}":3}}"#);
    let lines = [&*wide, &*normal, &*normal, &*wide, &*normal];
    let scanned = check_scan(&config, &Batch::of_lines(&lines, 0));
    let keys: Vec<&str> = scanned.star.iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys, ["k0", "k1", "k2", "level", "msg", &*long]);
    let other = vec![("other".to_string(), "2".to_string())];
    for row in [1, 2, 4] {
        assert_eq!(scanned.overflow[row], Some(other.clone()));
    }
}

#[test]
fn a_very_long_key_overflows() {
    let key = "k".repeat(1025);
    let scanned = check_scan(
        &star_config(512),
        &Batch::of_lines(&[format!(r#"{{"{key}":1,"{key}":2}}"#)], 0),
    );
    assert_eq!(scanned.star, []);
    assert_eq!(scanned.overflow[0], Some(vec![(key, "1".to_string())]));
}

#[test]
fn nesting_of_any_depth_is_a_value() {
    let nested = |depth: usize| {
        format!(
            r#"{{"a":{}1{},"z":1}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    let lines = [
        nested(100),
        nested(128),
        nested(129),
        nested(1000),
        nested(100_000),
    ];
    let scanned = check_scan(&rich_config(&["a", "z"]), &Batch::of_lines(&lines, 0));
    let present: Vec<_> = scanned.columns[0]
        .iter()
        .map(|(value, _)| value.is_some())
        .collect();
    assert_eq!(present, [true; 5]);
    assert_eq!(scanned.stats.malformed, 0);
    let unclosed = nested(200).replacen("]]", "}]", 1);
    let scanned = check_scan(&star_config(512), &Batch::of_lines(&[&unclosed], 0));
    assert_eq!(scanned.raw, [Some(unclosed)]);
}

#[test]
fn a_batch_without_records_or_columns() {
    let none = Records {
        buffers: &[],
        records: &[],
        times: &[],
        streams: &[],
        observed_ns: 0,
        searched: None,
    };
    let config = rich_config(&["a"]);
    let scanned = Scanner::new(config.clone()).scan(&none);
    assert_eq!(
        (scanned.batch.num_rows(), scanned.batch.num_columns()),
        (0, config.columns.len())
    );
    let scanned = Scanner::new(Config::default()).scan(&Batch::of_lines(&["{}", "{"], 0).records());
    assert_eq!(
        (scanned.batch.num_rows(), scanned.batch.num_columns()),
        (2, 0)
    );
    assert_eq!(scanned.stats.malformed, 1);
}

#[test]
fn times_are_utc_nanoseconds() {
    let config = Config {
        columns: vec![key("t", Type::Timestamp)],
        offset_s: 3600,
        ..Config::default()
    };
    let batch = Batch::of_lines(&[r#"{"t":"2026-01-02T03:04:05"}"#], 0);
    let scanned = Scanner::new(config).scan(&batch.records());
    let field = scanned.batch.schema().field(0).clone();
    assert_eq!(
        *field.data_type(),
        DataType::Timestamp(TimeUnit::Nanosecond, Some(Arc::from("UTC")))
    );
    assert_eq!(
        plain(&scanned).columns[0][0].0.as_deref(),
        Some("1767319445000000000")
    );
}

#[test]
fn strings_are_views_of_the_given_buffers() {
    let line = r#"{"a":"a text that is too long to lie in its view"}"#;
    let batch = Batch::of_lines(&[line], 5);
    let scanned = Scanner::new(Config {
        columns: vec![key("a", Type::Text)],
        ..Config::default()
    })
    .scan(&batch.records());
    let value = scanned.batch.column(0).as_string_view().value(0).as_ptr() as usize;
    let buffer = batch.buffers[0].as_ptr_range();
    assert!((buffer.start as usize..buffer.end as usize).contains(&value));
}

#[test]
fn values_outlive_scanner_and_caller() {
    let scanned = {
        let batch = Batch::of_lines(
            &[
                r#"{"a":"a text that is too long to lie in its view","b":"\u0061 text that was unescaped"}"#,
            ],
            0,
        );
        let columns = vec![key("a", Type::Text), key("b", Type::Text)];
        Scanner::new(Config {
            columns,
            ..Config::default()
        })
        .scan(&batch.records())
    };
    let value = |column: usize| scanned.batch.column(column).as_string_view().value(0);
    assert_eq!(value(0), "a text that is too long to lie in its view");
    assert_eq!(value(1), "a text that was unescaped");
    assert_eq!(scanned.batch.column(0).null_count(), 0);
}

/// Once templates have taken turns, records are followed in the order of how they begin. Those of one template may begin in
/// different ways, too: they then stand side by side, and what was found of them does not.
#[test]
fn records_of_one_template_that_begin_differently_are_followed_out_of_order() {
    let turns = (0..512).map(|i| match i % 2 {
        0 => format!(r#"{{"a":{i},"b":"x"}}"#),
        _ => format!(r#"{{"b":"y","a":{i}}}"#),
    });
    let alike = (0..512).map(|i| format!(r#"{{"a":{},"b":"z{i}"}}"#, (7 * i) % 10));
    let lines: Vec<String> = turns.chain(alike).collect();
    let batch = Batch::of_lines(&lines, 0);
    check_scan(&star_config(512), &batch);
    check_scan(&rich_config(&["a", "b"]), &batch);
}
