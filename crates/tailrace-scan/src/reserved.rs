//! The reserved columns of one row.
//!
//! Sets `body`, `timestamp` and their like in a row whose members are all delivered, or of a record that is not an
//! object. Of a list of keys the first whose value is JSON and not null counts, as in the OTLP mapping. Never
//! changes a column of a key.

use tailrace_model::json::Kind;
use tailrace_model::reserved::Reserved;
use tailrace_model::{severity, time};

use crate::columns::{Cell, state};
use crate::config::Type;
use crate::convert;
use crate::plan::KeyList;
use crate::rows::{Row, Shape, raw_cell};
use crate::text::{Side, StringView};
use crate::token;

/// What is known of a record besides its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) shape: Shape,
    pub(crate) is_malformed: bool,
    pub(crate) truncated: bool,
    /// The envelope's time, 0 for none.
    pub(crate) time_ns: i64,
    /// 1 for stdout, 2 for stderr.
    pub(crate) stream: u8,
    pub(crate) observed_ns: i64,
}

/// Sets the reserved columns of a row.
pub(crate) fn set(row: &mut Row<'_, '_>, facts: &Facts) {
    let plan = row.rows.plan;
    for &(column, which) in &plan.reserved {
        match which {
            Reserved::Body => {
                let has_raw = facts.shape != Shape::Object || facts.is_malformed;
                if !set_candidate(row, column, KeyList::Body) && has_raw {
                    let cell = raw_cell(&row.record);
                    row.rows.set(column, row.row, &cell);
                }
            }
            Reserved::SeverityText => _ = set_candidate(row, column, KeyList::Severity),
            Reserved::SeverityNumber => {
                let number = severity_number(row);
                if number > 0 {
                    set_integer(row, column, i64::from(number));
                }
            }
            Reserved::Timestamp => {
                let own = own_time(row);
                if let Some(time_ns) = own.or(Some(facts.time_ns).filter(|&time_ns| time_ns != 0)) {
                    set_time(row, column, time_ns);
                }
            }
            Reserved::ObservedTimestamp => set_time(row, column, facts.observed_ns),
            Reserved::Malformed => set_bool(row, column, facts.is_malformed),
            Reserved::Truncated => set_bool(row, column, facts.truncated),
            Reserved::Json => {
                if facts.shape == Shape::Object {
                    set_json(row, column, facts.is_malformed);
                }
            }
            Reserved::Iostream => match facts.stream {
                1 => set_text(row, column, Kind::String, "stdout"),
                2 => set_text(row, column, Kind::String, "stderr"),
                _ => {}
            },
            Reserved::FileName
            | Reserved::FilePath
            | Reserved::Kubernetes
            | Reserved::Container => {}
        }
    }
}

/// The value of the first key of the list of which the record has one.
fn candidate<'a>(row: &'a Row<'_, '_>, list: KeyList) -> Option<(Kind, &'a str)> {
    let candidate = row.candidates[list as usize]?;
    Some(candidate.value.text(&row.record, &row.rows.side))
}

/// Says whether there is one.
fn set_candidate(row: &mut Row<'_, '_>, column: usize, list: KeyList) -> bool {
    let Some(candidate) = row.candidates[list as usize] else {
        return false;
    };
    let cell = candidate.value.cell(&row.record, &row.rows.side);
    if !row.rows.columns[column].set(row.row, &cell, row.rows.plan.offset_s) {
        row.rows.stats.type_mismatches += 1;
    }
    true
}

/// The time in the record; one that cannot be read is counted.
fn own_time(row: &mut Row<'_, '_>) -> Option<i64> {
    let (kind, text) = candidate(row, KeyList::Timestamp)?;
    let time_ns = convert::timestamp(kind, text, row.rows.plan.offset_s);
    row.rows.stats.type_mismatches += u64::from(time_ns.is_none());
    time_ns
}

/// 1 to 24 as the record says it, else from its level, else 0.
fn severity_number(row: &Row<'_, '_>) -> u8 {
    let stated = candidate(row, KeyList::SeverityNumber)
        .and_then(|(kind, text)| convert::int64(kind, text))
        .and_then(|number| u8::try_from(number).ok())
        .filter(|number| (1..=24).contains(number));
    stated.unwrap_or_else(|| match candidate(row, KeyList::Severity) {
        Some((Kind::String, text)) => severity::number_of_text(text),
        Some((Kind::Integer, text)) => text.parse().map_or(0, severity::number_of_integer),
        _ => 0,
    })
}

/// A time as the column's type wants it: as text it is RFC 3339, as a number nanoseconds.
fn set_time(row: &mut Row<'_, '_>, column: usize, time_ns: i64) {
    match row.rows.plan.types[column] {
        Type::Timestamp => row.rows.columns[column].set_timestamp(row.row, time_ns),
        Type::Int64 | Type::Float64 => set_integer(row, column, time_ns),
        Type::Open | Type::Value | Type::Text | Type::Boolean => {
            let mut text = Vec::new();
            time::write_rfc3339(time_ns, &mut text);
            set_text(row, column, Kind::String, &String::from_utf8_lossy(&text));
        }
    }
}

fn set_integer(row: &mut Row<'_, '_>, column: usize, value: i64) {
    match row.rows.columns[column].integer_slots(row.row + 1) {
        Some((values, states)) => {
            (values[row.row], states[row.row]) = (value, state(Kind::Integer));
        }
        None => set_text(row, column, Kind::Integer, &value.to_string()),
    }
}

fn set_bool(row: &mut Row<'_, '_>, column: usize, value: bool) {
    set_text(
        row,
        column,
        Kind::Bool,
        if value { "true" } else { "false" },
    );
}

/// The whole record, if it is JSON to its bottom: where it is read, the record was judged by that.
fn set_json(row: &mut Row<'_, '_>, column: usize, is_malformed: bool) {
    if is_malformed {
        row.rows.stats.bad_values += 1;
        return;
    }
    let (start, end) = token::trim(row.record.bytes(), 0, row.record.bytes().len());
    let text = &row.record.text()[start..end];
    let cell = Cell {
        kind: Kind::Object,
        text,
        view: row.record.view(start, end),
    };
    row.rows.set(column, row.row, &cell);
}

/// A text that does not stand in the record.
fn set_text(row: &mut Row<'_, '_>, column: usize, kind: Kind, text: &str) {
    let Some(view) = StringView::inline(text).or_else(|| push(&mut row.rows.side, text)) else {
        return;
    };
    row.rows.set(column, row.row, &Cell { kind, text, view });
}

fn push(side: &mut Side, text: &str) -> Option<StringView> {
    let text = side.push(text)?;
    Some(side.view(text))
}
