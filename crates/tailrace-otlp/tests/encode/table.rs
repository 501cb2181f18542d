//! Generated query output: what the tests know of each value, and the Arrow columns made from it.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, StringArray,
    StringViewArray, TimestampNanosecondArray, UInt8Array, UInt64Array,
};
use proptest::prelude::*;
use tailrace_otlp::{Column, Envelope, Index, Mapping, Part, Run, SourceFacts, Value};

/// What a test knows of one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Known {
    Absent,
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Str(String),
    /// A JSON number as written; whether it is an integer.
    Number(String, bool),
    /// What an open column says is an object (or an array).
    Json(String, bool),
    Bytes(Vec<u8>),
    Time(i64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Type {
    Open,
    View,
    Utf8,
    Int64,
    Uint64,
    Float64,
    Bool,
    Binary,
    Time,
}

#[derive(Clone, Debug)]
pub(crate) struct KnownColumn {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) by_row: bool,
    /// [`LEN`] values.
    pub(crate) cells: Vec<Known>,
}

#[derive(Clone, Debug)]
pub(crate) struct KnownPart {
    pub(crate) rows: Option<Vec<u32>>,
    pub(crate) columns: Vec<KnownColumn>,
    pub(crate) overflow: Option<Vec<Option<String>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct KnownSource {
    pub(crate) resource: Vec<(String, Value)>,
    pub(crate) attributes: Vec<(String, Value)>,
}

/// A whole call of an encoder.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) records: u32,
    pub(crate) raw: Option<Vec<Option<String>>>,
    pub(crate) malformed: Option<Vec<bool>>,
    pub(crate) truncated: Option<Vec<bool>>,
    pub(crate) times: Vec<i64>,
    pub(crate) streams: Vec<u8>,
    /// By record the index of its source.
    pub(crate) source_of: Vec<usize>,
    pub(crate) sources: Vec<KnownSource>,
    pub(crate) parts: Vec<KnownPart>,
    pub(crate) mapping: Mapping,
    pub(crate) iostream: bool,
    pub(crate) request_bytes_max: usize,
}

pub(crate) const OBSERVED_NS: i64 = 1_767_323_045_678_901_234;
/// Length of all columns; there are never more records or rows.
pub(crate) const LEN: usize = 8;

impl Table {
    /// Hands the table to an encoder.
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&Envelope<'_>, &[Part<'_>]) -> T) -> T {
        let facts: Vec<_> = self
            .sources
            .iter()
            .map(|source| SourceFacts::new(&source.resource, &source.attributes))
            .collect();
        let mut runs: Vec<Run<'_>> = Vec::new();
        let mut last = None;
        for (record, source) in self.source_of.iter().enumerate() {
            let record = record as u32;
            match runs.last_mut() {
                Some(run) if last == Some(source) => run.records.end = record + 1,
                _ => runs.push(Run {
                    records: record..record + 1,
                    source: &facts[*source],
                }),
            }
            last = Some(source);
        }
        let raw = self.raw.as_ref().map(|raw| {
            raw.iter()
                .map(Option::as_deref)
                .collect::<StringViewArray>()
        });
        let flags = |flags: &Option<Vec<bool>>| flags.clone().map(BooleanArray::from);
        let (malformed, truncated) = (flags(&self.malformed), flags(&self.truncated));
        let envelope = Envelope {
            observed_ns: OBSERVED_NS,
            records: self.records,
            raw: raw.as_ref(),
            malformed: malformed.as_ref(),
            truncated: truncated.as_ref(),
            times: &self.times,
            streams: &self.streams,
            uids: &[],
            runs: &runs,
        };
        let arrays: Vec<Vec<(ArrayRef, Option<UInt8Array>)>> = self
            .parts
            .iter()
            .map(|part| part.columns.iter().map(arrays).collect())
            .collect();
        let overflows: Vec<Option<StringViewArray>> = self
            .parts
            .iter()
            .map(|part| {
                part.overflow
                    .as_ref()
                    .map(|texts| texts.iter().map(Option::as_deref).collect())
            })
            .collect();
        let parts: Vec<Part<'_>> = self
            .parts
            .iter()
            .enumerate()
            .map(|(at, part)| Part {
                rows: part.rows.as_deref(),
                columns: part.columns.iter().zip(&arrays[at]).map(handed).collect(),
                overflow: overflows[at].as_ref(),
                overflow_except: Vec::new(),
                failed: &[],
            })
            .collect();
        use_it(&envelope, &parts)
    }

    /// All rows in the order they are encoded: part, row, record.
    pub(crate) fn rows(&self) -> Vec<(usize, usize, usize)> {
        let mut rows = Vec::new();
        for record in 0..self.records {
            for (at, part) in self.parts.iter().enumerate() {
                let all = (0..self.records).collect::<Vec<_>>();
                let records = part.rows.as_ref().unwrap_or(&all);
                let of_record = records.iter().enumerate().filter(|(_, of)| **of == record);
                rows.extend(of_record.map(|(row, _)| (at, row, record as usize)));
            }
        }
        rows
    }
}

