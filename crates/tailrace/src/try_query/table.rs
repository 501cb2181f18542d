//! Rows as a table for people: columns in the order in which they are first seen, as many rows as a person reads.

use std::borrow::Cow;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, Table};
use tailrace_model::json::{Members, Value, parse_value, unescaped};

use crate::{printed, style};

/// Rows of a table; more of them are counted.
const ROWS_MAX: usize = 40;
/// Columns of a table; others are named below it.
const COLUMNS_MAX: usize = 40;
/// Characters of a value; a longer one is cut.
const CELL_CHARS_MAX: usize = 300;

/// Rows on their way to a table.
#[derive(Default)]
pub(super) struct Rows {
    columns: Vec<String>,
    /// Values by column, as far as there are any.
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// Whether no further row is shown.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= ROWS_MAX
    }

    /// Adds a row, a JSON object.
    pub(super) fn add(&mut self, json: &str) {
        let mut row = Vec::new();
        let object = parse_value(json).map_or("{}", |value| value.text);
        for (key, value) in Members::new(object) {
            let key = text(&key);
            let column = self.columns.iter().position(|known| *known == key);
            let column = column.unwrap_or_else(|| {
                self.columns.push(key);
                self.columns.len() - 1
            });
            if row.len() <= column {
                row.resize(column + 1, String::new());
            }
            row[column] = shortened(&text(&value), CELL_CHARS_MAX);
        }
        self.rows.push(row);
    }

    /// The table; `None` without a row.
    pub(super) fn table(&self) -> Option<String> {
        if self.rows.is_empty() {
            return None;
        }
        let mut table = Table::new();
        table.load_preset(UTF8_HORIZONTAL_ONLY);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if let Some(width) = style::width() {
            table.set_width(width);
        }
        let shown = self.columns.len().min(COLUMNS_MAX);
        table.set_header(
            self.columns[..shown]
                .iter()
                .map(|name| printed::shown(name)),
        );
        for row in &self.rows {
            let cell = |column| row.get(column).map_or("", String::as_str);
            table.add_row((0..shown).map(cell));
        }
        let mut text = format!("{table}\n");
        let more = &self.columns[shown..];
        if !more.is_empty() {
            let names: Vec<String> = more.iter().map(|name| printed::shown(name)).collect();
            text += &format!(
                "columns not shown: {}\n",
                shortened(&names.join(", "), 1000)
            );
        }
        Some(text)
    }
}

/// The text that a value stands for: of a string without quotes and escapes.
fn text(value: &Value<'_>) -> String {
    unescaped(value).map_or_else(|| value.text.to_owned(), Cow::into_owned)
}

/// A text on one line, as a person may see it, cut where it is long.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    // Before it is escaped, which may take long.
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(chars_max).collect();
    let shown = printed::shown(&head);
    let is_cut = chars.next().is_some() || shown.chars().count() > chars_max;
    match is_cut {
        true => shown
            .chars()
            .take(chars_max.saturating_sub(3))
            .chain("...".chars())
            .collect(),
        false => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_the_rows() {
        let mut rows = Rows::default();
        rows.add(r#"{"b":1,"a":"x\ty"}"#);
        rows.add(r#"{"c":{"d":[1, 2]},"a":"\u001b[31m"}"#);
        let table = rows.table().unwrap_or_default();
        let words: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| !line.contains('─') && !line.contains('═'))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(words[0], ["b", "a", "c"]);
        assert_eq!(words[1], ["1", "x\\ty"]);
        assert_eq!(words[2], ["\\u{1b}[31m", r#"{"d":[1,"#, "2]}"]);
        assert_eq!(Rows::default().table(), None);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdefg", 6), "abc...");
        assert_eq!(shortened("\u{1b}\u{1b}", 9), "\\u{1b}...");
    }
}
