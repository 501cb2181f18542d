//! What a person should know of the data that a query read, on the standard error.

use std::io::{self, Write};
use std::time::Instant;

use crate::printed;
use tailrace_query::{Counts, LATE_KEYS_MAX, Notes, Pruning, Written};

/// Prints the notes.
///
/// # Errors
///
/// They cannot be written.
pub(super) fn print(notes: &Notes, out: &mut dyn Write) -> io::Result<()> {
    let counts = notes.counts();
    let of_counts = [
        (
            counts.unfit,
            "values do not fit the type of their column and are NULL; `--columns NAME=text` keeps those of a key; the column `json` has all",
        ),
        (
            counts.keyless,
            "values have keys that are no columns, because there are more than 4,096; `--columns NAME=TYPE` makes one of a key",
        ),
        (
            counts.malformed,
            "records should be JSON and are not: what of them is no JSON is NULL, and `body` holds their text",
        ),
        (
            counts.truncated,
            "records are longer than 1 MiB and were cut",
        ),
        (
            counts.untimed,
            "records have no time and were left out; the query without `--since` and `--until` has them",
        ),
        (
            counts.unleveled,
            "records have no known severity and were left out; the query without `--level` has them",
        ),
    ];
    for (count, text) in of_counts.iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "note: at least {count} {text}")?;
    }
    late_keys(&notes.late_keys(), out)
}

/// Prints that times were shown as NULL.
///
/// # Errors
///
/// It cannot be written.
pub(super) fn beyond_calendar(count: usize, out: &mut dyn Write) -> io::Result<()> {
    match count {
        0 => Ok(()),
        1 => writeln!(
            out,
            "note: a time is beyond the years that a calendar has, and is shown as NULL; CAST(x AS BIGINT) shows its number"
        ),
        _ => writeln!(
            out,
            "note: {count} times are beyond the years that a calendar has, and are shown as NULL; CAST(x AS BIGINT) shows their numbers"
        ),
    }
}

/// Names some keys that `*` has no columns for.
fn late_keys(keys: &[String], out: &mut dyn Write) -> io::Result<()> {
    const NAMED: usize = 5;
    let Some(first) = keys.first() else {
        return Ok(());
    };
    let named = keys.iter().take(NAMED);
    let named: Vec<_> = named
        .map(|key| format!("`{}`", printed::shown(key)))
        .collect();
    let more = match keys.len() - named.len() {
        0 => String::new(),
        more if keys.len() >= LATE_KEYS_MAX => format!(" and at least {more} more"),
        more => format!(" and {more} more"),
    };
    writeln!(
        out,
        "note: `*` leaves out keys that the beginning of the files lacks: {}{more}; `--columns {}=text` makes a column of one, and the last line of `tailrace schema FILE` has the `--columns` for all",
        named.join(", "),
        printed::shown(first)
    )
}

/// Prints the statistics of a query that began at `started`.
///
/// # Errors
///
/// They cannot be written.
pub(super) fn statistics(
    counts: &Counts,
    pruning: Pruning,
    started: Instant,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Counts {
        files,
        pruned,
        bytes,
        records,
        prefiltered,
        kept,
        parquet_files,
        parquet_pruned,
        ..
    } = counts;
    let seconds = started.elapsed().as_secs_f64();
    if *pruned > 0 {
        writeln!(
            out,
            "{pruned} files not read, because they were last modified before `--since`"
        )?;
    }
    if *parquet_files + *parquet_pruned > 0 {
        writeln!(
            out,
            "{parquet_files} Parquet files, {parquet_pruned} more left out by the values of their directories"
        )?;
        let Pruning {
            row_groups,
            row_groups_pruned,
            rows,
            rows_pruned,
        } = pruning;
        writeln!(
            out,
            "{row_groups} row groups, {row_groups_pruned} more left out by their statistics"
        )?;
        if rows + rows_pruned > 0 {
            writeln!(
                out,
                "in their pages {rows} rows, {rows_pruned} more left out"
            )?;
        }
    }
    writeln!(
        out,
        "{files} files, {bytes} bytes read, {records} records: {prefiltered} left out by a search for texts, {kept} met the conditions of the scan; {seconds:.3} s"
    )
}

/// Prints what became of the rows of an archive.
///
/// # Errors
///
/// It cannot be written.
pub(super) fn written(written: &Written, to: &str, out: &mut dyn Write) -> io::Result<()> {
    let Written {
        run,
        files,
        rows,
        bytes,
        cut,
        empty,
    } = written;
    if *cut > 0 {
        writeln!(
            out,
            "note: {cut} times were cut to microseconds, the finest that Spark reads; CAST(timestamp AS BIGINT) AS time_ns keeps them whole"
        )?;
    }
    if *empty > 0 {
        writeln!(
            out,
            "note: {empty} rows have an empty text in a column of `--partition-by`, and are where it is NULL"
        )?;
    }
    let to = printed::shown(to);
    let to = to.trim_end_matches('/');
    writeln!(
        out,
        "{rows} rows in {files} files, {bytes} bytes: {to}/**/{run}-*.parquet"
    )
}
