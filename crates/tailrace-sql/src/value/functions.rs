//! The functions over values of any kind that rewritten queries call. Users cannot name them.
//!
//! Each reads columns and constants and returns a column. An operation that has no exact result is NULL,
//! and counted.

use std::cmp::Ordering;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int8Array, Int64Array};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::array::{Builder, Value, Values, data_type, is_value};
use super::convert::{self, text_of};
use super::counts;
use super::number::{Number, Operation};
use tailrace_model::json::{self, Kind, Step};

use crate::error::type_name;
use crate::types::{self, Type};

/// A function over values of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    /// Any value with its kind.
    Value,
    /// Two numbers: 64-bit integers if both have an integer type, else an integer or a float as the operands are.
    Compute(Operation),
    /// What stands in JSON text at the end of a path: keys and indices.
    JsonGet,
    /// Two floats.
    Divide,
    /// A number with the other sign.
    Negate,
    /// Two numbers: -1, 0 or 1.
    Compare,
    /// The integer of any size that a literal text is.
    Digits,
    /// Whether two numbers differ; NULL is equal to NULL only.
    Distinct,
    /// Which of the others the first number equals, from 0; NULL if none.
    IndexOf,
    /// Whether the first number is one of the others, or NULL as SQL has it.
    In,
    /// Whether the first number is neither below the second nor above the third.
    Between,
    /// The largest of all that are not NULL: as numbers if all are, else as texts.
    Greatest,
    Least,
    /// As a key's value becomes a time: the magnitude of a number tells its unit.
    ToTimestamp,
    ToInt64,
    ToUint64,
    ToFloat64,
    ToBoolean,
    ToText,
}

const ALL: [Function; 23] = [
    Function::Value,
    Function::JsonGet,
    Function::Compute(Operation::Add),
    Function::Compute(Operation::Subtract),
    Function::Compute(Operation::Multiply),
    Function::Compute(Operation::Remainder),
    Function::Compute(Operation::Quotient),
    Function::Divide,
    Function::Negate,
    Function::Compare,
    Function::Digits,
    Function::Distinct,
    Function::IndexOf,
    Function::In,
    Function::Between,
    Function::Greatest,
    Function::Least,
    Function::ToTimestamp,
    Function::ToInt64,
    Function::ToUint64,
    Function::ToFloat64,
    Function::ToBoolean,
    Function::ToText,
];

/// All of them, to be registered.
pub(crate) fn all() -> impl Iterator<Item = ScalarUDF> {
    ALL.into_iter().map(|function| {
        ScalarUDF::from(OfValues {
            function,
            signature: Signature::variadic_any(Volatility::Immutable),
        })
    })
}

impl Function {
    /// What it is called in a rewritten query.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Function::Value => "#value",
            Function::JsonGet => "#json_get",
            Function::Compute(Operation::Add) => "#add",
            Function::Compute(Operation::Subtract) => "#subtract",
            Function::Compute(Operation::Multiply) => "#multiply",
            Function::Compute(Operation::Remainder) => "#remainder",
            Function::Compute(Operation::Quotient) => "#quotient",
            Function::Divide => "#divide",
            Function::Negate => "#negate",
            Function::Compare => "#compare",
            Function::Digits => "#digits",
            Function::Distinct => "#distinct",
            Function::IndexOf => "#index_of",
            Function::In => "#in",
            Function::Between => "#between",
            Function::ToTimestamp => "#to_timestamp",
            Function::Greatest => "#greatest",
            Function::Least => "#least",
            Function::ToInt64 => "#to_int64",
            Function::ToUint64 => "#to_uint64",
            Function::ToFloat64 => "#to_float64",
            Function::ToBoolean => "#to_boolean",
            Function::ToText => "#to_text",
        }
    }

    fn count_is(self, count: usize) -> bool {
        match self {
            Function::Compute(_) | Function::Divide | Function::Compare | Function::Distinct => {
                count == 2
            }
            Function::Between => count == 3,
            Function::In | Function::IndexOf | Function::JsonGet => count > 1,
            Function::Greatest | Function::Least => count > 0,
            _ => count == 1,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OfValues {
    function: Function,
    signature: Signature,
}

impl ScalarUDFImpl for OfValues {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        if !self.function.count_is(arguments.len()) {
            return plan_err!("{} has other arguments", self.function.name());
        }
        for ty in arguments {
            let is_known = ty.is_null()
                || ty.is_numeric()
                || ty.is_string()
                || *ty == DataType::Boolean
                || matches!(ty, DataType::Union(..))
                || is_value(ty);
            let is_number = !matches!(ty, DataType::Boolean);
            let computes = matches!(
                self.function,
                Function::Compute(_)
                    | Function::Divide
                    | Function::Negate
                    | Function::Compare
                    | Function::Distinct
                    | Function::IndexOf
                    | Function::In
                    | Function::Between
            );
            if !is_known || computes && !is_number {
                return plan_err!("{} is no number", type_name(ty));
            }
        }
        Ok(match self.function {
            Function::Compute(_) | Function::Negate if are_integers(arguments) => DataType::Int64,
            Function::Value
            | Function::Digits
            | Function::JsonGet
            | Function::Compute(_)
            | Function::Negate
            | Function::Greatest
            | Function::Least => data_type(),
            Function::Divide | Function::ToFloat64 => DataType::Float64,
            Function::Compare => DataType::Int8,
            Function::ToInt64 | Function::IndexOf => DataType::Int64,
            Function::ToUint64 => DataType::UInt64,
            Function::ToBoolean | Function::Distinct | Function::In | Function::Between => {
                DataType::Boolean
            }
            Function::ToTimestamp => types::data_type(Type::Timestamp),
            Function::ToText => DataType::Utf8View,
        })
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = |argument: &ColumnarValue| matches!(argument, ColumnarValue::Scalar(_));
        let all_constant = call.args.iter().all(is_constant);
        let rows = if all_constant { 1 } else { call.number_rows };
        let ty = call.return_type().clone();
        let mut arrays = Vec::with_capacity(call.args.len());
        for argument in call.args {
            arrays.push(match argument {
                ColumnarValue::Array(array) => (array, false),
                ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
            });
        }
        let result = self.invoke(&arrays, rows, &ty)?;
        if all_constant {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &result, 0,
            )?))
        } else {
            Ok(ColumnarValue::Array(result))
        }
    }
}

