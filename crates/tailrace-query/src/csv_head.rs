//! The first rows of a CSV file: the names of its columns, their types, and what is wrong with it.
//!
//! Types are those that `arrow_csv` finds. Numbers with zeros before them, as postal codes have, are text: as numbers they would
//! lose the zeros.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use arrow_csv::reader::Format;
use csv::{ByteRecord, Position, ReaderBuilder};

use crate::csv_quotes::Quotes;
use crate::error::{CSV_LINE, Error};
use crate::input::Input;
use crate::kind::has_tabs;

/// Rows that types come from.
const ROWS_SAMPLED: usize = 1000;
/// What is read of a file, and of each of several.
const HEAD_BYTES: u64 = 1 << 20;
const HEAD_BYTES_OF_MANY: u64 = 128 << 10;
/// More is read where rows are long, up to this.
const HEAD_BYTES_MAX: u64 = 16 << 20;

/// What helps where a quote is not closed.
pub(crate) const QUOTES: &str =
    "a value that begins with a quote ends with one; a quote within it is doubled";

/// What the first rows tell of a column.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Null where no row has a value. Times are nanoseconds.
    pub(crate) ty: DataType,
    /// It has a whole number that no float holds.
    pub(crate) is_wide: bool,
    /// It has a time that nanoseconds do not hold.
    pub(crate) is_far: bool,
    /// It has a time of which microseconds lose digits.
    pub(crate) is_fine: bool,
}

impl Found {
    /// What holds the values of two columns of one name.
    pub(crate) fn with(&self, other: &Found) -> Found {
        Found {
            ty: common(&self.ty, &other.ty),
            is_wide: self.is_wide | other.is_wide,
            is_far: self.is_far | other.is_far,
            is_fine: self.is_fine | other.is_fine,
        }
    }

    /// The type that falsifies none of the values.
    pub(crate) fn exact(&self) -> DataType {
        match &self.ty {
            DataType::Float64 if self.is_wide => DataType::Utf8View,
            DataType::Timestamp(..) if self.is_far && self.is_fine => DataType::Utf8View,
            DataType::Timestamp(_, zone) if self.is_far => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            ty => ty.clone(),
        }
    }
}

/// What the first rows of a file tell.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) names: Vec<String>,
    pub(crate) columns: Vec<Found>,
    /// What stands between two fields.
    pub(crate) delimiter: u8,
}

impl Head {
    /// Reads the first rows; nothing if the file has no line.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is compressed, or its first rows are no table.
    pub(crate) fn read(input: &Input, is_one_of_many: bool) -> Result<Option<Head>, Error> {
        // The types of one of many files come from all of them.
        let (mut size, rows_min) = match is_one_of_many {
            true => (HEAD_BYTES_OF_MANY, 1),
            false => (HEAD_BYTES, ROWS_SAMPLED),
        };
        let name = input.name();
        let mut bytes = beginning(input, size)?;
        if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            return Err(Error::failure(format!(
                "{name}: a compressed table cannot be read; decompress it first"
            )));
        }
        if let Some(encoding) = other_encoding(&bytes) {
            return Err(Error {
                hint: Some(format!("convert the file: iconv -f {encoding} -t utf8")),
                ..Error::failure(format!("{name}: it is {encoding}, not UTF-8"))
            });
        }
        let delimiter = delimiter_of(&name, &bytes);
        // The first line, and the last row, of which there may be more.
        let count = rows_min + 2;
        let mut rows = first_rows(&bytes, delimiter, count);
        while bytes.len() as u64 == size && rows.len() < count && size < HEAD_BYTES_MAX {
            size = (size * 4).min(HEAD_BYTES_MAX);
            bytes = beginning(input, size)?;
            rows = first_rows(&bytes, delimiter, count);
        }
        let is_cut = bytes.len() as u64 == size;
        let unclosed = match input {
            Input::File(path) if is_cut => Quotes::unclosed_in(path, delimiter),
            _ if is_cut => Ok(None),
            _ => Ok(Quotes::unclosed(&bytes, delimiter)),
        };
        let unclosed = unclosed.map_err(|error| Error::failure(format!("{name}: {error}")))?;
        if let Some(line) = unclosed {
            return Err(Error {
                hint: Some(QUOTES.to_owned()),
                ..Error::failure(format!("{name}: {}", Quotes::not_closed(line)))
            });
        }
        if is_cut {
            // There may be more of the last one.
            let end = rows
                .pop()
                .and_then(|row| row.position().map(Position::byte));
            bytes.truncate(end.unwrap_or(0) as usize);
            if rows.is_empty() {
                return Err(Error {
                    hint: Some(QUOTES.to_owned()),
                    ..Error::failure(format!(
                        "{name}: the first line is longer than {size} bytes"
                    ))
                });
            }
        }
        let Some((header, rows)) = rows.split_first() else {
            return Ok(None);
        };
        let names = names(header, &name)?;
        check_rows(header, rows, &name)?;
        let format = Format::default()
            .with_header(true)
            .with_delimiter(delimiter);
        let found = format.infer_schema(&bytes[..], Some(ROWS_SAMPLED));
        let (found, _) = found.map_err(|error| Error::failure(format!("{name}: {error}")))?;
        let column = |(at, field): (usize, &FieldRef)| found_of(at, field.data_type(), rows);
        Ok(Some(Head {
            names,
            columns: found.fields().iter().enumerate().map(column).collect(),
            delimiter,
        }))
    }
}

