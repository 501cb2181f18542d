//! What is said of the keys of files, of many records and many keys.
#![allow(clippy::unwrap_used)]

use tailrace_query::{Input, Notes, Type, describe};

#[test]
fn several_threads_see_what_one_sees() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let pad = "x".repeat(100);
    let line = |n: u32| match n % 4 {
        0 => format!("{{\"n\":{n},\"pad\":\"{pad}\"}}\n"),
        1 => format!("{{\"n\":{n}.5,\"pad\":null}}\n"),
        2 => "no JSON\n".to_owned(),
        _ => format!("{{\"pad\":[{n}]}}\n"),
    };
    std::fs::write(&path, (0..300_000).map(line).collect::<String>()).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > 3 * (4 << 20) / 2);
    let inputs = [Input::File(path)];
    let said = |threads| {
        let found = describe(&inputs, threads, &Notes::default()).unwrap();
        let keys: Vec<_> = found.keys.iter().map(|key| format!("{key:?}")).collect();
        (found.records, found.text, found.other_members, keys)
    };
    let one = said(1);
    assert_eq!((one.0, one.1, one.2), (300_000, 75_000, 0));
    assert_eq!(said(3), one);
    let found = describe(&inputs, 2, &Notes::default()).unwrap();
    let of = |name: &str| found.keys.iter().find(|key| key.name == name).unwrap();
    let (n, pad) = (of("n"), of("pad"));
    assert_eq!((n.ty, n.nulls, n.absent), (Type::Float64, 0, 150_000));
    assert_eq!(n.kinds, [("integer", 75_000), ("float", 75_000)]);
    assert_eq!(
        (pad.ty, pad.nulls, pad.absent),
        (Type::Text, 75_000, 75_000)
    );
    assert_eq!(pad.kinds, [("string", 75_000), ("array", 75_000)]);
}

#[test]
fn keys_beyond_the_scanners_columns_are_seen_and_too_many_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let members: Vec<_> = (0..10_004)
        .map(|n| format!("\"k\\u0041{n}\":{n}"))
        .collect();
    let line = format!("{{{}}}\n", members.join(","));
    std::fs::write(&path, line + "{\"kA9999\":\"x\"}\n").unwrap();
    let found = describe(&[Input::File(path)], 2, &Notes::default()).unwrap();
    assert_eq!(
        (found.records, found.keys.len(), found.other_members),
        (2, 10_000, 4)
    );
    let key = found.keys.iter().find(|key| key.name == "kA9999").unwrap();
    assert_eq!(key.kinds, [("string", 1), ("integer", 1)]);
    assert_eq!((key.ty, key.absent), (Type::Text, 0));
    let first = found.keys.iter().find(|key| key.name == "kA0").unwrap();
    assert_eq!(
        (first.ty, first.absent, first.example.as_deref()),
        (Type::Int64, 1, Some("0"))
    );
}
