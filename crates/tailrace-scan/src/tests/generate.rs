//! Lines to scan: JSON objects as programs write them and as they should not, then cut and bent.
//!
//! Gives proptest strategies. Never valid lines only, never invalid ones only.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{Batch, OBSERVED_NS};
use crate::{BROKEN, Record, TEXT, TEXT_ALLOWED, TRUNCATED};

/// A few keys, so that they repeat, are wanted, and collide once unescaped.
pub(crate) const KEYS: [&str; 16] = [
    "a",
    "b",
    "a.b",
    "",
    "message",
    "msg",
    "body",
    "level",
    "severity_number",
    "time",
    "@timestamp",
    "nested",
    "k\u{e9}y",
    "q\"uote",
    "tab\t\\",
    "a key of more than sixteen bytes",
];

/// One batch: lines in one or two buffers after some bytes, with flags, times and streams.
pub(crate) fn batch() -> impl Strategy<Value = Batch> {
    let record = (line(), flags(), any::<bool>(), 0..3_u8, 0..3_u8);
    (vec(record, 0..12), 0..64_usize, vec(any::<u8>(), 0..3)).prop_map(|(lines, pad, behind)| {
        let mut buffers = [vec![b'\\'; pad], vec![b'"'; pad / 2]];
        let mut batch = Batch::default();
        for (line, flags, second, stream, time) in lines {
            let buffer = &mut buffers[usize::from(second)];
            let start = buffer.len() as u32;
            buffer.extend_from_slice(&line);
            let end = buffer.len() as u32;
            // Mostly a newline stands between two records, sometimes nothing does.
            buffer.extend_from_slice(&b"\n"[..usize::from(time > 0)]);
            batch.records.push(Record {
                buffer: u32::from(second),
                start,
                end,
                flags,
            });
            batch.streams.push(stream);
            batch.times.push([0, 1, OBSERVED_NS - 1][usize::from(time)]);
        }
        buffers[0].extend_from_slice(&behind);
        batch.buffers = buffers.map(Into::into).into();
        batch
    })
}

fn flags() -> impl Strategy<Value = u8> {
    prop_oneof![20 => Just(0), 2 => Just(TEXT_ALLOWED), 1 => Just(TEXT), 1 => Just(TRUNCATED), 1 => Just(BROKEN), 1 => 0..16_u8]
}