impl OfValues {
    /// Gives a column of `rows` rows; an argument that is constant has one.
    fn invoke(&self, arrays: &[(ArrayRef, bool)], rows: usize, ty: &DataType) -> Result<ArrayRef> {
        let all = |at: usize| -> Result<ArrayRef> {
            let (array, is_constant) = &arrays[at];
            if *is_constant && rows != 1 {
                Ok(ScalarValue::try_from_array(array, 0)?.to_array_of_size(rows)?)
            } else {
                Ok(Arc::clone(array))
            }
        };
        let mut arguments = Vec::with_capacity(arrays.len());
        for (array, is_constant) in arrays {
            arguments.push(Argument {
                values: Values::new(array)?,
                stride: usize::from(!is_constant),
            });
        }
        match self.function {
            Function::Value => convert::to_value(all(0)?, rows),
            Function::ToText => convert::to_text(&all(0)?, rows),
            Function::ToInt64 => Ok(convert::to_int64(&Values::new(&all(0)?)?, rows)),
            Function::ToUint64 => Ok(convert::to_uint64(&Values::new(&all(0)?)?, rows)),
            Function::ToFloat64 => Ok(convert::to_float64(&Values::new(&all(0)?)?, rows)),
            Function::ToTimestamp => Ok(convert::to_timestamp(&Values::new(&all(0)?)?, rows)),
            Function::ToBoolean => Ok(convert::to_boolean(&Values::new(&all(0)?)?, rows)),
            Function::JsonGet => Ok(json_get(&arguments, rows)),
            Function::Compute(operation) => {
                let compute = |row| numbers(&arguments, row, operation);
                Ok(collect(rows, ty, compute))
            }
            Function::Negate => {
                let zero = Number::Integer(0);
                let negate = |number| match number {
                    Number::Integer(_) | Number::Beyond(_) => {
                        computed(zero.compute(Operation::Subtract, number))
                    }
                    Number::Float(float) => Some(Number::Float(-float)),
                };
                let negated = |row| arguments[0].number(row).and_then(negate);
                Ok(collect(rows, ty, negated))
            }
            Function::Divide => {
                let quotient = |row| numbers(&arguments, row, Operation::Quotient);
                let quotients = (0..rows).map(|row| quotient(row).map(Number::to_f64));
                Ok(Arc::new(quotients.collect::<Float64Array>()))
            }
            Function::Compare => {
                let compare = |row| {
                    let (a, b) = (arguments[0].number(row)?, arguments[1].number(row)?);
                    Some(a.compare(b) as i8)
                };
                Ok(Arc::new((0..rows).map(compare).collect::<Int8Array>()))
            }
            Function::Digits => {
                let mut builder = Builder::new(rows);
                for row in 0..rows {
                    let text = arguments[0]
                        .get(row)
                        .and_then(|value| text_of(&value).map(str::to_owned));
                    builder.push(text.as_deref().map(|text| Value::Text(Kind::Integer, text)));
                }
                Ok(builder.finish())
            }
            Function::Distinct => {
                let is_distinct = |row| Some(arguments[0].number(row) != arguments[1].number(row));
                Ok(Arc::new(
                    (0..rows).map(is_distinct).collect::<BooleanArray>(),
                ))
            }
            Function::IndexOf => {
                let index_of = |row| index_of(&arguments, row);
                Ok(Arc::new((0..rows).map(index_of).collect::<Int64Array>()))
            }
            Function::In => {
                let is_in = |row| is_in(&arguments, row);
                Ok(Arc::new((0..rows).map(is_in).collect::<BooleanArray>()))
            }
            Function::Between => {
                let is_between = |row| is_between(&arguments, row);
                Ok(Arc::new(
                    (0..rows).map(is_between).collect::<BooleanArray>(),
                ))
            }
            Function::Greatest => Ok(extremes(&arguments, rows, Ordering::Greater)),
            Function::Least => Ok(extremes(&arguments, rows, Ordering::Less)),
        }
    }
}

