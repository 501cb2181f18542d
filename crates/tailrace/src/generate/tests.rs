//! The generator's promises: same seed same bytes, the sizes and shares of the
//! module doc, valid JSON, CRI chains that join back to the payloads.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use serde_json::Value;

use super::*;

const JSON_SHAPES: [Shape; 7] = [
    Shape::Narrow,
    Shape::Simple,
    Shape::Wide,
    Shape::Mixed,
    Shape::Demo,
    Shape::Escaped,
    Shape::Nested,
];

fn generate(mut generator: Generator, records: u64) -> String {
    let mut out = Vec::new();
    for _ in 0..records {
        generator.next_line(&mut out);
    }
    generator.finish(&mut out);
    assert_eq!(generator.records(), records);
    String::from_utf8(out).unwrap()
}

/// Cuts CRI text into (stream, tag, payload).
fn cri_lines(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    text.lines().map(|line| {
        let mut parts = line.splitn(4, ' ');
        let time = parts.next().unwrap();
        assert_eq!(time.len(), "2026-01-02T03:04:05.678901234Z".len(), "{line}");
        (
            parts.next().unwrap(),
            parts.next().unwrap(),
            parts.next().unwrap(),
        )
    })
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    for shape in JSON_SHAPES.into_iter().chain([Shape::Cri]) {
        let first = generate(Generator::new(shape, 1), 500);
        assert_eq!(first, generate(Generator::new(shape, 1), 500), "{shape:?}");
        assert_ne!(first, generate(Generator::new(shape, 2), 500), "{shape:?}");
    }
}

#[test]
fn the_first_lines_never_change() {
    let lines: Vec<String> = [
        Shape::Narrow,
        Shape::Simple,
        Shape::Wide,
        Shape::Demo,
        Shape::Cri,
    ]
    .into_iter()
    .map(|shape| generate(Generator::new(shape, 1), 1))
    .collect();
    insta::assert_snapshot!("first_lines", lines.concat());
    insta::assert_snapshot!("mixed_lines", generate(Generator::new(Shape::Mixed, 1), 16));
}

#[test]
fn every_line_is_an_object_of_the_documented_mean_size() {
    let expected = [65, 164, 537, 254, 213, 360, 255];
    for (shape, bytes) in JSON_SHAPES.into_iter().zip(expected) {
        let text = generate(Generator::new(shape, 3), 20_000);
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert!(value.is_object(), "{line}");
        }
        let mean = text.len() as f64 / 20_000.0;
        assert!(
            (mean - f64::from(bytes)).abs() < 3.0,
            "{shape:?}: {mean} bytes"
        );
    }
}

#[test]
fn levels_and_status_have_the_documented_shares() {
    for shape in JSON_SHAPES {
        let text = generate(Generator::new(shape, 4), 20_000);
        let mut levels: HashMap<String, u32> = HashMap::new();
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            let level = value.get("level").or(value.get("levelname")).unwrap();
            *levels.entry(level.to_string()).or_default() += 1;
            let is_error = level == "ERROR";
            assert_eq!(is_error, line.contains("\"level\":\"ERROR\""), "{line}");
            let status = value.pointer("/status").or(value.pointer("/http/status"));
            if let Some(status) = status.and_then(Value::as_u64) {
                assert_eq!(is_error, status >= 500, "{line}");
                assert_eq!(level == "WARN", (400..500).contains(&status), "{line}");
            }
        }
        let errors = f64::from(levels["\"ERROR\""]) / 20_000.0;
        assert!((errors - 0.10).abs() < 0.01, "{shape:?}: {levels:?}");
    }
}

