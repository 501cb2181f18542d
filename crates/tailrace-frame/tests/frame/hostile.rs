//! Input that means harm, or no text at all.

use tailrace_frame::{Config, Flags, Format, Framer, Frames, SkipReason};

use crate::check::frame;

#[test]
fn nul_and_binary_bytes_are_records_like_others() {
    let mut input: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    input.extend_from_slice(b"\n\0\0\0\n\xff\xfe\x80\n");
    for format in [
        Format::Raw,
        Format::Json,
        Format::Auto,
        Format::Cri,
        Format::Docker,
    ] {
        let config = Config {
            format,
            ..Config::default()
        };
        let (outcome, stats) = frame(&config, false, &input, &[1, 300, 301, 5000]);
        let contents: Vec<_> = outcome
            .records
            .iter()
            .map(|record| &record.content[..])
            .collect();
        let expect: Vec<_> = input
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(contents, expect, "{format:?}");
        let is_enveloped = matches!(format, Format::Cri | Format::Docker);
        assert_eq!(stats.broken, if is_enveloped { stats.records } else { 0 });
    }
}

/// A file that was cut under a writer that does not append: a hole, then the next record.
#[test]
fn nuls_before_a_record_are_skipped_and_counted_however_many() {
    let line = b"2026-01-02T03:04:05Z stdout F {\"a\":1}\n";
    let (hole, record) = (5 << 20, b"{\"a\":1}");
    let chunk = vec![0; 1 << 20];
    for (format, line) in [
        (Format::Auto, &line[..]),
        (Format::Cri, &line[..]),
        (Format::Json, b"{\"a\":1}\n"),
        (Format::Raw, b"{\"a\":1}\n"),
    ] {
        let config = Config {
            format,
            ..Config::default()
        };
        let mut framer = Framer::new(&config, 0, false);
        let mut frames = Frames::default();
        for _ in 0..5 {
            framer.push(&chunk, 0, 0, &mut frames);
            let held = framer.unacked_from().map(|from| framer.offset() - from);
            assert_eq!(held, Some(16));
        }
        // The hole need not end where a read does.
        let bytes = [&[0; 100], line, &[0; 17], line].concat();
        framer.push(&bytes, 0, 0, &mut frames);
        assert_eq!(frames.stats.nul_bytes, hole + 100 + 17, "{format:?}");
        assert_eq!((frames.stats.records, frames.stats.oversize_bytes), (2, 0));
        assert!(
            frames
                .skips
                .iter()
                .all(|skip| skip.reason == SkipReason::Nul)
        );
        for found in &frames.records {
            assert_eq!(frames.content(found, &bytes), record);
            assert!(!found.flags.contains(Flags::TRUNCATED));
        }
    }
}

#[test]
fn a_64_mib_line_is_one_truncated_record_and_is_not_held() {
    let config = Config {
        format: Format::Raw,
        ..Config::default()
    };
    let mut framer = Framer::new(&config, 0, false);
    let mut frames = Frames::default();
    let chunk = vec![b'x'; 1 << 16];
    let mut truncated = 0;
    let mut skipped = 0;
    for _ in 0..1024 {
        frames.clear();
        framer.push(&chunk, 0, 0, &mut frames);
        truncated += frames.stats.truncated;
        skipped += frames
            .skips
            .iter()
            .map(|skip| skip.end - skip.start)
            .sum::<u64>();
        let held = framer
            .unacked_from()
            .map_or(0, |from| framer.offset() - from);
        assert!(held <= config.record_bytes_max as u64 + 2);
        assert!(frames.side.capacity() <= 4 * config.record_bytes_max);
    }
    assert_eq!(truncated, 1);
    assert_eq!(skipped, (64 << 20) - (1 << 20));
    assert_eq!(framer.unacked_from(), None);
    frames.clear();
    framer.push(b"xxx\nnext\n", 0, 0, &mut frames);
    assert_eq!(frames.skips[0].reason, SkipReason::Oversize);
    assert_eq!(frames.content(&frames.records[0], b"xxx\nnext\n"), b"next");
}

#[test]
fn an_endless_chain_is_truncated_once_and_then_skipped() {
    let line = format!("2026-01-02T03:04:05Z stdout P {}\n", "x".repeat(16 << 10));
    let config = Config {
        format: Format::Cri,
        ..Config::default()
    };
    let mut framer = Framer::new(&config, 0, false);
    let mut frames = Frames::default();
    let mut records = 0;
    for _ in 0..2000 {
        frames.clear();
        framer.push(line.as_bytes(), 0, 0, &mut frames);
        records += frames.records.len();
        assert!(
            frames
                .records
                .iter()
                .all(|record| record.flags.contains(Flags::TRUNCATED))
        );
        let held = framer
            .unacked_from()
            .map_or(0, |from| framer.offset() - from);
        assert!(
            held <= config.record_bytes_max as u64 + line.len() as u64 * 70,
            "{held}"
        );
    }
    assert_eq!(records, 1);
    assert_eq!(framer.unacked_from(), None);
}

#[test]
fn a_chain_of_nothing_between_other_lines_is_bounded_by_its_span() {
    let lines = b"2026-01-02T03:04:05Z stdout P \n2026-01-02T03:04:05Z stderr F x\n";
    let config = Config {
        format: Format::Cri,
        chain_span_max: 1000,
        ..Config::default()
    };
    let mut framer = Framer::new(&config, 0, false);
    let mut frames = Frames::default();
    let mut given_up = 0;
    for _ in 0..1000 {
        frames.clear();
        framer.push(lines, 0, 0, &mut frames);
        given_up += frames.stats.truncated;
        let held = framer
            .unacked_from()
            .map_or(0, |from| framer.offset() - from);
        assert!(held <= config.chain_span_max);
        assert!(frames.pieces.len() < 40);
    }
    assert!(given_up > 50, "{given_up}");
}

#[test]
fn a_limit_of_zero_is_one() {
    let config = Config {
        format: Format::Raw,
        record_bytes_max: 0,
        ..Config::default()
    };
    let (outcome, _) = frame(&config, false, b"ab\nc\n", &[]);
    let contents: Vec<_> = outcome
        .records
        .iter()
        .map(|record| &record.content[..])
        .collect();
    assert_eq!(contents, [b"a", b"c"]);
}
