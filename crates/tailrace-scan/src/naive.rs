//! The reference: what a scanner must give, computed slowly and plainly.
//!
//! Takes the same config and records, gives the content of the scanned batch as text. JSON is read by serde_json (a
//! visitor into a list of members, so that duplicates are seen; raw values, so that numbers stay as written); only where
//! a record is not valid JSON does a byte-by-byte splitter part its members. Shares no code with the scanner except
//! `tailrace_model`'s names, times and severities.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use tailrace_model::json::{DEPTH_MAX, Step};
use tailrace_model::reserved::{self, Reserved};
use tailrace_model::{severity, time};

use crate::{BROKEN, Config, Records, Source, Stats, TEXT, TEXT_ALLOWED, TRUNCATED, Type};

/// A value's text and the kind beside it.
pub(crate) type Cell = (Option<String>, Option<u8>);

/// The content of a scanned batch. Numbers are decimal text, floats their bits, times nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) columns: Vec<Vec<Cell>>,
    pub(crate) star: Vec<(String, Vec<Cell>)>,
    pub(crate) overflow: Vec<Option<Vec<(String, String)>>>,
    pub(crate) raw: Vec<Option<String>>,
    pub(crate) malformed: Vec<bool>,
    pub(crate) truncated: Vec<bool>,
    pub(crate) stats: Stats,
}

/// The reference scanner: it too remembers the keys of `SELECT *`.
pub(crate) struct Naive {
    config: Config,
    known: Vec<String>,
}

impl Naive {
    pub(crate) fn new(config: &Config) -> Naive {
        Naive {
            config: config.clone(),
            known: Vec::new(),
        }
    }

    pub(crate) fn scan(&mut self, records: &Records<'_>) -> Plain {
        let rows = records.records.len();
        let mut plain = Plain {
            columns: self
                .config
                .columns
                .iter()
                .map(|_| vec![(None, None); rows])
                .collect(),
            overflow: vec![None; rows],
            raw: vec![None; rows],
            malformed: vec![false; rows],
            truncated: vec![false; rows],
            stats: Stats {
                records: rows as u64,
                ..Stats::default()
            },
            ..Plain::default()
        };
        let mut star = BTreeMap::new();
        for row in 0..rows {
            self.row(records, row, &mut plain, &mut star);
        }
        let has_values = |cells: &[Cell]| cells.iter().any(|(_, kind)| kind.is_some());
        plain.star = star
            .into_iter()
            .filter(|(_, cells): &(usize, Vec<Cell>)| has_values(cells))
            .map(|(number, cells)| (self.known[number].clone(), cells))
            .collect();
        plain
    }

    fn row(
        &mut self,
        records: &Records<'_>,
        row: usize,
        plain: &mut Plain,
        star: &mut BTreeMap<usize, Vec<Cell>>,
    ) {
        let record = &records.records[row];
        let bytes = records
            .buffers
            .get(record.buffer as usize)
            .map_or(&[][..], |buffer| buffer);
        let bytes = bytes
            .get(record.start as usize..record.end as usize)
            .unwrap_or(&[]);
        let text = String::from_utf8_lossy(bytes);
        plain.stats.repaired += u64::from(std::str::from_utf8(bytes).is_err());
        plain.truncated[row] = record.flags & TRUNCATED != 0;
        plain.stats.truncated += u64::from(plain.truncated[row]);

        let starts = text.trim_start_matches(WHITESPACE).starts_with('{');
        let members = members(&text);
        let is_malformed = record.flags & BROKEN != 0 || starts && members.is_none();
        let is_text = record.flags & TEXT != 0 || !starts && record.flags & TEXT_ALLOWED != 0;
        let members = if record.flags & BROKEN == 0 && record.flags & TEXT == 0 {
            members
        } else {
            None
        };
        if members.is_none() {
            plain.raw[row] = Some(text.to_string());
            if record.flags & BROKEN != 0 || !is_text && (is_malformed || !starts) {
                plain.malformed[row] = true;
                plain.stats.malformed += 1;
            } else {
                plain.stats.text += 1;
            }
        }
        let mut fields: Vec<(String, Option<Parsed>)> = Vec::new();
        for member in members.iter().flatten() {
            self.member(member, row, plain, star, &mut fields);
        }
        let facts = Facts {
            text: &text,
            is_object: members.is_some(),
            malformed: plain.malformed[row],
            truncated: plain.truncated[row],
            time_ns: records
                .times
                .get(row)
                .copied()
                .filter(|&time_ns| time_ns != 0),
            stream: records.streams.get(row).copied().unwrap_or(0),
            observed_ns: records.observed_ns,
            offset_s: self.config.offset_s,
        };
        for (number, column) in self.config.columns.iter().enumerate() {
            let value = match &column.source {
                Source::Key(path) => at_path(&fields, path, &mut plain.stats),
                Source::Reserved(which) => {
                    reserved(*which, &fields, &facts, column.ty, &mut plain.stats)
                }
            };
            if let Some(value) = value {
                plain.columns[number][row] =
                    convert(&value, column.ty, self.config.offset_s, &mut plain.stats);
            }
        }
    }

