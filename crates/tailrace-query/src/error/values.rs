//! Values that a function or a cast has no result for.

use super::Error;
use super::planning::type_name;

/// What is to be said of an error with this text, if it is about such a value.
pub(super) fn of_value(text: &str) -> Option<Error> {
    of_root(text)
        .or_else(|| of_number(text))
        .or_else(|| of_seconds(text))
        .or_else(|| of_size(text))
        .or_else(|| of_format(text))
}

fn of_root(text: &str) -> Option<Error> {
    text.contains("cannot take square root of a negative number")
        .then(|| Error {
            hint: Some("`CASE WHEN x >= 0 THEN sqrt(x) END` gives NULL there".to_owned()),
            ..Error::failure("`sqrt` of a negative number")
        })
}

/// A number that is cast to a type that does not reach so far.
fn of_number(text: &str) -> Option<Error> {
    let (_, rest) = text.split_once("Can't cast value ")?;
    let (number, ty) = rest.split_once(" to type ")?;
    // Parquet's reader says it within quotes.
    let ty = ty.split(['\n', '"']).next()?.trim();
    let sql_type = match ty {
        "Int64" => "BIGINT",
        "Int32" => "INT",
        "Int16" => "SMALLINT",
        "Int8" => "TINYINT",
        "Float64" => "DOUBLE",
        other => other,
    };
    Some(Error {
        hint: Some(format!("`TRY_CAST(x AS {sql_type})` gives NULL there")),
        ..Error::failure(format!("{number} is beyond {}", type_name(ty)))
    })
}

/// Seconds that are beyond the times of nanoseconds.
fn of_seconds(text: &str) -> Option<Error> {
    let (_, rest) = text.split_once("Cannot cast Timestamp(s) value ")?;
    let (seconds, _) = rest.split_once(" to Timestamp(ns)")?;
    Some(Error {
        hint: Some(
            "`to_timestamp_millis(x)` takes milliseconds, and `to_timestamp_seconds(x)` has years beyond these"
                .to_owned(),
        ),
        ..Error::failure(format!(
            "{seconds} seconds since 1970 are no time of the years 1677 to 2262"
        ))
    })
}

/// A list that would have less than no elements.
fn of_size(text: &str) -> Option<Error> {
    text.contains("array_resize: failed to convert size to usize")
        .then(|| Error {
            hint: Some("`array_resize(l, greatest(n, 0))` is an empty list there".to_owned()),
            ..Error::failure("`array_resize` takes a number of elements, which is not negative")
        })
}

/// The format of a time.
fn of_format(text: &str) -> Option<Error> {
    text.ends_with("Cast error: Format error").then(|| Error {
        hint: Some(
            "the parts of a format are those of strftime, as '%Y-%m-%d %H:%M:%S%.3f'".to_owned(),
        ),
        ..Error::failure("a format of a time has a part that there is not")
    })
}
