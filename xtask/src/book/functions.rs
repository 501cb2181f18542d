//! The page of the SQL functions: its examples are run, all in one query, on the record that it shows.
//!
//! A table with the columns `function`, `what it gives`, `example` and `result` has an example in each row. Results are JSON, or NULL.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

use super::blocks::blocks;
use super::run::Programs;
use crate::workspace::{Workspace, capture};

/// The page, in `docs/`.
pub(super) const PAGE: &str = "functions.md";
/// What `tailrace query` gives otherwise, as the page says: a column that no record has, a time without its zone, values of several kinds.
const NOT_QUERIED: [&str; 10] = [
    "coalesce(nothing, n, 0)",
    "nvl(nothing, 'x')",
    "nvl2(nothing, 'yes', 'no')",
    "from_unixtime(1767323045)",
    "to_local_time(time)",
    "date_trunc('minute', time)",
    "date_bin(interval '5 minutes', time)",
    "json_get(user, 'id')",
    "json_get_array(user, 'roles')",
    "json_from_scalar('a')",
];
const HEADER: &str = "| function | what it gives | example | result |";

/// One row of a table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    names: Vec<String>,
    example: String,
    result: String,
}

/// Runs the examples of the page, by a pipeline and by `tailrace query`; gives how many there are.
///
/// # Errors
/// When one gives something else than the page says.
pub(super) fn run(workspace: &Workspace, programs: &Programs, page: &str) -> Result<usize> {
    let rows = rows(page)?;
    let record = blocks(page)
        .into_iter()
        .find(|block| block.language == "json")
        .context("the page shows no record")?
        .text;
    let dir = workspace.target.join("book-run").join(PAGE);
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let (config, lines) = (dir.join("functions.yaml"), dir.join("record.jsonl"));
    fs::write(&config, query(&dir, &rows)).context("cannot write the config")?;
    fs::write(&lines, record).context("cannot write the record")?;
    let arguments = ["run", "--log-level=warn", "--config"];
    let mut command = workspace.command(&programs.tailrace, &arguments);
    command.arg(&config).stdin(fs::File::open(&lines)?);
    compare(&rows, &capture(&mut command)?, |value| value)?;
    let rows: Vec<Row> = rows
        .into_iter()
        .filter(|row| !NOT_QUERIED.contains(&row.example.as_str()))
        .collect();
    let sql = format!("SELECT\n{}\nFROM logs", columns(&rows));
    let mut command = workspace.command(&programs.tailrace, &["query", &sql]);
    // There the beginning of the file says what is a whole number.
    compare(&rows, &capture(command.arg(&lines))?, floats).context("tailrace query")?;
    Ok(rows.len() + NOT_QUERIED.len())
}

/// Compares the results of all examples, as they were printed.
fn compare(rows: &[Row], printed: &str, as_compared: fn(Value) -> Value) -> Result<()> {
    let results: Map<String, Value> = serde_json::from_str(printed.trim())
        .with_context(|| format!("the agent printed {printed}"))?;
    let wrong: Vec<String> = rows
        .iter()
        .enumerate()
        .filter_map(|(index, row)| fault(row, results.get(&column(index)), as_compared))
        .collect();
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// What differs from the page.
fn fault(row: &Row, result: Option<&Value>, as_compared: fn(Value) -> Value) -> Option<String> {
    let found = result.unwrap_or(&Value::Null);
    let said = match row.result.as_str() {
        "NULL" => Some(Value::Null),
        text => serde_json::from_str(text).ok(),
    };
    let is_said = said.map(as_compared) == Some(as_compared(found.clone()));
    (!is_said).then(|| {
        format!(
            "{}: the page says {}, it is {found}",
            row.example, row.result
        )
    })
}

/// The value with its numbers as floats.
fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(values) => values.into_iter().map(floats).collect(),
        other => other,
    }
}

fn column(index: usize) -> String {
    format!("r{index}")
}

/// A config whose query has a column for each example.
fn query(dir: &Path, rows: &[Row]) -> String {
    let columns = columns(rows);
    format!(
        "data_dir: {}/data\npipelines:\n  functions:\n    input: {{type: stdin}}\n    transform: |\n      SELECT\n{}\n      \
         FROM logs\n    output: {{type: stdout}}\n",
        dir.display(),
        columns
    )
}

/// A column for each example.
fn columns(rows: &[Row]) -> String {
    let columns: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| format!("        ({}) AS {}", row.example, column(index)))
        .collect();
    columns.join(",\n")
}

fn rows(page: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        inside = line == HEADER || (inside && line.starts_with('|'));
        if !inside || line == HEADER || line.starts_with("|---") {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [names, _, example, result] = cells.as_slice() else {
            bail!("a row has {} cells: {line}", cells.len());
        };
        let code = |cell: &str| cell.trim_matches('`').to_owned();
        rows.push(Row {
            names: names.split(", ").map(code).collect(),
            example: code(example),
            result: code(result),
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn read(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        fs::read_to_string(root.join(path)).unwrap()
    }

    /// A test of tailrace-sql writes the list from the registry.
    #[test]
    fn the_page_has_every_function_that_is_registered() {
        let page = read("docs/functions.md");
        let mut listed: BTreeSet<String> = rows(&page)
            .unwrap()
            .into_iter()
            .flat_map(|row| row.names)
            .collect();
        let (_, others) = page.split_once("\n## Not callable\n").unwrap();
        listed.extend(others.split('`').nth(1).map(str::to_owned));
        let list = read("tests/oracle/functions.txt");
        let registered: BTreeSet<String> = list
            .lines()
            .filter_map(|line| Some(line.split_once(':')?.0.to_owned()))
            .collect();
        assert!(registered.len() > 200, "{registered:?}");
        let missing: Vec<_> = registered.difference(&listed).collect();
        let unknown: Vec<_> = listed.difference(&registered).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "missing {missing:?}, unknown {unknown:?}"
        );
    }

    #[test]
    fn rows_are_read_and_compared() {
        let page = format!(
            "x\n{HEADER}\n|---|---|---|---|\n| `a`, `b` | text | `a(1)` | `[1, 2.0]` |\n\n| c | d | e | f |\n"
        );
        let rows = rows(&page).unwrap();
        assert_eq!(rows.len(), 1);
        let [row] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!((row.names.len(), row.example.as_str()), (2, "a(1)"));
        let exact = |value| value;
        let whole = serde_json::json!([1, 2]);
        assert_eq!(fault(row, Some(&serde_json::json!([1, 2.0])), exact), None);
        assert!(fault(row, Some(&whole), exact).is_some());
        assert_eq!(fault(row, Some(&whole), floats), None);
        assert!(fault(row, None, floats).is_some());
        assert!(super::rows(&format!("{HEADER}\n| a |\n")).is_err());
    }
}
