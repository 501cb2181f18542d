//! Reading Arrow columns of any type, one value at a time.
//!
//! A [`Reader`] is made of an array (and the kinds of an open column): what depends on the type is decided once per column. A
//! [`Cell`] is one borrowed value. The table of Arrow types in `docs/otlp-mapping.md` is implemented here. It does not
//! allocate per value and knows no output format.

use std::fmt::Write;
use std::ops::Range;

use arrow::array::types::{
    Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::array::{
    Array, AsArray, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray,
    LargeBinaryArray, LargeStringArray, PrimitiveArray, RunArray, StringArray, StringViewArray,
    StructArray, UInt8Array, UnionArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, TimeUnit, UnionFields};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use tailrace_model::json::{self, Kind};
use tailrace_model::time::write_rfc3339;

use crate::open::OpenColumn;

/// One value.
#[derive(Clone, Copy)]
pub(crate) enum Cell<'r> {
    /// An absent key, or SQL's NULL.
    Absent,
    /// A JSON null.
    Null,
    /// A value that could not be computed: it is there, and empty.
    Failed,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Str(&'r str),
    /// The text of a JSON integer of any size.
    Integer(&'r str),
    /// The text of a JSON number with fraction or exponent.
    Number(&'r str),
    /// The text of a JSON object or array.
    Json(&'r str),
    Bytes(&'r [u8]),
    /// Nanoseconds since the epoch.
    Time(i64),
    /// The nanosecond at which a day begins.
    Day(i64),
    /// A time that nanoseconds cannot hold: a number of units of so many nanoseconds.
    FarTime(i64, i64),
    /// A day that nanoseconds cannot hold.
    FarDay(i64, i64),
    /// Anything whose text Arrow makes.
    Display(&'r ArrayFormatter<'r>, usize),
    /// Elements `range` of a child column.
    List(&'r Reader<'r>, Range32),
    Struct(&'r StructReader<'r>, usize),
    /// Entries `range` of a key column and a value column.
    Map(&'r (Reader<'r>, Reader<'r>), Range32),
}

/// A range of child values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range32 {
    start: u32,
    end: u32,
}

impl Range32 {
    pub(crate) fn iter(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn new(start: usize, end: usize) -> Range32 {
        // A batch of 4 Gi child values does not exist: its records alone would be that many bytes.
        let bound = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Range32 {
            start: bound(start),
            end: bound(end),
        }
    }
}

impl Cell<'_> {
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Cell::Absent)
    }

    /// Neither absent nor null.
    pub(crate) fn has_value(&self) -> bool {
        !matches!(self, Cell::Absent | Cell::Null)
    }

    /// Appends the text of a scalar (not of bytes, lists, structs and maps) and says whether there
    /// is one.
    pub(crate) fn write_text(&self, out: &mut Vec<u8>) -> bool {
        match *self {
            Cell::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Cell::Int(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Cell::Uint(value) => {
                out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes())
            }
            Cell::Float(value) => write!(Text(out), "{value}").expect("a vector takes every byte"),
            Cell::Str(text) | Cell::Integer(text) | Cell::Number(text) | Cell::Json(text) => {
                out.extend_from_slice(text.as_bytes());
            }
            Cell::Time(ns) => write_rfc3339(ns, out),
            Cell::Day(ns) => {
                let start = out.len();
                write_rfc3339(ns, out);
                let date = out[start..]
                    .iter()
                    .position(|byte| *byte == b'T')
                    .unwrap_or(0);
                out.truncate(start + date);
            }
            Cell::FarTime(number, unit_ns) => write_far(number, unit_ns, false, out),
            Cell::FarDay(number, unit_ns) => write_far(number, unit_ns, true, out),
            // What Arrow has no text for is no cell.
            Cell::Display(formatter, at) => _ = formatter.value(at).write(&mut Text(out)),
            Cell::Absent
            | Cell::Null
            | Cell::Failed
            | Cell::Bytes(_)
            | Cell::List(..)
            | Cell::Struct(..)
            | Cell::Map(..) => {
                return false;
            }
        }
        true
    }
}

/// Appends formatted text to bytes.
pub(crate) struct Text<'v>(pub(crate) &'v mut Vec<u8>);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Takes text and keeps nothing of it.
struct Nowhere;

impl Write for Nowhere {
    fn write_str(&mut self, _: &str) -> std::fmt::Result {
        Ok(())
    }
}

/// A column, with what depends on its type decided.
pub(crate) enum Reader<'a> {
    /// Nothing in it, or a type that has no values.
    Absent,
    /// Some of its values, ascending, could not be computed.
    Failed(Vec<u32>, Box<Reader<'a>>),
    Open(OpenColumn<'a>),
    TextView(&'a StringViewArray),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    /// Text that is JSON.
    Json(Box<Reader<'a>>),
    Bool(&'a BooleanArray),
    Int8(&'a PrimitiveArray<Int8Type>),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    Uint8(&'a PrimitiveArray<UInt8Type>),
    Uint16(&'a PrimitiveArray<UInt16Type>),
    Uint32(&'a PrimitiveArray<UInt32Type>),
    Uint64(&'a PrimitiveArray<UInt64Type>),
    Float16(&'a PrimitiveArray<Float16Type>),
    Float32(&'a PrimitiveArray<Float32Type>),
    Float64(&'a PrimitiveArray<Float64Type>),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    FixedBinary(&'a FixedSizeBinaryArray),
    /// Timestamps and dates: numbers of units of so many nanoseconds.
    Time {
        numbers: Numbers<'a>,
        unit_ns: i64,
        whole_days: bool,
        nulls: Option<&'a NullBuffer>,
    },
    Display {
        nulls: Option<NullBuffer>,
        formatter: ArrayFormatter<'a>,
    },
    List {
        spans: Spans<'a>,
        nulls: Option<&'a NullBuffer>,
        child: Box<Reader<'a>>,
    },
    Struct(StructReader<'a>),
    Map {
        offsets: &'a [i32],
        nulls: Option<&'a NullBuffer>,
        entries: Box<(Reader<'a>, Reader<'a>)>,
    },
    Dictionary {
        keys: Vec<usize>,
        nulls: Option<&'a NullBuffer>,
        values: Box<Reader<'a>>,
    },
    Runs {
        ends: RunEnds<'a>,
        values: Box<Reader<'a>>,
    },
    Union {
        array: &'a UnionArray,
        children: Vec<Reader<'a>>,
    },
}

/// The fields of a struct column.
pub(crate) struct StructReader<'a> {
    nulls: Option<&'a NullBuffer>,
    pub(crate) fields: Vec<(&'a str, Reader<'a>)>,
}

/// The numbers behind timestamps and dates.
pub(crate) enum Numbers<'a> {
    Wide(&'a [i64]),
    Narrow(&'a [i32]),
}

/// Where the elements of each list are.
pub(crate) enum Spans<'a> {
    Offsets(&'a [i32]),
    LargeOffsets(&'a [i64]),
    Fixed(usize),
    Views(&'a [i32], &'a [i32]),
    LargeViews(&'a [i64], &'a [i64]),
}

/// Run-end encoded columns, by the type of the ends.
pub(crate) enum RunEnds<'a> {
    Int16(&'a RunArray<Int16Type>),
    Int32(&'a RunArray<Int32Type>),
    Int64(&'a RunArray<Int64Type>),
}

impl<'a> Reader<'a> {
    /// A reader of `array`, which is an open column if there are `kinds`.
    pub(crate) fn new(array: &'a dyn Array, kinds: Option<&'a UInt8Array>) -> Reader<'a> {
        if let (Some(kinds), Some(text)) = (kinds, array.as_string_view_opt()) {
            return Reader::Open(OpenColumn::new(text, kinds));
        }
        match array.data_type() {
            DataType::Null => Reader::Absent,
            DataType::Boolean => Reader::Bool(array.as_boolean()),
            DataType::Int8 => Reader::Int8(array.as_primitive()),
            DataType::Int16 => Reader::Int16(array.as_primitive()),
            DataType::Int32 => Reader::Int32(array.as_primitive()),
            DataType::Int64 => Reader::Int64(array.as_primitive()),
            DataType::UInt8 => Reader::Uint8(array.as_primitive()),
            DataType::UInt16 => Reader::Uint16(array.as_primitive()),
            DataType::UInt32 => Reader::Uint32(array.as_primitive()),
            DataType::UInt64 => Reader::Uint64(array.as_primitive()),
            DataType::Float16 => Reader::Float16(array.as_primitive()),
            DataType::Float32 => Reader::Float32(array.as_primitive()),
            DataType::Float64 => Reader::Float64(array.as_primitive()),
            DataType::Utf8 => Reader::Text(array.as_string()),
            DataType::LargeUtf8 => Reader::LargeText(array.as_string()),
            DataType::Utf8View => Reader::TextView(array.as_string_view()),
            DataType::Binary => Reader::Binary(array.as_binary()),
            DataType::LargeBinary => Reader::LargeBinary(array.as_binary()),
            DataType::BinaryView => Reader::BinaryView(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => Reader::FixedBinary(array.as_fixed_size_binary()),
            DataType::Timestamp(unit, _) => Reader::timestamp(array, *unit),
            DataType::Date32 => {
                let numbers = Numbers::Narrow(array.as_primitive::<Date32Type>().values());
                Reader::time(array, numbers, 86_400_000_000_000, true)
            }
            DataType::Date64 => {
                let numbers = Numbers::Wide(array.as_primitive::<Date64Type>().values());
                Reader::time(array, numbers, 1_000_000, true)
            }
            DataType::Time32(_) | DataType::Time64(_) => Reader::time_of_day(array),
            DataType::Duration(_)
            | DataType::Interval(_)
            | DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => Reader::display(array),
            _ => Reader::nested(array),
        }
    }

    fn display(array: &'a dyn Array) -> Reader<'a> {
        const OPTIONS: &FormatOptions<'_> = &FormatOptions::new();
        Reader::Display {
            nulls: array.nulls().cloned(),
            formatter: ArrayFormatter::try_new(array, OPTIONS)
                .expect("arrow formats times of day, durations, intervals and decimals"),
        }
    }

    /// Times of the day that no clock shows, for which Arrow has no text, are NULL.
    fn time_of_day(array: &'a dyn Array) -> Reader<'a> {
        let mut reader = Reader::display(array);
        if let Reader::Display { nulls, formatter } = &mut reader {
            let has_text = |at| formatter.value(at).write(&mut Nowhere).is_ok();
            let texts: NullBuffer = (0..array.len()).map(has_text).collect();
            *nulls = NullBuffer::union(array.nulls(), Some(&texts));
        }
        reader
    }

    /// A reader of an array that holds others.
    fn nested(array: &'a dyn Array) -> Reader<'a> {
        let nulls = array.nulls();
        match array.data_type() {
            DataType::List(field) => {
                let list = array.as_list::<i32>();
                Reader::list(
                    Spans::Offsets(list.value_offsets()),
                    nulls,
                    list.values(),
                    field,
                )
            }
            DataType::LargeList(field) => {
                let list = array.as_list::<i64>();
                Reader::list(
                    Spans::LargeOffsets(list.value_offsets()),
                    nulls,
                    list.values(),
                    field,
                )
            }
            DataType::FixedSizeList(field, len) => {
                let list = array.as_fixed_size_list();
                let len = usize::try_from(*len).unwrap_or(0);
                Reader::list(Spans::Fixed(len), nulls, list.values(), field)
            }
            DataType::ListView(field) => {
                let list = array.as_list_view::<i32>();
                Reader::list(
                    Spans::Views(list.value_offsets(), list.value_sizes()),
                    nulls,
                    list.values(),
                    field,
                )
            }
            DataType::LargeListView(field) => {
                let list = array.as_list_view::<i64>();
                Reader::list(
                    Spans::LargeViews(list.value_offsets(), list.value_sizes()),
                    nulls,
                    list.values(),
                    field,
                )
            }
            DataType::Struct(fields) => Reader::structure(array.as_struct(), fields),
            DataType::Map(..) => {
                let map = array.as_map();
                let entries = (
                    Reader::new(map.keys(), None),
                    Reader::new(map.values(), None),
                );
                Reader::Map {
                    offsets: map.value_offsets(),
                    nulls,
                    entries: Box::new(entries),
                }
            }
            DataType::Dictionary(..) => Reader::dictionary(array),
            DataType::RunEndEncoded(ends, _) => Reader::runs(array, ends.data_type()),
            DataType::Union(fields, _) => Reader::union(array.as_union(), fields),
            _ => Reader::Absent,
        }
    }

    /// A reader of a child column, which may be marked as JSON text.
    fn of_field(array: &'a dyn Array, field: &'a Field) -> Reader<'a> {
        let reader = Reader::new(array, None);
        let is_json = field
            .metadata()
            .get("ARROW:extension:name")
            .is_some_and(|name| name == "arrow.json");
        if is_json {
            Reader::Json(Box::new(reader))
        } else {
            reader
        }
    }

    fn timestamp(array: &'a dyn Array, unit: TimeUnit) -> Reader<'a> {
        let (numbers, unit_ns) = match unit {
            TimeUnit::Second => (
                array.as_primitive::<TimestampSecondType>().values(),
                1_000_000_000,
            ),
            TimeUnit::Millisecond => (
                array.as_primitive::<TimestampMillisecondType>().values(),
                1_000_000,
            ),
            TimeUnit::Microsecond => (
                array.as_primitive::<TimestampMicrosecondType>().values(),
                1_000,
            ),
            TimeUnit::Nanosecond => (array.as_primitive::<TimestampNanosecondType>().values(), 1),
        };
        Reader::time(array, Numbers::Wide(numbers), unit_ns, false)
    }

    fn time(
        array: &'a dyn Array,
        numbers: Numbers<'a>,
        unit_ns: i64,
        whole_days: bool,
    ) -> Reader<'a> {
        Reader::Time {
            numbers,
            unit_ns,
            whole_days,
            nulls: array.nulls(),
        }
    }

    fn list(
        spans: Spans<'a>,
        nulls: Option<&'a NullBuffer>,
        values: &'a dyn Array,
        field: &'a Field,
    ) -> Reader<'a> {
        Reader::List {
            spans,
            nulls,
            child: Box::new(Reader::of_field(values, field)),
        }
    }

    fn structure(array: &'a StructArray, fields: &'a Fields) -> Reader<'a> {
        let columns = fields.iter().zip(array.columns());
        let reader =
            columns.map(|(field, column)| (field.name().as_str(), Reader::of_field(column, field)));
        Reader::Struct(StructReader {
            nulls: array.nulls(),
            fields: reader.collect(),
        })
    }

    fn dictionary(array: &'a dyn Array) -> Reader<'a> {
        let dictionary = array.as_any_dictionary();
        let values = dictionary.values();
        if values.is_empty() {
            return Reader::Absent;
        }
        let keys = dictionary.normalized_keys();
        Reader::Dictionary {
            keys,
            nulls: dictionary.keys().nulls(),
            values: Box::new(Reader::new(values, None)),
        }
    }

    fn runs(array: &'a dyn Array, ends: &DataType) -> Reader<'a> {
        let (ends, values): (_, &'a dyn Array) = match ends {
            DataType::Int16 => {
                let runs = array.as_run::<Int16Type>();
                (RunEnds::Int16(runs), runs.values())
            }
            DataType::Int32 => {
                let runs = array.as_run::<Int32Type>();
                (RunEnds::Int32(runs), runs.values())
            }
            _ => {
                let runs = array.as_run::<Int64Type>();
                (RunEnds::Int64(runs), runs.values())
            }
        };
        Reader::Runs {
            ends,
            values: Box::new(Reader::new(values, None)),
        }
    }

    fn union(array: &'a UnionArray, fields: &'a UnionFields) -> Reader<'a> {
        let mut children = Vec::new();
        for (type_id, field) in fields.iter() {
            let at = usize::try_from(type_id).unwrap_or(0);
            while children.len() <= at {
                children.push(Reader::Absent);
            }
            children[at] = Reader::of_field(array.child(type_id), field);
        }
        Reader::Union { array, children }
    }

    /// The value at `at`, which must be below the column's length.
    #[inline]
    pub(crate) fn cell(&self, at: usize) -> Cell<'_> {
        match self {
            Reader::Open(column) => column.cell(at),
            Reader::TextView(array) if array.is_valid(at) => Cell::Str(array.value(at)),
            Reader::Int64(array) if array.is_valid(at) => Cell::Int(array.value(at)),
            Reader::Float64(array) if array.is_valid(at) => Cell::Float(array.value(at)),
            Reader::Bool(array) if array.is_valid(at) => Cell::Bool(array.value(at)),
            _ => self.rare(at),
        }
    }

    #[inline(never)]
    fn rare(&self, at: usize) -> Cell<'_> {
        match self {
            Reader::Failed(failed, reader) => match u32::try_from(at) {
                Ok(at) if failed.binary_search(&at).is_ok() => Cell::Failed,
                _ => reader.cell(at),
            },
            Reader::Text(array) if array.is_valid(at) => Cell::Str(array.value(at)),
            Reader::LargeText(array) if array.is_valid(at) => Cell::Str(array.value(at)),
            Reader::Json(reader) => json_text(reader.cell(at)),
            Reader::Int8(array) if array.is_valid(at) => Cell::Int(array.value(at).into()),
            Reader::Int16(array) if array.is_valid(at) => Cell::Int(array.value(at).into()),
            Reader::Int32(array) if array.is_valid(at) => Cell::Int(array.value(at).into()),
            Reader::Uint8(array) if array.is_valid(at) => Cell::Int(array.value(at).into()),
            Reader::Uint16(array) if array.is_valid(at) => Cell::Int(array.value(at).into()),
            Reader::Uint32(array) if array.is_valid(at) => Cell::Int(array.value(at).into()),
            Reader::Uint64(array) if array.is_valid(at) => Cell::Uint(array.value(at)),
            Reader::Float16(array) if array.is_valid(at) => Cell::Float(array.value(at).to_f64()),
            Reader::Float32(array) if array.is_valid(at) => Cell::Float(array.value(at).into()),
            Reader::Binary(array) if array.is_valid(at) => Cell::Bytes(array.value(at)),
            Reader::LargeBinary(array) if array.is_valid(at) => Cell::Bytes(array.value(at)),
            Reader::BinaryView(array) if array.is_valid(at) => Cell::Bytes(array.value(at)),
            Reader::FixedBinary(array) if array.is_valid(at) => Cell::Bytes(array.value(at)),
            Reader::Time {
                numbers,
                unit_ns,
                whole_days,
                nulls,
            } if is_valid(nulls, at) => {
                let number = match numbers {
                    Numbers::Wide(numbers) => numbers[at],
                    Numbers::Narrow(numbers) => numbers[at].into(),
                };
                match number.checked_mul(*unit_ns) {
                    Some(ns) if *whole_days && ns % 86_400_000_000_000 == 0 => Cell::Day(ns),
                    Some(ns) => Cell::Time(ns),
                    None if *whole_days => Cell::FarDay(number, *unit_ns),
                    None => Cell::FarTime(number, *unit_ns),
                }
            }
            Reader::Display { nulls, formatter } if is_valid(&nulls.as_ref(), at) => {
                Cell::Display(formatter, at)
            }
            Reader::List {
                spans,
                nulls,
                child,
            } if is_valid(nulls, at) => Cell::List(child, spans.range(at)),
            Reader::Struct(reader) if is_valid(&reader.nulls, at) => Cell::Struct(reader, at),
            Reader::Map {
                offsets,
                nulls,
                entries,
            } if is_valid(nulls, at) => Cell::Map(entries, Spans::Offsets(offsets).range(at)),
            Reader::Dictionary {
                keys,
                nulls,
                values,
            } if is_valid(nulls, at) => values.cell(keys[at]),
            Reader::Runs { ends, values } => values.cell(match ends {
                RunEnds::Int16(runs) => runs.get_physical_index(at),
                RunEnds::Int32(runs) => runs.get_physical_index(at),
                RunEnds::Int64(runs) => runs.get_physical_index(at),
            }),
            Reader::Union { array, children } => {
                let child = usize::try_from(array.type_id(at))
                    .ok()
                    .and_then(|type_id| children.get(type_id));
                child.map_or(Cell::Absent, |child| child.cell(array.value_offset(at)))
            }
            _ => Cell::Absent,
        }
    }
}

/// The value whose JSON text a cell holds; a string stays as it is written where that needs no
/// unescaping.
fn json_text(cell: Cell<'_>) -> Cell<'_> {
    let Cell::Str(text) = cell else {
        return cell;
    };
    match json::parse_value(text) {
        Some(value) if value.kind != Kind::String => of_json(value),
        Some(value) if !value.escaped => Cell::Str(value.text),
        _ => cell,
    }
}

/// A JSON value as a cell. A string must hold no escapes.
pub(crate) fn of_json(value: json::Value<'_>) -> Cell<'_> {
    match value.kind {
        Kind::Null => Cell::Null,
        Kind::String => Cell::Str(value.text),
        Kind::Integer => Cell::Integer(value.text),
        Kind::Float => Cell::Number(value.text),
        Kind::Bool => Cell::Bool(value.text == "true"),
        Kind::Object | Kind::Array => Cell::Json(value.text),
    }
}

/// Appends a time or day as RFC 3339; years beyond 9999 (and before 0) with a sign, as ISO 8601 has
/// them.
fn write_far(number: i64, unit_ns: i64, is_day: bool, out: &mut Vec<u8>) {
    const DAY_NS: i128 = 86_400_000_000_000;
    let ns = i128::from(number) * i128::from(unit_ns);
    // Days since 0000-03-01, so that the leap day is a year's last; then years of the 400-year
    // cycle.
    let days = ns.div_euclid(DAY_NS) + 719_468;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_cycle = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = 400 * cycle + year_of_cycle + i128::from(month <= 2);
    let written = match year {
        0..=9999 => write!(Text(out), "{year:04}-{month:02}-{day_of_month:02}"),
        _ => write!(Text(out), "{year:+05}-{month:02}-{day_of_month:02}"),
    };
    written.expect("a vector takes every byte");
    if !is_day {
        // The time of the day is that of 1970-01-01.
        let date = out.len();
        write_rfc3339(ns.rem_euclid(DAY_NS) as i64, out);
        out.drain(date..date + "1970-01-01".len());
    }
}

fn is_valid(nulls: &Option<&NullBuffer>, at: usize) -> bool {
    nulls.is_none_or(|nulls| nulls.is_valid(at))
}

impl Spans<'_> {
    fn range(&self, at: usize) -> Range32 {
        // Arrow has checked that offsets and sizes are not negative and stay within the child.
        let (start, end) = match self {
            Spans::Offsets(offsets) => (offsets[at] as usize, offsets[at + 1] as usize),
            Spans::LargeOffsets(offsets) => (offsets[at] as usize, offsets[at + 1] as usize),
            Spans::Fixed(len) => (at * len, (at + 1) * len),
            Spans::Views(offsets, sizes) => (
                offsets[at] as usize,
                offsets[at] as usize + sizes[at] as usize,
            ),
            Spans::LargeViews(offsets, sizes) => (
                offsets[at] as usize,
                offsets[at] as usize + sizes[at] as usize,
            ),
        };
        Range32::new(start, end)
    }
}
