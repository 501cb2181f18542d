//! The reference: what a scanner must give, computed slowly and plainly.
//!
//! Renders the content of the scanned batch as text, from the same config and records. JSON is read by serde_json (a
//! visitor into a list of members, so that duplicates are seen; raw values, so that numbers stay as written), after a
//! filter that writes zeros for the numbers it does not know; only where a record is not valid JSON does a byte-by-byte
//! splitter part its members. Shares no code with the scanner except `tailrace_model`'s names, times and severities.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use tailrace_model::json::Step;
use tailrace_model::reserved::{self, Reserved};
use tailrace_model::{severity, time};

use crate::{BROKEN, ColumnSource, Config, Records, Stats, TEXT, TEXT_ALLOWED, TRUNCATED, Type};

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
        let (members, is_json) = members(&text);
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
        let mut missing = self.keys_by_name();
        let wants_members = self.config.star.is_some() || !missing.is_empty();
        let mut is_bad = members.is_some() && self.reads_all() && !is_json;
        for member in members.iter().flatten().filter(|_| wants_members) {
            if self.config.star.is_none() && missing.is_empty() {
                break;
            }
            is_bad |= self.member(member, row, plain, star, &mut fields);
            member.key.iter().for_each(|key| _ = missing.remove(key));
        }
        if is_bad {
            plain.raw[row] = Some(text.to_string());
            plain.malformed[row] = true;
            plain.stats.malformed += 1;
        }
        let facts = Facts {
            text: &text,
            is_object: members.is_some(),
            is_json,
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
                ColumnSource::Key(path) => at_path(&fields, path, &mut plain.stats),
                ColumnSource::Reserved(which) => {
                    reserved(*which, &fields, &facts, column.ty, &mut plain.stats)
                }
            };
            if let Some(value) = value {
                plain.columns[number][row] =
                    convert(&value, column.ty, self.config.offset_s, &mut plain.stats);
            }
        }
    }

    /// Whether anything in a record that is not JSON makes it malformed.
    fn reads_all(&self) -> bool {
        let is_json =
            |column: &crate::Column| column.source == ColumnSource::Reserved(Reserved::Json);
        self.config.star.is_some() || self.config.columns.iter().any(is_json)
    }

    /// The top-level keys that columns are made of.
    fn keys_by_name(&self) -> BTreeSet<String> {
        let of_column = |column: &crate::Column| -> Vec<String> {
            let reserved = match &column.source {
                ColumnSource::Key(path) => match path.first() {
                    Some(Step::Key(name)) => return vec![name.clone()],
                    _ => Vec::new(),
                },
                ColumnSource::Reserved(Reserved::Body) => reserved::BODY_KEYS.to_vec(),
                ColumnSource::Reserved(Reserved::Timestamp) => reserved::TIMESTAMP_KEYS.to_vec(),
                ColumnSource::Reserved(Reserved::SeverityText) => reserved::SEVERITY_KEYS.to_vec(),
                ColumnSource::Reserved(Reserved::SeverityNumber) => {
                    let levels = reserved::SEVERITY_KEYS.iter();
                    levels
                        .chain(&reserved::SEVERITY_NUMBER_KEYS)
                        .copied()
                        .collect()
                }
                ColumnSource::Reserved(_) => Vec::new(),
            };
            reserved.into_iter().map(str::to_owned).collect()
        };
        self.config.columns.iter().flat_map(of_column).collect()
    }

    /// Reads a member if it is wanted, and gives it to `SELECT *`. Says whether it is not JSON.
    fn member(
        &mut self,
        member: &Member,
        row: usize,
        plain: &mut Plain,
        star: &mut BTreeMap<usize, Vec<Cell>>,
        fields: &mut Vec<(String, Option<Parsed>)>,
    ) -> bool {
        let Some(key) = &member.key else {
            plain.stats.bad_members += 1;
            return true;
        };
        let parsed = read(&member.value);
        let is_read = self.config.star.is_some() || self.keys_by_name().contains(key);
        let is_bad = parsed.is_none() && is_read;
        if fields.iter().any(|(name, _)| name == key) {
            // Of duplicates only `SELECT *` reads more than the first.
            let is_bad = is_bad && self.config.star.is_some();
            plain.stats.bad_values += u64::from(is_bad);
            return is_bad;
        }
        plain.stats.bad_values += u64::from(is_bad);
        let in_star = self
            .config
            .star
            .as_ref()
            .is_some_and(|star| !star.except.contains(key));
        let by_name = self.keys_by_name().contains(key);
        let mut number = self.known.iter().position(|name| name == key);
        let kept = self.config.star.as_ref().map_or(&[][..], |star| &star.kept);
        let columns_max = self.config.star.as_ref().map_or(0, |star| star.columns_max);
        let count = self.known.iter().filter(|key| !kept.contains(key)).count();
        let has_column = kept.contains(key) || count < columns_max && key.len() <= 1024;
        if in_star && number.is_none() && has_column {
            self.known.push(key.clone());
            number = Some(self.known.len() - 1);
        }
        let overflows = in_star && number.is_none();
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
        is_bad
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

/// Keys, and values as they stand in the text.
struct Members<'de>(Vec<(String, &'de RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// The members of an object in the order they are written, `None` if the text has not the shape of one; and whether it
/// is JSON to its bottom.
fn members(text: &str) -> (Option<Vec<Member>>, bool) {
    let finite = finite(text);
    match serde_json::from_str::<Members<'_>>(&finite) {
        Ok(Members(members)) => {
            let member = |(key, value): (String, &RawValue)| {
                let start = value.get().as_ptr() as usize - finite.as_ptr() as usize;
                Member {
                    key: Some(key),
                    value: text[start..start + value.get().len()].to_string(),
                }
            };
            (Some(members.into_iter().map(member).collect()), true)
        }
        // A key that is no Rust string (`"\ud83d"`) may stand in JSON all the same.
        Err(_) => {
            let is_json = serde_json::from_str::<&RawValue>(&finite).is_ok();
            (split(text), is_json)
        }
    }
}