#[test]
fn errors_come_in_the_share_asked_for_and_decoys_only_elsewhere() {
    for percent in [1, 10, 50, 90] {
        let generator = Generator::new(Shape::Wide, 4)
            .with_errors(percent)
            .with_decoys(5);
        let text = generate(generator, 20_000);
        let (mut errors, mut decoys) = (0, 0);
        for line in text.lines() {
            let is_error = line.contains("\"level\":\"ERROR\"");
            let status = serde_json::from_str::<Value>(line).unwrap()["status"].as_u64();
            assert_eq!(is_error, status.unwrap() >= 500, "{line}");
            errors += u64::from(is_error);
            decoys += u64::from(!is_error && line.contains("\"ERROR\""));
        }
        let near = |count: u64, expected: u64| count.abs_diff(expected) <= 50 + expected / 10;
        assert!(near(errors, percent * 200), "{errors} of {percent} %");
        assert!(near(decoys, (20_000 - errors) / 20), "{decoys} decoys");
    }
    let decoyed = Generator::new(Shape::Simple, 4).with_decoys(0);
    assert_eq!(
        generate(decoyed, 100),
        generate(Generator::new(Shape::Simple, 4), 100)
    );
}

#[test]
fn field_counts_are_the_documented_ones() {
    for (shape, count) in [(Shape::Narrow, 3), (Shape::Simple, 6), (Shape::Wide, 20)] {
        let text = generate(Generator::new(shape, 5), 10);
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(value.as_object().unwrap().len(), count, "{line}");
        }
    }
}

#[test]
fn accounting_numbers_every_record() {
    for shape in JSON_SHAPES {
        let generator = Generator::new(shape, 6).with_accounting("a \"b\"");
        for (seq, line) in generate(generator, 200).lines().enumerate() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["stream"], "a \"b\"");
            assert_eq!(value["seq"], seq);
        }
    }
}

#[test]
fn text_is_no_json_and_tells_its_number() {
    let generator = Generator::new(Shape::Text, 3).with_accounting("plain");
    let text = generate(generator, 2_000);
    assert!(
        (text.len() as f64 / 2_000.0 - 92.0).abs() < 3.0,
        "{}",
        text.len()
    );
    for (seq, line) in text.lines().enumerate() {
        assert!(line.starts_with("2026-01-02T03:04:"), "{line}");
        let end = format!(" stream=\"plain\" seq={seq}");
        assert!(line.ends_with(&end), "{line}");
    }
}

#[test]
fn filling_is_of_the_size_asked_for() {
    for shape in [Shape::Simple, Shape::Text] {
        let padded = generate(Generator::new(shape, 1).with_pad(40_000), 3);
        let plain = generate(Generator::new(shape, 1), 3);
        for (line, plain) in padded.lines().zip(plain.lines()) {
            let extra = line.len() - plain.len();
            assert!((40_005..40_010).contains(&extra), "{shape:?}: {extra}");
            assert!(line.contains(&".".repeat(40_000)));
        }
    }
}

#[test]
fn lines_go_in_turn_wherever_they_are_cut() {
    let text = generate(Generator::new(Shape::Narrow, 1), 7);
    for size in 1..100 {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let mut both = InTurn::new(&mut first, &mut second);
        for piece in text.as_bytes().chunks(size) {
            both.write_all(piece).unwrap();
        }
        for (number, line) in text.lines().enumerate() {
            let out = [&first, &second][number % 2];
            let at = out.split(|&byte| byte == b'\n').nth(number / 2).unwrap();
            assert_eq!(at, line.as_bytes(), "{size}");
        }
    }
}

#[test]
fn mixed_holds_what_it_promises() {
    let text = generate(Generator::new(Shape::Mixed, 7), 5_000);
    for needle in [
        "\\n\\tat ",
        "\\u00e9",
        "\\ud83d\\ude00",
        ":null",
        "{\"",
        "[[",
        "\\\\",
        ": \"",
        "e23",
    ] {
        assert!(text.contains(needle), "no {needle}");
    }
    let key_sets: std::collections::BTreeSet<Vec<String>> = text
        .lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).unwrap();
            value.as_object().unwrap().keys().cloned().collect()
        })
        .collect();
    assert_eq!(key_sets.len(), 8, "{key_sets:?}");
}

