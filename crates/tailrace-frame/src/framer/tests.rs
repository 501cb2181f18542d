//! What a framer keeps in memory.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::text::KEPT_BYTES_MAX;
use crate::{Multiline, Preset};

/// Lines of every kind, cut so that every way through the framer is taken.
fn push_all(framer: &mut Framer, format: Format, frames: &mut Frames) {
    let text = match format {
        Format::Docker => concat!(
            "{\"log\":\"a\\tb\\n\",\"stream\":\"stdout\"}\n{\"log\":\"a\\\"\",\"stream\":\"stdout\"}\n",
            "{\"log\":\"b\\n\",\"stream\":\"stdout\"}\nbroken\n\n"
        ),
        _ => concat!(
            "2026-01-02T03:04:05Z stdout P one\n2026-01-02T03:04:05Z stderr F two\n",
            "2026-01-02T03:04:05Z stdout F three\nbroken\n\n"
        ),
    };
    for size in [7, 64, 1000] {
        for chunk in text.as_bytes().chunks(size) {
            frames.clear();
            framer.push(chunk, 0, 0, frames);
        }
    }
}

/// All memory that framing may take, by the capacity of everything that grows.
fn capacities(framer: &Framer, frames: &Frames) -> Vec<usize> {
    let mut all = framer.chains.capacities();
    let joins = framer.joins.as_ref();
    all.extend(joins.map_or(Vec::new(), |joins| joins.capacities()));
    all.push(framer.carry.capacity());
    all.push(frames.records.capacity());
    all.push(frames.side.capacity());
    all.push(frames.pieces.capacity());
    all.push(frames.piece_ends.capacity());
    all.push(frames.skips.capacity());
    all
}

#[test]
fn nothing_grows_once_warm() {
    let formats = [
        Format::Raw,
        Format::Cri,
        Format::Docker,
        Format::Container,
        Format::Auto,
    ];
    // With presets a line is held and not joined, with an expression that never matches all are joined.
    let never = regex::bytes::Regex::new("never").unwrap();
    let joins = [
        None,
        Some(Multiline::presets(&Preset::ALL)),
        Some(Multiline::start(never)),
    ];
    for (format, multiline) in formats
        .into_iter()
        .flat_map(|format| joins.iter().map(move |joins| (format, joins.clone())))
    {
        let mut framer = Framer::new(
            &Config {
                format,
                multiline,
                record_bytes_max: 100,
                ..Config::default()
            },
            0,
            false,
        );
        let mut frames = Frames::default();
        // Until a join has reached its limit.
        for _ in 0..200 {
            push_all(&mut framer, format, &mut frames);
        }
        let warm = capacities(&framer, &frames);
        for _ in 0..100 {
            push_all(&mut framer, format, &mut frames);
        }
        assert_eq!(capacities(&framer, &frames), warm, "{format:?}");
    }
}

#[test]
fn an_idle_framer_keeps_little() {
    let mut framer = Framer::new(
        &Config {
            format: Format::Docker,
            ..Config::default()
        },
        0,
        false,
    );
    let mut frames = Frames::default();
    let text = "\\\"".repeat(500_000);
    for ending in ["", "\\n"] {
        let line = format!("{{\"log\":\"{text}{ending}\"}}\n");
        line.as_bytes()
            .chunks(100_000)
            .for_each(|chunk| framer.push(chunk, 0, 0, &mut frames));
    }
    assert_eq!(frames.records.len(), 1);
    assert_eq!(framer.unacked_from(), None);
    assert!(framer.carry.capacity() <= KEPT_BYTES_MAX);
    assert!(
        framer
            .chains
            .capacities()
            .iter()
            .all(|capacity| *capacity <= KEPT_BYTES_MAX)
    );
}

#[test]
fn a_framer_is_between_records_where_a_new_one_would_go_on() {
    let config = |format, record_bytes_max| Config {
        format,
        record_bytes_max,
        ..Config::default()
    };
    let is_between = |config: &Config, mid_line, text: &str| {
        let mut framer = Framer::new(config, 0, mid_line);
        framer.push(text.as_bytes(), 0, 0, &mut Frames::default());
        framer.is_between_records()
    };
    let raw = config(Format::Raw, 8);
    assert!(is_between(&raw, false, "") && is_between(&raw, false, "a\n"));
    assert!(!is_between(&raw, true, "") && is_between(&raw, true, "x\n"));
    assert!(!is_between(&raw, false, "a\nb"));
    // The rest of a line that was cut is skipped.
    assert!(!is_between(&raw, false, "0123456789"));
    let cri = config(Format::Cri, 8);
    let part = |end: &str, text: &str| format!("2026-01-02T03:04:05Z stdout {end} {text}\n");
    assert!(!is_between(&cri, false, &part("P", "one")));
    // It was given out, truncated: its other parts are to be skipped.
    assert!(!is_between(&cri, false, &part("P", "0123456789")));
    assert!(is_between(
        &cri,
        false,
        &(part("P", "one") + &part("F", "two"))
    ));
}