/// The type of a column that has the values of two; text has all.
fn common(a: &DataType, b: &DataType) -> DataType {
    use DataType::{Date32, Float64, Int64, Null, Timestamp};
    match (a, b) {
        (Null, other) | (other, Null) => other.clone(),
        (Int64, Float64) | (Float64, Int64) => Float64,
        (Date32, Timestamp(unit, zone)) | (Timestamp(unit, zone), Date32) => {
            Timestamp(*unit, zone.clone())
        }
        (a, b) if a == b => a.clone(),
        _ => DataType::Utf8View,
    }
}

/// The first bytes of a file.
fn beginning(input: &Input, size: u64) -> Result<Vec<u8>, Error> {
    let bytes = input.beginning(size);
    bytes.map_err(|error| Error::failed(&error))
}

/// What the fields of a file with this beginning are parted by.
pub(crate) fn delimiter_of(name: &str, bytes: &[u8]) -> u8 {
    match has_tabs(name) {
        true => b'\t',
        false => delimiter(bytes),
    }
}

/// What the fields of the first line are parted by: commas; or else semicolons or tabs, as spreadsheets write them.
fn delimiter(bytes: &[u8]) -> u8 {
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let mut is_quoted = false;
    let plain = line.iter().filter(|byte| {
        is_quoted ^= **byte == b'"';
        !is_quoted
    });
    let plain: Vec<u8> = plain.copied().collect();
    let known = [b',', b';', b'\t'];
    let found = known.into_iter().find(|it| plain.contains(it));
    found.unwrap_or(b',')
}

/// The encoding that a file begins with the mark of, but for UTF-8.
fn other_encoding(bytes: &[u8]) -> Option<&'static str> {
    let is_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    is_utf16.then_some("UTF-16")
}

/// All rows that begin within the first [`HEAD_BYTES`], and as many behind them as make `count`; fewer if these bytes have no more.
fn first_rows(bytes: &[u8], delimiter: u8, count: usize) -> Vec<ByteRecord> {
    let reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(bytes);
    let mut rows = Vec::new();
    // Nothing fails when bytes are read that are there, into rows of any length.
    for row in reader.into_byte_records().flatten() {
        let at = row.position().map_or(0, Position::byte);
        rows.push(row);
        if at >= HEAD_BYTES && rows.len() >= count {
            break;
        }
    }
    rows
}

/// The names of the columns. One without a name has that of its place.
fn names(header: &ByteRecord, file: &str) -> Result<Vec<String>, Error> {
    let mut names = Vec::with_capacity(header.len());
    let mut known = HashSet::new();
    for (at, name) in header.iter().enumerate() {
        let name = match name {
            b"" => format!("column_{}", at + 1),
            name => text(name, header, file)?.to_owned(),
        };
        if !known.insert(name.clone()) {
            return Err(Error {
                hint: Some("give each column a name of its own in the first line".to_owned()),
                ..Error::failure(format!("{file}: the header names `{name}` more than once"))
            });
        }
        names.push(name);
    }
    Ok(names)
}

