//! The scanner: batches of records to batches of rows, in one phase or in two.
//!
//! A [`Scanner`] scans one batch of records after the other. What it remembers between batches is bounded: the wanted
//! keys, the keys of `SELECT *` up to its limit, and a bounded number of templates. Nothing of it changes what a batch
//! holds, but for the order of `SELECT *` columns and which keys still became columns.

use crate::config::Config;
use crate::extract::{Batch, Extractor, Shared};
use crate::keys::Keys;
use crate::newline_search::NewlineSearcher;
use crate::prefilter::Prefilter;
use crate::records::Records;
use crate::rows::Rows;
use crate::scanned::{Candidates, First, Scanned};
use crate::text::{Buffers, RECORD_GROUP_MAX};

/// Turns batches of records into columns.
#[derive(Debug)]
pub struct Scanner {
    all: Extractor,
    /// The columns that a condition reads.
    condition: Option<Extractor>,
    prefilter: Option<Prefilter>,
    shared: Shared,
}

impl Scanner {
    /// A scanner for these columns.
    pub fn new(config: Config) -> Scanner {
        let all = Extractor::new(&config, None);
        let condition = (!config.first.is_empty()).then(|| {
            let columns = config.first.iter().map(|&at| config.columns[at].clone());
            let config = Config {
                columns: columns.collect(),
                star: None,
                unwanted: None,
                ..config.clone()
            };
            Extractor::new(&config, Some(&all))
        });
        Scanner {
            all,
            condition,
            prefilter: Prefilter::new(&config.prefilter),
            shared: Shared::new(config.isa),
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
        scan_all(&batch, &mut self.all, &mut self.shared, None)
    }

    /// The keys that records which became rows had so far and no column wants, in the order in which they were met, if
    /// [`Config::unwanted`] asks for them: those of all records that are objects, as far as they are JSON.
    pub fn unwanted(&self) -> impl Iterator<Item = &str> {
        self.all.keys().unwanted()
    }

    /// Scans the records numbered `rows`, ascending; row `i` of every column is record `rows[i]`.
    pub fn scan_some(&mut self, records: &Records<'_>, rows: &[u32]) -> Scanned {
        self.scan(&Candidates::new(records, rows).of(records))
    }

    /// Searches buffers for newlines and, if `for_first`, for what the prefilter of the next [`Scanner::first`] looks for.
    pub fn searcher(&self, for_first: bool) -> NewlineSearcher<'_> {
        let prefilter = self.prefilter.as_ref().filter(|_| for_first);
        NewlineSearcher {
            indexer: self.shared.indexer(),
            texts: prefilter.and_then(Prefilter::texts),
        }
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
        let Scanned { batch, stats, .. } = scan_all(&batch, condition, &mut self.shared, keys);
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
        let mut made = Rows::new(
            &plan,
            rows.len(),
            first.buffers.side(),
            self.shared.indexer(),
        );
        self.all.start_batch();
        let mut row = 0;
        while row < rows.len() {
            let from = rows[row] as usize;
            let record_group = first.buffers.record_group(from, RECORD_GROUP_MAX);
            let behind = from + record_group.spans().len();
            let count = rows[row..].partition_point(|&number| (number as usize) < behind);
            let of_record_group = rows[row..row + count].iter().zip(row as u32..);
            let picks = of_record_group.map(|(&number, row)| (number - from as u32, row));
            self.all.add(
                &mut self.shared,
                &batch,
                &record_group,
                picks,
                None,
                &mut made,
            );
            row += count;
        }
        made.finish(&first.buffers, self.all.keys())
    }

    /// Between two batches: keeps at most so many bytes of each buffer. What was learned is kept.
    pub fn release(&mut self, bytes: usize) {
        self.shared.release(bytes);
    }

    fn start_batch(&mut self) {
        if self.shared.start_batch() {
            let extractors = std::iter::once(&mut self.all).chain(&mut self.condition);
            extractors.for_each(Extractor::forget_templates);
        }
    }
}

/// Follows all records of a batch, record group by record group, and extracts columns of them. What templates they may have is told by `keys`, or
/// else by those of the extractor.
fn scan_all(
    batch: &Batch<'_>,
    extractor: &mut Extractor,
    shared: &mut Shared,
    keys: Option<&Keys>,
) -> Scanned {
    let count = batch.records.records.len();
    let plan = extractor.plan();
    let mut rows = Rows::new(&plan, count, batch.buffers.side(), shared.indexer());
    rows.stats.repaired = batch.buffers.repaired();
    extractor.start_batch();
    let mut first = 0;
    while first < count {
        let record_group = batch.buffers.record_group(first, RECORD_GROUP_MAX);
        let behind = first + record_group.spans().len();
        shared.follow(batch, &record_group);
        let picks = (0..).zip(first as u32..behind as u32);
        extractor.add(shared, batch, &record_group, picks, keys, &mut rows);
        first = behind;
    }
    rows.finish(batch.buffers, extractor.keys())
}