    /// Reads a member if it is wanted, and gives it to `SELECT *`.
    fn member(
        &mut self,
        member: &Member,
        row: usize,
        plain: &mut Plain,
        star: &mut BTreeMap<usize, Vec<Cell>>,
        fields: &mut Vec<(String, Option<Parsed>)>,
    ) {
        let Some(key) = &member.key else {
            plain.stats.bad_members += u64::from(self.config.star.is_some());
            return;
        };
        if fields.iter().any(|(name, _)| name == key) {
            return;
        }
        let parsed = read(&member.value);
        let in_star = self
            .config
            .star
            .as_ref()
            .is_some_and(|star| !star.except.contains(key));
        let by_name = self.wants(key);
        let mut number = self.known.iter().position(|name| name == key);
        let columns_max = self.config.star.as_ref().map_or(0, |star| star.columns_max);
        if in_star && number.is_none() && self.known.len() < columns_max && key.len() <= 1024 {
            self.known.push(key.clone());
            number = Some(self.known.len() - 1);
        }
        let overflows = in_star && number.is_none();
        if by_name || in_star {
            plain.stats.bad_values += u64::from(parsed.is_none());
        }
        if by_name || in_star && !overflows {
            plain.stats.replaced_surrogates += parsed.as_ref().map_or(0, |parsed| parsed.replaced);
        }
        if let (true, Some(number), Some(parsed)) = (in_star, number, &parsed) {
            let rows = plain.malformed.len();
            star.entry(number)
                .or_insert_with(|| vec![(None, None); rows])[row] = open(parsed);
        }
        if overflows && parsed.is_some() {
            plain.stats.overflow_members += 1;
            plain.overflow[row]
                .get_or_insert_default()
                .push((key.clone(), member.value.clone()));
        }
        fields.push((key.clone(), parsed));
    }

    fn wants(&self, key: &str) -> bool {
        self.config
            .columns
            .iter()
            .any(|column| match &column.source {
                Source::Key(path) => matches!(path.first(), Some(Step::Key(name)) if name == key),
                Source::Reserved(Reserved::Body) => reserved::BODY_KEYS.contains(&key),
                Source::Reserved(Reserved::Timestamp) => reserved::TIMESTAMP_KEYS.contains(&key),
                Source::Reserved(Reserved::SeverityText) => reserved::SEVERITY_KEYS.contains(&key),
                Source::Reserved(Reserved::SeverityNumber) => {
                    reserved::SEVERITY_KEYS.contains(&key)
                        || reserved::SEVERITY_NUMBER_KEYS.contains(&key)
                }
                Source::Reserved(_) => false,
            })
    }
}

const WHITESPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// A value that is valid JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    kind: u8,
    text: String,
    replaced: u64,
}

/// A member as it is written; no key if it has no proper one.
struct Member {
    key: Option<String>,
    value: String,
}

struct Members(Vec<Member>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push(Member {
                        key: Some(key),
                        value: value.get().to_string(),
                    });
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// The members of an object in the order they are written; `None` if the text has not the shape of one.
fn members(text: &str) -> Option<Vec<Member>> {
    match serde_json::from_str::<Members>(text) {
        Ok(Members(members)) => Some(members),
        Err(_) => split(text),
    }
}

/// The same for text that is not valid JSON to its bottom.
fn split(text: &str) -> Option<Vec<Member>> {
    let text = text.trim_matches(WHITESPACE);
    if !text.starts_with('{') {
        return None;
    }
    let (mut escaped, mut in_string) = (false, false);
    let mut open: Vec<u8> = Vec::new();
    let mut colon = None;
    let mut start = 1;
    let mut segments = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        let was_escaped = escaped;
        escaped = byte == b'\\' && !was_escaped;
        if byte == b'"' && !was_escaped {
            in_string = !in_string;
        }
        if in_string {
            continue;
        }
        match byte {
            b'{' | b'[' => open.push(byte + 2),
            b'}' | b']' if open.pop() != Some(byte) => return None,
            b'}' | b']' if open.is_empty() => {
                segments.push((start, colon, at));
                if at + 1 != text.len() {
                    return None;
                }
            }
            b':' if open.len() == 1 => colon = colon.or(Some(at)),
            b',' if open.len() == 1 => {
                segments.push((start, colon.take(), at));
                start = at + 1;
            }
            _ => {}
        }
    }
    if in_string || !open.is_empty() {
        return None;
    }
    let trimmed = |start, end| text[start..end].trim_matches(WHITESPACE);
    let member = |(start, colon, end): (usize, Option<usize>, usize)| {
        let Some(colon) = colon else {
            return (!trimmed(start, end).is_empty()).then(|| Member {
                key: None,
                value: String::new(),
            });
        };
        let key = read(trimmed(start, colon))
            .filter(|key| key.kind == 1)
            .map(|key| key.text);
        Some(Member {
            key,
            value: trimmed(colon + 1, end).to_string(),
        })
    };
    Some(segments.into_iter().filter_map(member).collect())
}

