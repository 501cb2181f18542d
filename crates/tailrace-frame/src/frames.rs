//! What framing gives: records, their pieces, skips and counts, in vectors that are reused from batch to batch.
//!
//! The framer appends to them, the scan reads them. Copies bytes only into `side`, and only those that do not lie
//! in one piece in the caller's buffers.

use std::ops::{AddAssign, BitOr, BitOrAssign, Range};

/// `Record::buffer` of a record whose bytes are in [`Frames::side`].
pub const SIDE: u32 = u32::MAX;

/// One record: where its bytes are and what its envelope said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The caller's number of the buffer that holds the bytes, or [`SIDE`].
    pub buffer: u32,
    /// First byte in that buffer.
    pub start: u32,
    /// After the last byte; the line ending is not part of a record.
    pub end: u32,
    /// What is known of it.
    pub flags: Flags,
    /// Where the container wrote it.
    pub stream: Stream,
    /// When the container runtime took it, in nanoseconds since the Unix epoch; 0 if unknown. Of a joined record the
    /// time of its first line.
    pub time_ns: i64,
}

/// A set of facts about a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No fact.
    pub const NONE: Flags = Flags(0);
    /// Plain text: never to be read as JSON, and not malformed.
    pub const TEXT: Flags = Flags(1);
    /// A record that does not start with `{` is plain text, not malformed.
    pub const TEXT_ALLOWED: Flags = Flags(2);
    /// Cut off: longer than a limit.
    pub const TRUNCATED: Flags = Flags(4);
    /// A line of a CRI or docker source that has no such envelope, kept as it is.
    pub const BROKEN: Flags = Flags(8);

    /// Whether all facts of `other` are among these.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// `self` if `condition` holds, else nothing.
    pub(crate) fn when(self, condition: bool) -> Flags {
        if condition { self } else { Flags::NONE }
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

/// The stream of a container that a record was written to.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stream {
    /// Not known.
    #[default]
    None = 0,
    /// Standard output.
    Stdout = 1,
    /// Standard error.
    Stderr = 2,
}

/// Bytes `[start, end)` of a source that belong to a record, line ending and envelope included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The caller's number of the source: another one than that of the bytes pushed, where a record began in the
    /// source before it.
    pub source: u32,
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
}

/// Bytes `[start, end)` of a source that belong to no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The caller's number of the source.
    pub source: u32,
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
    /// Why they are skipped.
    pub reason: SkipReason,
}

/// Why bytes belong to no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Lines with nothing but whitespace.
    Blank,
    /// Beyond the size limit of a record that was truncated, or the rest of a line whose start was never seen.
    Oversize,
    /// NULs that a line begins with, many of them: a hole in the file, or what a crash left.
    Nul,
    /// The caller wants no records of the source now.
    Excluded,
    /// The beginning of a record that was acknowledged before.
    Acked,
}

/// The records of a batch. The vectors keep their memory when cleared: reuse one `Frames` for many batches.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    /// The records, in the order in which they were completed.
    pub records: Vec<Record>,
    /// The bytes of records that had to be put together.
    pub side: Vec<u8>,
    /// The pieces of all records: those of record i end at `piece_ends[i]` and start where those of record i - 1 end.
    /// Neighbouring spans of one record are one piece; a record's pieces ascend, those of an earlier source first.
    pub pieces: Vec<Piece>,
    /// One for each record.
    pub piece_ends: Vec<u32>,
    /// What belongs to no record; neighbours of one push with the same reason may be one skip.
    pub skips: Vec<Skip>,
    /// How many skips there were before this push: those stay as they are.
    skips_before: usize,
    /// Counts since the last `clear`.
    pub stats: Stats,
}

/// Counts of what was framed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes pushed.
    pub bytes: u64,
    /// Records given.
    pub records: u64,
    /// Of them, records joined from partial lines; one of several such lines counts once for each.
    pub joined: u64,
    /// Of them, records of several lines, as `multiline` says.
    pub multiline: u64,
    /// Of them, records that were cut off.
    pub truncated: u64,
    /// Of them, lines without the envelope that the format has.
    pub broken: u64,
    /// Blank lines skipped.
    pub blank_lines: u64,
    /// Bytes skipped as oversize.
    pub oversize_bytes: u64,
    /// NULs skipped.
    pub nul_bytes: u64,
    /// Bytes that were passed over.
    pub excluded_bytes: u64,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        self.bytes += other.bytes;
        self.records += other.records;
        self.joined += other.joined;
        self.multiline += other.multiline;
        self.truncated += other.truncated;
        self.broken += other.broken;
        self.blank_lines += other.blank_lines;
        self.oversize_bytes += other.oversize_bytes;
        self.nul_bytes += other.nul_bytes;
        self.excluded_bytes += other.excluded_bytes;
    }
}

