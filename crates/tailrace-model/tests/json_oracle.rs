//! The JSON walker against serde_json, on generated texts and on damaged ones.
#![allow(clippy::unwrap_used, missing_docs)]

use proptest::prelude::*;
use serde_json::value::RawValue;
use tailrace_model::json::{
    Elements, Kind, Members, Step, Unescaped, Value, get_path, parse_value, string_equals,
    unescape, unescaped, write_string,
};

/// JSON text with odd spacing, odd escapes and odd numbers, as a writer other than serde_json might make it.
fn json_text() -> impl Strategy<Value = String> {
    let space = || "[ \t\r\n]{0,2}";
    let number = "-?(0|[1-9][0-9]{0,25})([.][0-9]{1,20})?([eE][-+]?[0-9]{1,3})?";
    let string = || {
        let part = prop_oneof![
            4 => "[ !#-\\[\\]-~]{1,12}",
            1 => "[äß€😀\u{7f}\u{2028}]{1,4}",
            2 => "\\\\[\"\\\\/bfnrt]",
            1 => "\\\\u[0-9a-fA-F]{4}",
            1 => "\\\\u[dD][89abAB][0-9a-f]{2}\\\\u[dD][c-fC-F][0-9a-f]{2}",
        ];
        prop::collection::vec(part, 0..5).prop_map(|parts| format!("\"{}\"", parts.concat()))
    };
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        number,
        string()
    ];
    scalar.prop_recursive(5, 40, 6, move |inner| {
        let array =
            prop::collection::vec((space(), inner.clone(), space()), 0..6).prop_map(|items| {
                let items: Vec<_> = items
                    .into_iter()
                    .map(|(a, item, b)| format!("{a}{item}{b}"))
                    .collect();
                format!("[{}]", items.join(","))
            });
        let object =
            prop::collection::vec((string(), space(), inner, space()), 0..6).prop_map(|members| {
                let members: Vec<_> = members
                    .into_iter()
                    .map(|(key, a, item, b)| format!("{a}{key}{b}:{a}{item}{b}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            });
        prop_oneof![array, object]
    })
}

/// Whether the text is JSON by grammar alone, without a limit on depth or on numbers.
fn serde_accepts(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Every value in the tree is what serde_json makes of its text.
fn check_tree(value: Value<'_>) {
    match value.kind {
        Kind::Object => {
            let ours: Vec<_> = Members::new(value.text).collect();
            for (at, (key, child)) in ours.iter().enumerate() {
                check_tree(*key);
                check_tree(*child);
                let name = unescaped(key).unwrap();
                let first = ours[..=at]
                    .iter()
                    .position(|(key, _)| unescaped(key).unwrap() == name)
                    .unwrap();
                let found = get_path(value, &[Step::Key(name.into_owned())]).unwrap();
                assert_eq!(found, ours[first].1);
            }
            if let Ok(theirs) =
                serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(value.text)
            {
                let distinct: std::collections::BTreeSet<_> = ours
                    .iter()
                    .map(|(key, _)| unescaped(key).unwrap())
                    .collect();
                assert_eq!(distinct.len(), theirs.len());
            }
        }
        Kind::Array => {
            let ours: Vec<_> = Elements::new(value.text).collect();
            let theirs: Vec<&RawValue> = serde_json::from_str(value.text).unwrap();
            assert_eq!(ours.len(), theirs.len());
            for (at, (child, raw)) in ours.iter().zip(theirs).enumerate() {
                check_tree(*child);
                assert_eq!(parse_value(raw.get()).unwrap(), *child);
                assert_eq!(get_path(value, &[Step::Index(at as i64)]), Some(*child));
                assert_eq!(
                    get_path(value, &[Step::Index(at as i64 - ours.len() as i64)]),
                    Some(*child)
                );
            }
        }
        Kind::String => check_string(value),
        Kind::Integer | Kind::Float => {
            if let Ok(number) = serde_json::from_str::<serde_json::Number>(value.text) {
                let small = value.text.parse::<i64>().is_ok() && value.text != "-0";
                assert_eq!(
                    small,
                    number.is_i64() && value.kind == Kind::Integer,
                    "{}",
                    value.text
                );
            }
        }
        Kind::Bool => assert!(serde_json::from_str::<bool>(value.text).is_ok()),
        Kind::Null => assert!(serde_json::from_str::<()>(value.text).is_ok()),
    }
}

fn check_string(value: Value<'_>) {
    assert_eq!(value.escaped, value.text.contains('\\'));
    let mut out = Vec::new();
    let outcome = unescape(value.text, &mut out);
    let ours = std::str::from_utf8(&out).unwrap();
    match serde_json::from_str::<String>(&format!("\"{}\"", value.text)) {
        Ok(theirs) => {
            assert_eq!(outcome, Unescaped::Done { replaced: 0 });
            assert_eq!(ours, theirs);
        }
        // The grammar allows lone surrogates, serde_json's String does not.
        Err(_) => assert!(
            matches!(outcome, Unescaped::Done { replaced: 1.. }),
            "{value:?}"
        ),
    }
    assert_eq!(unescaped(&value).unwrap(), ours);
    assert!(string_equals(&value, ours));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn generated_texts_are_walked_as_serde_json_reads_them(text in json_text()) {
        prop_assert!(serde_accepts(&text), "the generator makes JSON: {text}");
        let value = parse_value(&text);
        prop_assert!(value.is_some(), "{}", text);
        check_tree(value.unwrap());
    }

    #[test]
    fn damaged_texts_are_judged_alike(
        text in json_text(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3, "[]\\[{},:\"\\\\ 0-9eE.+u\u{1}\ntrufalsn-]{0,2}"), 1..4),
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        for (at, removed, inserted) in cuts {
            let at = at.index(characters.len() + 1);
            let end = (at + removed).min(characters.len());
            characters.splice(at..end, inserted.chars());
        }
        let text: String = characters.into_iter().collect();
        let value = parse_value(&text);
        prop_assert_eq!(value.is_some(), serde_accepts(&text), "{}", text);
        if let Some(value) = value {
            check_tree(value);
        }
    }

    /// As any scalar, and inside strings.
    #[test]
    fn numbers_that_are_not_finite_stand_where_null_may(
        text in json_text(),
        cut in prop::option::of((any::<prop::sample::Index>(), "[]\\[{},:\"1]")),
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        if let Some((at, inserted)) = cut {
            let at = at.index(characters.len() + 1);
            characters.splice(at..at, inserted.chars());
        }
        let text: String = characters.into_iter().collect();
        prop_assume!(!text.contains("\\null"));
        for literal in ["NaN", "Infinity", "-Infinity"] {
            let other = text.replace("null", literal);
            prop_assert_eq!(parse_value(&other).is_some(), serde_accepts(&text), "{}", other);
        }
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,60}") {
        prop_assert_eq!(parse_value(&text).is_some(), serde_accepts(&text));
        let _ = Members::new(&text).count() + Elements::new(&text).count();
        let mut out = Vec::new();
        unescape(&text, &mut out);
        prop_assert!(std::str::from_utf8(&out).is_ok());
    }

    #[test]
    fn strings_are_written_as_serde_json_writes_them(text in any::<String>(), controls in "[\u{0}-\u{22}\\\\]{0,8}") {
        let text = format!("{text}{controls}{text}");
        let mut out = Vec::new();
        write_string(&text, &mut out);
        let written = String::from_utf8(out).unwrap();
        prop_assert_eq!(&written, &serde_json::to_string(&text).unwrap());
        prop_assert_eq!(unescaped(&parse_value(&written).unwrap()).unwrap(), text);
    }
}