/// A value's kind and text, if it is valid JSON.
fn read(value: &str) -> Option<Parsed> {
    let raw = serde_json::from_str::<&RawValue>(value).ok()?.get();
    if raw != value || depth(raw) > DEPTH_MAX {
        return None;
    }
    let kind = match raw.as_bytes()[0] {
        b'n' => 0,
        b'"' => {
            let (text, replaced) = unescape(&raw[1..raw.len() - 1]);
            return Some(Parsed {
                kind: 1,
                text,
                replaced,
            });
        }
        b't' | b'f' => 4,
        b'{' => 5,
        b'[' => 6,
        _ if raw.contains(['.', 'e', 'E']) => 3,
        _ => 2,
    };
    Some(Parsed {
        kind,
        text: raw.to_string(),
        replaced: 0,
    })
}

fn depth(value: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0, 0, false, false);
    for byte in value.bytes() {
        let was_escaped = escaped;
        escaped = byte == b'\\' && !was_escaped;
        match byte {
            b'"' if !was_escaped => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Valid escapes undone by way of UTF-16, and how many lone surrogates there were.
fn unescape(raw: &str) -> (String, u64) {
    let mut units: Vec<u16> = Vec::new();
    let mut chars = raw.chars();
    while let Some(char) = chars.next() {
        let char = if char == '\\' {
            chars.next().expect("a valid escape")
        } else {
            units.extend(char.encode_utf16(&mut [0; 2]).iter());
            continue;
        };
        units.push(match char {
            'b' => 8,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                u16::from_str_radix(&digits, 16).expect("four hex digits")
            }
            other => other as u16,
        });
    }
    let lone = char::decode_utf16(units.iter().copied())
        .filter(Result::is_err)
        .count();
    (String::from_utf16_lossy(&units), lone as u64)
}

fn open(parsed: &Parsed) -> Cell {
    (
        (parsed.kind != 0).then(|| parsed.text.clone()),
        Some(parsed.kind),
    )
}

fn at_path(
    fields: &[(String, Option<Parsed>)],
    path: &[Step],
    stats: &mut Stats,
) -> Option<Parsed> {
    let [Step::Key(key), inner @ ..] = path else {
        return None;
    };
    let mut value = fields.iter().find(|(name, _)| name == key)?.1.clone()?;
    for step in inner {
        let child = match (step, value.kind) {
            (Step::Key(key), 5) => {
                members(&value.text)?
                    .into_iter()
                    .find(|member| member.key.as_ref() == Some(key))?
                    .value
            }
            (Step::Index(index), 6) => {
                let elements: Vec<Box<RawValue>> = serde_json::from_str(&value.text).ok()?;
                let index = if *index < 0 {
                    elements.len() as i64 + index
                } else {
                    *index
                };
                elements
                    .get(usize::try_from(index).ok()?)?
                    .get()
                    .to_string()
            }
            _ => return None,
        };
        value = read(&child)?;
    }
    if !inner.is_empty() {
        stats.replaced_surrogates += value.replaced;
    }
    Some(value)
}

struct Facts<'a> {
    text: &'a str,
    is_object: bool,
    malformed: bool,
    truncated: bool,
    time_ns: Option<i64>,
    stream: u8,
    observed_ns: i64,
    offset_s: i32,
}

