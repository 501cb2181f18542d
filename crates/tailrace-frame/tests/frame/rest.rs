//! The rest of a record whose beginning stood in a file that is gone.

use proptest::prelude::*;
use tailrace_frame::{
    Config, Flags, Format, Framer, Frames, Multiline, Preset, SkipReason, Stream,
};

fn line(stream: &str, tag: &str, text: &str) -> String {
    format!("2026-01-02T03:04:05Z {stream} {tag} {text}\n")
}

fn cri() -> Config {
    Config {
        format: Format::Cri,
        ..Config::default()
    }
}

/// What is held when a source ends, whether its records are truncated, and how many of them the counts say.
fn held(config: &Config, input: &str, is_cut: bool) -> (Vec<(String, bool)>, u64) {
    let mut framer = Framer::new(config, 0, false);
    let mut frames = Frames::default();
    framer.push(input.as_bytes(), 0, 0, &mut frames);
    frames.clear();
    match is_cut {
        true => framer.finish_cut(&mut frames),
        false => framer.finish(&mut frames),
    }
    let record = |record: &tailrace_frame::Record| {
        let text = String::from_utf8_lossy(frames.content(record, b"")).into_owned();
        (text, record.flags.contains(Flags::TRUNCATED))
    };
    let records = frames.records.iter().map(record).collect();
    assert_eq!(framer.unacked_from(), None);
    (records, frames.stats.truncated)
}

#[test]
fn what_is_held_of_a_source_is_truncated_where_the_rest_is_lost() {
    let raw = Config {
        format: Format::Raw,
        ..Config::default()
    };
    let joined = Config {
        multiline: Some(Multiline::presets(&Preset::ALL)),
        ..raw.clone()
    };
    let trace = "java.lang.Error: x\n\tat a.B.c(D.java:1)\n";
    let [part, cut] = [line("stdout", "P", "part "), line("stderr", "F", "cut")];
    let cut = cut.trim_end();
    for (config, input, expect) in [
        (&raw, "one\ntw", vec!["tw"]),
        (&raw, "one\n", vec![]),
        (&raw, "one\n \t", vec![]),
        (&cri(), &*part, vec!["part "]),
        (&cri(), cut, vec!["cut"]),
        (&joined, trace, vec![trace.trim_end()]),
        (
            &joined,
            &format!("{trace}\tat e.F"),
            vec![&*format!("{trace}\tat e.F")],
        ),
    ] {
        for is_cut in [true, false] {
            let expect: Vec<_> = expect
                .iter()
                .map(|text| (text.to_string(), is_cut))
                .collect();
            let truncated = if is_cut { expect.len() as u64 } else { 0 };
            assert_eq!(
                held(config, input, is_cut),
                (expect, truncated),
                "{input:?}"
            );
        }
    }
}

/// Frames a source whose standard output begins within a record, in chunks that end at `ends`. Gives the records with
/// whether they are truncated, the bytes skipped as acknowledged, and where the record ended.
fn frame(input: &str, is_acked: bool, ends: &[usize]) -> (Vec<(String, bool)>, u64, Option<u64>) {
    let mut framer = Framer::new(&cri(), 0, false);
    framer.begin_within(Stream::Stdout, is_acked);
    assert_eq!(framer.rest_ends(), [None, Some(u64::MAX), None]);
    let (mut records, mut acked, mut start) = (Vec::new(), 0, 0);
    let mut frames = Frames::default();
    for end in ends.iter().copied().chain([input.len()]) {
        frames.clear();
        let chunk = &input.as_bytes()[start..end];
        framer.push(chunk, 0, 0, &mut frames);
        start = end;
        for record in &frames.records {
            let text = String::from_utf8_lossy(frames.content(record, chunk)).into_owned();
            records.push((text, record.flags.contains(Flags::TRUNCATED)));
        }
        for skip in &frames.skips {
            assert_eq!(skip.reason, SkipReason::Acked);
            acked += skip.end - skip.start;
        }
    }
    (records, acked, framer.rest_ends()[Stream::Stdout as usize])
}

