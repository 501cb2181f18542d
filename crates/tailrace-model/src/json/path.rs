//! Following a path of keys and indexes into a value.
//!
//! Follows a list of steps from a value to the value at the end. Never converts: a key does not index an array and
//! an index does not look up a key. Only what stands before the wanted child is walked.

use super::string::string_equals;
use super::value::{Kind, Value};
use super::walk::{Elements, Members};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// The first member of an object whose key, unescaped, is this.
    Key(String),
    /// The element of an array with this index from 0; negative counts from the end, -1 being the last.
    Index(i64),
}

/// The value at the end of `path`, `value` itself if the path is empty. Of duplicate keys the first wins.
pub fn get_path<'a>(value: Value<'a>, path: &[Step]) -> Option<Value<'a>> {
    path.iter()
        .try_fold(value, |value, step| match (step, value.kind) {
            (Step::Key(name), Kind::Object) => Members::new(value.text)
                .find(|(key, _)| string_equals(key, name))
                .map(|(_, value)| value),
            (Step::Index(index), Kind::Array) => element(value.text, *index),
            _ => None,
        })
}

fn element(array_text: &str, index: i64) -> Option<Value<'_>> {
    let from_start = match usize::try_from(index) {
        Ok(index) => index,
        Err(_) => {
            let from_end = usize::try_from(index.unsigned_abs()).ok()?;
            Elements::new(array_text).count().checked_sub(from_end)?
        }
    };
    Elements::new(array_text).nth(from_start)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::json::parse_value;

    const RECORD: &str =
        r#"{"a":{"b":[10,{"c":"x"},null],"b":1},"a.b":2,"\u0061\n":3,"":4,"n":null}"#;

    fn check(path: &[Step], expect: Option<&str>) {
        let found = get_path(parse_value(RECORD).unwrap(), path);
        assert_eq!(found.map(|value| value.text), expect, "{path:?}");
    }

    fn key(name: &str) -> Step {
        Step::Key(name.into())
    }

    #[test]
    fn paths() {
        check(&[], Some(RECORD));
        check(&[key("a.b")], Some("2"));
        check(&[key("a\n")], Some("3"));
        check(&[key("")], Some("4"));
        check(&[key("n")], Some("null"));
        check(&[key("a"), key("b"), Step::Index(0)], Some("10"));
        check(&[key("a"), key("b"), Step::Index(1), key("c")], Some("x"));
        check(&[key("a"), key("b"), Step::Index(-1)], Some("null"));
        check(&[key("a"), key("b"), Step::Index(-3)], Some("10"));
    }

    #[test]
    fn what_is_not_there_is_none() {
        check(&[key("b")], None);
        check(&[key("n"), key("x")], None);
        check(&[key("a"), Step::Index(0)], None);
        check(&[key("a"), key("b"), key("0")], None);
        check(&[key("a"), key("b"), Step::Index(3)], None);
        check(&[key("a"), key("b"), Step::Index(-4)], None);
        check(&[key("a"), key("b"), Step::Index(i64::MIN)], None);
        check(&[key("a"), key("b"), Step::Index(i64::MAX)], None);
    }
}