fn handed<'a>(
    (column, (values, kinds)): (&'a KnownColumn, &'a (ArrayRef, Option<UInt8Array>)),
) -> Column<'a> {
    Column {
        name: &column.name,
        values: values.as_ref(),
        kinds: kinds.as_ref(),
        index: if column.by_row {
            Index::Row
        } else {
            Index::Record
        },
    }
}

fn arrays(column: &KnownColumn) -> (ArrayRef, Option<UInt8Array>) {
    let cells = &column.cells;
    let texts = || {
        cells.iter().map(|cell| match cell {
            Known::Str(text) | Known::Number(text, _) | Known::Json(text, _) => Some(text.as_str()),
            Known::Bool(value) => Some(if *value { "true" } else { "false" }),
            _ => None,
        })
    };
    macro_rules! plain {
        ($array:ty, $variant:ident) => {{
            let value = |cell: &Known| match cell {
                Known::$variant(value) => Some(value.clone()),
                _ => None,
            };
            Arc::new(cells.iter().map(value).collect::<$array>()) as ArrayRef
        }};
    }
    match column.ty {
        Type::Open => {
            let kinds = cells.iter().map(|cell| match cell {
                Known::Null => Some(0),
                Known::Str(_) => Some(1),
                Known::Number(_, true) => Some(2),
                Known::Number(_, false) => Some(3),
                Known::Bool(_) => Some(4),
                Known::Json(_, true) => Some(5),
                Known::Json(_, false) => Some(6),
                _ => None,
            });
            (
                Arc::new(texts().collect::<StringViewArray>()),
                Some(kinds.collect()),
            )
        }
        Type::View => (Arc::new(texts().collect::<StringViewArray>()), None),
        Type::Utf8 => (Arc::new(texts().collect::<StringArray>()), None),
        Type::Int64 => (plain!(Int64Array, Int), None),
        Type::Uint64 => (plain!(UInt64Array, Uint), None),
        Type::Float64 => (plain!(Float64Array, Float), None),
        Type::Bool => (plain!(BooleanArray, Bool), None),
        Type::Binary => {
            let value = |cell: &Known| match cell {
                Known::Bytes(bytes) => Some(bytes.clone()),
                _ => None,
            };
            (
                Arc::new(cells.iter().map(value).collect::<BinaryArray>()),
                None,
            )
        }
        Type::Time => {
            let array: ArrayRef = plain!(TimestampNanosecondArray, Time);
            debug_assert_eq!(array.len(), LEN);
            (array, None)
        }
    }
}

// What is generated.

const NAMES: [&str; 25] = [
    "message",
    "msg",
    "body",
    "timestamp",
    "@timestamp",
    "ts",
    "level",
    "severity",
    "severity_number",
    "trace_id",
    "traceId",
    "span_id",
    "trace_flags",
    "event.name",
    "otel.event.name",
    "log.iostream",
    "log.file.name",
    "tailrace.malformed",
    "log.record.original",
    "a",
    "b",
    "ü key",
    "",
    "status",
    "a.b",
];

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(&NAMES[..]).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(&[
            "", "info", "WARN", "30", "7", "17", "99", "01", "1", "zz", "2026-01-02T03:04:05.678901234Z", "a b=\"c\"",
            "2026-01-02 03:04:05", "1969-12-31T23:59:59Z", "1767323045.5", "0", "0af7651916cd43dd8448eb211c80319c", "\n\u{1b}[31m",
            "00000000000000000000000000000000", "B7AD6B7169203331", "0000000000000000", "b7ad6b716920333", "gg", "{}",
        ][..]).prop_map(str::to_owned),
        2 => any::<String>(),
        1 => prop::sample::select(&[11usize, 12, 13, 126, 127, 128, 129, 16_383, 17_000][..]).prop_map(|len| "x".repeat(len)),
    ]
}

