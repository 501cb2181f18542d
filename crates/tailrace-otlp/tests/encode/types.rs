//! Every Arrow type that DataFusion can return, as AnyValue and as JSON: the table of
//! `docs/otlp-mapping.md`.

use std::sync::Arc;

use arrow::array::types::{Float16Type, Int16Type, Int32Type, Int64Type};
use arrow::array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Date64Array,
    Decimal32Array, Decimal64Array, Decimal128Array, Decimal256Array, DictionaryArray,
    DurationMicrosecondArray, DurationMillisecondArray, DurationNanosecondArray,
    DurationSecondArray, FixedSizeBinaryArray, FixedSizeListArray, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, IntervalDayTimeArray, IntervalMonthDayNanoArray,
    IntervalYearMonthArray, LargeBinaryArray, LargeListArray, LargeListViewArray, LargeStringArray,
    ListArray, ListViewArray, MapArray, NullArray, PrimitiveArray, RunArray, StringArray,
    StringViewArray, StructArray, Time32MillisecondArray, Time32SecondArray,
    Time64MicrosecondArray, Time64NanosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array, UnionArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, Field, Fields, IntervalDayTime, IntervalMonthDayNano, UnionFields, i256,
};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, KeyValue, KeyValueList, any_value::Value as Any,
};
use prost::Message;
use tailrace_otlp::{
    Column, Encoder, Envelope, Index, NdjsonEncoder, NdjsonEncoding, OtlpEncoder, OtlpEncoding,
    Part,
};

/// Encodes a column named `v` and checks, value by value, the attribute and the JSON; `None` is no
/// attribute.
fn check(array: impl Array, expected: &[Option<(Any, &str)>]) {
    let array: ArrayRef = arrow::array::make_array(array.to_data());
    assert_eq!(array.len(), expected.len());
    let ty = array.data_type();
    let envelope = Envelope {
        observed_ns: 1,
        records: array.len() as u32,
        raw: None,
        malformed: None,
        truncated: None,
        times: &[],
        streams: &[],
        uids: &[],
        runs: &[],
    };
    let column = Column {
        name: "v",
        values: &array,
        kinds: None,
        index: Index::Record,
    };
    let part = Part {
        rows: None,
        columns: vec![column],
        overflow: None,
        overflow_except: Vec::new(),
        failed: &[],
    };
    let mut values = Vec::new();
    OtlpEncoder::new(OtlpEncoding::default()).encode(
        &envelope,
        std::slice::from_ref(&part),
        &mut |request| {
            let decoded = ExportLogsServiceRequest::decode(&*request.bytes).unwrap();
            for log_record in decoded
                .resource_logs
                .into_iter()
                .flat_map(|group| group.scope_logs)
                .flat_map(|scope| scope.log_records)
            {
                values.push(
                    log_record
                        .attributes
                        .into_iter()
                        .next()
                        .map(|attribute| attribute.value.unwrap().value.unwrap()),
                );
            }
        },
    );
    let any: Vec<_> = expected
        .iter()
        .map(|expected| expected.as_ref().map(|(any, _)| any.clone()))
        .collect();
    assert_eq!(format!("{values:?}"), format!("{any:?}"), "{ty}");
    let mut lines = String::new();
    NdjsonEncoder::new(NdjsonEncoding::default()).encode(&envelope, &[part], &mut |request| {
        lines.push_str(std::str::from_utf8(&request.bytes).unwrap());
    });
    let object = |expected: &Option<(Any, &str)>| match expected {
        Some((_, json)) => format!("{{\"v\":{json}}}\n"),
        None => "{}\n".to_owned(),
    };
    assert_eq!(
        lines,
        expected.iter().map(object).collect::<String>(),
        "{ty}"
    );
    for line in lines.lines() {
        serde_json::from_str::<serde::de::IgnoredAny>(line).unwrap();
    }
}

fn string(text: &str) -> Any {
    Any::StringValue(text.to_owned())
}

fn of(value: Any) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn list(values: Vec<Option<Any>>) -> Any {
    Any::ArrayValue(ArrayValue {
        values: values.into_iter().map(|value| AnyValue { value }).collect(),
    })
}

