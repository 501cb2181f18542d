//! A log that is rotated at any line's end gives what it gives in one file.

use proptest::prelude::*;
use tailrace_frame::{Config, Flags, Format, Framer, Frames, Piece, Skip, Stats};

use crate::check::{self, Framed, ORIGIN, Outcome, merged};
use crate::properties::{config, input};

/// Frames `input`, which is divided into files that end at `ends`, each after a newline. Offsets are those of the
/// whole: the caller's number of a file is where it begins in it.
fn frame_files(config: &Config, input: &[u8], ends: &[usize]) -> Outcome {
    let (mut outcome, mut stats, mut frames) = <(Outcome, Stats, Frames)>::default();
    let mut earlier: Option<Framer> = None;
    let mut start = 0;
    for end in ends.iter().copied().chain([input.len()]) {
        let mut framer = Framer::new(config, ORIGIN, false).numbered(start as u32);
        if let Some(mut earlier) = earlier.take() {
            framer.continue_from(&mut earlier);
            let number = start as u32;
            assert_eq!(earlier.unacked_from(), None, "all is handed on");
            earlier.finish(&mut frames);
            assert!(frames.records.is_empty() && framer.held_from(number).is_none());
        }
        framer.push(&input[start..end], 0, 0, &mut frames);
        outcome.take(&mut frames, Some((0, &input[start..end])), &mut stats);
        earlier = Some(framer);
        start = end;
    }
    earlier.unwrap().finish(&mut frames);
    outcome.take(&mut frames, None, &mut stats);
    outcome.records.iter_mut().for_each(as_of_one_file);
    let as_of_one = |skip: &Skip| Skip {
        source: 0,
        start: skip.start + u64::from(skip.source),
        end: skip.end + u64::from(skip.source),
        ..*skip
    };
    let skips: Vec<Skip> = outcome.skips.iter().map(as_of_one).collect();
    outcome.skips = merged(&skips);
    outcome
}

/// Pieces with the offsets of the whole, neighbours merged.
fn as_of_one_file(record: &mut Framed) {
    let mut pieces: Vec<Piece> = Vec::new();
    for piece in &record.pieces {
        let base = u64::from(piece.source);
        let (start, end) = (piece.start + base, piece.end + base);
        match pieces.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => pieces.push(Piece {
                source: 0,
                start,
                end,
            }),
        }
    }
    record.pieces = pieces;
}