fn integer() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (-40i64..80).prop_map(|value| value.to_string()),
        1 => any::<i64>().prop_map(|value| value.to_string()),
        2 => prop::sample::select(&[
            "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "-0",
            "18446744073709551615", "1000000000000000000000000000000", "1767323045", "1767323045678", "1767323045678901",
        ][..]).prop_map(str::to_owned),
    ]
}

fn float() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<f64>()
            .prop_filter("JSON has no such number", |value| value.is_finite())
            .prop_map(|value| format!("{value:e}")),
        prop::sample::select(
            &[
                "0.0",
                "-0.0",
                "1.5",
                "1767323045.123456789",
                "1e400",
                "-1E+999",
                "17.0",
                "5e-324"
            ][..]
        )
        .prop_map(str::to_owned),
    ]
}

fn literal(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// A JSON key, perhaps escaped, out of few.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        name().prop_map(|name| literal(&name)),
        Just("\"\\u0061\"".to_owned()),
        Just("\"a\\/b\"".to_owned())
    ]
}

fn json() -> impl Strategy<Value = String> {
    let string = prop_oneof![
        text().prop_map(|text| literal(&text)),
        Just("\"\\u00fc\\ud83d\\ude00\\/\"".to_owned())
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        integer(),
        float(),
        string
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![array(inner.clone()), object(inner)]
    })
}

fn array(element: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (prop::collection::vec(element, 0..6), 0..2usize).prop_map(|(elements, space)| {
        format!("[{}]", elements.join(&format!("{}, ", "\n".repeat(space))))
    })
}

fn object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (prop::collection::vec((key(), value), 0..6), any::<bool>()).prop_map(|(members, is_wide)| {
        let mut members: Vec<_> = members
            .into_iter()
            .map(|(key, value)| format!("{key} : {value}"))
            .collect();
        if is_wide && members.len() == 5 {
            // More keys than are compared one by one, each twice.
            members.extend((0..40).map(|at| format!("\"k{}\":{at}", at % 20)));
        }
        format!("{{{}}}", members.join(","))
    })
}

fn container() -> impl Strategy<Value = Known> {
    let deep = (20..30usize, any::<bool>()).prop_map(|(depth, is_object)| {
        let (open, close) = if is_object {
            ("{\"a\":", "}")
        } else {
            ("[1, ", "]")
        };
        (open.repeat(depth) + "7" + &close.repeat(depth), is_object)
    });
    let broken = Just(("{\"a\":tru}".to_owned(), true));
    prop_oneof![
        4 => object(json()).prop_map(|text| (text, true)),
        4 => array(json()).prop_map(|text| (text, false)),
        1 => deep,
        1 => broken,
    ]
    .prop_map(|(text, is_object)| Known::Json(text, is_object))
}

fn cells(ty: Type) -> BoxedStrategy<Vec<Known>> {
    let value = match ty {
        Type::Open => prop_oneof![
            Just(Known::Null),
            text().prop_map(Known::Str),
            text().prop_map(Known::Str),
            integer().prop_map(|text| Known::Number(text, true)),
            float().prop_map(|text| Known::Number(text, false)),
            Just(Known::Number("-Infinity".to_owned(), false)),
            any::<bool>().prop_map(Known::Bool),
            container(),
        ]
        .boxed(),
        Type::View | Type::Utf8 => text().prop_map(Known::Str).boxed(),
        Type::Int64 => prop_oneof![any::<i64>(), -5..70i64, Just(1_767_323_045)]
            .prop_map(Known::Int)
            .boxed(),
        Type::Uint64 => prop_oneof![any::<u64>(), 0..70u64]
            .prop_map(Known::Uint)
            .boxed(),
        Type::Float64 => prop_oneof![any::<f64>(), Just(17.0), Just(1.5e9)]
            .prop_map(Known::Float)
            .boxed(),
        Type::Bool => any::<bool>().prop_map(Known::Bool).boxed(),
        Type::Binary => prop_oneof![
            prop::collection::vec(any::<u8>(), 0..20),
            Just(vec![7; 16]),
            Just(vec![0; 8]),
            Just(vec![1; 8]),
        ]
        .prop_map(Known::Bytes)
        .boxed(),
        Type::Time => any::<i64>().prop_map(Known::Time).boxed(),
    };
    let cell = prop_oneof![1 => Just(Known::Absent), 3 => value];
    prop::collection::vec(cell, LEN).boxed()
}

