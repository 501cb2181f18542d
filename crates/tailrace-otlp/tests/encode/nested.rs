//! Nested JSON that is damaged: all of it becomes text, and nothing of it stays behind.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use proptest::prelude::*;
use tailrace_model::json;

use crate::fixed::{attributes, string, usual};

const OBJECT: u8 = 5;
const WHOLE: &str = r#"{"a":{"b":[1,{"a":2}]},"b":"x"}"#;

/// Encodes a value that is said to be an object, then one that is; says what became of the first.
fn check(text: &str) -> (Any, tailrace_otlp::Stats) {
    let (record, stats) = usual(&[("v", OBJECT, text.into()), ("w", OBJECT, WHOLE.into())]);
    let (whole, _) = usual(&[("w", OBJECT, WHOLE.into())]);
    let of = |record: &[(&str, Option<Any>)], name| {
        let mut named = record.iter().filter(|(key, _)| *key == name);
        named.next().and_then(|(_, value)| value.clone())
    };
    let (record, whole) = (attributes(&record), attributes(&whole));
    assert_eq!(of(&record, "w"), of(&whole, "w"), "{text}");
    (of(&record, "v").unwrap(), stats)
}

#[test]
fn what_is_no_json_after_all_is_text_and_counts_once() {
    let deep = "[".repeat(30) + &"]".repeat(30);
    for text in [
        r#"{"a":1,"a":2,"b":{"c":3,"c":4},"d":tru}"#.to_owned(),
        r#"{"a":{"b":1}"#.to_owned(),
        r#"{"a":{"b":1}}}"#.to_owned(),
        r#"{"a":1,}"#.to_owned(),
        r#"{"a":1 "b":2}"#.to_owned(),
        r#"{"a":1,"a":{"x":01}}"#.to_owned(),
        r#"{"a" 1}"#.to_owned(),
        r#"{1:1}"#.to_owned(),
        "[1,]".to_owned(),
        "[1}".to_owned(),
        format!("[{deep},]"),
        // Far down in what is sent as text.
        "[".repeat(129) + "tru" + &"]".repeat(129),
    ] {
        let (value, stats) = check(&text);
        assert_eq!(Some(value), string(&text));
        let counts = (stats.invalid_json, stats.duplicate_keys, stats.too_deep);
        assert_eq!(counts, (1, 0, 0), "{text}");
    }
    for depth in [128, 129, 10_000] {
        let (value, stats) = check(&("[".repeat(depth) + &"]".repeat(depth)));
        assert!(matches!(value, Any::ArrayValue(_)));
        assert_eq!((stats.invalid_json, stats.too_deep), (0, 1));
    }
}

#[test]
fn a_scalar_that_is_said_to_be_an_object_has_no_members() {
    for text in ["12", r#" "x" "#, "null"] {
        let (value, stats) = check(text);
        assert!(matches!(value, Any::KvlistValue(list) if list.values.is_empty()));
        assert_eq!(stats.invalid_json, 0);
    }
}

/// Small JSON texts with keys that repeat.
fn texts() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![r#"-?[0-9]{1,20}"#, r#""[a-c]{0,3}""#, "true|null|1[.]5e3"];
    scalar.prop_recursive(4, 32, 4, |inner| {
        let member =
            ("[ab]{0,2}", inner.clone()).prop_map(|(key, value)| format!("\"{key}\" :{value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(", "))),
            prop::collection::vec(member, 0..4).prop_map(|all| format!("{{{}}}", all.join(","))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn one_walk_refuses_what_the_grammar_refuses(
        text in texts(),
        at in any::<prop::sample::Index>(),
        byte in "[]{}\\[\\]:,\"0a \\\\]",
        is_damaged in any::<bool>(),
    ) {
        let mut text = text;
        if is_damaged {
            let at = at.index(text.len());
            text.replace_range(at..=at, &byte);
        }
        let is_json = json::parse_value(&text).is_some();
        let (value, stats) = check(&text);
        prop_assert_eq!(stats.invalid_json, u64::from(!is_json));
        prop_assert_eq!(Some(value) == string(&text), !is_json, "{}", text);
    }
}
