//! Replaces lists in the text of a YAML file; the rest of the text stays, with its comments. Pure.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::json::to_json;
use crate::node::{Node, Value};
use crate::source::{Position, Source};
use crate::yaml;

/// A list of a file, and what it becomes.
#[derive(Clone, Copy, Debug)]
pub struct Edit<'a> {
    /// The position of its node: its own, or its key's where it begins on a line below.
    pub position: &'a Position,
    /// Its key.
    pub key: &'a str,
    /// The new items: each a JSON value on one line.
    pub items: &'a [String],
}

/// A line with a list between brackets may become so long.
const LINE_CHARS_MAX: usize = 120;

/// The text of a file with new items in its lists.
///
/// # Errors
///
/// Which list cannot be replaced, by its number, and why.
pub fn replace_lists(source: &Arc<Source>, edits: &[Edit<'_>]) -> Result<String, (usize, String)> {
    let text = source.text();
    let chars: Vec<char> = text.trim_start_matches('\u{feff}').chars().collect();
    let mut wanted = HashMap::new();
    for (number, edit) in edits.iter().enumerate() {
        let place = (edit.position.line(), edit.position.column());
        if wanted.insert(place, number).is_some() {
            return Err((
                number,
                "another one is written at the same place".to_owned(),
            ));
        }
    }
    let mut places = find(&chars, edits, &wanted)?;
    // From the end, so that the places before stay right.
    places.reverse();
    let mut new = chars.clone();
    for (place, number) in &places {
        let (range, text) = written(&chars, place, edits[*number].items);
        new.splice(range, text.chars());
    }
    let bom = if text.starts_with('\u{feff}') {
        "\u{feff}"
    } else {
        ""
    };
    let new = format!("{bom}{}", String::from_iter(new));
    check(source, &new, edits)?;
    Ok(new)
}

/// A list in the text, in characters.
struct Place {
    range: Range<usize>,
    /// Whether it is between brackets itself, and whether something around it is.
    is_flow: bool,
    is_within_flow: bool,
}

const UNKNOWN: &str = "its place in the file is not known";

/// Finds the lists, in the order of the text, each with its number. `wanted` has the numbers by line and column.
fn find(
    chars: &[char],
    edits: &[Edit<'_>],
    wanted: &HashMap<(usize, usize), usize>,
) -> Result<Vec<(Place, usize)>, (usize, String)> {
    let text: String = chars.iter().collect();
    let mut parser = Parser::new_from_str(&text);
    let mut places = Vec::new();
    // Of what is open: whether it is between brackets.
    let mut open: Vec<bool> = Vec::new();
    // The list whose key was the last event.
    let mut next: Option<usize> = None;
    while let Some(Ok((event, span))) = parser.next_event() {
        let start = span.start.index();
        let is_flow = matches!(chars.get(start), Some('[' | '{'));
        let place = (span.start.line().max(1), span.start.col() + 1);
        let here = wanted.get(&place).copied();
        let wrong = |number: usize, why: &str| Err((number, why.to_owned()));
        match (event, next.take(), here) {
            (Event::SequenceStart(anchor, _), Some(number), _)
            | (Event::SequenceStart(anchor, _), None, Some(number)) => {
                if anchor > 0 {
                    let why = "it has an anchor, so that other places may use it";
                    return wrong(number, why);
                }
                let unknown = || (number, UNKNOWN.to_owned());
                let (start, is_flow) = begin(chars, start).ok_or_else(unknown)?;
                let end = end(chars, &mut parser, start, is_flow).ok_or_else(unknown)?;
                let place = Place {
                    range: start..end,
                    is_flow,
                    is_within_flow: open.contains(&true),
                };
                places.push((place, number));
            }
            (Event::Alias(_), Some(number), _) => return wrong(number, "it is an alias"),
            (Event::Scalar(..) | Event::MappingStart(..), Some(number), _) => {
                return wrong(number, "it is not a list");
            }
            (Event::Scalar(text, ..), None, Some(number)) if text != edits[number].key => {
                return wrong(number, "it is not a list");
            }
            (Event::Scalar(..), None, here) => next = here,
            (Event::SequenceStart(..) | Event::MappingStart(..), ..) => open.push(is_flow),
            (Event::SequenceEnd | Event::MappingEnd, ..) => {
                open.pop();
            }
            _ => {}
        }
    }
    let is_found = |number: &usize| places.iter().any(|(_, found)| found == number);
    match (0..edits.len()).find(|number| !is_found(number)) {
        Some(number) => Err((number, UNKNOWN.to_owned())),
        None => Ok(places),
    }
}

/// Where a list begins, and whether that is a bracket. The parser takes the first item for its beginning if its dashes
/// are below its key.
fn begin(chars: &[char], start: usize) -> Option<(usize, bool)> {
    if chars.get(start) == Some(&'-') && chars.get(start + 1).is_none_or(|c| c.is_whitespace()) {
        return Some((start, false));
    }
    let before = chars[..start].iter().rposition(|c| !c.is_whitespace())?;
    match chars[before] {
        '-' => Some((before, false)),
        _ if chars.get(start) == Some(&'[') => Some((start, true)),
        _ => None,
    }
}

/// The end of a list that has begun: behind its last item or bracket.
fn end(
    chars: &[char],
    parser: &mut Parser<'_, saphyr_parser::StrInput<'_>>,
    start: usize,
    is_flow: bool,
) -> Option<usize> {
    let mut open = vec![is_flow];
    // How many values that are nothing at all are the last ones.
    let (mut end, mut empty) = (start + 1, 0);
    while !open.is_empty() {
        let (event, span) = parser.next_event()?.ok()?;
        let is_flow = matches!(chars.get(span.start.index()), Some('[' | '{'));
        match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) if text.is_empty() => empty += 1,
            Event::Scalar(..) | Event::Alias(_) => {
                (end, empty) = (end.max(span.end.index()), 0);
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => open.push(is_flow),
            Event::SequenceEnd | Event::MappingEnd => {
                let at = span.start.index();
                if open.pop()? && matches!(chars.get(at), Some(']' | '}')) {
                    (end, empty) = (end.max(at + 1), 0);
                }
            }
            _ => {}
        }
    }
    let mut end = end.min(chars.len());
    while end > start && chars[end - 1].is_whitespace() {
        end -= 1;
    }
    for _ in 0..empty {
        // Behind a `:` or a `-` that has no value.
        let next = chars[end..].iter().position(|c| !c.is_whitespace())?;
        if matches!(chars[end + next], ':' | '-') {
            end += next + 1;
        }
    }
    Some(end)
}

/// What to replace, and the list as it is written there.
fn written(chars: &[char], place: &Place, items: &[String]) -> (Range<usize>, String) {
    let Range { start, end } = place.range;
    let newlines = chars[..start]
        .iter()
        .rposition(|c| matches!(c, '\n' | '\r'));
    let line = newlines.map_or(0, |at| at + 1);
    let line_end = if chars.contains(&'\r') { "\r\n" } else { "\n" };
    let block = |indent: usize| {
        let indent = format!("{line_end}{}", " ".repeat(indent));
        let items = items.iter().map(|item| format!("{indent}- {item}"));
        items.collect::<String>()
    };
    if items.is_empty() {
        return (start..end, "[]".to_owned());
    }
    if !place.is_flow {
        let text = block(start - line);
        return (start..end, text.trim_start().to_owned());
    }
    let inline = format!("[{}]", items.join(", "));
    let before: String = chars[line..start].iter().collect();
    let key = before.trim_start_matches([' ', '-']);
    let is_alone = key.trim_end().ends_with(':') && !key.trim_end().contains(' ');
    let was_empty = chars[start + 1..end - 1].iter().all(|c| c.is_whitespace());
    let is_short = start - line + inline.chars().count() <= LINE_CHARS_MAX;
    if place.is_within_flow || !is_alone || (is_short && !was_empty) {
        return (start..end, inline);
    }
    let indent = before.chars().count() - key.chars().count();
    let gap = before.chars().count() - before.trim_end().chars().count();
    (start - gap..end, block(indent + 2))
}

/// Whether the new text has the new items, and is the same elsewhere.
fn check(source: &Source, new: &str, edits: &[Edit<'_>]) -> Result<(), (usize, String)> {
    let wrong = || (0, "the file would not be the same elsewhere".to_owned());
    let tree = |text: &str| {
        let source = Source::new("edited", text.to_owned());
        let mut diagnostics = Vec::new();
        yaml::parse(&source, &mut diagnostics).filter(|_| diagnostics.is_empty())
    };
    let (Some(old), Some(new)) = (tree(source.text()), tree(new)) else {
        return Err((0, "YAML cannot have such rows".to_owned()));
    };
    if same(&old, &new, edits) {
        Ok(())
    } else {
        Err(wrong())
    }
}

fn same(old: &Node, new: &Node, edits: &[Edit<'_>]) -> bool {
    match (&old.value, &new.value) {
        (Value::Sequence(old_items), Value::Sequence(items)) => {
            let place = (old.position.line(), old.position.column());
            let is_here = |it: &&Edit<'_>| (it.position.line(), it.position.column()) == place;
            if let Some(edit) = edits.iter().find(is_here) {
                let items = items.iter().map(to_json);
                return items.eq(edit.items.iter().cloned());
            }
            let mut pairs = old_items.iter().zip(items);
            old_items.len() == items.len() && pairs.all(|(old, new)| same(old, new, edits))
        }
        (Value::Mapping(old), Value::Mapping(new)) => {
            let mut pairs = old.iter().zip(new);
            old.len() == new.len()
                && pairs.all(|(old, new)| old.key == new.key && same(&old.value, &new.value, edits))
        }
        (Value::Scalar(old), Value::Scalar(new)) => old.text == new.text && old.plain == new.plain,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