/// The bytes before each value of a few templates.
fn templates() -> [&'static [&'static str]; 4] {
    [
        &[r#"{"a":"#, r#","b":"#, r#","message":"#, r#","level":"#][..],
        &[r#"{"a":"#, r#","b":"#, r#","level":"#],
        &[
            r#"{ "a key of more than sixteen bytes" : "#,
            r#", "q"uote": "#,
            r#", "nested": "#,
        ],
        &[
            r#"{"time":"#,
            r#","nested":"#,
            r#","body":"#,
            r#","severity_number":"#,
            r#","a.b":"#,
        ],
    ]
}

/// One record's bytes, in one of a few templates, now and then bent, or with something in it that is no member.
pub(crate) fn of_template() -> impl Strategy<Value = Vec<u8>> {
    let bends = prop_oneof![4 => Just(Vec::new()), 1 => vec(bend(), 1..3)];
    let odd = select(
        &[
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            ",",
            ",x",
            ",'b':1",
            " \"b\":1",
            ",\"a\":tru",
        ][..],
    );
    (select(templates().to_vec()), vec(value(2), 5), odd, bends).prop_map(
        |(pieces, values, odd, bends)| {
            let line = joined(pieces, &values);
            let (members, brace) = line.split_at(line.len() - 1);
            let line = format!("{members}{odd}{brace}");
            bends
                .iter()
                .fold(line.into_bytes(), |line, bend| bend.apply(line))
        },
    )
}

/// One record of one of many shapes, which differ in few bytes.
pub(crate) fn of_many_shapes() -> impl Strategy<Value = Vec<u8>> {
    let key = prop_oneof![
        3 => select(&["a", "aa", "a key", "level", "levelname", "a key of more than sixteen bytes"][..]).prop_map(str::to_owned),
        1 => (0..1000_u32).prop_map(|i| format!("k{i}")),
        1 => (0..40_u32).prop_map(|i| format!("a key of more than sixteen bytes and of more than thirty-two {i}")),
        1 => Just(r#"q\"uote"#.to_owned()),
    ];
    let value = select(
        &[
            "1",
            "-2.5e3",
            "true",
            "null",
            r#""text""#,
            r#""a text of more than thirty-two bytes and of more than sixty-four, all told""#,
            r#""tab\t, \"quote\" and \u00e9\ud83d\ude00""#,
            r#"{"x":1}"#,
            r#"{"x":{"y":[]},"z":"\n"}"#,
            r#"[{"sku":"SKU-1","count":3,"sizes":[[1,2],[],[{"w":1.5}]]},{"sku":"SKU-22","count":4}]"#,
            r#"[ "low" , "high", -1, 2.5, {"a" : null} ]"#,
            r#"["a long text in an array, which takes more than the sixty-four bytes", 01]"#,
        ][..],
    );
    let end = select(&["}", "}", "}", " }", "} ", "", ",}"][..]);
    (vec((key, value, any::<bool>()), 0..6), end).prop_map(|(members, end)| {
        let member = |(key, value, spaced): &(String, &str, bool)| {
            format!("\"{key}\":{}{value}", if *spaced { " " } else { "" })
        };
        let members: Vec<String> = members.iter().map(member).collect();
        format!("{{{}{end}", members.join(",")).into_bytes()
    })
}

/// Records of one template one after the other. Most have the same values, or others with as many structural characters.
pub(crate) fn of_one_template() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let other = prop_oneof![4 => leaf(), 1 => value(1)];
    let others = prop_oneof![9 => Just(Vec::new()), 1 => vec((0..5_usize, other), 1..3)];
    let bends = prop_oneof![30 => Just(Vec::new()), 1 => vec(bend(), 1..2)];
    let lines = vec((others, bends), 2..40);
    let values = vec(
        prop_oneof![9 => value(2), 1 => Just("\"x\"[\"y\"]\"z\"".to_string())],
        5,
    );
    (select(templates().to_vec()), values, lines).prop_map(|(pieces, values, lines)| {
        let line = |(others, bends): (Vec<(usize, String)>, Vec<Bend>)| {
            let mut values = values.clone();
            for (at, other) in others {
                values[at] = other;
            }
            let line = joined(pieces, &values).into_bytes();
            bends.iter().fold(line, |line, bend| bend.apply(line))
        };
        lines.into_iter().map(line).collect()
    })
}

fn joined(pieces: &[&str], values: &[String]) -> String {
    let members = pieces.iter().zip(values);
    let members = members.map(|(piece, value)| format!("{piece}{value}"));
    members.collect::<String>() + "}"
}

/// One record's bytes.
pub(crate) fn line() -> impl Strategy<Value = Vec<u8>> {
    let bent = (object(), vec(bend(), 1..4)).prop_map(|(line, bends)| {
        bends
            .iter()
            .fold(line.into_bytes(), |line, bend| bend.apply(line))
    });
    prop_oneof![
        6 => object().prop_map(String::into_bytes),
        4 => bent,
        1 => value(2).prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..80),
        1 => vec(select(&b"{}[]:,\"\\ \ta1"[..]), 0..200),
    ]
}

/// One way to spoil a line. Places are shares of its length.
#[derive(Clone, Debug)]
enum Bend {
    Remove(f64),
    Insert(f64, u8),
    Replace(f64, u8),
    Cut(f64),
    Swap(f64, f64),
    /// The first of these bytes after the place becomes another of them.
    Flip(f64, u8),
}

fn bend() -> impl Strategy<Value = Bend> {
    let byte = || {
        prop_oneof![
            select(&b"{}[]:,\"\\ \t\n\r01.eE+-tfnu\x0c\x00\x1f\x7f\xc3\xa9\xff"[..]),
            any::<u8>()
        ]
    };
    prop_oneof![
        (0.0..1.0).prop_map(Bend::Remove),
        (0.0..1.0, byte()).prop_map(|(at, byte)| Bend::Insert(at, byte)),
        (0.0..1.0, byte()).prop_map(|(at, byte)| Bend::Replace(at, byte)),
        (0.0..1.0).prop_map(Bend::Cut),
        (0.0..1.0, 0.0..1.0).prop_map(|(one, other)| Bend::Swap(one, other)),
        (0.0..1.0, select(STRUCTURE)).prop_map(|(at, byte)| Bend::Flip(at, byte)),
    ]
}

const STRUCTURE: &[u8] = b"{}[]:,\"";

impl Bend {
    fn apply(&self, mut line: Vec<u8>) -> Vec<u8> {
        let len = line.len();
        let place = |share: f64| (share * len as f64) as usize;
        if line.is_empty() {
            return line;
        }
        match *self {
            Bend::Remove(at) => _ = line.remove(place(at)),
            Bend::Insert(at, byte) => line.insert(place(at), byte),
            Bend::Replace(at, byte) => line[place(at)] = byte,
            Bend::Cut(at) => line.truncate(place(at)),
            Bend::Swap(one, other) => line.swap(place(one), place(other)),
            Bend::Flip(at, byte) => {
                let at = place(at);
                if let Some(found) = line[at..]
                    .iter_mut()
                    .find(|found| STRUCTURE.contains(found))
                {
                    *found = byte;
                }
            }
        }
        line
    }
}

/// An object's text, with whitespace anywhere.
fn object() -> impl Strategy<Value = String> {
    let member = (space(), key(), space(), space(), value(3), space())
        .prop_map(|(a, key, b, c, value, d)| format!("{a}{key}{b}:{c}{value}{d}"));
    (space(), vec(member, 0..9), space(), space()).prop_map(|(a, members, inner, b)| {
        let inner = if members.is_empty() {
            inner
        } else {
            String::new()
        };
        format!("{a}{{{inner}{}}}{b}", members.join(","))
    })
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![12 => Just(String::new()), 2 => Just(" ".to_string()), 1 => "[ \t\r\n]{0,3}", 1 => Just(" ".repeat(70))]
}

fn key() -> impl Strategy<Value = String> {
    let known = || select(&KEYS[..]).prop_map(str::to_string);
    prop_oneof![
        8 => known().prop_map(|key| serde_json::to_string(&key).unwrap()),
        2 => (known(), any::<u64>()).prop_map(|(key, dice)| escaped(&key, dice)),
        1 => string(),
        1 => "[a-z]{1,30}".prop_map(|key| format!("\"{key}\"")),
    ]
}

/// A string literal with some characters written as `\u` escapes.
fn escaped(text: &str, dice: u64) -> String {
    let plain = |char: char| {
        serde_json::to_string(&char)
            .unwrap()
            .trim_matches('"')
            .to_string()
    };
    let unit = |unit: &u16| format!("\\u{unit:04X}");
    let char = |(i, char): (usize, char)| match dice >> (i % 64) & 1 {
        // A quote trimmed away above is written as an escape here.
        _ if char == '"' => "\\\"".to_string(),
        0 => plain(char),
        _ => char.encode_utf16(&mut [0; 2]).iter().map(unit).collect(),
    };
    format!(
        "\"{}\"",
        text.chars().enumerate().map(char).collect::<String>()
    )
}

/// A string literal, now and then a wrong one.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        20 => "[ -!#-\\[\\]-~]{0,9}",
        4 => "[{}\\[\\]:,]{1,5}",
        4 => "\\PC{0,5}".prop_map(|text| text.replace(['"', '\\'], "")),
        4 => select(&["\\n", "\\\"", "\\\\", "\\/", "\\t", "\\u0041", "\\u00e9", "\\ud83d\\ude00", "\\u0000"][..])
            .prop_map(str::to_string),
        1 => select(&["\\ud83d", "\\ude00", "\\ud83d\\ud83d\\ude00", "\\ud83d\\n", "\u{1f600}\\ude00"][..])
            .prop_map(str::to_string),
        1 => select(&["\\x", "\\u12", "\\u12g4", "\t", "\n", "\u{1}", "\\ud83d\\u", "\\U0041"][..]).prop_map(str::to_string),
        1 => (1..40_usize).prop_map(|pairs| "\\\\".repeat(pairs)),
        1 => (1..150_usize).prop_map(|len| "x".repeat(len)),
    ];
    vec(piece, 0..5).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// The text of a value that holds no other, now and then of none.
