//! Runs a framer over an input that is cut as asked, and checks on the way what must always hold:
//! every byte is in exactly one piece or skip, and `unacked_from` is the first byte that is in none yet.

use tailrace_frame::{
    Config, Flags, Format, Framer, Frames, Piece, SIDE, Skip, SkipReason, Stats, Stream,
};

/// One record with everything that is known of it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Framed {
    pub(crate) content: Vec<u8>,
    pub(crate) flags: Flags,
    pub(crate) stream: Stream,
    pub(crate) time_ns: i64,
    pub(crate) pieces: Vec<Piece>,
}

impl std::fmt::Debug for Framed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let content = String::from_utf8_lossy(&self.content[..self.content.len().min(200)]);
        let spans: Vec<_> = self
            .pieces
            .iter()
            .map(|piece| piece.start..piece.end)
            .collect();
        write!(
            out,
            "{:?} {:?} {} {content:?} ({}) {spans:?}",
            self.flags,
            self.stream,
            self.time_ns,
            self.content.len()
        )
    }
}

/// What a whole input gives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) records: Vec<Framed>,
    /// By offset, neighbours with one reason merged.
    pub(crate) skips: Vec<Skip>,
}

/// Where the source starts in the tests: not at 0, so that offsets and places are told apart.
pub(crate) const ORIGIN: u64 = 1000;

/// Frames `input`, which is the source from [`ORIGIN`] on, in chunks that end at `cuts` (ascending) and at the end.
pub(crate) fn frame(
    config: &Config,
    mid_line: bool,
    input: &[u8],
    cuts: &[usize],
) -> (Outcome, Stats) {
    let mut framer = Framer::new(config, ORIGIN, mid_line);
    let mut frames = Frames::default();
    let mut outcome = Outcome::default();
    let mut stats = Stats::default();
    let mut start = 0;
    for (number, end) in cuts.iter().copied().chain([input.len()]).enumerate() {
        let chunk = &input[start..end];
        // The chunk lies somewhere in a buffer, among other sources' chunks.
        let base = number % 5;
        let buffer = [&b"#####"[..base], chunk, b"#####"].concat();
        framer.push(chunk, number as u32, base as u32, &mut frames);
        outcome.take(&mut frames, Some((number as u32, &buffer)), &mut stats);
        start = end;
        assert_eq!(framer.offset(), ORIGIN + end as u64);
        let acked = outcome.acked_to();
        assert_eq!(
            framer.unacked_from().unwrap_or(framer.offset()),
            acked,
            "the first byte not given out"
        );
        // Out of memory and back, every other time.
        if number % 2 == 1 {
            let held = framer.held_bytes();
            let stowed = framer.stow();
            assert_eq!((stowed.len(), framer.held_bytes()), (held, 0));
            let from = framer.unacked_from().unwrap_or(framer.offset());
            assert_eq!(from, acked, "what is stowed is not given out");
            framer.restore(&stowed);
            assert_eq!(framer.held_bytes(), held);
        }
    }
    framer.finish(&mut frames);
    outcome.take(&mut frames, None, &mut stats);
    assert_eq!(framer.unacked_from(), None);
    outcome.check_partition(ORIGIN + input.len() as u64);
    outcome.check_stats(&stats, input.len());
    outcome.skips = merged(&outcome.skips);
    (outcome, stats)
}

impl Outcome {
    /// Moves what is in `frames` here; ranges must be of `chunk` (its number and bytes) or of the side buffer.
    pub(crate) fn take(
        &mut self,
        frames: &mut Frames,
        chunk: Option<(u32, &[u8])>,
        stats: &mut Stats,
    ) {
        assert_eq!(frames.records.len(), frames.piece_ends.len());
        for (index, record) in frames.records.iter().enumerate() {
            let buffer = chunk
                .filter(|(number, _)| *number == record.buffer)
                .map(|(_, buffer)| buffer);
            assert!(
                buffer.is_some() || record.buffer == SIDE,
                "a record lies in the side buffer or in the pushed one"
            );
            let pieces = frames.pieces_of(index).to_vec();
            assert!(!pieces.is_empty());
            self.records.push(Framed {
                content: frames.content(record, buffer.unwrap_or(&[])).to_vec(),
                flags: record.flags,
                stream: record.stream,
                time_ns: record.time_ns,
                pieces,
            });
        }
        self.skips.extend_from_slice(&frames.skips);
        let new = frames.stats;
        stats.bytes += new.bytes;
        stats.records += new.records;
        stats.joined += new.joined;
        stats.multiline += new.multiline;
        stats.truncated += new.truncated;
        stats.broken += new.broken;
        stats.blank_lines += new.blank_lines;
        stats.oversize_bytes += new.oversize_bytes;
        stats.nul_bytes += new.nul_bytes;
        frames.clear();
        assert!(
            frames.records.is_empty()
                && frames.skips.is_empty()
                && frames.stats == Stats::default()
        );
    }

