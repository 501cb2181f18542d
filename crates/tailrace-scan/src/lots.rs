//! The records of a batch, lot by lot: followed where their layout is known, the others indexed and walked.
//!
//! Takes records whose text was checked, sets the rows of a batch. What one phase found the other one knows. Learns the
//! layout of every record that was walked. Never remembers more than one batch, but for the layouts.

use crate::config::Isa;
use crate::extract::{Batch, Extractor, Followed, Outlined, Pick};
use crate::follow::Marks;
use crate::index::{Index, Indexer};
use crate::keys::Keys;
use crate::layout::{Layouts, WINDOW_BYTES};
use crate::records::{BROKEN, Record, TEXT, TEXT_ALLOWED};
use crate::rows::{Rows, Shape};
use crate::scanned::Scanned;
use crate::shape;
use crate::text::{Lot, Span};
use crate::token::skip_whitespace;

/// How many records are followed before they are read: what they and their marks take stays in the nearest cache.
pub(crate) const LOT_MAX: usize = 256;

/// What is used again for every batch, and what both phases know.
#[derive(Debug)]
pub(crate) struct Lots {
    indexer: Indexer,
    layouts: Layouts,
    /// By record of the batch.
    marks: Marks,
    /// The records of a lot that were not followed, and where those of them lie that may be JSON.
    rest: Vec<Pick>,
    spans: Vec<Span>,
    /// Of those.
    index: Index,
}

impl Lots {
    /// For these instructions.
    pub(crate) fn new(isa: Isa) -> Lots {
        Lots {
            indexer: Indexer::new(isa),
            layouts: Layouts::new(),
            marks: Marks::default(),
            rest: Vec::new(),
            spans: Vec::new(),
            index: Index::default(),
        }
    }

    /// The instructions that were chosen.
    pub(crate) fn indexer(&self) -> Indexer {
        self.indexer
    }

    /// Starts a batch. Says whether all layouts were forgotten.
    pub(crate) fn start_batch(&mut self) -> bool {
        self.marks.clear();
        self.layouts.start_batch()
    }

    /// Keeps at most so many bytes of each buffer, between two batches.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.marks.release(bytes);
        self.index.release(bytes);
    }

    /// Follows all records and extracts columns of them. What layouts they have is told by `keys`, or else by those of the
    /// extractor.
    pub(crate) fn scan_all(
        &mut self,
        batch: &Batch<'_>,
        extractor: &mut Extractor,
        keys: Option<&Keys>,
    ) -> Scanned {
        let count = batch.records.records.len();
        let plan = extractor.plan();
        let mut rows = Rows::new(&plan, count, batch.buffers.side());
        rows.stats.repaired = batch.buffers.repaired();
        extractor.start_batch();
        let mut first = 0;
        while first < count {
            let lot = batch.buffers.lot(first, LOT_MAX);
            let behind = first + lot.spans().len();
            let records = &batch.records.records[first..behind];
            self.marks.follow(
                self.indexer,
                &self.layouts,
                lot.bytes(),
                records,
                lot.spans(),
            );
            let picks = (0..).zip(first as u32..behind as u32);
            self.add(batch, &lot, picks, extractor, keys, &mut rows);
            first = behind;
        }
        rows.finish(batch.buffers, extractor.keys())
    }

    /// Sets rows for some records of a lot that were followed: those with these places in the lot, each with its row.
    pub(crate) fn add(
        &mut self,
        batch: &Batch<'_>,
        lot: &Lot<'_>,
        picks: impl Iterator<Item = (u32, u32)>,
        extractor: &mut Extractor,
        keys: Option<&Keys>,
        rows: &mut Rows<'_>,
    ) {
        let followed = Followed {
            lot: *lot,
            found: &self.marks.found()[lot.first()..lot.first() + lot.spans().len()],
            marks: self.marks.marks(),
            is_in_order: self.marks.is_in_order(),
        };
        self.rest.clear();
        extractor.add(batch, &followed, &self.layouts, picks, rows, &mut self.rest);
        if !self.rest.is_empty() {
            self.add_rest(batch, lot, extractor, keys, rows);
        }
    }

    /// Sets rows for the records of a lot that were not followed, and learns their layouts.
    fn add_rest(
        &mut self,
        batch: &Batch<'_>,
        lot: &Lot<'_>,
        extractor: &mut Extractor,
        keys: Option<&Keys>,
        rows: &mut Rows<'_>,
    ) {
        let bytes = lot.bytes();
        let of_lot = &batch.records.records[lot.first()..];
        let may_be_json = |pick: &&Pick| of_lot[pick.at as usize].flags & (TEXT | BROKEN) == 0;
        let json = self.rest.iter().filter(may_be_json);
        self.spans.clear();
        self.spans
            .extend(json.map(|pick| lot.spans()[pick.at as usize]));
        self.index.clear();
        self.indexer.index(bytes, &self.spans, &mut self.index);
        let mut indexed = 0;
        for pick in &self.rest {
            let record = &of_lot[pick.at as usize];
            let mut outlined = Outlined {
                shape: Shape::Text,
                structurals: &[],
            };
            if may_be_json(&pick) {
                let (span, number) = (self.spans[indexed], indexed);
                indexed += 1;
                outlined.shape = shape_of(bytes, span, record, &mut self.index, number);
                outlined.structurals = self.index.record(number);
            } else if record.flags & BROKEN != 0 {
                outlined.shape = Shape::Malformed;
            }
            let number = lot.first() + pick.at as usize;
            extractor.add_outlined(batch, &outlined, number, pick.row as usize, rows);
            // One at the buffer's end was not looked at: its layout may be known.
            let end = lot.spans()[pick.at as usize].end();
            if outlined.shape == Shape::Object && end + WINDOW_BYTES <= bytes.len() {
                let keys = keys.unwrap_or(extractor.keys());
                let wish = |name: &str| keys.wish(name);
                self.layouts.learn(bytes, outlined.structurals, wish);
            }
        }
    }
}

/// What the indexed record with this number is.
fn shape_of(bytes: &[u8], span: Span, record: &Record, index: &mut Index, number: usize) -> Shape {
    let (outline, structurals) = index.record_mut(number);
    if shape::is_object(bytes, span, outline, structurals) {
        return Shape::Object;
    }
    let text = &bytes[..span.end()];
    let is_text = record.flags & TEXT_ALLOWED != 0
        && text.get(skip_whitespace(text, span.start())) != Some(&b'{');
    if is_text {
        Shape::Text
    } else {
        Shape::Malformed
    }
}