/// The text with zeros of the same length for the numbers that are not finite, where such a number may stand: between
/// what may stand around a value.
fn finite(text: &str) -> String {
    let mut out = String::new();
    let (mut in_string, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let known = [
            ("NaN", "0.0"),
            ("Infinity", "0.000000"),
            ("-Infinity", "-0.000000"),
        ];
        let known = known.iter().find(|(literal, _)| rest.starts_with(literal));
        let stands_alone = |literal: &str| {
            let before = out.chars().last();
            let behind = rest[literal.len()..].chars().next();
            before.is_none_or(|before| "[,: \t\r\n".contains(before))
                && behind.is_none_or(|behind| "],} \t\r\n".contains(behind))
        };
        if !in_string
            && let Some((literal, zeros)) = known
            && stands_alone(literal)
        {
            out.push_str(zeros);
            rest = &rest[literal.len()..];
            continue;
        }
        if first == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = first == '\\' && !escaped;
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
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
    let segments_count = segments.len();
    let trimmed = |start, end| text[start..end].trim_matches(WHITESPACE);
    let member = |(start, colon, end): (usize, Option<usize>, usize)| {
        let Some(colon) = colon else {
            // Nothing at all between the braces.
            let is_empty = segments_count == 1 && trimmed(start, end).is_empty();
            return (!is_empty).then(|| Member {
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
    let finite = finite(value);
    if serde_json::from_str::<&RawValue>(&finite).ok()?.get() != finite {
        return None;
    }
    let raw = value;
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
        _ if raw.contains(['.', 'e', 'E', 'N', 'I']) => 3,
        _ => 2,
    };
    Some(Parsed {
        kind,
        text: raw.to_string(),
        replaced: 0,
    })
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
                members(&value.text)
                    .0?
                    .into_iter()
                    .find(|member| member.key.as_ref() == Some(key))?
                    .value
            }
            (Step::Index(index), 6) => {
                let finite = finite(&value.text);
                let elements: Vec<&RawValue> = serde_json::from_str(&finite).ok()?;
                let index = if *index < 0 {
                    elements.len() as i64 + index
                } else {
                    *index
                };
                let element = elements.get(usize::try_from(index).ok()?)?.get();
                let start = element.as_ptr() as usize - finite.as_ptr() as usize;
                value.text[start..start + element.len()].to_string()
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
    is_json: bool,
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
        let value = |key| fields.iter().find(|(name, _)| name == key)?.1.clone();
        let mut values = keys.iter().filter_map(value);
        values.find(|value| value.kind != 0)
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
        Reserved::Body => match first(&reserved::BODY_KEYS) {
            None if facts.malformed || !facts.is_object => made(1, facts.text),
            value => value,
        },
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
            let own = first(&reserved::TIMESTAMP_KEYS).and_then(|value| {
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
            stats.bad_values += u64::from(!facts.is_json);
            let text = facts.text.trim_matches(WHITESPACE);
            facts.is_json.then(|| made(5, text))?
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

/// The text of a finite number or of a string that is exactly one.
fn number(value: &Parsed) -> Option<&str> {
    let is_number = match value.kind {
        1 => read(&value.text).is_some_and(|inner| matches!(inner.kind, 2 | 3)),
        kind => matches!(kind, 2 | 3),
    };
    let is_number = is_number && !value.text.contains(['N', 'I']);
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
    match (value.kind, &*value.text) {
        (3, "NaN") => return Some(f64::NAN),
        (3, "Infinity") => return Some(f64::INFINITY),
        (3, "-Infinity") => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    number(value)?
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .map(|value| value + 0.0)
}

fn timestamp(value: &Parsed, offset_s: i32) -> Option<i64> {
    matches!(value.kind, 1..=3).then(|| time::parse(&value.text, offset_s))?
}
