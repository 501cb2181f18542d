//! What is learnt, and how much.

use super::*;
use crate::follow::ValueSpans;
use crate::index::Indexer;
use crate::keys::Keys;
use crate::text::Span;
use crate::{Isa, Record};

/// Keys of `SELECT *`, all of which have a column once met.
fn star() -> Keys {
    Keys::new([], &[], &[], Some(usize::MAX))
}

/// A record, and after it what lets it be looked at.
fn record(text: &str) -> (Vec<u8>, usize) {
    (
        [text.as_bytes(), &[b' '; WINDOW_BYTES]].concat(),
        text.len(),
    )
}

/// Learns the template of a record, and gives the number of the one that it is followed along.
fn meet(templates: &mut Templates, keys: &Keys, text: &str) -> u32 {
    let (bytes, end) = record(text);
    let structurals = [0, end as u32 - 1];
    templates.learn(&bytes, &structurals, |name| keys.key_use(name));
    follow(templates, &bytes, end)
}

fn flat(names: &[String]) -> String {
    let members: Vec<_> = names.iter().map(|name| format!("\"{name}\":1")).collect();
    format!("{{{}}}", members.join(","))
}

/// The template of the record that ends at `end`.
fn follow(templates: &Templates, text: &[u8], end: usize) -> u32 {
    let (mut value_spans, span) = (ValueSpans::default(), Span::of(0, end));
    let indexer = Indexer::new(Isa::Auto);
    value_spans.follow(indexer, templates, text, &[Record::default()], &[span]);
    value_spans.found()[0].template
}

#[test]
fn a_record_at_the_end_of_every_buffer_is_learnt_once() {
    let (mut templates, keys) = (Templates::new(), star());
    let text = r#"{"a":1,"b":1}"#;
    for _ in 0..if cfg!(miri) { 20 } else { 1000 } {
        templates.start_batch();
        assert_eq!(meet(&mut templates, &keys, text), 0);
        // Nothing stands after it, so there is nothing to be looked at.
        assert_eq!(follow(&templates, text.as_bytes(), text.len()), NONE);
    }
    assert_eq!((templates.len(), templates.nodes.len()), (1, 3));
}

#[test]
fn whitespace_behind_a_colon_makes_another_template() {
    let (mut templates, keys) = (Templates::new(), star());
    let text = |space: &str| format!("{{\"a\":{space}1,\"b\":{space}1}}");
    for _ in 0..2 {
        for (number, space) in (0..).zip(["", " ", "\t", "  "]) {
            assert_eq!(
                meet(&mut templates, &keys, &text(space)),
                number,
                "{space:?}"
            );
        }
    }
}