fn kvlist(entries: Vec<(&str, Any)>) -> Any {
    let entry = |(key, value): (&str, Any)| KeyValue {
        key: key.to_owned(),
        value: Some(of(value)),
        ..KeyValue::default()
    };
    Any::KvlistValue(KeyValueList {
        values: entries.into_iter().map(entry).collect(),
    })
}

#[test]
fn null_and_boolean() {
    check(NullArray::new(2), &[None, None]);
    check(
        BooleanArray::from(vec![Some(true), None, Some(false)]),
        &[
            Some((Any::BoolValue(true), "true")),
            None,
            Some((Any::BoolValue(false), "false")),
        ],
    );
}

#[test]
fn integers() {
    macro_rules! check_integers {
        ($($array:ident),*) => {$(
            check($array::from(vec![Some(0), None, Some(7)]), &[Some((Any::IntValue(0), "0")), None, Some((Any::IntValue(7), "7"))]);
        )*};
    }
    check_integers!(
        Int8Array,
        Int16Array,
        Int32Array,
        Int64Array,
        UInt8Array,
        UInt16Array,
        UInt32Array,
        UInt64Array
    );
    check(
        Int8Array::from(vec![-128]),
        &[Some((Any::IntValue(-128), "-128"))],
    );
    check(
        Int64Array::from(vec![i64::MIN]),
        &[Some((Any::IntValue(i64::MIN), "-9223372036854775808"))],
    );
    check(
        UInt64Array::from(vec![i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX]),
        &[
            Some((Any::IntValue(i64::MAX), "9223372036854775807")),
            Some((string("9223372036854775808"), "9223372036854775808")),
            Some((string("18446744073709551615"), "18446744073709551615")),
        ],
    );
}

#[test]
fn floats() {
    let half = Float16Type::default_value_of(1.5);
    check(
        PrimitiveArray::<Float16Type>::from_iter_values([half]),
        &[Some((Any::DoubleValue(1.5), "1.5"))],
    );
    check(
        Float32Array::from(vec![Some(0.25), None]),
        &[Some((Any::DoubleValue(0.25), "0.25")), None],
    );
    check(
        Float64Array::from(vec![-0.0, 1e300, f64::NAN, f64::INFINITY]),
        &[
            Some((Any::DoubleValue(-0.0), "-0.0")),
            Some((Any::DoubleValue(1e300), "1e300")),
            Some((Any::DoubleValue(f64::NAN), "\"NaN\"")),
            Some((Any::DoubleValue(f64::INFINITY), "\"inf\"")),
        ],
    );
}

/// A half-precision float from an f64.
trait Half {
    fn default_value_of(
        value: f32,
    ) -> <Float16Type as arrow::array::types::ArrowPrimitiveType>::Native;
}

impl Half for Float16Type {
    fn default_value_of(
        value: f32,
    ) -> <Float16Type as arrow::array::types::ArrowPrimitiveType>::Native {
        let cast =
            arrow::compute::cast(&Float32Array::from(vec![value]), &DataType::Float16).unwrap();
        arrow::array::AsArray::as_primitive::<Float16Type>(&cast).value(0)
    }
}

#[test]
fn texts_and_bytes() {
    let texts = vec![Some("a\"b"), None, Some("")];
    let expected = [
        Some((string("a\"b"), r#""a\"b""#)),
        None,
        Some((string(""), "\"\"")),
    ];
    check(StringArray::from(texts.clone()), &expected);
    check(LargeStringArray::from(texts.clone()), &expected);
    check(StringViewArray::from(texts), &expected);
    let bytes: Vec<Option<&[u8]>> = vec![Some(b"\xff\x00ab"), None, Some(b""), Some(b"abcde")];
    let any = |bytes: &[u8]| Any::BytesValue(bytes.to_vec());
    let expected = [
        Some((any(b"\xff\x00ab"), "\"/wBhYg==\"")),
        None,
        Some((any(b""), "\"\"")),
        Some((any(b"abcde"), "\"YWJjZGU=\"")),
    ];
    check(BinaryArray::from(bytes.clone()), &expected);
    check(LargeBinaryArray::from(bytes.clone()), &expected);
    check(BinaryViewArray::from_iter(bytes), &expected);
    let fixed =
        FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some(b"abc"), None].into_iter(), 3)
            .unwrap();
    check(fixed, &[Some((any(b"abc"), "\"YWJj\"")), None]);
}

