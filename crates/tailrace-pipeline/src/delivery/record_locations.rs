//! Where the records of a batch were read: the source and the bytes of each. Never looks at a byte of them.

use std::ops::Range;
use std::time::Instant;

use tailrace_frame::Piece;

use crate::watermark::Slot;

/// Where the records of a batch were read, for dead-letter entries, and when.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordLocations {
    pub(crate) read_at: Option<Instant>,
    /// Records of one source, and the offset that its bytes are counted from.
    runs: Vec<(Range<u32>, Slot, u64)>,
    /// Per record: its first byte and the one behind its last, from its run's offset.
    bytes: Vec<(u32, u32)>,
}

impl RecordLocations {
    /// When the bytes were read.
    pub(crate) fn read_at(&mut self, at: Instant) {
        self.read_at = Some(at);
    }

    /// Adds the records that follow: the source and the bytes of each.
    #[inline]
    pub(crate) fn add(&mut self, records: impl Iterator<Item = (Slot, (u64, u64))>) {
        let (least, most) = records.size_hint();
        self.bytes.reserve(most.unwrap_or(least));
        let mut source = None;
        for (slot, (first, end)) in records {
            let base = match source {
                Some((same, base)) if same == slot => base,
                _ => {
                    self.end_run();
                    self.runs.push((self.len()..self.len(), slot, first));
                    source = Some((slot, first));
                    first
                }
            };
            // A chain of partial lines may begin before the record that came first; then only its end is known well.
            self.bytes
                .push((from_base(first, base), from_base(end, base)));
        }
        self.end_run();
    }

    /// [`RecordLocations::add`] for records of one piece each, all of this source.
    pub(crate) fn add_lines(&mut self, slot: Slot, lines: &[Piece]) {
        let Some(&Piece { start: base, .. }) = lines.first() else {
            return;
        };
        self.runs.push((self.len()..self.len(), slot, base));
        self.bytes.extend(
            lines
                .iter()
                .map(|line| (from_base(line.start, base), from_base(line.end, base))),
        );
        self.end_run();
    }

    /// The records so far that are in no run are in the last one.
    fn end_run(&mut self) {
        let len = self.len();
        if let Some((run, ..)) = self.runs.last_mut() {
            run.end = len;
        }
    }

    /// Which records each source gave, in order, and the offset behind the last byte of each.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (Slot, impl Iterator<Item = u64>)> {
        self.runs.iter().map(|(records, slot, base)| {
            let bytes = &self.bytes[records.start as usize..records.end as usize];
            (
                *slot,
                bytes.iter().map(move |(_, end)| base + u64::from(*end)),
            )
        })
    }

    /// Those of some of the records.
    pub(crate) fn part(&self, records: Range<u32>) -> Self {
        let runs = self.runs.iter().filter_map(|(run, slot, base)| {
            let run = common(run, &records)?;
            Some((run, *slot, *base))
        });
        Self {
            read_at: self.read_at,
            runs: runs.collect(),
            bytes: self
                .bytes
                .get(records.start as usize..records.end as usize)
                .unwrap_or_default()
                .to_vec(),
        }
    }

    /// Which records each source gave, in order, and the bytes of the first one and up to the last one's end.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (Range<u32>, Slot, (u64, u64))> {
        self.runs.iter().filter_map(|(records, slot, base)| {
            let (first, _) = self.bytes.get(records.start as usize)?;
            let (_, end) = self.bytes.get(records.end.checked_sub(1)? as usize)?;
            let bytes = (base + u64::from(*first), base + u64::from(*end));
            Some((records.clone(), *slot, bytes))
        })
    }

    /// Bytes held in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        8 * self.bytes.len()
    }

    fn len(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap_or(u32::MAX)
    }

    /// Where a record was read.
    pub(crate) fn of(&self, record: u32) -> Option<(Slot, (u64, u64))> {
        let (_, slot, base) = self.runs.iter().find(|(run, ..)| run.contains(&record))?;
        let (first, end) = self.bytes.get(record as usize)?;
        Some((*slot, (base + u64::from(*first), base + u64::from(*end))))
    }
}

/// An offset as it is kept.
#[inline]
fn from_base(offset: u64, base: u64) -> u32 {
    u32::try_from(offset.saturating_sub(base)).unwrap_or(u32::MAX)
}

/// What a run of records has in common with a part of the batch, counted from the part's first record.
pub(crate) fn common(run: &Range<u32>, part: &Range<u32>) -> Option<Range<u32>> {
    let (start, end) = (run.start.max(part.start), run.end.min(part.end));
    (start < end).then(|| start - part.start..end - part.start)
}
