//! The scanner: batches of records to batches of rows, in one phase or in two.
//!
//! Takes batches of records, gives scanned batches. What it remembers between batches is bounded: the wanted keys, the
//! keys of `SELECT *` up to its limit, and a bounded number of layouts. Nothing of it changes what a batch holds, but
//! for the order of `SELECT *` columns and which keys still became columns.

use crate::config::Config;
use crate::extract::{Batch, Extractor, Followed, Outlined, Pick};
use crate::follow::Marks;
use crate::index::{Index, Indexer};
use crate::keys::Keys;
use crate::layout::Layouts;
use crate::prefilter::Prefilter;
use crate::records::{BROKEN, Record, Records, TEXT, TEXT_ALLOWED};
use crate::rows::{Rows, Shape};
use crate::scanned::{Candidates, First, Scanned};
use crate::shape;
use crate::text::{Buffers, Lot, Span};
use crate::token::skip_whitespace;

/// How many records are followed before they are read: what they and their marks take stays in the nearest cache.
const LOT_MAX: usize = 128;

/// Turns batches of records into columns.
#[derive(Debug)]
pub struct Scanner {
    all: Extractor,
    /// The columns that a condition reads.
    condition: Option<Extractor>,
    prefilter: Option<Prefilter>,
    memory: Memory,
}

impl Scanner {
    /// A scanner for these columns.
    pub fn new(config: Config) -> Scanner {
        let condition = (!config.first.is_empty()).then(|| {
            let columns = config.first.iter().map(|&at| config.columns[at].clone());
            Extractor::new(&Config {
                columns: columns.collect(),
                star: None,
                ..config.clone()
            })
        });
        Scanner {
            all: Extractor::new(&config),
            condition,
            prefilter: Prefilter::new(&config.prefilter),
            memory: Memory {
                indexer: Indexer::new(config.isa),
                layouts: Layouts::new(),
                marks: Marks::default(),
                rest: Vec::new(),
                spans: Vec::new(),
                index: Index::default(),
            },
        }
    }

    /// Scans one batch. Whatever the bytes are, every record becomes one row.
    pub fn scan(&mut self, records: &Records<'_>) -> Scanned {
        let buffers = Buffers::check(records);
        let batch = Batch {
            records: *records,
            buffers: &buffers,
        };
        self.start_batch();
        self.memory.scan_all(&batch, &mut self.all, None)
    }

    /// Scans the records numbered `rows`, ascending; row `i` of every column is record `rows[i]`.
    pub fn scan_some(&mut self, records: &Records<'_>, rows: &[u32]) -> Scanned {
        self.scan(&Candidates::new(records, rows).of(records))
    }

    /// The first of two phases: the columns that a condition reads, for the records that pass the prefilter.
    ///
    /// # Panics
    /// If [`Config::first`] is empty.
    pub fn first(&mut self, records: &Records<'_>) -> First {
        let prefilter = self.prefilter.as_mut();
        let rows = prefilter.and_then(|prefilter| prefilter.candidates(records));
        let candidates = rows.as_ref().map(|rows| Candidates::new(records, rows));
        let records = candidates
            .as_ref()
            .map_or(*records, |candidates| candidates.of(records));
        let buffers = Buffers::check(&records);
        let batch = Batch {
            records,
            buffers: &buffers,
        };
        self.start_batch();
        let condition = self.condition.as_mut().expect("a condition reads columns");
        let keys = Some(self.all.keys());
        let Scanned { batch, stats, .. } = self.memory.scan_all(&batch, condition, keys);
        First {
            rows,
            batch,
            stats,
            buffers,
            candidates,
        }
    }

    /// The second phase: all columns, for some of the records that [`Scanner::first`] was last given: those numbered
    /// `rows`, ascending, among those that passed the prefilter. Row `i` of every column is record `rows[i]`.
    pub fn second(&mut self, records: &Records<'_>, first: &First, rows: &[u32]) -> Scanned {
        let candidates = first.candidates.as_ref();
        let batch = Batch {
            records: candidates.map_or(*records, |candidates| candidates.of(records)),
            buffers: &first.buffers,
        };
        // By place among the candidates.
        let mut places = Vec::new();
        let rows = match &first.rows {
            None => rows,
            Some(all) => {
                let mut numbered = (0..).zip(all);
                let place = |row| numbered.find(|&(_, other)| other == row);
                places.extend(rows.iter().filter_map(place).map(|(place, _)| place));
                &places
            }
        };
        let plan = self.all.plan();
        let mut made = Rows::new(&plan, rows.len(), first.buffers.side());
        self.all.start_batch();
        let mut row = 0;
        while row < rows.len() {
            let from = rows[row] as usize;
            let lot = first.buffers.lot(from, LOT_MAX);
            let behind = from + lot.spans().len();
            let count = rows[row..].partition_point(|&number| (number as usize) < behind);
            let of_lot = rows[row..row + count].iter().zip(row as u32..);
            let picks = of_lot.map(|(&number, row)| (number - from as u32, row));
            self.memory
                .add_lot(&batch, &lot, from, picks, &mut self.all, None, &mut made);
            row += count;
        }
        made.finish(&first.buffers, self.all.keys())
    }

    fn start_batch(&mut self) {
        if self.memory.layouts.start_batch() {
            let extractors = std::iter::once(&mut self.all).chain(&mut self.condition);
            extractors.for_each(Extractor::forget_layouts);
        }
    }
}

/// What is used again for every batch, and what both phases know.
#[derive(Debug)]
struct Memory {
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

impl Memory {
    /// Follows all records and extracts columns of them. What layouts they have is told by `keys`, or else by those of the
    /// extractor.
    fn scan_all(
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
        self.marks.clear();
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
            self.add_lot(batch, &lot, first, picks, extractor, keys, &mut rows);
            first = behind;
        }
        rows.finish(batch.buffers, extractor.keys())
    }

    /// Sets rows for some records of a lot that were followed; its first one is number `first` of the batch.
    fn add_lot(
        &mut self,
        batch: &Batch<'_>,
        lot: &Lot<'_>,
        first: usize,
        picks: impl Iterator<Item = (u32, u32)>,
        extractor: &mut Extractor,
        keys: Option<&Keys>,
        rows: &mut Rows<'_>,
    ) {
        let followed = Followed {
            lot: *lot,
            first,
            found: &self.marks.found()[first..first + lot.spans().len()],
            marks: self.marks.marks(),
        };
        self.rest.clear();
        extractor.add(batch, &followed, &self.layouts, picks, rows, &mut self.rest);
        if !self.rest.is_empty() {
            self.add_rest(batch, lot, first, extractor, keys, rows);
        }
    }

    /// Sets rows for the records of a lot that were not followed, and learns their layouts.
    fn add_rest(
        &mut self,
        batch: &Batch<'_>,
        lot: &Lot<'_>,
        first: usize,
        extractor: &mut Extractor,
        keys: Option<&Keys>,
        rows: &mut Rows<'_>,
    ) {
        let bytes = lot.bytes();
        let of_lot = &batch.records.records[first..];
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
            let number = first + pick.at as usize;
            extractor.add_outlined(batch, &outlined, number, pick.row as usize, rows);
            if outlined.shape == Shape::Object {
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
