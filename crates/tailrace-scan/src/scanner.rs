//! The scanner: batches of records to batches of rows, in one phase or in two.
//!
//! Takes batches of records, gives scanned batches. What it remembers between batches is bounded: the wanted keys, the
//! keys of `SELECT *` up to its limit, and a bounded number of layouts. Nothing of it changes what a batch holds, but
//! for the order of `SELECT *` columns and which keys still became columns.

use crate::config::Config;
use crate::extract::{Batch, Extractor, Indexed, Pick};
use crate::index::{Index, Indexer};
use crate::prefilter::Prefilter;
use crate::records::{BROKEN, Record, Records, TEXT, TEXT_ALLOWED};
use crate::rows::{Rows, Shape};
use crate::scanned::{Candidates, First, Scanned};
use crate::shape;
use crate::text::{Buffers, Lot};
use crate::token::skip_whitespace;

/// How many records are indexed before they are read: what they and their index take stays in the nearest cache.
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
                index: Index::default(),
                shapes: Vec::new(),
                picks: Vec::new(),
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
        self.memory.scan_all(&batch, &mut self.all)
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
        let condition = self.condition.as_mut().expect("a condition reads columns");
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
        let Scanned { batch, stats, .. } = self.memory.scan_all(&batch, condition);
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
        let memory = &mut self.memory;
        let plan = self.all.plan();
        let mut made = Rows::new(&plan, rows.len(), first.buffers.side());
        self.all.start_batch();
        let mut row = 0;
        while row < rows.len() {
            let from = rows[row] as usize;
            let lot = first.buffers.lot(from, LOT_MAX);
            let behind = from + lot.spans().len();
            memory.picks.clear();
            while let Some(&number) = rows.get(row).filter(|&&number| (number as usize) < behind) {
                memory.picks.push(Pick {
                    at: number - from as u32,
                    first: memory.index.outlines()[number as usize].first,
                    row: row as u32,
                });
                row += 1;
            }
            let indexed = Indexed {
                lot,
                first: from,
                outlines: &memory.index.outlines()[from..behind],
                shapes: &memory.shapes[from..behind],
                structurals: memory.index.structurals(),
            };
            self.all.add(&batch, &indexed, &memory.picks, &mut made);
        }
        made.finish(&first.buffers, self.all.keys())
    }
}

/// What is used again for every batch, and how a batch is indexed.
#[derive(Debug)]
struct Memory {
    indexer: Indexer,
    index: Index,
    /// By record of the batch.
    shapes: Vec<Shape>,
    picks: Vec<Pick>,
}

impl Memory {
    /// Indexes all records and extracts columns of them.
    fn scan_all(&mut self, batch: &Batch<'_>, extractor: &mut Extractor) -> Scanned {
        let count = batch.records.records.len();
        let plan = extractor.plan();
        let mut rows = Rows::new(&plan, count, batch.buffers.side());
        rows.stats.repaired = batch.buffers.repaired();
        extractor.start_batch();
        self.index.clear();
        self.shapes.clear();
        let mut first = 0;
        while first < count {
            let lot = batch.buffers.lot(first, LOT_MAX);
            self.index_lot(&batch.records.records[first..], &lot);
            let behind = first + lot.spans().len();
            self.picks.clear();
            let outlines = self.index.outlines()[first..behind].iter();
            let numbered = (0..).zip(outlines);
            self.picks.extend(numbered.map(|(at, outline)| Pick {
                at,
                first: outline.first,
                row: first as u32 + at,
            }));
            let indexed = Indexed {
                lot,
                first,
                outlines: &self.index.outlines()[first..behind],
                shapes: &self.shapes[first..behind],
                structurals: self.index.structurals(),
            };
            extractor.add(batch, &indexed, &self.picks, &mut rows);
            first = behind;
        }
        rows.finish(batch.buffers, extractor.keys())
    }

    /// Indexes the records of a lot, of which `records` are the first ones, and says what each is.
    fn index_lot(&mut self, records: &[Record], lot: &Lot<'_>) {
        let first = self.shapes.len();
        let (bytes, spans) = (lot.bytes(), lot.spans());
        let is_text = |record: &Record| record.flags & (TEXT | BROKEN) != 0;
        if records[..spans.len()].iter().all(is_text) {
            spans.iter().for_each(|_| self.index.push_empty());
        } else {
            self.indexer.index(bytes, spans, &mut self.index);
        }
        for (i, (record, &span)) in records.iter().zip(spans).enumerate() {
            let (outline, structurals) = self.index.record_mut(first + i);
            let shape = if record.flags & BROKEN != 0 {
                Shape::Malformed
            } else if record.flags & TEXT != 0 {
                Shape::Text
            } else if shape::is_object(bytes, span, outline, structurals) {
                Shape::Object
            } else if record.flags & TEXT_ALLOWED != 0
                && bytes[..span.end()].get(skip_whitespace(&bytes[..span.end()], span.start()))
                    != Some(&b'{')
            {
                Shape::Text
            } else {
                Shape::Malformed
            };
            self.shapes.push(shape);
        }
    }
}