fn column() -> impl Strategy<Value = KnownColumn> {
    use Type::{Binary, Bool, Float64, Int64, Open, Time, Uint64, Utf8, View};
    let ty = prop::sample::select(
        &[
            Open, Open, Open, Open, View, Utf8, Int64, Uint64, Float64, Bool, Binary, Time,
        ][..],
    );
    ty.prop_flat_map(|ty| (name(), Just(ty), any::<bool>(), cells(ty)))
        .prop_map(|(name, ty, by_row, cells)| {
            // Only what comes from the scan has kinds; it is never by row.
            KnownColumn {
                name,
                ty,
                by_row: by_row && ty != Open,
                cells,
            }
        })
}

fn part(records: u32) -> impl Strategy<Value = KnownPart> {
    let rows = prop::option::of(prop::collection::vec(0..records.max(1), 0..LEN).prop_map(
        move |mut rows| {
            rows.retain(|row| *row < records);
            rows.sort_unstable();
            rows
        },
    ));
    let overflow = prop::option::weighted(
        0.3,
        prop::collection::vec(prop::option::of(object(json())), LEN),
    );
    (rows, prop::collection::vec(column(), 0..8), overflow).prop_map(|(rows, columns, overflow)| {
        KnownPart {
            rows,
            columns,
            overflow,
        }
    })
}

fn source() -> impl Strategy<Value = KnownSource> {
    let value = prop_oneof![
        text().prop_map(Value::Str),
        any::<i64>().prop_map(Value::Int),
        (-1e300..1e300).prop_map(Value::Double),
        any::<bool>().prop_map(Value::Bool),
        prop::collection::vec(text(), 0..3).prop_map(Value::StrArray),
    ];
    let resource = prop::collection::vec((name(), value.clone()), 0..2);
    (resource, prop::collection::vec((name(), value), 0..3)).prop_map(|(resource, attributes)| {
        KnownSource {
            resource,
            attributes,
        }
    })
}

fn mapping() -> impl Strategy<Value = Mapping> {
    let choice = || prop::option::weighted(0.1, name());
    let ids = (choice(), choice(), choice(), choice());
    (
        (choice(), choice(), choice(), choice()),
        ids,
        prop::sample::select(&[0, 7200, -3600][..]),
    )
        .prop_map(
            |(
                (timestamp, severity, severity_number, body),
                (trace_id, span_id, trace_flags, event_name),
                offset_s,
            )| {
                Mapping {
                    timestamp,
                    severity,
                    severity_number,
                    body,
                    trace_id,
                    span_id,
                    trace_flags,
                    event_name,
                    offset_s,
                }
            },
        )
}

pub(crate) fn table() -> impl Strategy<Value = Table> {
    let per_record = |records: u32| {
        let len = records as usize;
        (
            prop::option::of(prop::collection::vec(prop::option::of(text()), len)),
            prop::option::of(prop::collection::vec(any::<bool>(), len)),
            prop::option::of(prop::collection::vec(any::<bool>(), len)),
            prop_oneof![
                Just(vec![]),
                prop::collection::vec(prop_oneof![Just(0), Just(-1), any::<i64>()], len)
            ],
            prop_oneof![Just(vec![]), prop::collection::vec(0..3u8, len)],
            prop::collection::vec(0..3usize, len),
            prop::collection::vec(source(), 3),
            prop::collection::vec(part(records), 1..4),
        )
    };
    let limit = prop::sample::select(&[1usize, 200, 600, 3000, 40_000, 3_500_000][..]);
    (0..LEN as u32)
        .prop_flat_map(move |records| (Just(records), per_record(records)))
        .prop_flat_map(move |known| (Just(known), mapping(), any::<bool>(), limit.clone()))
        .prop_map(|((records, known), mapping, iostream, request_bytes_max)| {
            let (raw, malformed, truncated, times, streams, source_of, sources, parts) = known;
            Table {
                records,
                raw,
                malformed,
                truncated,
                times,
                streams,
                source_of,
                sources,
                parts,
                mapping,
                iostream,
                request_bytes_max,
            }
        })
}
