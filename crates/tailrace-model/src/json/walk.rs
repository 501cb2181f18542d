//! Stepping through the members of one object or the elements of one array.
//!
//! Iterates over the children of an object or array in the order they are written, duplicates included. Each child's
//! grammar is checked to its bottom when it is reached. At the first thing that is not JSON the walk ends: text that
//! came from a [`Value`] of the right kind was checked before and is always walked to its end.

use super::grammar;
use super::parse::first_value;
use super::value::{Kind, Value};

/// The members of an object: key (kind String, perhaps escaped) and value.
#[derive(Clone, Debug)]
pub struct Members<'a>(Walk<'a>);

impl<'a> Members<'a> {
    /// Walks the object that `object_text` is; text that does not start with `{` has no members.
    pub fn new(object_text: &'a str) -> Members<'a> {
        Members(Walk::new(object_text, b'{', b'}'))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Value<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(|text, at| {
            let (key, key_end) = first_value(text, at)?;
            let colon = grammar::skip_whitespace(text.as_bytes(), key_end);
            if key.kind != Kind::String || text.as_bytes().get(colon) != Some(&b':') {
                return None;
            }
            let (value, end) = first_value(text, colon + 1)?;
            Some(((key, value), end))
        })
    }
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a>(Walk<'a>);

impl<'a> Elements<'a> {
    /// Walks the array that `array_text` is; text that does not start with `[` has no elements.
    pub fn new(array_text: &'a str) -> Elements<'a> {
        Elements(Walk::new(array_text, b'[', b']'))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(first_value)
    }
}

/// What both walks share: where the next child starts, and whether there can be one.
#[derive(Clone, Debug)]
struct Walk<'a> {
    text: &'a str,
    /// The byte after the opening bracket or after the last comma; `None` once the walk is over.
    at: Option<usize>,
    close: u8,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str, open: u8, close: u8) -> Walk<'a> {
        let bytes = text.as_bytes();
        let start = grammar::skip_whitespace(bytes, 0);
        let first = grammar::skip_whitespace(bytes, start + 1);
        let opens = bytes.get(start) == Some(&open);
        let at = (opens && bytes.get(first) != Some(&close)).then_some(first);
        Walk { text, at, close }
    }

    fn step<T>(&mut self, child: impl FnOnce(&'a str, usize) -> Option<(T, usize)>) -> Option<T> {
        let (child, end) = child(self.text, self.at.take()?)?;
        let bytes = self.text.as_bytes();
        let behind = grammar::skip_whitespace(bytes, end);
        match bytes.get(behind) {
            Some(b',') => self.at = Some(behind + 1),
            Some(byte) if *byte == self.close => {}
            _ => return None,
        }
        Some(child)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<(&str, &str)> {
        Members::new(text)
            .map(|(key, value)| (key.text, value.text))
            .collect()
    }

    fn elements(text: &str) -> Vec<&str> {
        Elements::new(text).map(|value| value.text).collect()
    }

    #[test]
    fn members_come_in_order_with_duplicates() {
        assert_eq!(
            members(r#" { "a" : 1 ,"b":"x" , "a":[ 2 ]} "#),
            [("a", "1"), ("b", "x"), ("a", "[ 2 ]")]
        );
        assert_eq!(members("{}"), []);
        assert_eq!(members("{ \n }"), []);
    }

    #[test]
    fn elements_come_in_order() {
        assert_eq!(
            elements(r#"[1,"b",{"c":3}, [4] ,null]"#),
            ["1", "b", r#"{"c":3}"#, "[4]", "null"]
        );
        assert_eq!(elements("[]"), [""; 0]);
    }

    #[test]
    fn another_kind_has_no_children() {
        assert_eq!(members("[1]"), []);
        assert_eq!(elements("{}"), [""; 0]);
        assert_eq!(members(""), []);
        assert_eq!(members("  "), []);
        assert_eq!(elements("12"), [""; 0]);
    }

    #[test]
    fn a_walk_ends_where_the_json_ends() {
        assert_eq!(members(r#"{"a":1,"b":tru}"#), [("a", "1")]);
        assert_eq!(members(r#"{"a":1 "b":2}"#), []);
        assert_eq!(members(r#"{"a":1,}"#), [("a", "1")]);
        assert_eq!(members(r#"{"a":1"#), []);
        assert_eq!(members(r#"{1:2}"#), []);
        assert_eq!(elements("[1,2"), ["1"]);
        assert_eq!(elements("["), [""; 0]);
    }
}
