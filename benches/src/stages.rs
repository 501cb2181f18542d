//! Our stages in the order in which a worker calls them: frame, scan, evaluate, encode, compress.
//!
//! Takes a query and chunks; keeps what a worker keeps between batches. It is glue, the counterpart of the pipeline's
//! worker without files, facts and tickets. Nothing is timed here.

use bytes::Bytes;
use tailrace_otlp::{
    Choice, Column, Compression, Compressor, Encoder, Envelope, Index, OtlpEncoder, Part, Request,
};
use tailrace_scan::{Record, Records, Scanned, Scanner, Searched};
use tailrace_sql::{Evaluator, KeptShare, Options, OutputValue, Query, Rows};

use crate::corpus::{Answer, Chunk, OBSERVED_NS, star_answer};

/// A compiled query and what the scanner must extract for it.
#[derive(Debug)]
pub struct Plan {
    /// The query.
    pub query: Query,
    /// All columns in one phase.
    pub scan: tailrace_scan::Config,
    /// The condition's columns first.
    pub pushed: tailrace_scan::Config,
}

impl Plan {
    /// Compiles a query of one SELECT whose columns, but for those of `*`, are all read by its condition.
    pub fn new(sql: &str) -> Plan {
        let query = Query::compile(sql, &Options::default()).expect("the benches' queries compile");
        let scan = tailrace_scan::Config {
            columns: query.columns().iter().map(scan_column).collect(),
            star: query.star().map(|star| tailrace_scan::Star {
                except: star.except.clone(),
                ..tailrace_scan::Star::default()
            }),
            ..tailrace_scan::Config::default()
        };
        let pushdown = query.pushdown();
        let pushed = tailrace_scan::Config {
            first: pushdown.map_or(Vec::new(), |pushdown| pushdown.columns.clone()),
            prefilter: pushdown.map_or(Vec::new(), |pushdown| pushdown.prefilter.clone()),
            ..scan.clone()
        };
        Plan {
            query,
            scan,
            pushed,
        }
    }
}

fn scan_column(column: &tailrace_sql::Column) -> tailrace_scan::Column {
    let tailrace_sql::ColumnSource::Key(steps) = &column.source else {
        panic!("the benches' queries read keys only");
    };
    tailrace_scan::Column {
        name: column.name.clone(),
        source: tailrace_scan::ColumnSource::Key(steps.clone()),
        ty: column.ty,
    }
}

/// One worker.
#[derive(Debug)]
pub struct Stages {
    plan: Plan,
    /// Whether the condition runs before the other columns are built.
    pushdown: bool,
    kept_share: KeptShare,
    records: Vec<Record>,
    scanner: Scanner,
    evaluator: Evaluator,
    encoder: OtlpEncoder,
    compressor: Compressor,
    choice: Choice,
}

/// What came of one chunk before it was encoded.
#[derive(Debug)]
pub struct Selection {
    /// The columns.
    pub scanned: Scanned,
    /// Which of their rows pass.
    pub rows: Rows,
}

impl Stages {
    /// A worker for a query, with or without pushdown.
    pub fn new(plan: Plan, pushdown: bool) -> Stages {
        let config = if pushdown { &plan.pushed } else { &plan.scan };
        Stages {
            records: Vec::new(),
            scanner: Scanner::new(config.clone()),
            evaluator: plan.query.evaluator(),
            encoder: OtlpEncoder::new(tailrace_otlp::OtlpEncoding::default()),
            compressor: Compressor::new(Compression::Zstd, 1),
            choice: Choice::default(),
            pushdown: pushdown && !config.first.is_empty(),
            kept_share: KeptShare::new(),
            plan,
        }
    }

    /// Finds the records of a chunk, as a worker does for each.
    pub fn frame(&mut self, chunk: &Chunk) -> Searched {
        let in_two = self.pushdown && self.kept_share.is_low();
        let mut search = self.scanner.searcher(in_two).over(chunk.bytes());
        let newlines = std::iter::from_fn(|| search.next_before(chunk.bytes().len()));
        crate::corpus::frame(newlines, &mut self.records);
        search.finish()
    }

    /// The columns of a chunk that is framed.
    pub fn scan(&mut self, chunk: &Chunk) -> Scanned {
        self.scanner.scan(&chunk.records())
    }

