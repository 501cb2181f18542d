//! Hive's layout of directories, as Spark, DuckDB and Polars write and read it: below a directory `key=value` every record has
//! this value in the column `key`. Special characters are percent-encoded, and [`NULL`] stands for no value.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Date32Type, Field, FieldRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err};
use percent_encoding::percent_decode_str;

/// The value of a directory whose records have none.
pub(crate) const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// What has a meaning in a path, and is encoded; control characters are, too. These are the characters that Spark encodes.
const SPECIAL: &str = "\"#%'*/:=?\\{[]^\u{7f}";

/// The partition columns of some files.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    pub(crate) fields: Vec<FieldRef>,
    /// The values of each file, one for each column.
    pub(crate) values: Vec<Vec<ScalarValue>>,
    /// Files and columns, by place, that the file's path lacks.
    pub(crate) lacking: Vec<(usize, usize)>,
}

/// Finds the partition columns in the paths of files. A column is a date where all of its values are, or whole numbers
/// written without leading zeros; else it is text. Files whose path lacks a column have NULL there.
pub(crate) fn partitions<'p>(paths: impl IntoIterator<Item = &'p str>) -> Result<Partitions> {
    let mut names: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for path in paths {
        let pairs: Vec<_> = pairs(path).collect();
        for (name, _) in &pairs {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        rows.push(pairs);
    }
    let mut made = Partitions {
        fields: Vec::new(),
        values: vec![Vec::new(); rows.len()],
        lacking: Vec::new(),
    };
    for name in names {
        let found = |pairs: &'_ Vec<(String, Option<String>)>| {
            pairs.iter().rposition(|(known, _)| *known == name)
        };
        let mut texts = Vec::with_capacity(rows.len());
        for (at, pairs) in rows.iter().enumerate() {
            let place = found(pairs);
            if place.is_none() {
                made.lacking.push((at, made.fields.len()));
            }
            texts.push(place.and_then(|place| pairs[place].1.as_deref()));
        }
        let ty = type_of(texts.iter().flatten().copied());
        for (values, text) in made.values.iter_mut().zip(texts) {
            values.push(match text {
                Some(text) => ScalarValue::try_from_string(text.to_owned(), &ty)?,
                None => ScalarValue::try_from(&ty)?,
            });
        }
        made.fields.push(Arc::new(Field::new(name, ty, true)));
    }
    Ok(made)
}

/// The keys and values of a path's directories; a value that is not UTF-8 when it is decoded stays as it is written.
fn pairs(path: &str) -> impl Iterator<Item = (String, Option<String>)> {
    let directories = path
        .rsplit_once('/')
        .map_or("", |(directories, _)| directories);
    let decoded = |text: &str| match percent_decode_str(text).decode_utf8() {
        Ok(decoded) => decoded.into_owned(),
        Err(_) => text.to_owned(),
    };
    directories.split('/').filter_map(move |directory| {
        let (name, value) = directory.split_once('=')?;
        let value = (value != NULL).then(|| decoded(value));
        (!name.is_empty()).then(|| (decoded(name), value))
    })
}

