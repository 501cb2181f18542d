//! One value of a column as JSON text, for people who ask what a record holds.

use crate::cell::Reader;
use crate::ndjson::write_value;
use crate::part::{Column, Stats};

/// The value of a column at this index as JSON text, as a line of JSON would have it. `None` where it is absent: the key is
/// not there, or SQL's NULL.
///
/// # Panics
///
/// If the column has no such value.
pub fn value_json(column: &Column<'_>, index: usize) -> Option<String> {
    let reader = Reader::new(column.values, column.kinds);
    let cell = reader.cell(index);
    if cell.is_absent() {
        return None;
    }
    let mut out = Vec::new();
    write_value(cell, &mut out, &mut Stats::default());
    Some(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Index;
    use arrow::array::{Array, Float64Array, StringViewArray, UInt8Array};
    use tailrace_model::json::Kind;

    #[test]
    fn values_are_written_as_in_a_line() {
        let check = |values: &dyn Array, kinds: Option<&UInt8Array>, expect: &[Option<&str>]| {
            let column = Column {
                name: "a",
                values,
                kinds,
                index: Index::Record,
            };
            let found = (0..values.len()).map(|at| value_json(&column, at));
            let expect: Vec<_> = expect.iter().map(|text| text.map(str::to_owned)).collect();
            assert_eq!(found.collect::<Vec<_>>(), expect);
        };
        let numbers = Float64Array::from(vec![Some(1.5), None, Some(f64::NAN)]);
        check(&numbers, None, &[Some("1.5"), None, Some("\"NaN\"")]);
        let texts = StringViewArray::from(vec![Some("a\"b"), Some("7"), None, None]);
        let kinds = [Kind::String, Kind::Integer, Kind::Null].map(|kind| Some(kind as u8));
        let kinds = UInt8Array::from([&kinds[..], &[None]].concat());
        let expect = [Some(r#""a\"b""#), Some("7"), Some("null"), None];
        check(&texts, Some(&kinds), &expect);
    }
}
