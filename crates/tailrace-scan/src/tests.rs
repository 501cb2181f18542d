//! The scanner against the reference: helpers, and tests by topic.
//!
//! Takes scanned batches apart into plain text that can be compared. Never looks inside the scanner.

#![allow(clippy::unwrap_used, reason = "tests")]

mod examples;
pub(crate) mod generate;
mod malformed;
mod property;
mod real_data;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray, UInt8Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampNanosecondType};
use bytes::Bytes;
use tailrace_model::json::Step;
use tailrace_model::reserved::Reserved;

use crate::naive::{Cell, Naive, Plain};
use crate::{Column, ColumnSource, Config, Isa, Record, Records, Scanned, Scanner, Star, Type};

#[cfg(not(miri))]
pub(crate) const ISAS: [Isa; 3] = [Isa::Scalar, Isa::Avx2, Isa::Avx512];
/// Miri is slow, and has the instructions that it was compiled with.
#[cfg(miri)]
pub(crate) const ISAS: [Isa; 1] = [Isa::Auto];

/// Owned records of one batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) buffers: Vec<Bytes>,
    pub(crate) records: Vec<Record>,
    pub(crate) times: Vec<i64>,
    pub(crate) streams: Vec<u8>,
}

pub(crate) const OBSERVED_NS: i64 = 1_700_000_000_123_456_789;

impl Batch {
    /// Lines in one buffer, `pad` bytes before the first one, a newline between two, nothing after the last one.
    pub(crate) fn of_lines<L: AsRef<[u8]>>(lines: &[L], pad: usize) -> Batch {
        let mut buffer = vec![b'"'; pad];
        let mut records = Vec::new();
        for (i, line) in lines.iter().enumerate() {
            if i > 0 {
                buffer.push(b'\n');
            }
            let start = buffer.len() as u32;
            buffer.extend_from_slice(line.as_ref());
            records.push(Record {
                buffer: 0,
                start,
                end: buffer.len() as u32,
                flags: 0,
            });
        }
        Batch {
            buffers: vec![buffer.into()],
            records,
            ..Batch::default()
        }
    }

    pub(crate) fn records(&self) -> Records<'_> {
        Records {
            buffers: &self.buffers,
            records: &self.records,
            times: &self.times,
            streams: &self.streams,
            observed_ns: OBSERVED_NS,
            searched: None,
        }
    }
}

/// A column of a top-level key.
pub(crate) fn key(name: &str, ty: Type) -> Column {
    path(&[Step::Key(name.into())], ty)
}

/// A column of a path.
pub(crate) fn path(steps: &[Step], ty: Type) -> Column {
    let name = steps
        .iter()
        .fold(format!("{ty:?}"), |name, step| match step {
            Step::Key(key) => format!("{name} {key}"),
            Step::Index(index) => format!("{name} {index}"),
        });
    Column {
        name,
        source: ColumnSource::Key(steps.to_vec()),
        ty,
    }
}

/// A reserved column.
pub(crate) fn reserved(which: Reserved, ty: Type) -> Column {
    Column {
        name: format!("{ty:?} {which:?}"),
        source: ColumnSource::Reserved(which),
        ty,
    }
}

/// Everything about a batch as text.
pub(crate) fn plain(scanned: &Scanned) -> Plain {
    let rows = scanned.batch.num_rows();
    let columns = scanned.batch.columns().iter().zip(&scanned.kinds);
    Plain {
        columns: columns
            .map(|(values, kinds)| cells(values, kinds.as_ref()))
            .collect(),
        star: scanned
            .star
            .iter()
            .map(|column| {
                (
                    column.key.to_string(),
                    open_cells(&column.values, &column.kinds),
                )
            })
            .collect(),
        overflow: texts(scanned.overflow.as_ref(), rows)
            .into_iter()
            .map(|text| text.map(|text| members(&text)))
            .collect(),
        raw: texts(scanned.raw.as_ref(), rows),
        malformed: bools(scanned.malformed.as_ref(), rows),
        truncated: bools(scanned.truncated.as_ref(), rows),
        stats: scanned.stats,
    }
}

fn cells(values: &ArrayRef, kinds: Option<&UInt8Array>) -> Vec<Cell> {
    if let Some(both) = values.as_struct_opt() {
        let (text, kinds) = (both.column(0), both.column(1).as_primitive());
        assert_eq!(both.logical_nulls(), text.logical_nulls());
        return open_cells(text.as_string_view(), kinds);
    }
    let text = |row: usize| match values.data_type() {
        DataType::Utf8View => values.as_string_view().value(row).to_string(),
        DataType::Int64 => values.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => format!(
            "{:016x}",
            values.as_primitive::<Float64Type>().value(row).to_bits()
        ),
        DataType::Boolean => values.as_boolean().value(row).to_string(),
        DataType::Timestamp(..) => values
            .as_primitive::<TimestampNanosecondType>()
            .value(row)
            .to_string(),
        other => panic!("no column is {other}"),
    };
    (0..values.len())
        .map(|row| {
            let kind = kinds.and_then(|kinds| kinds.is_valid(row).then(|| kinds.value(row)));
            (values.is_valid(row).then(|| text(row)), kind)
        })
        .collect()
}

