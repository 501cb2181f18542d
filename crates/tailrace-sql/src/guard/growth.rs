//! What a call would build, from its arguments.
//!
//! Checks the arguments of a function whose result can be much larger than they are, or whose work grows with their
//! product, and refuses the call before memory is allocated for it. Other functions build at most a few times what
//! they are given, which `size` sees afterwards. A bound that is not exact only has to hold what a call takes for a
//! moment.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::argument::Argument;
use super::budget;
use super::size::{self, BATCH_BYTES_MAX, PLACE_BYTES, VALUE_BYTES_MAX};

/// What a call may take for one row where its bound is not exact.
const TRANSIENT_BYTES_MAX: usize = 16 * VALUE_BYTES_MAX;

/// Steps that a call may take for one row where they are a product of two lengths.
const STEPS_MAX: usize = 1 << 26;

/// What bounds a call for one row.
enum Bound {
    /// The value's bytes.
    Exact(usize),
    /// No fewer than the bytes taken.
    AtMost(usize),
    Steps(usize),
}

/// Looks at the arguments of one call; replaces those that a function counts with but must not (a negative length is
/// no length).
///
/// # Errors
/// If a row's value would be too large, or those of all rows together.
pub(super) fn check(name: &str, args: &mut ScalarFunctionArgs) -> Result<()> {
    let Some(bound) = bounds(name) else {
        return Ok(());
    };
    let rows = rows(args);
    let mut arguments: Vec<Argument> = args.args.iter().map(Argument::new).collect();
    if matches!(name, "lpad" | "rpad")
        && let Some(lengths) = pad_lengths(&arguments, rows)
    {
        arguments[1] = Argument::new(&lengths);
        args.args[1] = lengths;
    }
    if is_surely_small(name, &arguments, rows) {
        return Ok(());
    }
    let mut all = 0_usize;
    for row in 0..rows {
        let bytes = match bound(&arguments, row) {
            None => 0,
            Some(Bound::Exact(bytes)) => {
                size::too_large(name, bytes)?;
                bytes
            }
            Some(Bound::AtMost(bytes)) if bytes > TRANSIENT_BYTES_MAX => {
                return exec_err!("`{name}` may take {bytes} bytes for one value");
            }
            Some(Bound::AtMost(bytes)) => {
                budget::spend_transient(name, bytes)?;
                bytes
            }
            Some(Bound::Steps(steps)) if steps > STEPS_MAX => {
                return exec_err!("`{name}` may take {steps} steps for one value");
            }
            Some(Bound::Steps(steps)) => {
                budget::spend_transient(name, steps)?;
                0
            }
        };
        all = all.saturating_add(bytes);
    }
    if all > BATCH_BYTES_MAX && rows > 1 {
        return exec_err!("`{name}` may take {all} bytes for one batch");
    }
    Ok(())
}

/// The usual calls of functions that are quick themselves, without a look at each row: few texts joined, and a column in
/// which a constant replaces something, small even if it replaces every byte of the batch.
fn is_surely_small(name: &str, args: &[Argument], rows: usize) -> bool {
    const FEW: usize = 8;
    match (name, args) {
        ("concat" | "concat_ws", args) => args.len() <= FEW,
        (
            "replace" | "regexp_replace",
            [
                Argument::Column(texts, _),
                _,
                by @ Argument::Constant(..),
                ..,
            ],
        ) => {
            let (Some(views), Some(by)) = (texts.as_string_view_opt(), by.text(0)) else {
                return false;
            };
            let lengths = views.views().iter().map(|&view| view as u32 as usize);
            let places = lengths.sum::<usize>() + rows;
            // Twice, for what is replaced may be repeated by a group.
            places.saturating_mul(2 * by.len() + 1) <= VALUE_BYTES_MAX
        }
        _ => false,
    }
}

// Constants only are one row.
fn rows(args: &ScalarFunctionArgs) -> usize {
    let is_array = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Array(_));
    if args.args.iter().any(is_array) {
        args.number_rows
    } else {
        1
    }
}

/// The lengths to pad to without those that take memory for nothing: DataFusion reserves space for the sum of all,
/// negative ones, those of NULLs and those that nothing fills too.
fn pad_lengths(args: &[Argument], rows: usize) -> Option<ColumnarValue> {
    const SHORT: i128 = 1024;
    if let Argument::Constant(..) = args.get(1)?
        && (0..SHORT).contains(&args[1].instant(0)?)
    {
        return None;
    }
    let length = |row| {
        let length = i64::try_from(args[1].instant(row)?).ok()?.max(0);
        let text = args[0].text(row).map_or(0, str::len);
        let fill = args.get(2).map_or(Some(" "), |fill| fill.text(row));
        Some(match fill {
            Some(fill) if !fill.is_empty() && args[0].text(row).is_some() => length,
            Some(_) => length.min(i64::try_from(text).ok()?),
            None => 0,
        })
    };
    let lengths: Int64Array = (0..rows).map(length).collect();
    let constants = args.iter().all(|arg| matches!(arg, Argument::Constant(..)));
    Some(if constants {
        let length = lengths.is_valid(0).then(|| lengths.value(0));
        ColumnarValue::Scalar(ScalarValue::Int64(length))
    } else {
        ColumnarValue::Array(Arc::new(lengths))
    })
}

type Bounds = fn(&[Argument], usize) -> Option<Bound>;