    /// Frames, scans and filters.
    pub fn select(&mut self, chunk: &Chunk) -> Selection {
        let searched = self.frame(chunk);
        let records = chunk.framed(&self.records, Some(&searched));
        if self.pushdown && self.kept_share.is_low() {
            let selection = select_first(&mut self.scanner, &mut self.evaluator, &records);
            let kept = selection.scanned.batch.num_rows();
            self.kept_share.note(kept, records.records.len());
            return selection;
        }
        let scanned = self.scanner.scan(&records);
        let mut evaluated = self.evaluator.evaluate(&scanned.batch, OBSERVED_NS);
        let rows = evaluated.branches.swap_remove(0).rows;
        let count = records.records.len();
        self.kept_share.note(rows.count(count), count);
        Selection { rows, scanned }
    }

    /// The filter alone.
    pub fn evaluate(&mut self, scanned: &Scanned) -> Rows {
        let mut evaluated = self.evaluator.evaluate(&scanned.batch, OBSERVED_NS);
        evaluated.branches.swap_remove(0).rows
    }

    /// Encodes the selected rows; calls `emit` with each request.
    pub fn encode(&mut self, selection: &Selection, emit: &mut dyn FnMut(&Request)) {
        let Selection { scanned, rows } = selection;
        let (envelope, part) = (envelope(scanned), part(&self.plan.query, scanned, rows));
        self.encoder.encode(&envelope, &[part], emit);
    }

    /// Compresses a request.
    pub fn compress(&mut self, request: &Request) -> Bytes {
        Bytes::from(self.compressor.compress_request(request, &mut self.choice))
    }

    /// The whole worker: the payload bytes of a chunk.
    pub fn work(&mut self, chunk: &Chunk) -> usize {
        let Selection { scanned, rows } = self.select(chunk);
        let (envelope, part) = (envelope(&scanned), part(&self.plan.query, &scanned, &rows));
        let (compressor, choice) = (&mut self.compressor, &mut self.choice);
        let mut bytes = 0;
        self.encoder.encode(&envelope, &[part], &mut |request| {
            bytes += compressor.compress_request(request, choice).len();
        });
        bytes
    }
}

/// The condition's columns, the condition, the other columns of what passed.
fn select_first(
    scanner: &mut Scanner,
    evaluator: &mut Evaluator,
    records: &Records<'_>,
) -> Selection {
    let first = scanner.first(records);
    let selection = evaluator.select(&first.batch, OBSERVED_NS);
    let numbers: Vec<u32> = match (&selection.rows, &first.rows) {
        (Rows::Some(passed), None) => passed.clone(),
        (Rows::Some(passed), Some(rows)) => passed.iter().map(|&at| rows[at as usize]).collect(),
        (Rows::All, Some(rows)) => rows.clone(),
        (Rows::All, None) => (0..records.records.len() as u32).collect(),
    };
    Selection {
        scanned: scanner.second(records, &first, &numbers),
        rows: Rows::All,
    }
}

fn envelope(scanned: &Scanned) -> Envelope<'_> {
    Envelope {
        observed_ns: OBSERVED_NS,
        records: scanned.batch.num_rows() as u32,
        raw: scanned.raw.as_ref(),
        malformed: scanned.malformed.as_ref(),
        truncated: scanned.truncated.as_ref(),
        times: &[],
        streams: &[],
        uids: &[],
        runs: &[],
    }
}

fn part<'a>(query: &'a Query, scanned: &'a Scanned, rows: &'a Rows) -> Part<'a> {
    let branch = &query.branches()[0];
    let mut columns: Vec<Column<'a>> = Vec::new();
    for output in &branch.outputs {
        let OutputValue::Column(at) = output.value else {
            panic!("the benches' queries compute nothing");
        };
        columns.push(Column {
            name: &output.name,
            values: scanned.batch.column(at).as_ref(),
            kinds: scanned.kinds[at].as_ref(),
            index: Index::Record,
        });
    }
    columns.extend(scanned.star.iter().map(|column| Column {
        name: &column.key,
        values: &column.values,
        kinds: Some(&column.kinds),
        index: Index::Record,
    }));
    Part {
        rows: match rows {
            Rows::All => None,
            Rows::Some(rows) => Some(rows),
        },
        columns,
        overflow: scanned.overflow.as_ref(),
        overflow_except: Vec::new(),
        failed: &[],
    }
}

/// What the columns of `SELECT *` say, for the rows that passed.
pub fn answer(selection: &Selection) -> Answer {
    let Selection { scanned, rows } = selection;
    match rows {
        Rows::All => star_answer(scanned, 0..scanned.batch.num_rows()),
        Rows::Some(rows) => star_answer(scanned, rows.iter().map(|&row| row as usize)),
    }
}