#[test]
fn cri_chains_join_back_to_the_payloads() {
    let records = 20_000;
    let cri = generate(Generator::new(Shape::Cri, 8).with_accounting("c"), records);
    let mut open: HashMap<&str, String> = HashMap::new();
    let mut seen = vec![0u32; records as usize];
    let (mut splits, mut interleaved, mut lines) = (0, 0, 0u64);
    for (stream, tag, payload) in cri_lines(&cri) {
        lines += 1;
        open.entry(stream).or_default().push_str(payload);
        if tag == "P" {
            splits += 1;
            continue;
        }
        assert_eq!(tag, "F");
        let record: Value = serde_json::from_str(&open.remove(stream).unwrap()).unwrap();
        seen[record["seq"].as_u64().unwrap() as usize] += 1;
        interleaved += u32::from(!open.is_empty());
    }
    assert!(open.is_empty());
    assert!(seen.iter().all(|&count| count == 1), "each record once");
    assert!(
        splits > 500 && interleaved > 100,
        "{splits} pieces, {interleaved} between them"
    );
    assert!(lines > records);
}

#[test]
fn cri_times_never_go_back() {
    let cri = generate(Generator::new(Shape::Cri, 9), 5_000);
    let times: Vec<&str> = cri
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert!(times.is_sorted());
}

#[test]
fn a_pacer_hands_out_each_unit_once() {
    let mut pacer = Pacer::new(NonZeroU64::new(1000).unwrap());
    assert_eq!(pacer.take_due(Duration::ZERO), 0);
    assert_eq!(pacer.take_due(Duration::from_micros(1_500)), 1);
    assert_eq!(pacer.take_due(Duration::from_micros(1_999)), 0);
    assert_eq!(pacer.take_due(Duration::from_secs(2)), 1999);
    assert_eq!(pacer.take_due(Duration::from_secs(1)), 0);
}

fn args(lines: u64) -> Args {
    Args {
        shape: Shape::Narrow,
        lines,
        seed: 1,
        rate: None,
        stream: None,
        pad: 0,
        stderr: false,
        output: None,
    }
}

#[test]
fn the_command_writes_exactly_the_lines_asked_for() {
    // More than one write buffer.
    let lines = 3 * WRITE_BYTES as u64 / 64;
    let mut out = Vec::new();
    run(&args(lines), &mut out).unwrap();
    assert_eq!(
        out.iter().filter(|&&byte| byte == b'\n').count() as u64,
        lines
    );
    assert_eq!(
        String::from_utf8(out).unwrap(),
        generate(Generator::new(Shape::Narrow, 1), lines)
    );
}

#[test]
fn a_rate_does_not_change_the_bytes() {
    let mut paced = Vec::new();
    let rate = NonZeroU64::new(1_000_000);
    run(
        &Args {
            rate,
            ..args(2_000)
        },
        &mut paced,
    )
    .unwrap();
    assert_eq!(
        String::from_utf8(paced).unwrap(),
        generate(Generator::new(Shape::Narrow, 1), 2_000)
    );
}

#[test]
fn a_file_is_written_and_a_bad_path_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.ndjson");
    run(
        &Args {
            output: Some(path.clone()),
            ..args(10)
        },
        &mut Vec::new(),
    )
    .unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 10);
    let missing = dir.path().join("no/such/dir/out");
    let error = run(
        &Args {
            output: Some(missing),
            ..args(10)
        },
        &mut Vec::new(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("no/such/dir/out"), "{error}");
}

#[test]
fn a_reader_that_goes_away_is_reported_as_that() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // Of standard output it is no failure: the end-to-end tests close it.
    let error = run(&args(10), &mut Closed).unwrap_err();
    let kind = error
        .root_cause()
        .downcast_ref::<io::Error>()
        .map(io::Error::kind);
    assert_eq!(kind, Some(io::ErrorKind::BrokenPipe));
}