fn type_of<'t>(mut texts: impl Iterator<Item = &'t str> + Clone) -> DataType {
    if texts.clone().next().is_none() {
        DataType::Utf8View
    } else if texts.clone().all(is_date) {
        DataType::Date32
    } else if texts.all(is_whole_number) {
        DataType::Int64
    } else {
        DataType::Utf8View
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

/// Whether the text is the one way to write a whole number: `07` and `+7` stay text.
fn is_whole_number(text: &str) -> bool {
    text.parse::<i64>()
        .is_ok_and(|number| number.to_string() == text)
}

/// Whether values of this type name a directory.
pub(crate) fn is_partition_type(ty: &DataType) -> bool {
    ty.is_integer()
        || matches!(
            ty,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Boolean
                | DataType::Date32
                | DataType::Null
        )
}

/// The directory of a row, and whether it was an empty text: as for Spark, that is no value.
pub(crate) fn directory(name: &str, column: &ArrayRef, row: usize) -> Result<(String, bool)> {
    let name = encoded(name);
    if column.is_null(row) || *column.data_type() == DataType::Null {
        return Ok((format!("{name}={NULL}"), false));
    }
    let value = match column.data_type() {
        DataType::Date32 => {
            let date = column.as_primitive::<Date32Type>().value_as_date(row);
            let date =
                date.ok_or_else(|| exec_datafusion_err!("a date of `{name}` is in no calendar"))?;
            date.format("%Y-%m-%d").to_string()
        }
        _ => ArrayFormatter::try_new(column, &FormatOptions::new())?
            .value(row)
            .to_string(),
    };
    Ok(match value.as_str() {
        "" => (format!("{name}={NULL}"), true),
        // A text that looks like the name for no value stays a text.
        NULL => (format!("{name}=%5F{}", &NULL[1..]), false),
        value => (format!("{name}={}", encoded(value)), false),
    })
}

fn encoded(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for character in text.chars() {
        if character < ' ' || SPECIAL.contains(character) {
            // They are ASCII. A `String` takes everything.
            let _ = write!(made, "%{:02X}", character as u32);
        } else {
            made.push(character);
        }
    }
    // A directory is not called `.`, but it has a name before.
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow::array::{Int64Array, StringArray};
    use proptest::prelude::*;

    #[test]
    fn types_are_those_of_all_values() {
        let paths = [
            "logs/dt=2026-11-01/hour=07/n=-5/service=a%2Fb/x.parquet",
            "logs/dt=2026-11-02/hour=8/n=12/service=__HIVE_DEFAULT_PARTITION__/y=1.parquet",
            "logs/dt=__HIVE_DEFAULT_PARTITION__/hour=9/n=0/z.parquet",
        ];
        let made = partitions(paths).expect("valid");
        let types: Vec<_> = made
            .fields
            .iter()
            .map(|field| (field.name().as_str(), field.data_type().clone()))
            .collect();
        assert_eq!(
            types,
            [
                ("dt", DataType::Date32),
                ("hour", DataType::Utf8View),
                ("n", DataType::Int64),
                ("service", DataType::Utf8View)
            ]
        );
        let text = |value: &str| ScalarValue::Utf8View(Some(value.to_owned()));
        assert_eq!(
            made.values[0],
            [
                ScalarValue::Date32(Some(20_758)),
                text("07"),
                ScalarValue::Int64(Some(-5)),
                text("a/b")
            ]
        );
        assert_eq!(made.values[1][3], ScalarValue::Utf8View(None));
        assert_eq!(made.values[2][0], ScalarValue::Date32(None));
        assert_eq!(made.values[2][3], ScalarValue::Utf8View(None));
    }

    proptest! {
        /// What is written is read again, but for the empty text.
        #[test]
        fn texts_survive(value in ".{1,40}", name in "[a-z=%]{1,5}") {
            let column: ArrayRef = Arc::new(StringArray::from(vec![value.as_str()]));
            let (directory, is_empty) = directory(&name, &column, 0).expect("text");
            prop_assert!(!is_empty && !directory.contains('/') && directory.chars().all(|it| it >= ' '));
            let path = format!("{directory}/x.parquet");
            let made: Vec<_> = pairs(&path).collect();
            prop_assert_eq!(made, [(name, Some(value))]);
        }

        #[test]
        fn numbers_survive(value: i64) {
            let column: ArrayRef = Arc::new(Int64Array::from(vec![value]));
            let (directory, _) = directory("n", &column, 0).expect("a number");
            let path = format!("{directory}/x.parquet");
            let made = partitions([path.as_str()]).expect("valid");
            prop_assert_eq!(&made.values[0], &[ScalarValue::Int64(Some(value))]);
        }
    }

    #[test]
    fn no_value_has_a_name_of_its_own() {
        let column: ArrayRef = Arc::new(StringArray::from(vec![None, Some(""), Some(NULL)]));
        let of = |row| directory("k", &column, row).expect("text");
        assert_eq!(of(0), (format!("k={NULL}"), false));
        assert_eq!(of(1), (format!("k={NULL}"), true));
        let path = format!("{}/x", of(2).0);
        let made: Vec<_> = pairs(&path).collect();
        assert_eq!(made, [("k".to_owned(), Some(NULL.to_owned()))]);
    }
}
