//! Walking JSON text (RFC 8259) that is already valid UTF-8, without building a tree.
//!
//! A [`Value`] borrows from the text that it was found in: a kind and the value's own text. Grammar is checked wherever
//! a value is crossed, nesting of any depth is followed by a loop and a bit stack (never by recursion), and no function
//! here allocates unless its name says so (`unescape`, `unescaped`, `write_string`) or nesting is deeper than 128
//! levels, of which each takes a bit. Numbers are never converted: their text is exact, what it means is the caller's
//! decision. Beyond RFC 8259, `NaN`, `Infinity` and `-Infinity` are numbers, as Python and Go write them.
//!
//! ```
//! use tailrace_model::json::{Kind, Step, get_path, parse_value};
//!
//! let record = parse_value(r#"{"http":{"status":200,"tags":["a","b"]}}"#).expect("valid JSON");
//! let tag = get_path(record, &[Step::Key("http".into()), Step::Key("tags".into()), Step::Index(1)]);
//! let tag = tag.expect("the path exists");
//! assert_eq!((tag.kind, tag.text), (Kind::String, "b"));
//! ```

mod digits;
mod grammar;
mod number;
mod parse;
mod path;
mod sixteen;
mod string;
mod value;
mod walk;

pub use digits::eight_digits;
pub use number::{exact_integer, not_finite};
pub use parse::{
    PLAIN_STEP, first_value, parse_value, plain_len, skip_whitespace, string_end, value_end,
};
pub use path::{Step, get_path};
pub use string::{
    Unescaped, escape, short_escape, string_equals, unescape, unescape_bytes, unescape_into,
    unescaped, write_string,
};
pub use value::{Kind, Value};
pub use walk::{Elements, Members};

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What ends or interrupts a string, at each place of strings of each length, whatever is around them.
    #[test]
    fn a_string_ends_where_it_ends() {
        for (before, len, behind) in
            (0..40).flat_map(|len| [(0, len, 0), (3, len, 5), (20, len, 40)])
        {
            let string = |text: &str| {
                let text = format!("{}\"{text}\"{}", "\\".repeat(before), "\"".repeat(behind));
                string_end(text.as_bytes(), before)
            };
            let end = before + len + 2;
            assert_eq!(string(&"x".repeat(len)), Some((end, false)));
            for at in 0..=len {
                let with = |what: &str| {
                    string(&format!("{}{what}{}", "x".repeat(at), "y".repeat(len - at)))
                };
                assert_eq!(with("\""), Some((before + at + 2, false)));
                assert_eq!(with("\\\""), Some((end + 2, true)));
                assert_eq!(with("\\u00e9"), Some((end + 6, true)));
                assert_eq!(with("\u{fc}"), Some((end + 2, false)));
                assert_eq!(with("\n"), None);
                assert_eq!(with("\\x"), None);
            }
        }
    }

    #[test]
    fn scalars_have_their_kind_and_trimmed_text() {
        for (text, kind, inner, escaped) in [
            (" null\n", Kind::Null, "null", false),
            ("true", Kind::Bool, "true", false),
            ("\tfalse ", Kind::Bool, "false", false),
            ("-0", Kind::Integer, "-0", false),
            (
                "123456789012345678901234567890",
                Kind::Integer,
                "123456789012345678901234567890",
                false,
            ),
            ("1.50", Kind::Float, "1.50", false),
            ("1E+2", Kind::Float, "1E+2", false),
            (" NaN ", Kind::Float, "NaN", false),
            ("Infinity", Kind::Float, "Infinity", false),
            ("-Infinity\n", Kind::Float, "-Infinity", false),
            ("[NaN,-Infinity]", Kind::Array, "[NaN,-Infinity]", false),
            (r#""""#, Kind::String, "", false),
            (r#" "a b" "#, Kind::String, "a b", false),
            (r#""a\"b""#, Kind::String, r#"a\"b"#, true),
            ("[ ]", Kind::Array, "[ ]", false),
            (" { } ", Kind::Object, "{ }", false),
            ("\"a\u{7f}ü\"", Kind::String, "a\u{7f}ü", false),
        ] {
            assert_eq!(
                parse_value(text),
                Some(Value {
                    kind,
                    text: inner,
                    escaped
                }),
                "{text:?}"
            );
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in [
            "",
            " ",
            "nul",
            "nulll",
            "tru",
            "True",
            "+1",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "1e+",
            "--1",
            "0x1",
            "-NaN",
            "+Infinity",
            "nan",
            "Inf",
            "Infin",
            "NaNa",
            "-Infinity0",
            "{NaN:1}",
            "\"",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u12\"",
            "\"a\nb\"",
            "\"\u{1}\"",
            "[",
            "]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1}",
            "{",
            "}",
            "{]",
            "{1:2}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,\"a\":1}",
            "{\"a\" 1}",
            "{\"a\":1 \"b\":2}",
            "1 2",
            "{} {}",
            "'a'",
            "\u{feff}1",
            "[1]x",
            "\u{a0}1",
            "[\u{b}1]",
        ] {
            assert_eq!(parse_value(text), None, "{text:?}");
        }
    }

    #[test]
    fn nesting_is_followed_to_any_depth() {
        for depth in [1, 127, 128, 129, 255, 256, 257, 100_000] {
            let arrays = "[".repeat(depth) + &"]".repeat(depth);
            assert!(parse_value(&arrays).is_some(), "{depth}");
            assert!(parse_value(&arrays[1..]).is_none(), "{depth}");
            assert!(parse_value(&arrays[..2 * depth - 1]).is_none(), "{depth}");
            let mixed = "{\"a\":[".repeat(depth) + "1" + &"]}".repeat(depth);
            assert!(parse_value(&mixed).is_some(), "{depth}");
            assert!(parse_value(&mixed.replacen("]}", "}]", 1)).is_none());
            let last = mixed.len() - 2;
            let swapped = format!("{}}}]", &mixed[..last]);
            assert!(parse_value(&swapped).is_none(), "{depth}");
        }
        assert!(parse_value(&"[".repeat(10_000_000)).is_none());
    }

    #[test]
    fn first_value_says_where_it_ended() {
        let text = r#"  12 , "x" ,{"a":[1]}z"#;
        let (first, end) = first_value(text, 0).unwrap();
        assert_eq!((first.text, end), ("12", 4));
        let (second, end) = first_value(text, end + 2).unwrap();
        assert_eq!((second.text, &text[end..=end]), ("x", " "));
        let (third, end) = first_value(text, end + 2).unwrap();
        assert_eq!((third.text, &text[end..]), (r#"{"a":[1]}"#, "z"));
        assert_eq!(first_value(text, text.len()), None);
        assert_eq!(first_value(text, text.len() + 9), None);
    }

    #[test]
    fn every_tag_is_its_kind() {
        for tag in 0..=u8::MAX {
            match Kind::from_u8(tag) {
                Some(kind) => assert_eq!(kind as u8, tag),
                None => assert!(tag > 6),
            }
        }
    }
}