    /// All spans, ascending.
    fn spans(&self) -> Vec<(u64, u64)> {
        let pieces = self
            .records
            .iter()
            .flat_map(|record| &record.pieces)
            .map(|piece| (piece.start, piece.end));
        let mut spans: Vec<_> = pieces
            .chain(self.skips.iter().map(|skip| (skip.start, skip.end)))
            .collect();
        spans.sort_unstable();
        spans
    }

    /// The first offset that is in no piece and no skip.
    fn acked_to(&self) -> u64 {
        let mut acked = ORIGIN;
        for (start, end) in self.spans() {
            if start > acked {
                break;
            }
            acked = end;
        }
        acked
    }

    fn check_partition(&self, end: u64) {
        let mut expected = ORIGIN;
        for (start, end) in self.spans() {
            assert_eq!(
                start, expected,
                "every byte is in exactly one piece or skip"
            );
            assert!(end > start, "no span is empty");
            expected = end;
        }
        assert_eq!(expected, end);
        for record in &self.records {
            assert!(
                record.pieces.is_sorted_by(|a, b| a.end < b.start),
                "a record's pieces ascend and do not touch"
            );
        }
    }

    fn check_stats(&self, stats: &Stats, bytes: usize) {
        let flagged = |flag| {
            self.records
                .iter()
                .filter(|record| record.flags.contains(flag))
                .count() as u64
        };
        assert_eq!(stats.bytes, bytes as u64);
        assert_eq!(stats.records, self.records.len() as u64);
        assert_eq!(stats.truncated, flagged(Flags::TRUNCATED));
        assert_eq!(stats.broken, flagged(Flags::BROKEN));
        let skipped = |reason| {
            let skips = self.skips.iter().filter(|skip| skip.reason == reason);
            skips.map(|skip| skip.end - skip.start).sum::<u64>()
        };
        assert_eq!(stats.oversize_bytes, skipped(SkipReason::Oversize));
        assert_eq!(stats.nul_bytes, skipped(SkipReason::Nul));
    }
}

/// Skips by offset, neighbours with one reason merged: how they are divided depends on the cuts.
pub(crate) fn merged(skips: &[Skip]) -> Vec<Skip> {
    let mut sorted = skips.to_vec();
    sorted.sort_unstable_by_key(|skip| skip.start);
    let mut merged: Vec<Skip> = Vec::new();
    for skip in sorted {
        match merged.last_mut() {
            Some(last) if last.end == skip.start && last.reason == skip.reason => {
                last.end = skip.end
            }
            _ => merged.push(skip),
        }
    }
    merged
}

/// Frames `input` and compares the records with `expect`, one string per record: its content, and before it (with a
/// colon) the stream and what is special about it, such as `stdout truncated: text`. Done for the input in one chunk,
/// in two chunks cut at every place, and byte by byte.
#[track_caller]
pub(crate) fn check_frame(format: Format, input: &str, expect: &[&str]) {
    check_config(
        &Config {
            format,
            ..Config::default()
        },
        input,
        expect,
    );
}

/// [`check_frame`] for a config that has more to it than the format.
#[track_caller]
pub(crate) fn check_config(config: &Config, input: &str, expect: &[&str]) {
    let (whole, _) = frame(config, false, input.as_bytes(), &[]);
    let found: Vec<_> = whole.records.iter().map(described).collect();
    assert_eq!(found, expect);
    let bytewise: Vec<_> = (1..input.len()).collect();
    for cuts in bytewise
        .iter()
        .map(std::slice::from_ref)
        .chain([&bytewise[..]])
    {
        let (cut, _) = frame(config, false, input.as_bytes(), cuts);
        assert_eq!(cut, whole, "cut at {cuts:?}");
    }
}

fn described(record: &Framed) -> String {
    let mut facts = Vec::new();
    match record.stream {
        Stream::None => {}
        Stream::Stdout => facts.push("stdout"),
        Stream::Stderr => facts.push("stderr"),
    }
    for (flag, name) in [(Flags::TRUNCATED, "truncated"), (Flags::BROKEN, "broken")] {
        if record.flags.contains(flag) {
            facts.push(name);
        }
    }
    let content = String::from_utf8_lossy(&record.content);
    if facts.is_empty() {
        content.into_owned()
    } else {
        format!("{}: {content}", facts.join(" "))
    }
}
