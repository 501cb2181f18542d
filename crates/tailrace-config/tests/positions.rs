//! Places in a query lead back to the places of the YAML file, however the query is written there.
#![allow(clippy::unwrap_used)]

use std::fs;

use proptest::prelude::*;
use tailrace_config::{Config, Sql, load};

fn loaded(yaml: &str) -> Result<Config, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.yaml");
    fs::write(&path, yaml).unwrap();
    let env = |name: &str| (name == "LEVEL").then(|| "'a very long level'".to_owned());
    load(&[path], &env).map_err(|diagnostics| {
        diagnostics
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    })
}

const REST: &str = "\n    input: {type: stdin}\n    output: {type: discard}\n";

fn query(transform: &str) -> (String, Sql) {
    let yaml = format!("pipelines:\n  p:\n    transform: {transform}{REST}");
    let mut config = loaded(&yaml).unwrap_or_else(|errors| panic!("{errors}\n{yaml}"));
    (yaml, config.pipelines.remove("p").unwrap().transform)
}

/// Where `word` stands in the query, and in the file.
fn check(transform: &str, word: &str, expected: (usize, usize)) {
    let (yaml, sql) = query(transform);
    let before = &sql.text[..sql
        .text
        .find(word)
        .unwrap_or_else(|| panic!("{word} in {:?}", sql.text))];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    let position = sql.position(line, column);
    assert_eq!(
        (position.line(), position.column()),
        expected,
        "{word} of {:?} in\n{yaml}",
        sql.text
    );
}

#[test]
fn every_style_leads_back() {
    check("SELECT * FROM logs WHERE a", "WHERE", (3, 35));
    check("SELECT *\n      FROM logs\n      WHERE a", "WHERE", (5, 7));
    check("'SELECT * FROM logs WHERE a = ''x'' AND b'", "AND", (3, 52));
    check(
        "\"SELECT * FROM logs\\n WHERE \\\"a\\\" AND b\"",
        "AND",
        (3, 50),
    );
    check("\"SELECT * \\\n      FROM logs\"", "FROM", (4, 7));
    check(
        "|\n      SELECT *\n\n      FROM logs\n        WHERE a\n",
        "WHERE",
        (7, 9),
    );
    check("|-\n\n\n       SELECT *\n       FROM logs", "FROM", (7, 8));
    check(
        "|2 # a comment\n      SELECT *\n      FROM logs",
        "FROM",
        (5, 7),
    );
    check(
        ">\n      SELECT *\n      FROM logs\n\n      WHERE a\n",
        "WHERE",
        (7, 7),
    );
    check("&anchor |\n      SELECT *\n      FROM logs", "FROM", (5, 7));
    check("!!str 'SELECT * FROM logs'", "FROM", (3, 32));
    check("&anchor !!str SELECT * FROM logs WHERE a", "WHERE", (3, 49));
}

#[test]
fn text_around_an_expansion_keeps_its_place() {
    check(
        "|\n      SELECT * FROM logs\n      WHERE level = ${LEVEL} AND b\n",
        "AND",
        (5, 30),
    );
    check(
        "|\n      SELECT * FROM logs\n      WHERE level = ${LEVEL} AND b\n",
        "very",
        (5, 21),
    );
    check("|\n      SELECT $$a\n      FROM logs\n", "FROM", (5, 7));
}

#[test]
fn the_end_and_what_is_beyond() {
    let (_, sql) = query("|\n      SELECT *\n      FROM logs\n");
    for (line, column) in [(2, 10), (2, 99), (3, 1), (99, 99)] {
        let position = sql.position(line, column);
        assert_eq!(
            (position.line(), position.column()),
            (5, 16),
            "{line}:{column}"
        );
    }
    assert_eq!(sql.position(0, 0).line(), 4);
}

#[test]
fn a_query_that_is_not_written_stands_where_its_pipeline_does() {
    let config =
        loaded("pipelines:\n  p:\n    input: {type: stdin}\n    output: {type: discard}\n")
            .unwrap();
    let pipeline = &config.pipelines["p"];
    assert_eq!(pipeline.transform.text, "SELECT * FROM logs");
    assert_eq!(pipeline.transform.position(1, 15), pipeline.position);
}

#[test]
fn a_diagnostic_of_the_planner_shows_the_line_of_the_file() {
    let (_, sql) = query("|\n      SELECT *\n      FROM lgs\n");
    let text = sql.diagnostic(2, 6, 3, "no table `lgs`", None).to_string();
    let shown: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(shown, ["          FROM lgs", "               ^^^"]);
    assert!(
        text.contains("t.yaml:5:12: error: no table `lgs`"),
        "{text}"
    );
}

/// Ways to write a text so that YAML gives it back.
fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '"' | '\\' => out.extend(['\\', c]),
            'é' => out.push_str("\\u00e9"),
            'ß' => out.push_str("\\xdf"),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

fn literal(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            if line.is_empty() {
                String::new()
            } else {
                format!("      {line}")
            }
        })
        .collect();
    format!("|2-\n{}", lines.join("\n"))
}

/// Every non-blank character of the query stands in the file where its position says, in order.
fn check_characters(written: &str) -> Result<(), TestCaseError> {
    let (yaml, sql) = query(written);
    let lines: Vec<Vec<char>> = yaml
        .split('\n')
        .map(|line| line.chars().collect())
        .collect();
    let mut last = (0, 0);
    for (index, text) in sql.text.split('\n').enumerate() {
        for (column, c) in text.chars().enumerate().filter(|(_, c)| !c.is_whitespace()) {
            let position = sql.position(index + 1, column + 1);
            let here = (position.line(), position.column());
            prop_assert!(here > last, "{here:?} is not behind {last:?} in\n{yaml}");
            last = here;
            let found = lines[here.0 - 1][here.1 - 1];
            prop_assert!(
                found == c || found == '\\',
                "{found:?} for {c:?} at {here:?} in\n{yaml}"
            );
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn characters_of_any_query_lead_back(text in "[xS]([abc \"'\\\\éß:#\n-]{0,40}[z'\"\\\\])?") {
        check_characters(&double_quoted(&text))?;
        check_characters(&format!("'{}'", text.replace('\n', " ").replace('\'', "''")))?;
        check_characters(&literal(&text))?;
        check_characters(&literal(&text).replacen('|', ">", 1))?;
    }
}
