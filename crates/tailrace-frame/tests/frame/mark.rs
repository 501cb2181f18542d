//! The byte order mark that a source may begin with is in no record, wherever the source is cut.

use tailrace_frame::{Config, Format, Framer, Frames};

/// A record's bytes, its piece, and whether it was cut.
type Framed = (Vec<u8>, Option<(u64, u64)>, bool);

/// The records of a source that is read from its first byte, in two pushes.
fn frame(config: &Config, input: &[u8], cut: usize) -> Vec<Framed> {
    let (mut framer, mut frames) = (Framer::new(config, 0, false), Frames::default());
    let mut records = Vec::new();
    for chunk in [&input[..cut], &input[cut..], &[]] {
        frames.clear();
        match chunk {
            [] => framer.finish(&mut frames),
            _ => framer.push(chunk, 0, 0, &mut frames),
        }
        for (number, record) in frames.records.iter().enumerate() {
            let piece = frames.pieces_of(number).first();
            records.push((
                frames.content(record, chunk).to_vec(),
                piece.map(|piece| (piece.start, piece.end)),
                record.flags.0 & tailrace_frame::Flags::TRUNCATED.0 != 0,
            ));
        }
    }
    records
}

fn check(format: Format, record_bytes_max: usize, input: &str, expect: &[(&str, u64, u64, bool)]) {
    let config = Config {
        format,
        record_bytes_max,
        ..Config::default()
    };
    let expect: Vec<_> = expect
        .iter()
        .map(|&(text, start, end, cut)| (text.as_bytes().to_vec(), Some((start, end)), cut))
        .collect();
    for cut in 0..=input.len() {
        let found = frame(&config, input.as_bytes(), cut);
        assert_eq!(found, expect, "{format:?} {input:?} cut at {cut}");
    }
}

#[test]
fn it_stands_before_the_first_record_and_in_its_piece() {
    let line = "\u{feff}{\"a\":1}\r\n\u{feff}{}\n";
    for format in [Format::Json, Format::Raw, Format::Auto] {
        let expect = [("{\"a\":1}", 0, 12, false), ("\u{feff}{}", 12, 18, false)];
        check(format, 100, line, &expect);
    }
    check(Format::Raw, 100, "\u{feff}\nx\n", &[("x", 4, 6, false)]);
    check(Format::Raw, 100, "\u{feff}x", &[("x", 0, 4, false)]);
    // Half of one is text.
    check(
        Format::Raw,
        100,
        "x\u{feff}y\n",
        &[("x\u{feff}y", 0, 6, false)],
    );
}

#[test]
fn a_line_behind_it_that_is_too_long_is_cut_alike() {
    let expect = |text| [(text, 0, 8, true), ("z", 14, 16, false)];
    let input = "\u{feff}abcdefghij\nz\n";
    check(Format::Raw, 8, input, &expect("abcde"));
    // Not within a character.
    let input = "\u{feff}abcd\u{e9}fghi\nz\n";
    check(Format::Raw, 8, input, &expect("abcd"));
}