/// The texts of a column of any type.
pub(crate) fn texts_of(values: &ArrayRef) -> Vec<Option<String>> {
    cells(values, None)
        .into_iter()
        .map(|(text, _)| text)
        .collect()
}

fn open_cells(values: &StringViewArray, kinds: &UInt8Array) -> Vec<Cell> {
    values
        .iter()
        .zip(kinds)
        .map(|(value, kind)| (value.map(str::to_string), kind))
        .collect()
}

fn texts(array: Option<&StringViewArray>, rows: usize) -> Vec<Option<String>> {
    array.map_or(vec![None; rows], |array| {
        array.iter().map(|text| text.map(str::to_string)).collect()
    })
}

fn bools(array: Option<&BooleanArray>, rows: usize) -> Vec<bool> {
    array.map_or(vec![false; rows], |array| {
        array.iter().map(|value| value.unwrap()).collect()
    })
}

/// The members of an overflow object, which must be valid JSON.
fn members(object: &str) -> Vec<(String, String)> {
    let value = tailrace_model::json::parse_value(object).expect("overflow is JSON");
    let unescaped = |key| tailrace_model::json::unescaped(&key).unwrap().into_owned();
    let raw = |value: tailrace_model::json::Value<'_>| match value.kind {
        tailrace_model::json::Kind::String => format!("\"{}\"", value.text),
        _ => value.text.to_string(),
    };
    tailrace_model::json::Members::new(value.text)
        .map(|(key, value)| (unescaped(key), raw(value)))
        .collect()
}

/// Scans a batch with every instruction set and compares with the reference.
pub(crate) fn check_scan(config: &Config, batch: &Batch) -> Plain {
    let expect = Naive::new(config).scan(&batch.records());
    for isa in ISAS {
        let mut scanner = Scanner::new(Config {
            isa,
            ..config.clone()
        });
        let scanned = plain(&scanner.scan(&batch.records()));
        assert_eq!(scanned, expect, "{isa:?}");
        // What a search found to be ASCII is not checked.
        let buffer = batch.buffers.first().cloned().unwrap_or_default();
        let mut search = scanner.searcher(false).over(&buffer);
        while search.next_before(buffer.len()).is_some() {}
        let searched = search.finish();
        let again = plain(&scanner.scan(&Records {
            searched: Some(&searched),
            ..batch.records()
        }));
        assert_eq!(again.columns, expect.columns, "{isa:?}, second batch");
        if config.star.is_none() {
            assert_eq!(again.stats, expect.stats, "{isa:?}, second batch");
        }
    }
    expect
}

/// A config with one column of every type for each of these keys, all reserved columns, some paths.
pub(crate) fn rich_config(keys: &[&str]) -> Config {
    const TYPES: [Type; 7] = [
        Type::Open,
        Type::Value,
        Type::Text,
        Type::Int64,
        Type::Float64,
        Type::Boolean,
        Type::Timestamp,
    ];
    let mut columns = Vec::new();
    for ty in TYPES {
        columns.extend(keys.iter().map(|name| key(name, ty)));
        let steps = |inner: &[Step]| [&[Step::Key("nested".into())], inner].concat();
        columns.push(path(&steps(&[Step::Key("a".into())]), ty));
        columns.push(path(&steps(&[Step::Index(-1), Step::Key("b".into())]), ty));
        for which in [
            Reserved::Body,
            Reserved::Timestamp,
            Reserved::ObservedTimestamp,
            Reserved::SeverityText,
            Reserved::SeverityNumber,
            Reserved::Malformed,
            Reserved::Truncated,
            Reserved::Json,
            Reserved::Iostream,
            Reserved::FileName,
        ] {
            columns.push(reserved(which, ty));
        }
    }
    Config {
        columns,
        star: None,
        offset_s: 3600,
        ..Config::default()
    }
}

/// Paths into members, before and after columns of the members themselves, and no reserved column.
pub(crate) fn path_config(keys: &[&str]) -> Config {
    let steps = |key: &str, inner: Step| [Step::Key(key.into()), inner];
    let of_key = |name: &&str| {
        [
            path(&steps(name, Step::Key("a".into())), Type::Text),
            path(&steps(name, Step::Key("b".into())), Type::Open),
            key(name, Type::Open),
            path(&steps(name, Step::Index(0)), Type::Int64),
        ]
    };
    Config {
        columns: keys.iter().flat_map(of_key).collect(),
        ..Config::default()
    }
}

/// All keys but two, of which two always have a column and at most this many others, beside two columns asked for by
/// name.
pub(crate) fn star_config(columns_max: usize) -> Config {
    Config {
        columns: vec![key("a", Type::Int64), key("message", Type::Text)],
        star: Some(Star {
            except: vec!["b".into(), "message".into()],
            kept: vec!["level".into(), "nested".into()],
            columns_max,
            ..Star::default()
        }),
        ..Config::default()
    }
}
