//! Lines of text in columns, cut to the width that there is.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Page;
use super::palette::Palette;

/// Below this width only the columns that matter most are shown.
pub(super) const NARROW: usize = 70;
const GAP: usize = 2;
/// Stands for what is cut off.
const CUT: char = '…';

/// A column of a table.
pub(super) struct Column {
    title: &'static str,
    /// In cells; 0 takes what the others leave.
    width: usize,
    is_right: bool,
    is_for_wide: bool,
}

impl Column {
    /// A column of texts; a width of 0 takes what the others leave.
    pub(super) const fn text(title: &'static str, width: usize) -> Self {
        Self {
            title,
            width,
            is_right: false,
            is_for_wide: false,
        }
    }

    /// A column of numbers.
    pub(super) const fn number(title: &'static str, width: usize) -> Self {
        Self {
            is_right: true,
            ..Self::text(title, width)
        }
    }

    /// Only where there is room.
    pub(super) const fn wide(self) -> Self {
        Self {
            is_for_wide: true,
            ..self
        }
    }
}

/// A text and how it looks.
pub(super) type Cell = (String, Style);

/// A table as wide as `width`.
pub(super) fn table(
    width: usize,
    palette: &Palette,
    columns: &[Column],
    rows: impl Iterator<Item = Vec<Cell>>,
) -> Page {
    let is_shown = |column: &Column| width >= NARROW || !column.is_for_wide;
    let shown: Vec<usize> = (0..columns.len())
        .filter(|&at| is_shown(&columns[at]))
        .collect();
    let fixed: usize = shown.iter().map(|&at| columns[at].width).sum();
    let gaps = GAP * shown.len().saturating_sub(1);
    let rest = width.saturating_sub(fixed + gaps);
    let line = |cells: &[Cell]| {
        let mut spans = Vec::new();
        for (n, &at) in shown.iter().enumerate() {
            let column = &columns[at];
            let width = if column.width == 0 {
                rest
            } else {
                column.width
            };
            let (text, style) = &cells[at];
            if n > 0 {
                spans.push(Span::raw(" ".repeat(GAP)));
            }
            spans.push(Span::styled(fit(text, width, column.is_right), *style));
        }
        Line::from(spans)
    };
    let titles = columns
        .iter()
        .map(|column| (column.title.to_owned(), palette.dim));
    Page {
        head: vec![line(&titles.collect::<Vec<_>>())],
        rows: rows.map(|cells| line(&cells)).collect(),
    }
}

/// The text in exactly so many cells: cut, or padded.
pub(super) fn fit(text: &str, width: usize, is_right: bool) -> String {
    let text = cut(text, width);
    let padding = " ".repeat(width.saturating_sub(cells(&text)));
    if is_right {
        padding + &text
    } else {
        text + &padding
    }
}

/// The text in at most so many cells.
pub(super) fn cut(text: &str, width: usize) -> String {
    let mut kept = String::new();
    let mut used = 0;
    let mut before_last = 0;
    for c in text.chars() {
        let size = cells(c.encode_utf8(&mut [0; 4]));
        if used + size > width {
            kept.truncate(before_last);
            if width > 0 {
                kept.push(CUT);
            }
            return kept;
        }
        used += size;
        if used < width {
            before_last = kept.len() + c.len_utf8();
        }
        kept.push(c);
    }
    kept
}

/// The text on as many lines as it takes.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let size = cells(c.encode_utf8(&mut [0; 4]));
        if used + size > width.max(1) {
            lines.push(String::new());
            used = 0;
        }
        used += size;
        if let Some(line) = lines.last_mut() {
            line.push(c);
        }
    }
    lines
}

fn cells(text: &str) -> usize {
    Span::raw(text).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_wide_as_it_may_be() {
        let cases = [
            (cut("abc", 3), "abc"),
            (cut("abcd", 3), "ab…"),
            (cut("abcd", 1), "…"),
            (cut("abcd", 0), ""),
            // Two cells each: the cut takes one.
            (cut("日本語", 4), "日…"),
            (cut("日本語", 5), "日本…"),
            (cut("e\u{301}e\u{301}", 2), "e\u{301}e\u{301}"),
            (fit("ab", 4, true), "  ab"),
            (fit("日", 3, false), "日 "),
        ];
        for (written, expected) in cases {
            assert_eq!(written, expected);
        }
        assert_eq!(wrapped("abcde", 2), ["ab", "cd", "e"]);
        assert_eq!(wrapped("日本", 1), ["", "日", "本"]);
        assert_eq!(wrapped("", 0), [""]);
    }
}