#[test]
fn times() {
    let expected = [
        Some((string("2026-01-02T03:04:05Z"), "\"2026-01-02T03:04:05Z\"")),
        None,
    ];
    let seconds = 1_767_323_045;
    check(
        TimestampSecondArray::from(vec![Some(seconds), None]),
        &expected,
    );
    check(
        TimestampMillisecondArray::from(vec![Some(seconds * 1000), None]).with_timezone("+02:00"),
        &expected,
    );
    check(
        TimestampMicrosecondArray::from(vec![Some(seconds * 1_000_000), None]),
        &expected,
    );
    check(
        TimestampNanosecondArray::from(vec![Some(seconds * 1_000_000_000), None])
            .with_timezone("UTC"),
        &expected,
    );
    let exact = "2026-01-02T03:04:05.678901234Z";
    let nanos = TimestampNanosecondArray::from(vec![seconds * 1_000_000_000 + 678_901_234]);
    check(nanos, &[Some((string(exact), &format!("\"{exact}\"")))]);
}

#[test]
fn days_and_far_times() {
    // Beyond what 64 bits of nanoseconds can hold.
    for (seconds, text) in [
        (95_617_584_000, "5000-01-01T00:00:00Z"),
        (95_617_583_999, "4999-12-31T23:59:59Z"),
        (
            951_782_400 + 395 * 146_097 * 86_400,
            "160000-02-29T00:00:00Z",
        ),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
        (-62_135_596_801, "0000-12-31T23:59:59Z"),
        (-62_167_219_201, "-0001-12-31T23:59:59Z"),
    ] {
        let text = if text.len() == 22 {
            format!("+{text}")
        } else {
            text.to_owned()
        };
        let json = format!("\"{text}\"");
        check(
            TimestampSecondArray::from(vec![seconds]),
            &[Some((string(&text), &json))],
        );
    }
    check(
        Date32Array::from(vec![Some(20_455), None]),
        &[Some((string("2026-01-02"), "\"2026-01-02\"")), None],
    );
    check(
        Date32Array::from(vec![1_106_685]),
        &[Some((string("5000-01-01"), "\"5000-01-01\""))],
    );
    check(
        Date64Array::from(vec![86_400_000 * 20_455, 86_400_000 * 20_455 + 1]),
        &[
            Some((string("2026-01-02"), "\"2026-01-02\"")),
            Some((
                string("2026-01-02T00:00:00.001Z"),
                "\"2026-01-02T00:00:00.001Z\"",
            )),
        ],
    );
}

#[test]
fn times_of_the_day() {
    let clock = |text: &'static str, json: &'static str| [Some((string(text), json)), None];
    check(
        Time32SecondArray::from(vec![Some(3661), None]),
        &clock("01:01:01", "\"01:01:01\""),
    );
    check(
        Time32MillisecondArray::from(vec![Some(3_661_500), None]),
        &clock("01:01:01.500", "\"01:01:01.500\""),
    );
    check(
        Time64MicrosecondArray::from(vec![Some(1), None]),
        &clock("00:00:00.000001", "\"00:00:00.000001\""),
    );
    check(
        Time64NanosecondArray::from(vec![Some(1), None]),
        &clock("00:00:00.000000001", "\"00:00:00.000000001\""),
    );
}

#[test]
fn times_that_no_clock_shows_are_no_values() {
    check(
        Time32SecondArray::from(vec![90_000, 86_399, -1]),
        &[None, Some((string("23:59:59"), "\"23:59:59\"")), None],
    );
    check(
        Time64NanosecondArray::from(vec![Some(i64::MAX), None, Some(0)]),
        &[None, None, Some((string("00:00:00"), "\"00:00:00\""))],
    );
}

