//! Framing: wherever the input is cut the records are the same, and every byte is in exactly one piece or skip.
//!
//! Takes any bytes as one source, frames them in every format under wide and narrow limits, with and without joining
//! lines, panics where the above does not hold. Plain text is also compared with the lines that the standard library
//! finds. Where lines are joined, a rotation behind any line changes no record, and silence only divides records.

use std::sync::LazyLock;

use regex::bytes::Regex;
use tailrace_frame::{
    Config, Flags, Format, Framer, Frames, Multiline, Piece, Preset, SIDE, Skip, Stats, Stream,
};

const FORMATS: [Format; 6] = [
    Format::Json,
    Format::Raw,
    Format::Cri,
    Format::Docker,
    Format::Auto,
    Format::Container,
];

/// Not 0, so that offsets and places in the buffer are told apart.
const ORIGIN: u64 = 1000;

/// Up to this length every single cut is tried.
const CUT_EVERYWHERE_MAX: usize = 160;

/// Up to this length the input is also pushed byte by byte.
const BYTEWISE_MAX: usize = 4096;

/// Lines are not joined, by every preset, by an expression.
static JOINS: LazyLock<[Option<Multiline>; 3]> = LazyLock::new(|| {
    let indented = Regex::new("^[^ \t]").unwrap();
    [
        None,
        Some(Multiline::presets(&Preset::ALL)),
        Some(Multiline::start(indented)),
    ]
});

pub(crate) fn run(data: &[u8]) {
    let cuttings = cuttings(data);
    for format in FORMATS {
        let limits = [(1 << 20, 8 << 20), (24, 200)];
        let each = limits
            .iter()
            .flat_map(|limits| JOINS.iter().map(move |joins| (*limits, joins)));
        for ((record_bytes_max, chain_span_max), multiline) in each {
            let config = Config {
                format,
                record_bytes_max,
                chain_span_max,
                multiline: multiline.clone(),
                ..Config::default()
            };
            for mid_line in [false, true] {
                let whole = frame(&config, mid_line, data, &[]);
                for cuts in &cuttings {
                    let cut = frame(&config, mid_line, data, cuts);
                    assert_eq!(
                        cut, whole,
                        "{config:?}, mid line: {mid_line}, cut at {cuts:?}"
                    );
                }
                if multiline.is_some() {
                    check_rotations(&config, mid_line, data, &whole);
                    check_silence(&config, mid_line, data, &cuttings);
                }
                if format == Format::Raw
                    && multiline.is_none()
                    && !mid_line
                    && data.len() < record_bytes_max
                {
                    check_lines(&whole, data);
                }
            }
        }
    }
}

/// Everything known of one record.
#[derive(Debug, PartialEq)]
struct Framed {
    content: Vec<u8>,
    flags: Flags,
    stream: Stream,
    time_ns: i64,
    pieces: Vec<Piece>,
}

/// What a whole input gives.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    records: Vec<Framed>,
    /// By offset, neighbours with one reason merged: how skips are divided depends on the cuts.
    skips: Vec<Skip>,
    stats: Stats,
}

/// Frames `data` in chunks that end at `cuts` and at its end.
fn frame(config: &Config, mid_line: bool, data: &[u8], cuts: &[usize]) -> Outcome {
    let mut framer = Framer::new(config, ORIGIN, mid_line);
    let mut frames = Frames::default();
    let mut outcome = Outcome::default();
    let mut start = 0;
    for (number, end) in cuts.iter().copied().chain([data.len()]).enumerate() {
        // Each chunk lies where it is in `data`, in a buffer that ends with it.
        framer.push(&data[start..end], number as u32, start as u32, &mut frames);
        assert_eq!(framer.offset(), ORIGIN + end as u64);
        assert!(
            framer
                .unacked_from()
                .is_none_or(|from| from < framer.offset())
        );
        outcome.take(&mut frames, number as u32, &data[..end]);
        start = end;
    }
    framer.finish(&mut frames);
    outcome.take(&mut frames, SIDE, &[]);
    assert_eq!(framer.unacked_from(), None, "nothing is held at the end");
    outcome.check_partition(ORIGIN + data.len() as u64);
    outcome.merge_skips();
    outcome
}

impl Outcome {
    /// Moves what is in `frames` here; records must lie in the side buffer or in the one just pushed.
    fn take(&mut self, frames: &mut Frames, number: u32, buffer: &[u8]) {
        assert_eq!(frames.records.len(), frames.piece_ends.len());
        for (index, record) in frames.records.iter().enumerate() {
            assert!(record.buffer == SIDE || record.buffer == number);
            self.records.push(Framed {
                content: frames.content(record, buffer).to_vec(),
                flags: record.flags,
                stream: record.stream,
                time_ns: record.time_ns,
                pieces: frames.pieces_of(index).to_vec(),
            });
        }
        self.skips.append(&mut frames.skips);
        let (sum, new) = (&mut self.stats, frames.stats);
        sum.bytes += new.bytes;
        sum.records += new.records;
        sum.joined += new.joined;
        sum.multiline += new.multiline;
        sum.truncated += new.truncated;
        sum.broken += new.broken;
        sum.blank_lines += new.blank_lines;
        sum.oversize_bytes += new.oversize_bytes;
        sum.nul_bytes += new.nul_bytes;
        frames.clear();
    }

