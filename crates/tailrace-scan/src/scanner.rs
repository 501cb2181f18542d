//! The scanner: record by record from bytes to rows.
//!
//! Takes batches of records, gives scanned batches. What it remembers between batches is bounded: the wanted keys, the
//! keys of `SELECT *` up to its limit, and a bounded number of others to predict the layout of lines. Nothing of it
//! changes what a batch holds, but for the order of `SELECT *` columns and which keys still became columns.

use crate::config::{Config, Star};
use crate::index::{Index, Indexer};
use crate::keys::Keys;
use crate::overflow::Overflow;
use crate::plan::Plan;
use crate::records::{BROKEN, Record, Records, TEXT, TEXT_ALLOWED, TRUNCATED};
use crate::reserved::{self, Facts};
use crate::rows::{Row, Rows, Shape};
use crate::scanned::{First, Scanned};
use crate::shape;
use crate::text::{Buffers, RecordText};
use crate::walker;

/// Turns batches of records into columns.
#[derive(Debug)]
pub struct Scanner {
    plan: Plan,
    keys: Keys,
    /// Members matter: a key is wanted.
    wants_members: bool,
    scratch: Scratch,
    /// Records scanned as objects so far, to tell which key was met in which record.
    objects: u64,
    condition: Option<Box<Scanner>>,
}

/// Memory that is used again for every record.
#[derive(Debug)]
struct Scratch {
    indexer: Indexer,
    index: Index,
    open_brackets: Vec<u8>,
    key: Vec<u8>,
    overflow: Overflow,
}

impl Scanner {
    /// A scanner for these columns.
    pub fn new(config: Config) -> Scanner {
        let condition = (!config.first.is_empty()).then(|| {
            let columns = config.first.iter().map(|&at| config.columns[at].clone());
            Box::new(Scanner::new(Config {
                columns: columns.collect(),
                star: None,
                first: Vec::new(),
                prefilter: Vec::new(),
                ..config.clone()
            }))
        });
        let plan = Plan::new(&config);
        let Star {
            except,
            columns_max,
        } = config.star.clone().unwrap_or_default();
        let wanted = plan
            .keys
            .iter()
            .map(|(key, targets)| (key.as_str(), targets.clone()));
        let keys = Keys::new(
            wanted,
            &except,
            config.star.is_some().then_some(columns_max),
        );
        let scratch = Scratch {
            indexer: Indexer::new(config.isa),
            index: Index::default(),
            open_brackets: Vec::new(),
            key: Vec::new(),
            overflow: Overflow::default(),
        };
        Scanner {
            wants_members: !plan.keys.is_empty() || keys.wants_all(),
            plan,
            keys,
            scratch,
            objects: 0,
            condition,
        }
    }

    /// The first of two phases: the columns that a condition reads, for the records that pass the prefilter.
    pub fn first(&mut self, records: &Records<'_>) -> First {
        let condition = self.condition.as_mut().expect("Config::first is not empty");
        let Scanned { batch, stats, .. } = condition.scan(records);
        First {
            rows: None,
            batch,
            stats,
        }
    }

    /// The second phase: all columns, for the records numbered `rows` (ascending) of those that [`Scanner::first`] was
    /// last given; row `i` of every column is record `rows[i]`.
    pub fn second(&mut self, records: &Records<'_>, rows: &[u32]) -> Scanned {
        let pick = |row: &u32| *row as usize;
        let picked: Vec<Record> = rows.iter().map(|row| records.records[pick(row)]).collect();
        let times: Vec<i64> = rows
            .iter()
            .filter_map(|row| records.times.get(pick(row)).copied())
            .collect();
        let streams: Vec<u8> = rows
            .iter()
            .filter_map(|row| records.streams.get(pick(row)).copied())
            .collect();
        self.scan(&Records {
            records: &picked,
            times: &times,
            streams: &streams,
            ..*records
        })
    }

    /// Scans one batch. Whatever the bytes are, every record becomes one row.
    pub fn scan(&mut self, records: &Records<'_>) -> Scanned {
        let buffers = Buffers::check(records);
        let mut rows = Rows::new(&self.plan, records.records.len(), buffers.side());
        for (number, record) in records.records.iter().enumerate() {
            let text = buffers.record(number);
            let facts = Facts {
                shape: self.scratch.shape(record, &text),
                truncated: record.flags & TRUNCATED != 0,
                time_ns: records.times.get(number).copied().unwrap_or(0),
                stream: records.streams.get(number).copied().unwrap_or(0),
                observed_ns: records.observed_ns,
            };
            if facts.truncated {
                rows.mark_truncated(number);
            }
            let Scratch {
                index,
                key,
                overflow,
                ..
            } = &mut self.scratch;
            let mut row = Row::new(&mut rows, number, text, index, overflow);
            if facts.shape == Shape::Object {
                if self.wants_members {
                    self.objects += 1;
                    walker::walk(&text, index, self.objects, &mut self.keys, key, &mut row);
                }
                reserved::set(&mut row, &facts);
                rows.finish_object(number, overflow);
            } else {
                reserved::set(&mut row, &facts);
                rows.keep_raw(number, &text, facts.shape);
            }
        }
        self.scratch.shrink();
        rows.finish(buffers, &self.keys)
    }
}

impl Scratch {
    /// What a record is; of an object the index is left behind.
    fn shape(&mut self, record: &Record, text: &RecordText<'_>) -> Shape {
        if record.flags & BROKEN != 0 {
            return Shape::Malformed;
        }
        if record.flags & TEXT != 0 {
            return Shape::Text;
        }
        let bytes = text.bytes();
        if !shape::starts_as_object(bytes) {
            return if record.flags & TEXT_ALLOWED != 0 {
                Shape::Text
            } else {
                Shape::Malformed
            };
        }
        self.indexer
            .index(text.reach(), bytes.len(), &mut self.index);
        if shape::is_object(bytes, &self.index, &mut self.open_brackets) {
            Shape::Object
        } else {
            Shape::Malformed
        }
    }

    /// Gives back memory that only an extraordinary record needed.
    fn shrink(&mut self) {
        const KEPT: usize = 64 * 1024;
        self.index.shrink();
        self.open_brackets.clear();
        self.open_brackets.shrink_to(KEPT);
        self.key.clear();
        self.key.shrink_to(KEPT);
    }
}