fn leaf() -> BoxedStrategy<String> {
    let fixed = [
        "null",
        "true",
        "false",
        "\"true\"",
        "\"false\"",
        "\"\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "tru",
        "nul",
        "True",
        "NaN",
        "Infinity",
        "-Infinity",
        "-NaN",
        "[NaN, 1]",
        "{\"a\":tru}",
        "[1,]",
        "-",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "0x1",
        "1 2",
        "\"x\"[\"y\"]\"z\"",
        "\"x\"{}",
        "\"x\":\"y\"",
        "'a'",
        "\"2026-01-02T03:04:05.678Z\"",
        "\"2026-01-02 03:04:05\"",
        "\"2026-13-02T03:04:05Z\"",
        "1700000000",
        "1700000000123",
        "1700000000.25",
        "\"1700000000\"",
        "\"INFO\"",
        "\"warn\"",
        "30",
        "9",
        "17.0",
        "\"30\"",
        "200.0",
        "2e2",
        "200.5",
        "\"200\"",
        "\" 200\"",
        "\"2e2\"",
        "\"01\"",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "1e400",
        "-0",
        "-0.0",
        "5e-324",
        "0.1",
        "123456789012345678901234567890",
    ];
    prop_oneof![
        4 => select(fixed.to_vec()).prop_map(str::to_string),
        4 => string(),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => any::<f64>().prop_filter("JSON has no NaN", |number| number.is_finite()).prop_map(|number| number.to_string()),
        1 => "-?[0-9]{1,25}(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?",
        1 => "\"-?[0-9]{1,25}(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?\"",
    ]
    .boxed()
}

/// A value's text, now and then no value.
fn value(depth: u32) -> BoxedStrategy<String> {
    if depth == 0 {
        return leaf();
    }
    let array = (vec(value(depth - 1), 0..4), space())
        .prop_map(|(values, space)| format!("[{}]", values.join(&format!("{space},"))));
    let member = (key(), space(), value(depth - 1))
        .prop_map(|(key, space, value)| format!("{space}{key}:{space}{value}"));
    let object = vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(",")));
    prop_oneof![6 => leaf(), 1 => array, 2 => object].boxed()
}