impl Frames {
    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        let Frames {
            records,
            side,
            pieces,
            piece_ends,
            skips,
            skips_before,
            stats,
        } = self;
        records.clear();
        side.clear();
        pieces.clear();
        piece_ends.clear();
        skips.clear();
        *skips_before = 0;
        *stats = Stats::default();
    }

    /// The bytes of a record: in `side`, or else in `buffer`, which is the caller's buffer with the record's number.
    pub fn content<'a>(&'a self, record: &Record, buffer: &'a [u8]) -> &'a [u8] {
        let bytes = if record.buffer == SIDE {
            &self.side
        } else {
            buffer
        };
        &bytes[record.start as usize..record.end as usize]
    }

    /// The pieces of the record with this index.
    pub fn pieces_of(&self, index: usize) -> &[Piece] {
        let start = index
            .checked_sub(1)
            .map_or(0, |before| self.piece_ends[before]);
        &self.pieces[start as usize..self.piece_ends[index] as usize]
    }

    /// Where `side` ends now.
    pub(crate) fn side_end(&self) -> u32 {
        u32::try_from(self.side.len())
            .expect("frames are cleared long before their side buffer holds 4 GiB")
    }

    /// The bytes of `side` from `start` on as a record; the pieces are added by the caller with [`Frames::seal`].
    pub(crate) fn side_record(
        &self,
        start: u32,
        flags: Flags,
        stream: Stream,
        time_ns: i64,
    ) -> Record {
        Record {
            buffer: SIDE,
            start,
            end: self.side_end(),
            flags,
            stream,
            time_ns,
        }
    }

    /// Adds a record with its pieces and counts it.
    pub(crate) fn seal(&mut self, record: Record, pieces: &[Piece]) {
        self.pieces.extend_from_slice(pieces);
        self.count(record);
    }

    /// [`Frames::seal`] for one piece, which most records are: the short way.
    #[inline]
    pub(crate) fn seal_line(&mut self, record: Record, piece: Piece) {
        self.pieces.push(piece);
        self.count(record);
    }

    /// Adds records of one piece each, all with these flags.
    #[inline]
    pub(crate) fn seal_lines(
        &mut self,
        records: impl ExactSizeIterator<Item = Record>,
        pieces: impl Iterator<Item = Piece>,
        flags: Flags,
    ) {
        let (count, before) = (records.len() as u64, self.pieces.len());
        self.records.extend(records);
        self.pieces.extend(pieces);
        let end = place_of(self.pieces.len());
        self.piece_ends.extend(before as u32 + 1..=end);
        self.stats.records += count;
        self.stats.truncated += count * u64::from(flags.contains(Flags::TRUNCATED));
        self.stats.broken += count * u64::from(flags.contains(Flags::BROKEN));
    }

    /// Adds a record whose pieces were just added.
    #[inline]
    fn count(&mut self, record: Record) {
        self.records.push(record);
        self.piece_ends.push(place_of(self.pieces.len()));
        self.stats.records += 1;
        self.stats.truncated += u64::from(record.flags.contains(Flags::TRUNCATED));
        self.stats.broken += u64::from(record.flags.contains(Flags::BROKEN));
    }

    /// A push begins: what was given before it is not touched any more.
    pub(crate) fn begin_push(&mut self) {
        self.skips_before = self.skips.len();
    }

    /// Adds a skip, or makes the last one longer.
    pub(crate) fn skip(&mut self, source: u32, span: Range<u64>, reason: SkipReason) {
        if span.is_empty() {
            return;
        }
        match reason {
            SkipReason::Blank => self.stats.blank_lines += 1,
            SkipReason::Oversize => self.stats.oversize_bytes += span.end - span.start,
            SkipReason::Nul => self.stats.nul_bytes += span.end - span.start,
            SkipReason::Excluded => self.stats.excluded_bytes += span.end - span.start,
            SkipReason::Acked => {}
        }
        match self.skips[self.skips_before..].last_mut() {
            Some(last) if (last.source, last.end, last.reason) == (source, span.start, reason) => {
                last.end = span.end;
            }
            _ => self.skips.push(Skip {
                source,
                start: span.start,
                end: span.end,
                reason,
            }),
        }
    }
}

/// The number of pieces that there are, as it is kept.
#[inline]
fn place_of(pieces: usize) -> u32 {
    u32::try_from(pieces).expect("frames are cleared long before they hold 2^32 pieces")
}
