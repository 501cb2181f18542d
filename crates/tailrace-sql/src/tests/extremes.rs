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

use super::data::OBSERVED_NS;
use crate::guard::guard;
use crate::guard::size::VALUE_BYTES_MAX;
use crate::session::{Clock, Session};

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
    let session = Session::new(&Clock::default());
    let pools = pools();
    let mut functions: Vec<_> = session.state().unwrap().scalar_functions().iter().collect();
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
