//! Tries a plan on a sample of log bytes: which of the keys that the query names the sample does
//! not have. Pure: takes bytes, gives names.

use bytes::Bytes;
use tailrace_frame::{Framer, Frames};
use tailrace_scan::Scanner;

use crate::pipeline::frame_config;
use crate::plan::{ColumnFrom, PipelinePlan, offset_s};
use crate::transform::scan_records;

/// What a sample shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// Records in the sample.
    pub records: usize,
    /// Records that are not JSON as far as the query reads them.
    pub malformed: usize,
    /// Keys that the query names and that are NULL in every record, as the query writes them: no
    /// record has them, or none of their values fits its type.
    pub missing: Vec<String>,
}

/// Frames and scans `bytes` as the pipeline's first input would.
///
/// # Panics
///
/// If the sample is 4 GiB or more.
pub fn sample(plan: &PipelinePlan, bytes: Vec<u8>) -> Sampled {
    let input = &plan.config.inputs[0];
    let mut frames = Frames::default();
    let mut framer = Framer::new(&frame_config(input, plan.config.limits.replay), 0, false);
    framer.push(&bytes, 0, 0, &mut frames);
    framer.finish(&mut frames);
    let config = tailrace_scan::Config {
        offset_s: offset_s(input),
        ..plan.scan.clone()
    };
    let buffers = [
        Bytes::from(bytes),
        Bytes::from(std::mem::take(&mut frames.side)),
    ];
    let mut records = Vec::new();
    scan_records(&frames.records, &mut records);
    let scanned = Scanner::new(config).scan(&tailrace_scan::Records {
        buffers: &buffers,
        records: &records,
        times: &[],
        streams: &[],
        observed_ns: 0,
    });
    let mut missing: Vec<String> = Vec::new();
    for (column, from) in plan.query.columns().iter().zip(&plan.columns) {
        let ColumnFrom::Scan(index) = from else {
            continue;
        };
        let key = matches!(column.source, tailrace_sql::Source::Key(_));
        let values = scanned.batch.column(*index);
        if key && values.null_count() == values.len() && !missing.contains(&column.label) {
            missing.push(column.label.clone());
        }
    }
    let malformed = scanned
        .malformed
        .as_ref()
        .map_or(0, |malformed| malformed.true_count());
    Sampled {
        records: records.len(),
        malformed,
        missing,
    }
}