#[test]
fn durations_intervals_and_decimals() {
    let one = |text: &'static str, json: &'static str| [Some((string(text), json)), None];
    check(
        DurationSecondArray::from(vec![Some(90), None]),
        &one("PT90S", "\"PT90S\""),
    );
    check(
        DurationMillisecondArray::from(vec![Some(1500), None]),
        &one("PT1.5S", "\"PT1.5S\""),
    );
    check(
        DurationMicrosecondArray::from(vec![Some(1), None]),
        &one("PT0.000001S", "\"PT0.000001S\""),
    );
    check(
        DurationNanosecondArray::from(vec![Some(1), None]),
        &one("PT0.000000001S", "\"PT0.000000001S\""),
    );
    check(
        IntervalYearMonthArray::from(vec![Some(14), None]),
        &one("1 years 2 mons", "\"1 years 2 mons\""),
    );
    check(
        IntervalDayTimeArray::from(vec![Some(IntervalDayTime::new(2, 1500)), None]),
        &one("2 days 1.500 secs", "\"2 days 1.500 secs\""),
    );
    check(
        IntervalMonthDayNanoArray::from(vec![
            Some(IntervalMonthDayNano::new(1, 2, 3_000_000_000)),
            None,
        ]),
        &one(
            "1 mons 2 days 3.000000000 secs",
            "\"1 mons 2 days 3.000000000 secs\"",
        ),
    );
    let decimal = one("-1.50", "\"-1.50\"");
    check(
        Decimal32Array::from(vec![Some(-150), None])
            .with_precision_and_scale(9, 2)
            .unwrap(),
        &decimal,
    );
    check(
        Decimal64Array::from(vec![Some(-150), None])
            .with_precision_and_scale(18, 2)
            .unwrap(),
        &decimal,
    );
    check(
        Decimal128Array::from(vec![Some(-150), None])
            .with_precision_and_scale(38, 2)
            .unwrap(),
        &decimal,
    );
    let wide = Decimal256Array::from(vec![Some(i256::from_i128(-150)), None]);
    check(wide.with_precision_and_scale(76, 2).unwrap(), &decimal);
}

#[test]
fn lists() {
    let rows = || vec![Some(vec![Some(1), None]), None, Some(vec![])];
    let some = list(vec![Some(Any::IntValue(1)), None]);
    let expected = [
        Some((some.clone(), "[1,null]")),
        None,
        Some((list(vec![]), "[]")),
    ];
    check(
        ListArray::from_iter_primitive::<Int64Type, _, _>(rows()),
        &expected,
    );
    check(
        LargeListArray::from_iter_primitive::<Int64Type, _, _>(rows()),
        &expected,
    );
    check(
        ListViewArray::from(ListArray::from_iter_primitive::<Int64Type, _, _>(rows())),
        &expected,
    );
    check(
        LargeListViewArray::from(LargeListArray::from_iter_primitive::<Int64Type, _, _>(
            rows(),
        )),
        &expected,
    );
    let fixed = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(
        [Some(vec![Some(1), None]), None],
        2,
    );
    check(fixed, &expected[..2]);
    // A slice starts in the middle of the child.
    check(
        ListArray::from_iter_primitive::<Int64Type, _, _>(
            [vec![], rows()]
                .concat()
                .into_iter()
                .chain([Some(vec![Some(9)])]),
        )
        .slice(2, 2),
        &[
            Some((list(vec![]), "[]")),
            Some((list(vec![Some(Any::IntValue(9))]), "[9]")),
        ],
    );
    let inner = ListArray::from_iter_primitive::<Int64Type, _, _>(rows());
    let field = Arc::new(Field::new_list_field(inner.data_type().clone(), true));
    let outer = ListArray::new(
        field,
        OffsetBuffer::from_lengths([3]),
        Arc::new(inner),
        None,
    );
    check(
        outer,
        &[Some((
            list(vec![Some(some), None, Some(list(vec![]))]),
            "[[1,null],null,[]]",
        ))],
    );
}

