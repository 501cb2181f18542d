//! Every function over extreme values: no panic gets out, no value is too large, and all of it ends.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, Int64Builder,
    IntervalMonthDayNanoArray, ListBuilder, StringViewArray, StringViewBuilder,
    TimestampNanosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNano};
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use proptest::prelude::*;
use proptest::sample::select;

use super::data::{OBSERVED_NS, batch, run};
use crate::guard::{VALUE_BYTES_MAX, guard};
use crate::session::{Clock, Session};
use crate::{Options, Query};

fn texts() -> ArrayRef {
    let long = "é".repeat(9_000);
    let deep = "[".repeat(2_000);
    let texts = [
        Some(""),
        Some("\0"),
        Some("a"),
        Some("('\\%_[a"),
        Some("a{2000000000}"),
        Some("%Y-%Q %!"),
        Some("é\u{10FFFF}x"),
        Some("day"),
        Some("Int64"),
        Some("262143-12-31T23:59:59.999999999Z"),
        Some("{\"a\":[1e999,{\"b\":null}]}"),
        Some("9223372036854775808"),
        Some(long.as_str()),
        Some(deep.as_str()),
        None,
    ];
    Arc::new(StringViewArray::from_iter(texts))
}

const INTEGERS: &[i64] = &[
    0,
    1,
    -1,
    7,
    63,
    64,
    65_536,
    2_000_000_000,
    -2_000_000_000,
    i32::MAX as i64,
    i32::MIN as i64,
    i64::MAX,
    i64::MIN,
];