    fn check_partition(&self, end: u64) {
        let pieces = self.records.iter().flat_map(|record| &record.pieces);
        let mut spans: Vec<(u64, u64)> = pieces
            .map(|piece| (piece.start, piece.end))
            .chain(self.skips.iter().map(|skip| (skip.start, skip.end)))
            .collect();
        spans.sort_unstable();
        let mut expected = ORIGIN;
        for (start, end) in spans {
            assert_eq!(
                start, expected,
                "every byte is in exactly one piece or skip"
            );
            assert!(end > start, "no span is empty");
            expected = end;
        }
        assert_eq!(expected, end, "the last byte is in a piece or skip");
    }

    fn merge_skips(&mut self) {
        self.skips.sort_unstable_by_key(|skip| skip.start);
        self.skips.dedup_by(|next, skip| {
            let touch = skip.end == next.start && skip.reason == next.reason;
            if touch {
                skip.end = next.end;
            }
            touch
        });
    }
}

/// The records are the same where the log goes on in a second file behind one of the first lines.
fn check_rotations(config: &Config, mid_line: bool, data: &[u8], whole: &Outcome) {
    let newlines = (0..data.len()).filter(|&at| data[at] == b'\n');
    for end in newlines.take(8).map(|at| at + 1) {
        let mut frames = Frames::default();
        let mut outcome = Outcome::default();
        let mut first = Framer::new(config, ORIGIN, mid_line).numbered(1);
        first.push(&data[..end], 0, 0, &mut frames);
        outcome.take(&mut frames, 0, data);
        let mut second = Framer::new(config, ORIGIN + end as u64, false).numbered(2);
        second.continue_from(&mut first);
        first.finish(&mut frames);
        assert!(frames.records.is_empty() && first.unacked_from().is_none());
        second.push(&data[end..], 0, end as u32, &mut frames);
        outcome.take(&mut frames, 0, data);
        second.finish(&mut frames);
        outcome.take(&mut frames, SIDE, &[]);
        outcome.check_partition(ORIGIN + data.len() as u64);
        let facts = |framed: &Framed| (framed.content.clone(), framed.flags, framed.time_ns);
        assert!(
            outcome
                .records
                .iter()
                .map(facts)
                .eq(whole.records.iter().map(facts)),
            "{config:?}, rotated at {end}: {outcome:?} is not {whole:?}"
        );
    }
}

/// Silence after each chunk: nothing is left that waits for a line, and nothing is lost.
fn check_silence(config: &Config, mid_line: bool, data: &[u8], cuttings: &[Vec<usize>]) {
    for cuts in cuttings.iter().rev().take(3) {
        let mut framer = Framer::new(config, ORIGIN, mid_line);
        let mut frames = Frames::default();
        let mut outcome = Outcome::default();
        let mut start = 0;
        for end in cuts.iter().copied().chain([data.len()]) {
            framer.push(&data[start..end], 0, start as u32, &mut frames);
            framer.flush_joins(&mut frames);
            assert!(!framer.has_open_join());
            outcome.take(&mut frames, 0, data);
            start = end;
        }
        framer.finish(&mut frames);
        outcome.take(&mut frames, SIDE, &[]);
        outcome.check_partition(ORIGIN + data.len() as u64);
    }
}

/// Plain text below the size limit: one record per line that is not blank, without the hole that it begins with.
fn check_lines(whole: &Outcome, data: &[u8]) {
    let lines = data
        .split(|&byte| byte == b'\n')
        .map(|line| {
            let nuls = line.iter().take_while(|&&byte| byte == 0).count();
            &line[if nuls < 16 { 0 } else { nuls }..]
        })
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.iter().all(|byte| b" \t\r".contains(byte)));
    let contents = whole.records.iter().map(|record| &record.content[..]);
    assert!(contents.eq(lines), "{:?}", whole.records);
}

/// Where the input is cut: byte by byte, once at every place, and at a few sets of places that depend on the input.
fn cuttings(data: &[u8]) -> Vec<Vec<usize>> {
    let mut cuttings = Vec::new();
    if data.len() <= BYTEWISE_MAX {
        cuttings.push((1..data.len()).collect());
    }
    if data.len() <= CUT_EVERYWHERE_MAX {
        cuttings.extend((0..=data.len()).map(|at| vec![at]));
    }
    // FNV-1a, then a linear congruential step for each place.
    let mut state = data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    for count in 1..6 {
        let mut cuts: Vec<usize> = (0..count)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) as usize % (data.len() + 1)
            })
            .collect();
        cuts.sort_unstable();
        cuttings.push(cuts);
    }
    cuttings
}