/// A log that is rotated at the ends of these lines gives what it gives in one file.
pub(crate) fn as_one_file(
    config: &Config,
    input: &[u8],
    places: &[prop::sample::Index],
) -> Result<(), TestCaseError> {
    let newlines: Vec<usize> = (0..input.len()).filter(|&at| input[at] == b'\n').collect();
    prop_assume!(!newlines.is_empty());
    let mut ends: Vec<usize> = places
        .iter()
        .map(|place| place.get(&newlines) + 1)
        .collect();
    ends.sort_unstable();
    let (whole, _) = check::frame(config, false, input, &[]);
    prop_assert_eq!(frame_files(config, input, &ends), whole);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_rotation_gives_what_one_file_gives(
        config in config(),
        input in input(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        as_one_file(&config, &input, &places)?;
    }
}

#[test]
fn what_is_held_of_an_earlier_file_is_known() {
    let config = Config {
        format: Format::Cri,
        ..Config::default()
    };
    let mut frames = Frames::default();
    let mut first = Framer::new(&config, 0, false).numbered(7);
    first.push(
        b"2026-01-02T03:04:05Z stderr F x\n2026-01-02T03:04:05Z stdout P a\n",
        0,
        0,
        &mut frames,
    );
    assert_eq!(first.unacked_from(), Some(32));
    let mut second = Framer::new(&config, 0, false).numbered(8);
    second.continue_from(&mut first);
    assert_eq!((first.unacked_from(), second.unacked_from()), (None, None));
    assert_eq!((second.held_from(7), second.held_from(8)), (Some(32), None));
    frames.clear();
    second.push(b"2026-01-02T03:04:05Z stdout P b\n", 0, 0, &mut frames);
    assert_eq!(
        (second.held_from(7), second.held_from(8)),
        (Some(32), Some(0))
    );
    second.push(b"2026-01-02T03:04:05Z stdout F c\n", 0, 0, &mut frames);
    assert_eq!((second.held_from(7), second.held_from(8)), (None, None));
    assert_eq!(frames.content(&frames.records[0], b""), b"abc");
    let piece = |source, start, end| Piece { source, start, end };
    assert_eq!(frames.pieces_of(0), [piece(7, 32, 64), piece(8, 0, 64)]);
}

/// Where lines have no envelope any more, what is held of an earlier file waits no longer than elsewhere.
#[test]
fn a_part_held_of_an_earlier_file_does_not_wait_for_the_end_of_one_without_envelopes() {
    let config = |format| Config {
        format,
        chain_span_max: 100,
        ..Config::default()
    };
    let mut frames = Frames::default();
    let mut first = Framer::new(&config(Format::Cri), 0, false).numbered(7);
    first.push(b"2026-01-02T03:04:05Z stdout P a\n", 0, 0, &mut frames);
    let mut second = Framer::new(&config(Format::Json), 0, false).numbered(8);
    second.continue_from(&mut first);
    let lines = "{\"text\":\"twenty-five in all\"}\n".repeat(4);
    second.push(lines.as_bytes(), 0, 0, &mut frames);
    let records = frames.records.iter();
    let held = records.filter(|record| frames.content(record, lines.as_bytes()) == b"a");
    assert!(held.map(|it| it.flags).eq([Flags::TRUNCATED]));
    assert_eq!((frames.records.len(), second.unacked_from()), (5, None));
}

/// Skips of two pushes are never one: whoever notes where each push's skips begin misses none.
#[test]
fn a_push_adds_skips_and_lengthens_none_of_an_earlier_push() {
    let config = Config {
        format: Format::Raw,
        ..Config::default()
    };
    let mut framer = Framer::new(&config, 0, false);
    let mut frames = Frames::default();
    framer.push(b"\n\n", 0, 0, &mut frames);
    framer.push(b"\n", 0, 0, &mut frames);
    let spans: Vec<_> = frames
        .skips
        .iter()
        .map(|skip| (skip.start, skip.end))
        .collect();
    assert_eq!(spans, [(0, 2), (2, 3)]);
}

/// After a crash the first file is read again, and the second one from where everything before was acknowledged.
pub(crate) fn read_again(
    config: &Config,
    input: &[u8],
    places: [prop::sample::Index; 2],
) -> Result<(), TestCaseError> {
    let newlines: Vec<usize> = (0..input.len()).filter(|&at| input[at] == b'\n').collect();
    if newlines.len() < 2 {
        return Ok(());
    }
    let mut places = places.map(|place| place.get(&newlines) + 1);
    places.sort_unstable();
    let [rotated, resumed] = places;
    let (head, rest) = (&input[rotated..resumed], &input[resumed..]);
    let begin = |start| Framer::new(config, start, false).numbered(1);
    let mut first = Framer::new(config, 0, false);
    first.push(&input[..rotated], 0, 0, &mut Frames::default());

    let (mut uncut, mut second) = (first.clone(), begin(0));
    second.continue_from(&mut uncut);
    let mut acked = Frames::default();
    second.push(head, 0, 0, &mut acked);
    let (mut expected, mut frames) = (Frames::default(), Frames::default());
    // What is open began in the first file or after what was acknowledged.
    if head.is_empty() || second.held_from(1).is_some() {
        return Ok(());
    }
    let open = second.held_from(0);
    second.push(rest, 0, 0, &mut expected);
    second.finish(&mut expected);

    let held = first.held_from(0);
    let mut again = begin(head.len() as u64);
    again.continue_from(&mut first);
    again.skip_acked(head, &mut frames);
    prop_assert_eq!(again.held_from(0), open);
    let skipped: Vec<_> = frames.skips.iter().map(|skip| skip.reason).collect();
    prop_assert!(
        skipped
            .iter()
            .all(|reason| *reason == tailrace_frame::SkipReason::Acked)
    );
    prop_assert!(open == held || !skipped.is_empty() || !frames.records.is_empty());
    // What ended before the second file had a byte may not be acknowledged, whatever is acknowledged there.
    let alone = |frames: &Frames| -> Vec<_> {
        let pieces = (0..frames.records.len()).map(|n| frames.pieces_of(n).to_vec());
        let mut pieces: Vec<_> = pieces
            .filter(|pieces| pieces.iter().all(|piece| piece.source == 0))
            .collect();
        pieces.sort_by_key(|pieces| pieces[0].start);
        pieces
    };
    prop_assert_eq!(alone(&frames), alone(&acked));
    prop_assert_eq!(alone(&frames).len(), frames.records.len());
    frames.clear();
    again.push(rest, 0, 0, &mut frames);
    again.finish(&mut frames);
    let of = |frames: &Frames| -> Vec<_> {
        let records = frames.records.iter().enumerate();
        records
            .map(|(n, record)| {
                (
                    frames.content(record, rest).to_vec(),
                    frames.pieces_of(n).to_vec(),
                )
            })
            .collect()
    };
    prop_assert_eq!(of(&frames), of(&expected));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn what_was_acked_beyond_a_rotation_does_not_come_again(
        config in config(),
        input in input(),
        places in prop::array::uniform2(any::<prop::sample::Index>()),
    ) {
        read_again(&config, &input, places)?;
    }
}
