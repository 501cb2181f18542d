//! Lists in texts of all styles, replaced.
#![allow(clippy::unwrap_used)]

use super::*;

/// The positions of all `rows` of a text.
fn rows(node: &Node, found: &mut Vec<Position>) {
    match &node.value {
        Value::Mapping(entries) => {
            for entry in entries {
                if entry.key == "rows" {
                    found.push(entry.value.position.clone());
                } else {
                    rows(&entry.value, found);
                }
            }
        }
        Value::Sequence(items) => items.iter().for_each(|item| rows(item, found)),
        Value::Scalar(_) => {}
    }
}

/// The text with the n-th list replaced by the n-th of `items`.
fn replaced(text: &str, items: &[&[&str]]) -> Result<String, String> {
    let source = Source::new("t.yaml", text.to_owned());
    let node = yaml::parse(&source, &mut Vec::new()).unwrap();
    let mut positions = Vec::new();
    rows(&node, &mut positions);
    let items: Vec<Vec<String>> = items
        .iter()
        .map(|items| items.iter().map(|&item| item.to_owned()).collect())
        .collect();
    let edits: Vec<Edit<'_>> = positions
        .iter()
        .zip(&items)
        .map(|(position, items)| Edit {
            position,
            key: "rows",
            items,
        })
        .collect();
    replace_lists(&source, &edits).map_err(|(_, why)| why)
}

#[test]
fn a_block_keeps_its_indent_and_what_is_around_it() {
    let text = "# one\na:\n  rows:   # two\n    - {a: 1}   # gone\n    # gone\n    - b: |\n        x\n\n  # three\n  c: rows\nrows: [x]\n";
    let expect = "# one\na:\n  rows:   # two\n    - {\"a\": 2}\n    - {\"b\": \"y: # z\"}\n\n  # three\n  c: rows\nrows: [x]\n";
    let items: &[&str] = &[r#"{"a": 2}"#, r#"{"b": "y: # z"}"#];
    assert_eq!(replaced(text, &[items]).unwrap(), expect);
    let both = replaced(text, &[items, &[]]).unwrap();
    assert_eq!(both, expect.replace("[x]", "[]"));
    let none = replaced(text, &[&[]]).unwrap();
    assert!(none.contains("# two\n    []\n\n  # three"), "{none}");
}

#[test]
fn every_style_of_a_list() {
    let check = |text: &str, expect: &str| {
        assert_eq!(
            replaced(text, &[&[r#"{"a": 2}"#, "{}"]]).unwrap(),
            expect,
            "{text}"
        );
    };
    check("rows: []\n", "rows:\n  - {\"a\": 2}\n  - {}\n");
    check(
        "- rows: [ ] # c\n  b: 1\n",
        "- rows:\n    - {\"a\": 2}\n    - {} # c\n  b: 1\n",
    );
    check("rows: [{a: 1}]\n", "rows: [{\"a\": 2}, {}]\n");
    check(
        "x: {rows: [], b: 1}\n",
        "x: {rows: [{\"a\": 2}, {}], b: 1}\n",
    );
    check(
        "rows:\n- a\n- b:\nc: 1\n",
        "rows:\n- {\"a\": 2}\n- {}\nc: 1\n",
    );
    check(
        "rows:\n- [1]\n- {b: 2} # c\nc: 1",
        "rows:\n- {\"a\": 2}\n- {} # c\nc: 1",
    );
    check("rows:\n-\n-\n- b:\nc: 1", "rows:\n- {\"a\": 2}\n- {}\nc: 1");
    check("rows:\n- a\n-\nc: 1", "rows:\n- {\"a\": 2}\n- {}\nc: 1");
    check(
        "rows: [\n  1,\n  {b: ']'}\n]\nc: 1",
        "rows: [{\"a\": 2}, {}]\nc: 1",
    );
    check(
        "\u{feff}é: {}\r\nrows:\r\n  - ä\r\nc: 1\r\n",
        "\u{feff}é: {}\r\nrows:\r\n  - {\"a\": 2}\r\n  - {}\r\nc: 1\r\n",
    );
    check(
        "rows:\n  - a: 'x'\n    b: {c: [1]}\n",
        "rows:\n  - {\"a\": 2}\n  - {}\n",
    );
    check("rows:\n  - a: b\n    c:", "rows:\n  - {\"a\": 2}\n  - {}");
    check("\"rows\": []", "\"rows\":\n  - {\"a\": 2}\n  - {}");
}

#[test]
fn a_long_line_becomes_a_block() {
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(120));
    let new = replaced("a:\n  rows: [1]\n", &[&[&long]]).unwrap();
    assert_eq!(new, format!("a:\n  rows:\n    - {long}\n"));
}

#[test]
fn what_may_be_used_elsewhere_is_left_alone() {
    let check = |text: &str, items: &[&[&str]], why: &str| {
        let failed = replaced(text, items).unwrap_err();
        assert!(failed.contains(why), "{text}: {failed}");
    };
    let (one, two): (&[&[&str]], &[&[&str]]) = (&[&["1"]], &[&["1"], &["2"]]);
    check("a: {rows: &x [1]}\nb: {rows: *x}\n", one, "an anchor");
    check("a: {rows: &x [1]}\nb: {rows: *x}\n", two, "the same place");
    check("a: &x {rows: [1]}\nb: *x\n", two, "the same place");
    check("rows: 7\n", one, "not a list");
    check("rows: {a: 1}\n", one, "not known");
}

#[test]
fn what_yaml_cannot_have_is_refused() {
    for item in [
        r#"{"a": 1, "a": 2}"#,
        r#""\ud83d""#,
        "\"\u{7f}\"",
        "{",
        "1\nb: 2",
    ] {
        assert!(replaced("rows: []", &[&[item]]).is_err(), "{item}");
    }
}