/// Extreme values by type; every pool ends with NULL.
fn pools() -> Vec<ArrayRef> {
    let floats = [
        0.0,
        -0.0,
        1.5,
        -1.0,
        1e300,
        f64::MIN_POSITIVE,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    let interval = |months, days, nanoseconds| {
        Some(IntervalMonthDayNano {
            months,
            days,
            nanoseconds,
        })
    };
    let times: TimestampNanosecondArray = [0, 1, -1, OBSERVED_NS, i64::MAX, i64::MIN]
        .into_iter()
        .map(Some)
        .chain([None])
        .collect();
    let mut integer_lists = ListBuilder::new(Int64Builder::new());
    integer_lists.append_value([]);
    integer_lists.append_value([Some(1), None, Some(i64::MAX), Some(i64::MIN)]);
    integer_lists.append_value((0..2_000).map(Some));
    integer_lists.append_null();
    let mut text_lists = ListBuilder::new(StringViewBuilder::new());
    text_lists.append_value([Some("a"), None, Some("")]);
    text_lists.append_value([Some("é".repeat(1_000))]);
    text_lists.append_null();
    let integers = INTEGERS.iter().copied().map(Some).chain([None]);
    vec![
        texts(),
        Arc::new(integers.collect::<Int64Array>()),
        Arc::new(times.with_timezone("UTC")),
        Arc::new(IntervalMonthDayNanoArray::from(vec![
            interval(0, 0, 0),
            interval(0, 0, 1),
            interval(1, -30, 0),
            interval(0, 1, -1),
            interval(i32::MAX, i32::MAX, i64::MAX),
            interval(i32::MIN, i32::MIN, i64::MIN),
            None,
        ])),
        Arc::new(integer_lists.finish()),
        Arc::new(text_lists.finish()),
        Arc::new(
            floats
                .into_iter()
                .map(Some)
                .chain([None])
                .collect::<Float64Array>(),
        ),
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
        Arc::new(Date32Array::from(vec![
            Some(0),
            Some(i32::MAX),
            Some(i32::MIN),
            None,
        ])),
    ]
}

/// Indices of pools, for so many arguments.
fn shapes(count: usize) -> Vec<Vec<usize>> {
    // Of more arguments, only texts, integers, times, intervals and lists: the others behave alike.
    let types = match count {
        0..=2 => 9,
        3 => 5,
        _ => 2,
    };
    let mut shapes = vec![Vec::new()];
    for _ in 0..count {
        let longer = |shape: Vec<usize>| {
            (0..types).map(move |ty| shape.iter().copied().chain([ty]).collect::<Vec<_>>())
        };
        shapes = shapes.into_iter().flat_map(longer).collect();
    }
    if count == 4 {
        shapes.push(vec![4, 1, 1, 1]);
    }
    shapes
}

/// One call with one value for each argument, as constants or as columns of one row.
fn call(function: &ScalarUDF, fields: &[FieldRef], values: &[ArrayRef], constant: usize) -> bool {
    let mut args = Vec::new();
    for (index, value) in values.iter().enumerate() {
        args.push(if constant & (1 << index) != 0 {
            match ScalarValue::try_from_array(value, 0) {
                Ok(scalar) => ColumnarValue::Scalar(scalar),
                Err(_) => return false,
            }
        } else {
            ColumnarValue::Array(Arc::clone(value))
        });
    }
    let scalars: Vec<_> = args
        .iter()
        .map(|arg| match arg {
            ColumnarValue::Scalar(scalar) => Some(scalar),
            ColumnarValue::Array(_) => None,
        })
        .collect();
    let field = function.return_field_from_args(ReturnFieldArgs {
        arg_fields: fields,
        scalar_arguments: &scalars,
    });
    let Ok(return_field) = field else {
        return false;
    };
    let made = function.invoke_with_args(ScalarFunctionArgs {
        args,
        arg_fields: fields.to_vec(),
        number_rows: 1,
        return_field,
        config_options: Arc::new(ConfigOptions::default()),
    });
    let Ok(made) = made else {
        return true;
    };
    let size = made
        .into_array(1)
        .map_or(0, |array| array.get_buffer_memory_size());
    assert!(
        size <= 8 * VALUE_BYTES_MAX,
        "{}: {size} bytes",
        function.name()
    );
    true
}

fn is_text(field: &FieldRef) -> bool {
    matches!(
        field.data_type(),
        DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8
    )
}

/// Calls `function` over rows of its types; gives how many calls were possible.
fn calls(function: &Arc<ScalarUDF>, pools: &[ArrayRef], seed: &mut u64) -> usize {
    let mut made = 0;
    for shape in (1..=4).flat_map(shapes) {
        let fields: Vec<FieldRef> = shape
            .iter()
            .map(|&pool| Arc::new(Field::new("x", pools[pool].data_type().clone(), true)))
            .collect();
        let Ok(coerced) = fields_with_udf(&fields, function.as_ref()) else {
            continue;
        };
        // The text of a list is a text as any other.
        let to_text =
            |(given, coerced): (&FieldRef, &FieldRef)| is_text(coerced) && !is_text(given);
        if fields.iter().zip(&coerced).any(to_text) {
            continue;
        }
        let columns = shape.iter().zip(&coerced);
        let Ok(columns) = columns
            .map(|(&pool, field)| cast(&pools[pool], field.data_type()))
            .collect::<Result<Vec<_>, _>>()
        else {
            continue;
        };
        let rows = match columns.as_slice() {
            [one] => one.len(),
            [one, other] => (one.len() * other.len()).min(48),
            _ => 24,
        };
        for row in 0..rows {
            let value = |column: &ArrayRef| {
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = if columns.len() == 1 {
                    row
                } else {
                    (*seed >> 33) as usize % column.len()
                };
                column.slice(at, 1)
            };
            let values: Vec<_> = columns.iter().map(value).collect();
            // All constant, none, and all but the first: the usual call.
            for constant in [usize::MAX, 0, usize::MAX - 1] {
                made += usize::from(call(function, &coerced, &values, constant));
            }
        }
    }
    made
}

#[test]
fn every_function_survives_extreme_values() {
    let session = Session::new(&Clock::default()).unwrap();
    let pools = pools();
    let mut functions: Vec<_> = session.state().scalar_functions().iter().collect();
    functions.sort_by_key(|(name, _)| name.as_str());
    let mut seed = 1;
    let mut never = Vec::new();
    for (name, function) in functions {
        if name != function.name() {
            continue;
        }
        if calls(&guard(Arc::clone(function)), &pools, &mut seed) == 0 {
            never.push(name.as_str());
        }
    }
    assert_eq!(never, NEVER_CALLED);
}

/// Functions that take nothing, and those of structs, maps and unions, which queries below make.
const NEVER_CALLED: &[&str] = &[
    "current_date",
    "current_time",
    "get_field",
    "json_union_to_text",
    "map_entries",
    "map_extract",
    "map_keys",
    "map_values",
    "now",
    "pi",
    "random",
    "union_extract",
    "uuid",
    "version",
];

const LINES: &[&str] = &[
    r#"{"s":"ab","n":3,"f":"é"}"#,
    r#"{"s":"ab","n":-1,"f":""}"#,
    r#"{"s":"ab","n":2000000000,"f":"x"}"#,
    r#"{"s":"ab","n":9223372036854775807}"#,
    r#"{"s":"ab","n":-9223372036854775808,"f":"x"}"#,
];

/// What `expression` is for each line, and how many failed.
fn values(expression: &str) -> String {
    let rows = run(&format!("SELECT {expression} AS v FROM logs"), LINES);
    let rows = rows
        .iter()
        .map(|row| row.split_once(": v=").map_or(row.as_str(), |row| row.1));
    rows.collect::<Vec<_>>().join("|")
}

#[test]
fn a_size_from_the_data_fails_its_record_only() {
    for (expression, expected) in [
        ("lpad(s, n)", " ab||NULL|NULL||failed: 2"),
        ("rpad(s, n, f)", "abé||NULL|NULL||failed: 1"),
        ("lpad(s, -1)", "||||"),
        ("length(repeat(s, n))", "6|0|NULL|NULL|0|failed: 2"),
        (
            "length(repeat(repeat(s, 8000000), n))",
            "NULL|0|NULL|NULL|0|failed: 3",
        ),
        (
            "array_length(array_repeat(s, n))",
            "3|0|NULL|NULL|0|failed: 2",
        ),
        (
            "array_length(array_resize(make_array(1), n::bigint))",
            "3|NULL|NULL|NULL|NULL|failed: 4",
        ),
        ("array_length(range(n))", "3|0|NULL|NULL|0|failed: 2"),
        (
            "array_length(generate_series(0, n::bigint, 1))",
            "4|0|NULL|NULL|0|failed: 2",
        ),
        (
            "length(replace(repeat(s, 4000000), 'a', repeat('x', (n::bigint % 4 + 1))))",
            "NULL|4000000|8000000|NULL|8000000|failed: 2",
        ),
        (
            "length(repeat(s, 7000000) || repeat(s, n::bigint * 0 + 2000000))",
            "NULL|NULL|NULL|NULL|NULL|failed: 5",
        ),
        ("split_part(s, 'a', n::bigint)", "|b|||"),
        ("array_position(make_array(3, 1), 1, n::bigint)", "NULL|NULL|NULL|NULL|NULL|failed: 4"),
        ("n::bigint << 200", "768|-256|512000000000|-256|0"),
    ] {
        assert_eq!(values(expression), expected, "{expression}");
    }
}

#[test]
fn rows_that_together_are_too_much_are_made_in_parts() {
    let lines: Vec<String> = (0..40)
        .map(|n| format!(r#"{{"n":{}}}"#, 4_000_000 + n))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let rows = run("SELECT length(lpad('x', n)) AS v FROM logs", &lines);
    assert_eq!(rows.len(), 40);
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(*row, format!("{index}: v={}", 4_000_000 + index));
    }
}

/// Expressions over keys, constants and each other; some have no meaning.
fn expressions() -> impl Strategy<Value = String> {
    let leaves = select(vec![
        "s",
        "n",
        "f",
        "NULL",
        "0",
        "-1",
        "1.5",
        "9223372036854775807",
        "2000000000",
        "'x'",
        "''",
        "'%d'",
        "now()",
        "true",
        "make_array(1, 2)",
        "interval '1 day'",
        "struct(s, n)",
        "json_get(json, 's')",
        "map(['a'], [n])",
    ]);
    leaves
        .prop_map(str::to_owned)
        .prop_recursive(4, 12, 3, |inner| {
            let functions = select(vec![
                "lpad",
                "rpad",
                "repeat",
                "replace",
                "array_repeat",
                "array_resize",
                "range",
                "concat",
                "substr",
                "to_char",
                "date_trunc",
                "date_bin",
                "make_date",
                "power",
                "gcd",
                "lcm",
                "factorial",
                "round",
                "split_part",
                "regexp_replace",
                "array_to_string",
                "string_to_array",
                "translate",
                "overlay",
                "to_timestamp",
                "from_unixtime",
                "abs",
                "map_keys",
                "map_extract",
                "get_field",
                "coalesce",
                "array_slice",
                "array_position",
                "left",
                "chr",
                "arrow_cast",
                "length",
                "json_get",
                "generate_series",
                "flatten",
            ]);
            let operators = select(vec![
                "+", "-", "*", "/", "%", "||", "<<", ">>", "&", "=", "<", "LIKE", "~", "AND", "->",
            ]);
            prop_oneof![
                (functions, proptest::collection::vec(inner.clone(), 1..4))
                    .prop_map(|(name, args)| format!("{name}({})", args.join(", "))),
                (inner.clone(), operators, inner.clone())
                    .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
                (
                    inner.clone(),
                    select(vec!["bigint", "int", "text", "double", "date", "timestamp"])
                )
                    .prop_map(|(inner, ty)| format!("({inner})::{ty}")),
                inner.prop_map(|inner| format!("CASE WHEN n > 0 THEN {inner} END")),
            ]
        })
}

#[test]
fn no_nesting_of_expressions_panics() {
    proptest!(ProptestConfig::with_cases(200), |(expression in expressions())| {
        for sql in [
            format!("SELECT {expression} AS v FROM logs"),
            format!("SELECT unnest(make_array({expression})) AS v FROM logs"),
        ] {
            let Ok(query) = Query::compile(&sql, &Options::default()) else {
                continue;
            };
            let evaluated = query.evaluator().evaluate(&batch(&query, LINES), OBSERVED_NS);
            let made = evaluated.branches[0].computed.iter();
            let bytes: usize = made.map(|array| array.get_buffer_memory_size()).sum();
            prop_assert!(bytes <= 8 * LINES.len() * VALUE_BYTES_MAX, "{} bytes", bytes);
        }
    });
}
