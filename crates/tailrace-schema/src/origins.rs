//! Maps the characters of a decoded scalar back to the file it was written in, through quotes,
//! escapes, folding and the indentation of block scalars. Pure; a mismatch costs accuracy, never a panic.
//!
//! YAML adds, folds or drops only blanks (space, tab, line ends). So the n-th non-blank character of
//! the decoded text is the n-th non-blank one of the written text, an escape counting as one. [`trace`]
//! walks both side by side; blanks lie between their neighbours.

use saphyr_parser::ScalarStyle;

/// Places of a text in the file, as segments in which columns advance with the characters.
#[derive(Clone, Debug, Default)]
pub struct Origins(Vec<Segment>);

#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Byte offset in the decoded text.
    start: usize,
    line: usize,
    column: usize,
    /// The text was put in place of a `${...}` that stands here: columns do not advance.
    fixed: bool,
}

impl Origins {
    /// Text that stands as it is on one line.
    pub fn verbatim(line: usize, column: usize) -> Origins {
        Origins(vec![Segment {
            start: 0,
            line,
            column,
            fixed: false,
        }])
    }

    /// Text that does not stand in the file, but belongs to one spot of it.
    pub fn fixed(line: usize, column: usize) -> Origins {
        Origins(vec![Segment {
            start: 0,
            line,
            column,
            fixed: true,
        }])
    }

    /// Appends a line of a text that is not decoded, which begins at this byte of it.
    pub fn push_line(&mut self, start: usize, line: usize) {
        self.push(Segment {
            start,
            line,
            column: 1,
            fixed: false,
        });
    }

    /// Line and column, both from 1, of the byte at `offset` of `text`, which these origins describe.
    pub fn place(&self, text: &str, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let index = self.0.partition_point(|segment| segment.start <= offset);
        let Some(segment) = index.checked_sub(1).and_then(|index| self.0.get(index)) else {
            return (1, 1);
        };
        let advance = if segment.fixed {
            0
        } else {
            text.get(segment.start..offset)
                .map_or(0, |between| between.chars().count())
        };
        (segment.line, segment.column + advance)
    }

    /// Whether the byte at `offset` was put in place of a `${...}`, or belongs to one spot of the file as a whole.
    pub fn is_put_in(&self, offset: usize) -> bool {
        let index = self.0.partition_point(|segment| segment.start <= offset);
        let segment = index.checked_sub(1).and_then(|index| self.0.get(index));
        segment.is_some_and(|segment| segment.fixed)
    }

    /// Appends the places of `text[start..end]`, which follow at byte `at` of another text.
    pub fn push_range(&mut self, at: usize, from: &Origins, text: &str, start: usize, end: usize) {
        let (line, column) = from.place(text, start);
        let fixed = from
            .0
            .iter()
            .rfind(|segment| segment.start <= start)
            .is_some_and(|segment| segment.fixed);
        self.push(Segment {
            start: at,
            line,
            column,
            fixed,
        });
        for segment in from
            .0
            .iter()
            .filter(|segment| segment.start > start && segment.start < end)
        {
            self.push(Segment {
                start: segment.start - start + at,
                ..*segment
            });
        }
    }

    /// Appends a text put in place of something at one spot.
    pub fn push_fixed(&mut self, at: usize, (line, column): (usize, usize)) {
        self.push(Segment {
            start: at,
            line,
            column,
            fixed: true,
        });
    }

    fn push(&mut self, segment: Segment) {
        if self
            .0
            .last()
            .is_some_and(|last| last.start == segment.start)
        {
            self.0.pop();
        }
        self.0.push(segment);
    }
}

/// Where each character of `text` stands: `source` holds the characters of the file, and the scalar
/// begins at character `index`, on `line` and `column` (both from 1). A `decorated` one begins with its
/// anchor or tag; otherwise a block scalar begins with its content.
pub fn trace(
    text: &str,
    style: ScalarStyle,
    source: &[char],
    index: usize,
    line: usize,
    column: usize,
    decorated: bool,
) -> Origins {
    let mut written = Written {
        source,
        index,
        line,
        column,
    };
    if decorated {
        written.skip_decoration();
    }
    if matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted) {
        written.bump();
    }
    let escapes = style == ScalarStyle::DoubleQuoted;
    let mut origins = Origins(Vec::new());
    let mut next = None;
    for (start, c) in text.char_indices() {
        if is_blank(c) {
            let as_written = written.peek() == Some(c) || (escapes && written.peek() == Some('\\'));
            push_if_new(&mut origins, &mut next, start, &written);
            if as_written {
                written.consume(style);
            } else {
                next = None;
            }
            continue;
        }
        written.skip_blanks(escapes);
        push_if_new(&mut origins, &mut next, start, &written);
        let simple =
            written.peek() == Some(c) && !(style == ScalarStyle::SingleQuoted && c == '\'');
        written.consume(style);
        if !simple {
            next = None;
        }
    }
    if next != Some((written.line, written.column)) || origins.0.is_empty() {
        origins.push(Segment {
            start: text.len(),
            line: written.line,
            column: written.column,
            fixed: false,
        });
    }
    origins
}

/// Starts a segment unless the character follows straight on the last one; `next` is where it would.
fn push_if_new(
    origins: &mut Origins,
    next: &mut Option<(usize, usize)>,
    start: usize,
    written: &Written<'_>,
) {
    let here = (written.line, written.column);
    if *next != Some(here) {
        origins.push(Segment {
            start,
            line: here.0,
            column: here.1,
            fixed: false,
        });
    }
    *next = Some((here.0, here.1 + 1));
}

/// A walk over the text as written.
struct Written<'a> {
    source: &'a [char],
    index: usize,
    line: usize,
    column: usize,
}

impl Written<'_> {
    fn peek(&self) -> Option<char> {
        self.source.get(self.index).copied()
    }

    fn bump(&mut self) {
        let Some(c) = self.peek() else { return };
        self.index += 1;
        if c == '\n' || (c == '\r' && self.peek() != Some('\n')) {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
    }

    /// Steps over what stands for one decoded character.
    fn consume(&mut self, style: ScalarStyle) {
        let first = self.peek();
        self.bump();
        match (style, first) {
            (ScalarStyle::SingleQuoted, Some('\'')) => self.bump(),
            (ScalarStyle::DoubleQuoted, Some('\\')) => {
                let digits = match self.peek() {
                    Some('x') => 2,
                    Some('u') => 4,
                    Some('U') => 8,
                    _ => 0,
                };
                for _ in 0..=digits {
                    self.bump();
                }
            }
            _ => {}
        }
    }

    /// Steps over anchor, tag and the head of a block scalar.
    fn skip_decoration(&mut self) {
        self.skip_blanks(false);
        while let Some(c @ ('&' | '!' | '|' | '>' | '#')) = self.peek() {
            let to_line_end = !matches!(c, '&' | '!');
            while self.peek().is_some_and(|c| {
                if to_line_end {
                    c != '\n' && c != '\r'
                } else {
                    !is_blank(c)
                }
            }) {
                self.bump();
            }
            self.skip_blanks(false);
            if matches!(c, '|' | '>') {
                return;
            }
        }
    }

    /// Steps over blanks, and over escaped line ends where there are escapes.
    fn skip_blanks(&mut self, escapes: bool) {
        while let Some(c) = self.peek() {
            let escaped_end = escapes
                && c == '\\'
                && self
                    .source
                    .get(self.index + 1)
                    .is_some_and(|&after| after == '\n' || after == '\r');
            if !is_blank(c) && !escaped_end {
                return;
            }
            self.bump();
        }
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