fn reserved(
    which: Reserved,
    fields: &[(String, Option<Parsed>)],
    facts: &Facts<'_>,
    ty: Type,
    stats: &mut Stats,
) -> Option<Parsed> {
    let first = |keys: &[&str]| -> Option<Parsed> {
        keys.iter()
            .find_map(|key| fields.iter().find(|(name, _)| name == key))?
            .1
            .clone()
    };
    let made = |kind, text: &str| {
        Some(Parsed {
            kind,
            text: text.to_string(),
            replaced: 0,
        })
    };
    let of_time = |time_ns: i64| {
        let mut text = Vec::new();
        time::write_rfc3339(time_ns, &mut text);
        match ty {
            Type::Int64 | Type::Float64 => made(2, &time_ns.to_string()),
            // Nanoseconds, also where a magnitude would tell another unit.
            Type::Timestamp => Some(Parsed {
                kind: AS_IT_IS,
                text: time_ns.to_string(),
                replaced: 0,
            }),
            _ => made(1, &String::from_utf8(text).expect("ascii")),
        }
    };
    match which {
        Reserved::Body if facts.is_object => first(&reserved::BODY_KEYS),
        Reserved::Body => made(1, facts.text),
        Reserved::SeverityText => first(&reserved::SEVERITY_KEYS),
        Reserved::SeverityNumber => {
            let stated = first(&reserved::SEVERITY_NUMBER_KEYS).and_then(|value| int64(&value));
            let level = || first(&reserved::SEVERITY_KEYS);
            let number = match stated {
                Some(number @ 1..=24) => number as u8,
                _ => match level() {
                    Some(Parsed { kind: 1, text, .. }) => severity::number_of_text(&text),
                    Some(Parsed { kind: 2, text, .. }) => {
                        text.parse().map_or(0, severity::number_of_integer)
                    }
                    _ => 0,
                },
            };
            (number > 0).then(|| made(2, &number.to_string()))?
        }
        Reserved::Timestamp => {
            let own = first(&reserved::TIMESTAMP_KEYS)
                .filter(|value| value.kind != 0)
                .and_then(|value| {
                    let time_ns = timestamp(&value, facts.offset_s);
                    stats.type_mismatches += u64::from(time_ns.is_none());
                    time_ns
                });
            own.or(facts.time_ns).and_then(of_time)
        }
        Reserved::ObservedTimestamp => of_time(facts.observed_ns),
        Reserved::Malformed => made(4, &facts.malformed.to_string()),
        Reserved::Truncated => made(4, &facts.truncated.to_string()),
        Reserved::Json if facts.is_object => {
            let value = read(facts.text.trim_matches(WHITESPACE));
            stats.bad_values += u64::from(value.is_none());
            value
        }
        Reserved::Iostream if facts.stream == 1 => made(1, "stdout"),
        Reserved::Iostream if facts.stream == 2 => made(1, "stderr"),
        _ => None,
    }
}

/// The kind of a time that needs no conversion.
const AS_IT_IS: u8 = 255;

fn convert(value: &Parsed, ty: Type, offset_s: i32, stats: &mut Stats) -> Cell {
    if matches!(ty, Type::Open | Type::Value) {
        return open(value);
    }
    if value.kind == 0 {
        return (None, None);
    }
    let text = match ty {
        Type::Open | Type::Value | Type::Text => Some(value.text.clone()),
        Type::Int64 => int64(value).map(|value| value.to_string()),
        Type::Float64 => float64(value).map(|value| format!("{:016x}", value.to_bits())),
        Type::Boolean => Some(value.text.clone())
            .filter(|it| matches!(value.kind, 1 | 4) && (it == "true" || it == "false")),
        Type::Timestamp if value.kind == AS_IT_IS => Some(value.text.clone()),
        Type::Timestamp => timestamp(value, offset_s).map(|value| value.to_string()),
    };
    stats.type_mismatches += u64::from(text.is_none());
    (text, None)
}

/// The text of a number or of a string that is exactly one.
fn number(value: &Parsed) -> Option<&str> {
    let is_number = match value.kind {
        1 => read(&value.text).is_some_and(|inner| matches!(inner.kind, 2 | 3)),
        kind => matches!(kind, 2 | 3),
    };
    is_number.then_some(&value.text)
}

/// All digits written out, then compared with what an `i64` can be.
fn int64(value: &Parsed) -> Option<i64> {
    let text = number(value)?.to_ascii_lowercase();
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.bytes().all(|byte| byte == b'0' || byte == b'-') {
        return Some(0);
    }
    let shift = exponent.parse::<i64>().ok()? - fraction.len() as i64;
    if shift.abs() > 10_000 {
        return None;
    }
    let digits = if shift >= 0 {
        digits + &"0".repeat(shift as usize)
    } else {
        let keep = digits.len().saturating_sub(shift.unsigned_abs() as usize);
        let (kept, cut) = digits.split_at(keep);
        if kept.is_empty() || kept == "-" || cut.bytes().any(|byte| byte != b'0') {
            return None;
        }
        kept.to_string()
    };
    digits.parse().ok()
}

fn float64(value: &Parsed) -> Option<f64> {
    number(value)?
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .map(|value| value + 0.0)
}

fn timestamp(value: &Parsed, offset_s: i32) -> Option<i64> {
    matches!(value.kind, 1..=3).then(|| time::parse(&value.text, offset_s))?
}
