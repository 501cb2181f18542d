//! What is not JSON, and which members count: malformed records by example.

use tailrace_model::reserved::Reserved;

use super::examples::{cell, check, scan};
use super::{Batch, check_scan, key, reserved, star_config, texts_of};
use crate::naive::Plain;
use crate::{Config, Scanner, Type};

/// Of `SELECT *`: the members that are left, `key=value`.
fn star_members(lines: &[&str]) -> (Plain, Vec<String>) {
    let config = Config {
        star: Some(Default::default()),
        ..Config::default()
    };
    let scanned = check_scan(&config, &Batch::of_lines(lines, 0));
    let members = |row: usize| {
        let of_row = scanned.star.iter().filter_map(|(key, cells)| {
            let (text, kind) = &cells[row];
            kind.map(|_| format!("{key}={}", text.as_deref().unwrap_or("null")))
        });
        of_row.collect::<Vec<_>>().join(" ")
    };
    let members = (0..lines.len()).map(members).collect();
    (scanned, members)
}

/// Each fault alone, before and after members that are right. All of one template, so that a record that is followed
/// would hide its fault.
#[test]
fn select_star_finds_whatever_is_not_json() {
    let faults = [
        ("{'id': 1, 'msg': 'x'}", ""),
        (r#"{"a":1,"b":"x" "c":2}"#, "a=1"),
        (r#"{"a":1 "b":"x"}"#, ""),
        (r#"{"a":1,"b":"he said "hi" there"}"#, "a=1"),
        (r#"{"a":1,"b":"x",}"#, "a=1 b=x"),
        (r#"{,"a":1,"b":"x"}"#, "a=1 b=x"),
        (r#"{"a":1,,"b":"x"}"#, "a=1 b=x"),
        (r#"{,}"#, ""),
        ("{\"a\":1,\"b\":\"x\ty\"}", "a=1"),
        ("{\"a\":1,\"b\ty\":\"x\"}", "a=1"),
        (r#"{"a":1,"b":"C:\path"}"#, "a=1"),
        (r#"{"a":1,"b":"\u12"}"#, "a=1"),
        (r#"{"a":1,"b\p":"x"}"#, "a=1"),
        (r#"{"a":01,"b":"x"}"#, "b=x"),
        (r#"{"a":1.,"b":"x"}"#, "b=x"),
        (r#"{"a":+1,"b":"x"}"#, "b=x"),
        (r#"{"a":-NaN,"b":"x"}"#, "b=x"),
        (r#"{"a":True,"b":"x"}"#, "b=x"),
        (r#"{"a":,"b":"x"}"#, "b=x"),
        (r#"{"a","b":"x"}"#, "b=x"),
        (r#"{a:1,"b":"x"}"#, "b=x"),
        (r#"{"a":{"c":tru},"b":"x"}"#, "b=x"),
        (r#"{"a":[1,],"b":"x"}"#, "b=x"),
        (r#"{"a":{"c":"\p"},"b":"x"}"#, "b=x"),
        (r#"{"a":{"c":1 "d":2},"b":"x"}"#, "b=x"),
        (r#"{"a":1,"a":tru,"b":"x"}"#, "a=1 b=x"),
        (r#"{"a":1,"b":"x"/*c*/}"#, "a=1"),
    ];
    let good = r#"{"a":1,"b":"x"}"#;
    let lines: Vec<&str> = faults.iter().flat_map(|(line, _)| [*line, good]).collect();
    let lines = [&[good; 4][..], &lines].concat();
    let (scanned, members) = star_members(&lines);
    let expect = faults.iter().flat_map(|(_, left)| [*left, "a=1 b=x"]);
    let expect: Vec<&str> = ["a=1 b=x"; 4].into_iter().chain(expect).collect();
    assert_eq!(members, expect);
    for (row, line) in lines.iter().enumerate() {
        let is_good = *line == good;
        assert_eq!(scanned.malformed[row], !is_good, "{line}");
        let raw = scanned.raw[row].as_deref();
        assert_eq!(raw, (!is_good).then_some(*line));
    }
    assert_eq!(scanned.stats.malformed, faults.len() as u64);
}

#[test]
fn what_a_query_leaves_out_of_star_is_judged_too() {
    let line = r#"{"b":tru,"z":1}"#;
    let scanned = check_scan(&star_config(512), &Batch::of_lines(&[line], 0));
    assert_eq!(scanned.raw, [Some(line.to_string())]);
    assert_eq!(scanned.star, [("z".to_string(), vec![cell("1", 2)])]);
}

#[test]
fn a_member_without_a_key_may_be_the_one_that_is_wanted() {
    let lines = [
        "{'a':1}",
        r#"{"b":1,x}"#,
        r#"{"a":1,x}"#,
        r#"{x,"a":1}"#,
        r#"{"b":x}"#,
    ];
    let scanned = check(key("a", Type::Open), &lines, &["-", "-", "1", "1", "-"]);
    assert_eq!(scanned.malformed, [true, true, false, true, false]);
}

#[test]
fn the_whole_record_is_judged_where_it_is_read_as_json() {
    let lines = [r#"{"a":1,"b":tru}"#, r#"{"a":1,}"#, r#"{"a":1}"#];
    let columns = [Reserved::Json, Reserved::Malformed, Reserved::Body];
    let columns = columns.map(|which| reserved(which, Type::Text)).to_vec();
    let scanned = scan([columns, vec![key("a", Type::Int64)]].concat(), &lines);
    assert_eq!(scanned.malformed, [true, true, false]);
    let texts = |column: usize| {
        let cells = scanned.columns[column].iter();
        cells
            .map(|(text, _)| text.as_deref().unwrap_or("-"))
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(0), ["-", "-", lines[2]]);
    assert_eq!(texts(1), ["true", "true", "false"]);
    assert_eq!(texts(2), [lines[0], lines[1], "-"]);
    assert_eq!(texts(3), ["1"; 3]);
}

#[test]
fn numbers_that_are_not_finite() {
    let lines = [
        r#"{"a":NaN,"z":[NaN,{"b":-Infinity}]}"#,
        r#"{"a": Infinity ,"z":[1,{"b":2}]}"#,
        r#"{"a":-Infinity,"z":[1,{"b":2}]}"#,
        r#"{"a":"NaN","z":[1,{"b":2}]}"#,
    ];
    // Again, so that they are followed.
    let lines = [lines, lines].concat();
    let (scanned, members) = star_members(&lines);
    assert_eq!(scanned.stats.malformed, 0);
    assert_eq!(members[0], "a=NaN z=[NaN,{\"b\":-Infinity}]");
    let kinds: Vec<_> = scanned.star[0].1.iter().map(|(_, kind)| *kind).collect();
    let float = Some(3);
    assert_eq!(kinds[..4], [float, float, float, Some(1)]);
    let bits = |number: f64| Some(format!("{:016x}", number.to_bits()));
    let floats = scan(vec![key("a", Type::Float64)], &lines);
    let values: Vec<_> = floats.columns[0]
        .iter()
        .map(|(text, _)| text.clone())
        .collect();
    let expect = [
        bits(f64::NAN),
        bits(f64::INFINITY),
        bits(f64::NEG_INFINITY),
        None,
    ];
    assert_eq!(values[..4], expect);
    assert_eq!(values[4..], expect);
    check(key("a", Type::Int64), &lines, &["-"; 8]);
    check(key("a", Type::Timestamp), &lines, &["-"; 8]);
}

#[test]
fn of_candidates_the_first_that_is_there_and_not_null_counts() {
    let lines = [
        r#"{"level":null,"severity":"ERROR","message":null,"msg":"m","timestamp":null,"ts":1700000000}"#,
        r#"{"severity":"ERROR","level":"INFO","body":"b","msg":null,"ts":null,"timestamp":1700000000}"#,
        r#"{"severity_number":null,"level":null,"lvl":"warn","log":null,"time":null}"#,
        r#"{"severity_number":9.0,"level":"ERROR"}"#,
        r#"{"level":tru,"severity":"ERROR","message":01,"msg":"m","timestamp":x,"ts":1700000000}"#,
    ];
    let columns = vec![
        reserved(Reserved::SeverityText, Type::Open),
        reserved(Reserved::SeverityNumber, Type::Int64),
        reserved(Reserved::Body, Type::Open),
        reserved(Reserved::Timestamp, Type::Timestamp),
    ];
    let scanned = scan(columns, &lines);
    let texts = |column: usize| {
        let cells = scanned.columns[column].iter();
        cells
            .map(|(text, _)| text.as_deref().unwrap_or("-"))
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(0), ["ERROR", "INFO", "warn", "ERROR", "ERROR"]);
    assert_eq!(texts(1), ["17", "9", "13", "9", "17"]);
    assert_eq!(texts(2), ["m", "b", "-", "-", "m"]);
    let time = "1700000000000000000";
    assert_eq!(texts(3), [time, time, "-", "-", time]);
    assert_eq!(scanned.malformed, [false, false, false, false, true]);
}

#[test]
fn a_condition_knows_the_verdict_of_the_whole_query() {
    let lines = [
        r#"{"a":1,"b":2}"#,
        r#"{"a":1,"b":tru}"#,
        r#"{"a":1,"c":tru}"#,
        r#"{'a':1}"#,
        r#"{"a":1,"b":2}"#,
    ];
    let batch = Batch::of_lines(&lines, 0);
    let of_condition = |star: bool| {
        let columns = vec![
            reserved(Reserved::Malformed, Type::Boolean),
            key("b", Type::Int64),
        ];
        let mut scanner = Scanner::new(Config {
            columns,
            star: star.then(Default::default),
            first: vec![0],
            ..Config::default()
        });
        let first = scanner.first(&batch.records());
        texts_of(first.batch.column(0))
    };
    let texts = |bools: [bool; 5]| bools.map(|it| Some(it.to_string())).to_vec();
    assert_eq!(
        of_condition(false),
        texts([false, true, false, true, false])
    );
    assert_eq!(of_condition(true), texts([false, true, true, true, false]));
}