#[test]
fn members_of_objects_are_followed() {
    let (mut templates, keys) = (Templates::new(), star());
    let texts = [
        r#"{"a":{"b":1,"c":{"d":"x"}},"e":[{"f":1}]}"#,
        r#"{"a":{"b":1,"c":{"d":"x"}}}"#,
        r#"{"a":{"b":1,"c":{"d":"x"}, "g":1}}"#,
        r#"{"a":{"b":1},"e":[]}"#,
        r#"{"a":null,"e":[]}"#,
        r#"{"a":{ "b" : {} } }"#,
    ];
    for (number, text) in (0..).zip(texts) {
        assert_eq!(meet(&mut templates, &keys, text), number, "{text}");
    }
    for (number, text) in (0..).zip(texts) {
        let (bytes, end) = record(text);
        assert_eq!(follow(&templates, &bytes, end), number, "{text}");
        // The tail of one is not that of another.
        assert_eq!(follow(&templates, &bytes, end - 1), NONE, "{text}");
    }
    let objects: Vec<_> = templates
        .templates
        .iter()
        .map(|it| it.objects.len())
        .collect();
    assert_eq!(objects, [1, 1, 1, 1, 0, 1]);
    // What was no object may be one, as a whole.
    let (bytes, end) = record(r#"{"a":{"z":1},"e":[]}"#);
    assert_eq!(follow(&templates, &bytes, end), 4);
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn objects_with_other_keys_each_time_are_values() {
    for text in [
        r#"{"a":{"KEY":1},"b":2}"#,
        r#"{"a":{"app":1,"KEY":1},"b":2}"#,
        r#"{"http":{"m":1},"a":{"KEY":1}}"#,
        r#"{"a":{"b":{"c":1,"KEY":{}}},"d":{"e":[]}}"#,
    ] {
        let (mut templates, keys) = (Templates::new(), star());
        for i in 0..1000 {
            templates.start_batch();
            let text = text.replace("KEY", &format!("k{i}"));
            let number = meet(&mut templates, &keys, &text);
            assert_eq!(number, i.min(VARIANTS_MAX), "{text}");
        }
        assert_eq!(templates.len() as u32, VARIANTS_MAX + 1);
        // Another program is not concerned.
        let text = r#"{"c":{"k1":1}}"#;
        assert_eq!(meet(&mut templates, &keys, text), VARIANTS_MAX + 1);
        assert_eq!(
            templates.templates.last().map(|it| it.objects.len()),
            Some(1)
        );
    }
}

#[test]
fn bad_escapes_inside_an_object_are_left_to_the_walk() {
    let (mut templates, keys) = (Templates::new(), star());
    assert_eq!(meet(&mut templates, &keys, r#"{"a":{"b":"x"}}"#), 0);
    for (value, expect) in [
        (r"\n\u00e9\\", 0),
        (r"\q", NONE),
        (r"\u00zz", NONE),
        (r"x\\\", NONE),
    ] {
        let (bytes, end) = record(&format!("{{\"a\":{{\"b\":\"{value}\"}}}}"));
        assert_eq!(follow(&templates, &bytes, end), expect, "{value}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_large_object_is_a_value() {
    let (mut templates, keys) = (Templates::new(), star());
    let names: Vec<_> = (0..LITERALS_MAX).map(|i| format!("k{i}")).collect();
    let long_name = "x".repeat(LITERAL_BYTES_MAX - 64);
    let long_names: Vec<_> = (0..1000).map(|i| format!("{long_name}{i}")).collect();
    let texts = [&names, &long_names].map(|names| format!("{{\"a\":{}}}", flat(names)));
    for text in texts {
        assert_eq!(meet(&mut templates, &keys, &text), 0);
    }
    assert_eq!((templates.len(), templates.nodes.len()), (1, 2));
    assert_eq!(meet(&mut templates, &keys, r#"{"x":1}"#), 1);
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn keys_of_any_kind_do_not_fill_memory() {
    let many: Vec<String> = (0..LITERALS_MAX).map(|i| format!("k{i}")).collect();
    for len in [1, 100, 2000, LITERALS_MAX] {
        let (mut templates, keys) = (Templates::new(), star());
        for i in 0..1500 {
            if i % 50 == 0 {
                templates.start_batch();
            }
            let mut names = many[..len - 1].to_vec();
            names.push(format!("other{i}"));
            meet(&mut templates, &keys, &flat(&names));
            assert!(templates.len() <= TEMPLATES_MAX, "{len}");
            assert!(
                templates.literals < LITERALS_MAX + LITERALS_MAX / 8 + 2,
                "{len}"
            );
            assert!(templates.nodes.len() <= templates.literals + 1, "{len}");
            assert!(templates.bytes < BYTES_MAX + RECORD_BYTES_MAX, "{len}");
            assert!(templates.variants.len() <= TEMPLATES_MAX, "{len}");
            assert_eq!(templates.len() > 0, len < LITERALS_MAX, "{len}");
            if i == 30 && len > 1000 {
                break;
            }
        }
    }
    let (mut templates, keys) = (Templates::new(), star());
    meet(
        &mut templates,
        &keys,
        &flat(&["x".repeat(LITERAL_BYTES_MAX)]),
    );
    assert_eq!(templates.len(), 0);
}

/// Hundreds of literals in one place, those of a tail and of an object as a whole among them: each is found, whatever was learnt
/// before and after it.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_crowd_of_literals_is_a_list_of_them() {
    let (mut templates, keys) = (Templates::new(), star());
    let mut texts: Vec<String> = (0..60)
        .flat_map(|i| {
            [
                format!(r#"{{"a":1,"k{i}":2}}"#),
                format!(r#"{{"a":1,"k{i}": 2}}"#),
                format!(r#"{{"a":1,"a long prefix of more than 32 bytes and then {i}":2}}"#),
                format!(r#"{{"a":1,"k{i}":{{"x":1}}}}"#),
                format!(r#"{{"a":1,"k{i}":{{}}}}"#),
            ]
        })
        .collect();
    texts.push(r#"{"a":1}"#.to_owned());
    texts.push(r#"{"a":1 }"#.to_owned());
    let numbers: Vec<u32> = (texts.iter().map(|text| {
        templates.tries = 0;
        meet(&mut templates, &keys, text)
    }))
    .collect();
    assert!(numbers.iter().all(|&number| number != NONE));
    assert_eq!(templates.crowds.len(), 1);
    for (text, number) in texts.iter().zip(numbers) {
        let (bytes, end) = record(text);
        assert_eq!(follow(&templates, &bytes, end), number, "{text}");
    }
    for other in [r#"{"a":1,"k60":2}"#, r#"{"a":1,"K1":2}"#, r#"{"a":1,"#] {
        let (bytes, end) = record(other);
        assert_eq!(follow(&templates, &bytes, end), NONE, "{other}");
    }
}