proptest! {
    #[test]
    fn the_rest_is_truncated_or_skipped_and_nothing_else_is(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let rest = [line("stdout", "P", "mid"), line("stderr", "F", "whole"), line("stdout", "F", "dle")];
        let next = [line("stdout", "P", "ne"), line("stdout", "F", "xt"), line("stdout", "F", "last")];
        let input = rest.concat() + &next.concat();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        ends.sort_unstable();
        let end = Some(rest.concat().len() as u64);
        let owned = |records: &[(&str, bool)]| -> Vec<(String, bool)> {
            records.iter().map(|(text, cut)| ((*text).to_owned(), *cut)).collect()
        };
        let whole = [("whole", false), ("next", false), ("last", false)];
        let with_rest = [whole[0], ("middle", true), whole[1], whole[2]];
        prop_assert_eq!(frame(&input, false, &ends), (owned(&with_rest), 0, end));
        let skipped = (rest[0].len() + rest[2].len()) as u64;
        prop_assert_eq!(frame(&input, true, &ends), (owned(&whole), skipped, end));
    }
}

#[test]
fn a_beginning_that_can_be_read_after_all_makes_the_record_whole() {
    for is_acked in [false, true] {
        let mut frames = Frames::default();
        let mut first = Framer::new(&cri(), 0, false).numbered(1);
        first.push(line("stdout", "P", "be").as_bytes(), 0, 0, &mut frames);
        let mut second = Framer::new(&cri(), 0, false).numbered(2);
        second.begin_within(Stream::Stdout, is_acked);
        second.continue_from(&mut first);
        assert_eq!(second.rest_ends()[1], Some(u64::MAX));
        let text = line("stdout", "F", "gun") + &line("stdout", "F", "next");
        second.push(text.as_bytes(), 0, 0, &mut frames);
        let contents: Vec<_> = frames
            .records
            .iter()
            .map(|record| {
                (
                    frames.content(record, text.as_bytes()),
                    record.flags.contains(Flags::TRUNCATED),
                )
            })
            .collect();
        assert_eq!(contents, [(&b"begun"[..], false), (b"next", false)]);
        assert_eq!(
            second.rest_ends(),
            [None, Some(line("stdout", "F", "gun").len() as u64), None]
        );
    }
}

#[test]
fn a_record_may_begin_two_files_before_it_ends() {
    let mut frames = Frames::default();
    let mut second = Framer::new(&cri(), 0, false).numbered(2);
    second.begin_within(Stream::Stderr, false);
    second.push(line("stderr", "P", "mid").as_bytes(), 0, 0, &mut frames);
    let mut third = Framer::new(&cri(), 0, false).numbered(3);
    third.continue_from(&mut second);
    assert_eq!(third.rest_ends(), [None, None, Some(u64::MAX)]);
    third.push(line("stderr", "F", "dle").as_bytes(), 0, 0, &mut frames);
    assert_eq!(frames.content(&frames.records[0], b""), b"middle");
    assert!(frames.records[0].flags.contains(Flags::TRUNCATED));
    third.push(line("stderr", "F", "whole").as_bytes(), 0, 0, &mut frames);
    assert!(!frames.records[1].flags.contains(Flags::TRUNCATED));
}

/// An earlier run read all three and acknowledged the record; what the first one begins with it did not.
#[test]
fn a_record_that_ended_two_files_after_it_began_is_not_taken_for_the_next_one() {
    for is_acked in [false, true] {
        let mut frames = Frames::default();
        let mut first = Framer::new(&cri(), 0, false).numbered(1);
        first.push(line("stderr", "P", "be").as_bytes(), 0, 0, &mut frames);
        let head = line("stderr", "P", "gu");
        let mut second = Framer::new(&cri(), head.len() as u64, false).numbered(2);
        second.begin_within(Stream::Stderr, is_acked);
        second.continue_from(&mut first);
        second.skip_acked(head.as_bytes(), &mut frames);
        let head = line("stderr", "F", "n") + &line("stdout", "F", "other");
        let mut third = Framer::new(&cri(), head.len() as u64, false).numbered(3);
        third.continue_from(&mut second);
        third.skip_acked(head.as_bytes(), &mut frames);
        assert_eq!(frames.records.len(), 0);
        let next = line("stderr", "F", "next");
        third.push(next.as_bytes(), 0, 0, &mut frames);
        let [record] = &frames.records[..] else {
            panic!("{is_acked}: {:?}", frames.records);
        };
        assert_eq!(frames.content(record, next.as_bytes()), b"next");
        assert!(!record.flags.contains(Flags::TRUNCATED), "{is_acked}");
    }
}