#[test]
fn structs_and_maps() {
    let fields = Fields::from(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("b\"", DataType::Utf8, true),
        Field::new("a", DataType::Int32, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])),
        Arc::new(StringArray::from(vec![Some("x"), None, None])),
        Arc::new(Int32Array::from(vec![None, None, Some(4)])),
    ];
    let nulls = NullBuffer::from(vec![true, true, false]);
    let array = StructArray::new(fields, columns, Some(nulls));
    check(
        array.slice(0, 2),
        &[
            Some((
                kvlist(vec![("a", Any::IntValue(1)), ("b\"", string("x"))]),
                r#"{"a":1,"b\"":"x"}"#,
            )),
            Some((kvlist(vec![]), "{}")),
        ],
    );
    check(array.slice(2, 1), &[None]);

    let entries = StructArray::from(vec![
        (
            Arc::new(Field::new("keys", DataType::Int64, false)),
            Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef,
        ),
        (
            Arc::new(Field::new("values", DataType::Float64, true)),
            Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5])),
        ),
    ]);
    let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let nulls = NullBuffer::from(vec![true, false, true]);
    let map = MapArray::new(
        field,
        OffsetBuffer::from_lengths([2, 0, 1]),
        entries,
        Some(nulls),
        false,
    );
    check(
        map,
        &[
            Some((
                kvlist(vec![
                    ("1", Any::DoubleValue(0.5)),
                    ("2", Any::DoubleValue(1.5)),
                ]),
                r#"{"1":0.5,"2":1.5}"#,
            )),
            None,
            Some((kvlist(vec![("3", Any::DoubleValue(2.5))]), r#"{"3":2.5}"#)),
        ],
    );
}

#[test]
fn encodings_are_looked_through() {
    let expected = [
        Some((string("x"), "\"x\"")),
        None,
        Some((string("y"), "\"y\"")),
        Some((string("x"), "\"x\"")),
    ];
    let dictionary: DictionaryArray<Int32Type> = vec![Some("x"), None, Some("y"), Some("x")]
        .into_iter()
        .collect();
    check(dictionary, &expected);
    let keys = Int32Array::from(vec![None::<i32>]);
    check(
        DictionaryArray::new(keys, Arc::new(StringArray::from(Vec::<&str>::new()))),
        &[None],
    );
    let values = StringArray::from(vec![Some("x"), None, Some("y"), Some("x")]);
    check(
        RunArray::<Int16Type>::try_new(&Int16Array::from(vec![1, 2, 3, 4]), &values).unwrap(),
        &expected,
    );
    check(
        RunArray::<Int64Type>::try_new(&Int64Array::from(vec![1, 2, 3, 4]), &values).unwrap(),
        &expected,
    );
    let values = StringArray::from(vec![Some("x"), None]);
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3]), &values).unwrap();
    check(runs.slice(1, 2), &[Some((string("x"), "\"x\"")), None]);
}

/// What datafusion-functions-json returns where a value's kind is the row's.
#[test]
fn unions_by_the_rows_own_child() {
    let json = |name: &str| {
        let metadata = [("ARROW:extension:name".to_owned(), "arrow.json".to_owned())];
        Field::new(name, DataType::Utf8, false).with_metadata(metadata.into())
    };
    let fields: UnionFields = [
        (0, Arc::new(Field::new("null", DataType::Null, true))),
        (2, Arc::new(Field::new("int", DataType::Int64, false))),
        (4, Arc::new(Field::new("str", DataType::Utf8, false))),
        (5, Arc::new(json("array"))),
        (6, Arc::new(json("object"))),
    ]
    .into_iter()
    .collect();
    let text = |at: usize, text: &'static str| -> ArrayRef {
        Arc::new(
            (0..5)
                .map(|row| (row == at).then_some(text))
                .collect::<StringArray>(),
        )
    };
    let children: Vec<ArrayRef> = vec![
        Arc::new(NullArray::new(5)),
        Arc::new(Int64Array::from(vec![0, 42, 0, 0, 0])),
        text(2, "[1]"),
        text(3, "[1, \"\\u0061\"]"),
        text(4, "{\"a\": 1}"),
    ];
    let type_ids: ScalarBuffer<i8> = Buffer::from_vec(vec![0i8, 2, 4, 5, 6]).into();
    let union = UnionArray::try_new(fields, type_ids, None, children).unwrap();
    check(
        union,
        &[
            None,
            Some((Any::IntValue(42), "42")),
            Some((string("[1]"), "\"[1]\"")),
            Some((
                list(vec![Some(Any::IntValue(1)), Some(string("a"))]),
                "[1, \"\\u0061\"]",
            )),
            Some((kvlist(vec![("a", Any::IntValue(1))]), "{\"a\": 1}")),
        ],
    );
    let fields: UnionFields = [(0, Arc::new(Field::new("int", DataType::Int64, true)))]
        .into_iter()
        .collect();
    let offsets: ScalarBuffer<i32> = Buffer::from_vec(vec![1i32, 0]).into();
    let dense = UnionArray::try_new(
        fields,
        Buffer::from_vec(vec![0i8, 0]).into(),
        Some(offsets),
        vec![Arc::new(Int64Array::from(vec![Some(5), None]))],
    );
    check(dense.unwrap(), &[None, Some((Any::IntValue(5), "5"))]);
}
