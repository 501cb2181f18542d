//! What a [`Config`] means for the walk: per key the places its value goes to.
//!
//! Made once from the config, read by walker and rows. Never changes afterwards.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use tailrace_model::json::Step;
use tailrace_model::reserved::{self, Reserved};

use crate::columns::data_type;
use crate::config::{ColumnSource, Config, Type};

/// Where a key's value goes.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// The column with this number.
    Column(usize),
    /// What stands at the end of the path inside the value, to the column with this number.
    Path(usize, Box<[Step]>),
    /// A candidate for a reserved column.
    Candidate(KeyList, u8),
    /// Nowhere: whether it is JSON decides about the record.
    Judged,
}

/// The lists of keys that feed reserved columns: of each list the first key whose value is there and not null counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyList {
    Body,
    Timestamp,
    Severity,
    SeverityNumber,
}

/// How many lists there are.
pub(crate) const KEY_LISTS: usize = 4;

/// A config, prepared.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) schema: SchemaRef,
    pub(crate) types: Vec<Type>,
    /// The targets of all keys, those of one key side by side.
    pub(crate) targets: Vec<Target>,
    /// The keys that have targets.
    pub(crate) keys: Vec<(String, Range<usize>)>,
    /// The reserved columns: number and which.
    pub(crate) reserved: Vec<(usize, Reserved)>,
    /// A record is malformed if anything in it is not JSON, not only what is read.
    pub(crate) judges_all: bool,
    pub(crate) offset_s: i32,
    /// How many slots the columns of `SELECT *` may have together in one batch.
    pub(crate) star_cells_max: usize,
}

impl Plan {
    /// Prepares a config. If `whole` is given, that is the plan of all columns of a query and this one of those that its
    /// conditions read; where they read whether a record is malformed, what they do not read decides too.
    pub(crate) fn new(config: &Config, whole: Option<&Plan>) -> Plan {
        let fields = config
            .columns
            .iter()
            .map(|column| Field::new(&column.name, data_type(column.ty), true));
        let mut wanted = Wanted::default();
        let mut reserved = Vec::new();
        for (number, column) in config.columns.iter().enumerate() {
            match &column.source {
                ColumnSource::Key(path) => wanted.path(number, path),
                ColumnSource::Reserved(which) => {
                    reserved.push((number, *which));
                    wanted.reserved(*which);
                }
            }
        }
        let reads = |which| reserved.iter().any(|&(_, other)| other == which);
        let whole = whole.filter(|_| reads(Reserved::Malformed) || reads(Reserved::Body));
        if let Some(whole) = whole {
            whole.keys.iter().for_each(|(key, _)| wanted.judged(key));
        }
        let judges_all = config.star.is_some() || reads(Reserved::Json);
        let mut targets = Vec::new();
        let mut keys = Vec::new();
        for (key, of_key) in wanted.0 {
            let start = targets.len();
            targets.extend(of_key);
            keys.push((key, start..targets.len()));
        }
        Plan {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            types: config.columns.iter().map(|column| column.ty).collect(),
            targets,
            keys,
            reserved,
            judges_all: judges_all || whole.is_some_and(|whole| whole.judges_all),
            offset_s: config.offset_s,
            star_cells_max: config.star.as_ref().map_or(0, |star| star.cells_max),
        }
    }
}

#[derive(Default)]
struct Wanted(BTreeMap<String, Vec<Target>>);

impl Wanted {
    fn path(&mut self, number: usize, path: &[Step]) {
        if let [Step::Key(key), inner @ ..] = path {
            let target = if inner.is_empty() {
                Target::Column(number)
            } else {
                Target::Path(number, inner.into())
            };
            self.0.entry(key.clone()).or_default().push(target);
        }
    }

    fn judged(&mut self, key: &str) {
        let targets = self.0.entry(key.to_owned()).or_default();
        if targets.is_empty() {
            targets.push(Target::Judged);
        }
    }

    fn reserved(&mut self, which: Reserved) {
        match which {
            Reserved::Body => self.candidates(KeyList::Body, &reserved::BODY_KEYS),
            Reserved::Timestamp => self.candidates(KeyList::Timestamp, &reserved::TIMESTAMP_KEYS),
            Reserved::SeverityText => self.candidates(KeyList::Severity, &reserved::SEVERITY_KEYS),
            Reserved::SeverityNumber => {
                self.candidates(KeyList::Severity, &reserved::SEVERITY_KEYS);
                self.candidates(KeyList::SeverityNumber, &reserved::SEVERITY_NUMBER_KEYS);
            }
            _ => {}
        }
    }

    fn candidates(&mut self, list: KeyList, keys: &[&str]) {
        for (rank, key) in (0_u8..).zip(keys) {
            let targets = self.0.entry((*key).to_string()).or_default();
            let is_there =
                |target: &Target| matches!(target, Target::Candidate(other, _) if *other == list);
            if !targets.iter().any(is_there) {
                targets.push(Target::Candidate(list, rank));
            }
        }
    }
}