/// Refuses rows that are longer or shorter than the header, or no text.
fn check_rows(header: &ByteRecord, rows: &[ByteRecord], file: &str) -> Result<(), Error> {
    for row in rows {
        if row.len() != header.len() {
            return Err(Error {
                hint: Some(CSV_LINE.to_owned()),
                ..Error::failure(format!(
                    "{file}: line {} does not have as many fields as the header: {} instead of {}",
                    line(row),
                    row.len(),
                    header.len()
                ))
            });
        }
        for value in row {
            text(value, row, file)?;
        }
    }
    Ok(())
}

fn text<'v>(value: &'v [u8], row: &ByteRecord, file: &str) -> Result<&'v str, Error> {
    str::from_utf8(value).map_err(|_| Error {
        hint: Some("convert the file, as `iconv -f latin1 -t utf8` does".to_owned()),
        ..Error::failure(format!("{file}: line {} is no UTF-8", line(row)))
    })
}

fn line(row: &ByteRecord) -> u64 {
    row.position().map_or(0, Position::line)
}

/// What Arrow found, but for numbers that are more than a number, and for what only looks like a time.
fn found_of(at: usize, found: &DataType, rows: &[ByteRecord]) -> Found {
    let is_wide = is_wide(at, rows);
    let of = |ty: DataType| Found {
        ty,
        is_wide,
        is_far: false,
        is_fine: false,
    };
    let mut values = rows.iter().filter_map(|row| row.get(at));
    match found {
        DataType::Int64 | DataType::Float64 if values.any(has_leading_zero) => {
            of(DataType::Utf8View)
        }
        DataType::Utf8 => of(DataType::Utf8View),
        DataType::Float64 if is_wide => of(DataType::Utf8View),
        DataType::Date32 => times(DataType::Date32, None, values).unwrap_or(of(DataType::Utf8View)),
        DataType::Timestamp(_, zone) => {
            let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
            let found = times(nanoseconds, zone.clone(), values);
            found.unwrap_or(of(DataType::Utf8View))
        }
        found => of(found.clone()),
    }
}

/// A column of times or dates; `None` if a value only looks like one.
fn times<'v>(
    ty: DataType,
    zone: Option<Arc<str>>,
    values: impl Iterator<Item = &'v [u8]>,
) -> Option<Found> {
    let texts = values.take(ROWS_SAMPLED).map(|value| {
        let text = str::from_utf8(value).ok()?;
        (!text.is_empty()).then_some(text)
    });
    let texts: StringArray = texts.collect();
    let has_all = |ty: &DataType| {
        let made = cast(&texts, ty);
        made.is_ok_and(|made| made.null_count() == texts.null_count())
    };
    let widest = match &ty {
        DataType::Date32 => DataType::Date32,
        _ => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
    };
    has_all(&widest).then(|| Found {
        ty,
        is_wide: false,
        is_far: !has_all(&DataType::Timestamp(TimeUnit::Nanosecond, zone)),
        is_fine: texts.iter().flatten().any(is_fine),
    })
}

/// Whether a time has digits below a microsecond.
fn is_fine(text: &str) -> bool {
    let digits = text.split_once('.').map_or("", |(_, digits)| digits);
    let digits = digits.bytes().take_while(u8::is_ascii_digit);
    digits.skip(6).any(|digit| digit != b'0')
}

/// Whether a value is a whole number beyond 2^53.
fn is_wide(at: usize, rows: &[ByteRecord]) -> bool {
    const EXACT: i64 = 1 << 53;
    let mut values = rows.iter().filter_map(|row| row.get(at));
    values.any(|value| {
        // Fewer digits are none.
        value.len() > 15
            && str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse::<i64>().ok())
                .is_some_and(|number| !(-EXACT..=EXACT).contains(&number))
    })
}

fn has_leading_zero(value: &[u8]) -> bool {
    let digits = match value {
        [b'-' | b'+', digits @ ..] => digits,
        digits => digits,
    };
    matches!(digits, [b'0', second, ..] if second.is_ascii_digit())
}