/// How to bound the calls of a function; `None` if they need no look. A row of which an argument is NULL has no bound.
fn bounds(name: &str) -> Option<Bounds> {
    Some(match name {
        "lpad" | "rpad" => pad,
        "repeat" => |args, row| {
            let [text, count] = args else { return None };
            Some(Bound::Exact(
                text.text(row)?.len().saturating_mul(count.length(row)?),
            ))
        },
        "replace" => replace,
        "regexp_replace" => regexp_replace,
        "concat_ws" | "concat" => |args, row| {
            let one = |arg: &Argument| arg.text(row).map_or(0, str::len);
            let separator = args.first().map_or(0, one);
            let sum: usize = args.iter().map(one).sum();
            Some(Bound::AtMost(
                separator.saturating_mul(args.len()).saturating_add(sum),
            ))
        },
        "array_to_string" | "array_join" | "list_to_string" | "list_join" => |args, row| {
            let texts = args.get(1..)?.iter();
            let each: usize = texts.map(|arg| arg.text(row).map_or(0, str::len)).sum();
            let joined = args.first()?.elements(row)?.saturating_mul(each);
            // A number of 8 bytes has up to 25 characters.
            let values = args.first()?.size(row)?.saturating_mul(4);
            Some(Bound::AtMost(joined.saturating_add(values)))
        },
        "string_to_array" | "string_to_list" => split,
        "array_repeat" | "list_repeat" => |args, row| {
            let [element, count] = args else { return None };
            let size = element.size(row).unwrap_or(0).max(PLACE_BYTES);
            Some(Bound::Exact(size.saturating_mul(count.length(row)?)))
        },
        "array_resize" | "list_resize" => |args, row| {
            let fill = args.get(2).and_then(|fill| fill.size(row)).unwrap_or(0);
            let places = args.get(1)?.length(row)?;
            Some(Bound::Exact(fill.max(PLACE_BYTES).saturating_mul(places)))
        },
        "range" | "generate_series" => |args, row| {
            let count = series(args, row)?;
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            Some(Bound::Exact(count.saturating_mul(PLACE_BYTES)))
        },
        "levenshtein" => |args, row| {
            let [one, other] = args else { return None };
            Some(Bound::Steps(
                one.text(row)?.len().saturating_mul(other.text(row)?.len()),
            ))
        },
        "array_has_all" | "list_has_all" | "array_has_any" | "list_has_any" | "arrays_overlap" => {
            |args, row| {
                let [one, other] = args else { return None };
                Some(Bound::Steps(
                    one.elements(row)?.saturating_mul(other.elements(row)?),
                ))
            }
        }
        _ => return None,
    })
}

fn pad(args: &[Argument], row: usize) -> Option<Bound> {
    let text = args.first()?.text(row)?;
    let length = args.get(1)?.length(row)?;
    let fill = match args.get(2) {
        Some(fill) => fill.text(row)?,
        None => " ",
    };
    let widest = fill.chars().map(char::len_utf8).max().unwrap_or(0);
    Some(Bound::Exact(
        // What is cut to a length is no longer than it was.
        length
            .saturating_mul(widest)
            .saturating_add(text.len().min(length.saturating_mul(4))),
    ))
}

fn replace(args: &[Argument], row: usize) -> Option<Bound> {
    let [text, from, to] = args else { return None };
    let (text, from, to) = (text.text(row)?, from.text(row)?, to.text(row)?);
    if to.len() <= from.len() {
        return None;
    }
    let most = text.len() / from.len().max(1) + 1;
    let bound = most.saturating_mul(to.len()).saturating_add(text.len());
    if bound <= BATCH_BYTES_MAX / 64 {
        return Some(Bound::Exact(bound));
    }
    let count = if from.is_empty() {
        text.chars().count() + 1
    } else {
        text.matches(from).count()
    };
    let grown = count.saturating_mul(to.len() - from.len());
    Some(Bound::Exact(grown.saturating_add(text.len())))
}

fn split(args: &[Argument], row: usize) -> Option<Bound> {
    let text = args.first()?.text(row)?;
    let delimiter = args.get(1)?.text(row);
    let bytes = |count: usize| text.len().saturating_add(count.saturating_mul(PLACE_BYTES));
    let most = bytes(text.len() / delimiter.map_or(1, |delimiter| delimiter.len().max(1)) + 1);
    if most <= VALUE_BYTES_MAX {
        return Some(Bound::Exact(most));
    }
    Some(Bound::Exact(bytes(match delimiter {
        None => text.chars().count(),
        Some("") => 1,
        Some(delimiter) => text.matches(delimiter).count() + 1,
    })))
}

fn regexp_replace(args: &[Argument], row: usize) -> Option<Bound> {
    let text = args.first()?.text(row)?.len();
    let by = args.get(2)?.text(row)?;
    // Each `\1` or `$name` gives at most the whole of what is replaced.
    let groups = by.matches(['\\', '$']).count();
    let everywhere = args
        .get(3)
        .and_then(|flags| flags.text(row))
        .is_some_and(|flags| flags.contains('g'));
    let times = if everywhere { text + 1 } else { 1 };
    let grown = times.saturating_mul(by.len());
    let grown = grown.saturating_add(groups.saturating_mul(text));
    Some(Bound::AtMost(grown.saturating_add(text)))
}

/// How many elements a series has, at most; `u128::MAX` for a step whose parts point both ways.
fn series(args: &[Argument], row: usize) -> Option<u128> {
    let (start, stop, step) = match args {
        [stop] => (0, stop.instant(row)?, 1),
        [start, stop] => (start.instant(row)?, stop.instant(row)?, 1),
        [start, stop, step] => match step.step(row)? {
            Some(step) => (start.instant(row)?, stop.instant(row)?, step),
            None => return Some(u128::MAX),
        },
        _ => return None,
    };
    if step == 0 || (step > 0) != (stop >= start) && stop != start {
        return None;
    }
    Some((stop - start).unsigned_abs() / step.unsigned_abs() + 1)
}