/// An argument, and how far it moves on from row to row.
struct Argument<'a> {
    values: Values<'a>,
    stride: usize,
}

impl Argument<'_> {
    fn get(&self, row: usize) -> Option<Value<'_>> {
        self.values.get(row * self.stride)
    }

    fn number(&self, row: usize) -> Option<Number> {
        self.get(row)?.number()
    }
}

/// The value in JSON text at the end of each row's path.
fn json_get(arguments: &[Argument<'_>], rows: usize) -> ArrayRef {
    let step = |argument: &Argument<'_>, row| match argument.get(row)? {
        Value::Text(Kind::Integer, text) => text.parse().ok().map(Step::Index),
        Value::Text(_, text) => Some(Step::Key(text.to_owned())),
        Value::Number(number) => number.to_i64().map(Step::Index),
        Value::Bool(_) => None,
    };
    let mut builder = Builder::new(rows);
    for row in 0..rows {
        let path: Option<Vec<Step>> = arguments[1..].iter().map(|it| step(it, row)).collect();
        let root = match arguments[0].get(row) {
            Some(Value::Text(_, text)) => json::parse_value(text),
            _ => None,
        };
        let found = root
            .zip(path)
            .and_then(|(root, path)| json::get_path(root, &path));
        match found {
            Some(found) if found.kind == Kind::String => {
                let text = json::unescaped(&found);
                builder.push(text.as_deref().map(|text| Value::Text(Kind::String, text)));
            }
            Some(found) if found.kind == Kind::Bool => {
                builder.push(Some(Value::Bool(found.text == "true")));
            }
            Some(found) if found.kind != Kind::Null => {
                builder.push(Some(Value::Text(found.kind, found.text)));
            }
            _ => builder.push(None),
        }
    }
    builder.finish()
}

fn are_integers(types: &[DataType]) -> bool {
    types.iter().all(DataType::is_integer)
}

/// What comes of two numbers; NULL where one of them is none, and, counted, where nothing exact does.
fn numbers(arguments: &[Argument<'_>], row: usize, operation: Operation) -> Option<Number> {
    let (a, b) = (arguments[0].number(row), arguments[1].number(row));
    computed(a?.compute(operation, b?))
}

fn computed(number: Option<Number>) -> Option<Number> {
    counts::count_failed(number)
}

/// Numbers as a column of integers, or of values of any kind.
fn collect(rows: usize, ty: &DataType, number: impl Fn(usize) -> Option<Number>) -> ArrayRef {
    if *ty == DataType::Int64 {
        let integers = (0..rows).map(|row| number(row).and_then(Number::to_i64));
        return Arc::new(integers.collect::<Int64Array>());
    }
    let mut builder = Builder::new(rows);
    for row in 0..rows {
        builder.push(number(row).map(Value::Number));
    }
    builder.finish()
}

fn index_of(arguments: &[Argument<'_>], row: usize) -> Option<i64> {
    let value = arguments[0].number(row)?;
    let mut others = arguments[1..].iter();
    let index = others.position(|other| other.number(row) == Some(value))?;
    i64::try_from(index).ok()
}

fn is_in(arguments: &[Argument<'_>], row: usize) -> Option<bool> {
    let value = arguments[0].number(row)?;
    let mut has_null = false;
    for other in &arguments[1..] {
        match other.number(row) {
            Some(other) if value == other => return Some(true),
            Some(_) => {}
            None => has_null = true,
        }
    }
    (!has_null).then_some(false)
}

fn is_between(arguments: &[Argument<'_>], row: usize) -> Option<bool> {
    let value = arguments[0].number(row)?;
    let is_within = |bound: usize, beyond| {
        let bound = arguments[bound].number(row)?;
        Some(value.compare(bound) != beyond)
    };
    match (
        is_within(1, Ordering::Less),
        is_within(2, Ordering::Greater),
    ) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Of each row the value that stands at this end of their order.
fn extremes(arguments: &[Argument<'_>], rows: usize, end: Ordering) -> ArrayRef {
    let mut builder = Builder::new(rows);
    for row in 0..rows {
        let present = || arguments.iter().filter_map(|argument| argument.get(row));
        let as_numbers = present().all(|value| value.as_number().is_some());
        let order = |a: &Value<'_>, b: &Value<'_>| match (as_numbers, a.as_number(), b.as_number())
        {
            (true, Some(a), Some(b)) => a.compare(b),
            _ => text_of(a).cmp(&text_of(b)),
        };
        // Of equal ones the first.
        let best = present().reduce(|best, value| {
            if order(&value, &best) == end {
                value
            } else {
                best
            }
        });
        builder.push(best);
    }
    builder.finish()
}