/// The same, where the end lies behind what is read of the third one again.
#[test]
fn a_record_is_not_skipped_for_one_whose_end_is_not_read_again() {
    let mut frames = Frames::default();
    let mut second = Framer::new(&cri(), 0, false).numbered(2);
    second.begin_within(Stream::Stderr, true);
    let head = line("stdout", "F", "other");
    let end = line("stderr", "F", "end");
    let offset = (head.len() + end.len()) as u64;
    let mut third = Framer::new(&cri(), offset, false).numbered(3);
    third.continue_from(&mut second);
    third.skip_acked(head.as_bytes(), &mut frames);
    let next = line("stderr", "F", "next");
    third.push(next.as_bytes(), 0, 0, &mut frames);
    let [record] = &frames.records[..] else {
        panic!("{:?}", frames.records);
    };
    assert_eq!(frames.content(record, next.as_bytes()), b"next");
}

#[test]
fn what_is_behind_a_acked_beginning_is_skipped_to_its_end() {
    let mut frames = Frames::default();
    let mut first = Framer::new(&cri(), 0, false).numbered(1);
    first.push(line("stdout", "P", "be").as_bytes(), 0, 0, &mut frames);
    // An earlier run read the second part and another stream's line, and acknowledged all parts.
    let head = line("stdout", "P", "gu");
    let mut second = Framer::new(&cri(), head.len() as u64, false).numbered(2);
    second.begin_within(Stream::Stdout, true);
    second.continue_from(&mut first);
    second.skip_acked(head.as_bytes(), &mut frames);
    let text =
        line("stderr", "F", "other") + &line("stdout", "F", "n") + &line("stdout", "F", "next");
    second.push(text.as_bytes(), 0, 0, &mut frames);
    let contents: Vec<_> = frames
        .records
        .iter()
        .map(|record| frames.content(record, text.as_bytes()))
        .collect();
    assert_eq!(contents, [&b"other"[..], b"next"]);
    assert!(
        frames
            .records
            .iter()
            .all(|record| !record.flags.contains(Flags::TRUNCATED))
    );
}

#[test]
fn the_end_of_an_oversize_record_that_is_read_again_is_not_taken_for_the_next_one() {
    for is_acked in [false, true] {
        let mut frames = Frames::default();
        let config = Config {
            record_bytes_max: 4,
            ..cri()
        };
        let mut first = Framer::new(&config, 0, false).numbered(1);
        first.push(
            line("stdout", "P", "oversize").as_bytes(),
            0,
            0,
            &mut frames,
        );
        assert_eq!(frames.records.len(), 1, "it was given, truncated");
        frames.clear();
        let mut second = Framer::new(&config, 0, false).numbered(2);
        second.begin_within(Stream::Stdout, is_acked);
        second.continue_from(&mut first);
        let text = line("stdout", "F", "end") + &line("stdout", "F", "next");
        second.push(text.as_bytes(), 0, 0, &mut frames);
        let [next] = &frames.records[..] else {
            panic!("not one record: {:?}", frames.records);
        };
        assert_eq!(frames.content(next, text.as_bytes()), b"next");
        assert!(!next.flags.contains(Flags::TRUNCATED));
        let end = line("stdout", "F", "end").len() as u64;
        assert_eq!(second.rest_ends(), [None, Some(end), None]);
    }
}
