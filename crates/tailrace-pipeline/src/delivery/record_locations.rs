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
    /// Per record: its first byte and the one behind its last, from its run's offset; before it where a record was held, for
    /// more of it might have come, while later ones were given out.
    bytes: Vec<(i32, i32)>,
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
                Some((same, base))
                    if same == slot && is_near(first, base) && is_near(end, base) =>
                {
                    base
                }
                _ => {
                    self.end_run();
                    self.runs.push((self.len()..self.len(), slot, first));
                    source = Some((slot, first));
                    first
                }
            };
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
            (*slot, bytes.iter().map(move |(_, end)| offset(*base, *end)))
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

    /// Which records each source gave, in order, and the bytes from the first to the last of them, in the order of the file.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (Range<u32>, Slot, (u64, u64))> {
        self.runs.iter().filter_map(|(records, slot, base)| {
            let bytes = self
                .bytes
                .get(records.start as usize..records.end as usize)?;
            let first = bytes.iter().map(|(first, _)| *first).min()?;
            let end = bytes.iter().map(|(_, end)| *end).max()?;
            let bytes = (offset(*base, first), offset(*base, end));
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
        Some((*slot, (offset(*base, *first), offset(*base, *end))))
    }
}

/// Whether an offset can be kept so: a record that is held may begin gigabytes before its neighbours.
#[inline]
fn is_near(offset: u64, base: u64) -> bool {
    i32::try_from(offset.wrapping_sub(base) as i64).is_ok()
}

/// An offset as it is kept. Only a record that is itself longer than two gigabytes has another end.
#[inline]
fn from_base(offset: u64, base: u64) -> i32 {
    let apart = offset.wrapping_sub(base) as i64;
    apart.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// The offset that is kept so.
fn offset(base: u64, apart: i32) -> u64 {
    base.saturating_add_signed(apart.into())
}

/// What a run of records has in common with a part of the batch, counted from the part's first record.
pub(crate) fn common(run: &Range<u32>, part: &Range<u32>) -> Option<Range<u32>> {
    let (start, end) = (run.start.max(part.start), run.end.min(part.end));
    (start < end).then(|| start - part.start..end - part.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    proptest! {
        /// In any order, as where a record of one stream is held while those of the other go on.
        #[test]
        fn records_are_where_they_were_read(
            records in prop::collection::vec(
                (0_u32..3, prop_oneof![0_u64..1000, Just(5_u64 << 30)], 1_u64..50),
                1..40,
            ),
            base in prop_oneof![Just(0), Just(u64::from(u32::MAX) * 3)],
            pushes in 1_usize..9,
        ) {
            let place = |&(slot, start, bytes): &(u32, u64, u64)| (Slot(slot), (base + start, base + start + bytes));
            let mut locations = RecordLocations::default();
            for push in records.chunks(pushes) {
                locations.add(push.iter().map(place));
            }
            for (at, record) in records.iter().enumerate() {
                prop_assert_eq!(locations.of(at as u32), Some(place(record)));
            }
            for (run, slot, (first, end)) in locations.runs() {
                let places: Vec<_> = records[run.start as usize..run.end as usize].iter().map(place).collect();
                prop_assert!(places.iter().all(|(of, _)| *of == slot));
                prop_assert_eq!(places.iter().map(|(_, (first, _))| *first).min(), Some(first));
                prop_assert_eq!(places.iter().map(|(_, (_, end))| *end).max(), Some(end));
            }
            let ends = locations.ends().flat_map(|(_, ends)| ends);
            prop_assert!(ends.eq(records.iter().map(|record| place(record).1.1)));
        }
    }
}
