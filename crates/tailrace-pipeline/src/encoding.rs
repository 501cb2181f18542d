//! Encodings a pipeline's outputs want, each made once per batch: OTLP protobuf with a field
//! mapping, or lines for `stdout` and `file`. Keeps the encoder between batches; a worker's
//! compressors serve all pipelines. Never sends.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use tailrace_otlp::{
    Compression, Compressor, ConsoleConfig, ConsoleEncoder, Encoder, Envelope, NdjsonConfig,
    NdjsonEncoder, Part, Request, Stats,
};
use tailrace_output::{Encoding, Payload};

use crate::delivery::RequestTable;

/// What an output wants its requests to look like. Outputs that want the same share the work.
#[derive(Debug, Clone)]
pub struct EncodingPlan {
    /// The format.
    pub format: FormatPlan,
    /// The content encoding that the outputs use now; an output may change it (D12: until a
    /// server accepts one).
    pub compression: Arc<SharedEncoding>,
}

/// Format of a request.
#[derive(Debug, Clone)]
pub enum FormatPlan {
    /// `ExportLogsServiceRequest`.
    Otlp(Box<tailrace_otlp::Config>),
    /// One JSON object a line.
    Ndjson,
    /// Lines for people, perhaps with colour.
    Console {
        /// Use ANSI colours.
        colour: bool,
    },
    /// Nothing is encoded; records are counted.
    Count,
}

/// The content encoding in use, as workers see it.
#[derive(Debug)]
pub struct SharedEncoding(AtomicU8);

impl SharedEncoding {
    /// Starts with this encoding.
    pub fn new(encoding: Encoding) -> Arc<Self> {
        let shared = Self(AtomicU8::new(0));
        shared.set(encoding);
        Arc::new(shared)
    }

    /// Changes the encoding for batches to come.
    pub fn set(&self, encoding: Encoding) {
        let code = match encoding {
            Encoding::Zstd => 0,
            Encoding::Gzip => 1,
            Encoding::Identity => 2,
        };
        self.0.store(code, Ordering::Relaxed);
    }

    /// The encoding to use.
    pub fn get(&self) -> Encoding {
        match self.0.load(Ordering::Relaxed) {
            0 => Encoding::Zstd,
            1 => Encoding::Gzip,
            _ => Encoding::Identity,
        }
    }
}

/// One request, ready to be sent by any number of outputs.
#[derive(Debug, Clone)]
pub(crate) struct EncodedRequest {
    /// The compressed request.
    pub payload: Payload,
    /// Where its LogRecords end and which records they came from.
    pub table: Arc<RequestTable>,
}

impl EncodedRequest {
    /// The same request of a part of a batch, as one of the whole batch: the part begins with this record.
    pub(crate) fn counted_from(self, first: u32) -> Self {
        if first == 0 {
            return self;
        }
        let records = self.table.records.iter().map(|record| record + first);
        let table = RequestTable {
            ends: self.table.ends.clone(),
            records: records.collect(),
        };
        Self {
            table: Arc::new(table),
            ..self
        }
    }

    /// Bytes held in memory while it is in flight.
    pub(crate) fn held_bytes(&self) -> usize {
        self.payload.bytes.len() + 8 * self.table.len()
    }
}

/// Encoder of one encoding in one worker.
pub(crate) struct EncodingState {
    encoder: AnyEncoder,
    compression: Arc<SharedEncoding>,
}

/// The compressors of one worker, for all pipelines.
#[derive(Default)]
pub(crate) struct Compressors(Vec<(Encoding, Compressor)>);

impl Compressors {
    fn of(&mut self, encoding: Encoding) -> &mut Compressor {
        let known = self.0.iter().position(|(known, _)| *known == encoding);
        let at = known.unwrap_or_else(|| {
            self.0.push((encoding, compressor(encoding)));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

enum AnyEncoder {
    Otlp(Box<Encoder>),
    Ndjson(NdjsonEncoder),
    Console(ConsoleEncoder),
    Count,
}

impl EncodingState {
    pub(crate) fn new(plan: &EncodingPlan, offset_s: i32) -> Self {
        let encoder = match &plan.format {
            FormatPlan::Otlp(config) => {
                let mut config = (**config).clone();
                config.mapping.offset_s = offset_s;
                AnyEncoder::Otlp(Box::new(Encoder::new(config)))
            }
            FormatPlan::Ndjson => AnyEncoder::Ndjson(NdjsonEncoder::new(NdjsonConfig::default())),
            FormatPlan::Console { colour } => {
                let config = ConsoleConfig {
                    colour: *colour,
                    ..ConsoleConfig::default()
                };
                AnyEncoder::Console(ConsoleEncoder::new(config))
            }
            FormatPlan::Count => AnyEncoder::Count,
        };
        Self {
            encoder,
            compression: Arc::clone(&plan.compression),
        }
    }

    /// Between two batches: keeps at most so many bytes of each buffer.
    pub(crate) fn release(&mut self, bytes: usize) {
        match &mut self.encoder {
            AnyEncoder::Otlp(encoder) => encoder.release(bytes),
            AnyEncoder::Ndjson(encoder) => encoder.release(bytes),
            AnyEncoder::Console(encoder) => encoder.release(bytes),
            AnyEncoder::Count => {}
        }
    }
}

fn compressor(encoding: Encoding) -> Compressor {
    let compression = compression_of(encoding);
    Compressor::new(compression, compression.default_level())
}

/// The codec of a content encoding.
pub(crate) fn compression_of(encoding: Encoding) -> Compression {
    match encoding {
        Encoding::Zstd => Compression::Zstd,
        Encoding::Gzip => Compression::Gzip,
        Encoding::Identity => Compression::None,
    }
}

/// Part of a request: some of its LogRecords, or lines, as a request of their own, and where each ends.
/// `ends` are those of the whole request.
pub(crate) fn part(
    payload: &Payload,
    ends: &[u32],
    records: Range<usize>,
    is_otlp: bool,
) -> (Payload, Vec<u32>) {
    let plain = plain(payload);
    let (plain, ends) = if is_otlp {
        let cut = tailrace_otlp::extract(&plain, records.clone());
        let cut = cut.expect("a request this process encoded");
        (cut.bytes, cut.ends)
    } else {
        let start = records.start.checked_sub(1).map_or(0, |last| ends[last]);
        let end = records.end.checked_sub(1).map_or(0, |last| ends[last]);
        let ends = ends[records.clone()].iter().map(|end| end - start);
        (plain[start as usize..end as usize].to_vec(), ends.collect())
    };
    debug_assert_eq!(ends.len(), records.len(), "every record is in the part");
    let payload = Payload {
        bytes: Bytes::from(compressor(payload.encoding).compress(&plain)),
        encoding: payload.encoding,
        records: ends.len() as u64,
        uncompressed_bytes: plain.len() as u64,
    };
    (payload, ends)
}

/// The request without compression.
pub(crate) fn plain(payload: &Payload) -> Vec<u8> {
    let max = usize::try_from(payload.uncompressed_bytes).unwrap_or(usize::MAX);
    tailrace_otlp::decompress(compression_of(payload.encoding), &payload.bytes, max)
        .expect("a payload this process compressed")
}

/// The same request in another content encoding; for a server that does not know the first one.
pub(crate) fn recode(payload: &Payload, encoding: Encoding) -> Payload {
    let bytes = Bytes::from(compressor(encoding).compress(&plain(payload)));
    Payload {
        bytes,
        encoding,
        ..*payload
    }
}

impl EncodingState {
    /// Encodes and compresses one batch; `survivors` are the records of the batch that its rows are, `None` is each
    /// once. `None` if its requests would hold more than `bytes_max`: they are not kept then.
    pub(crate) fn encode(
        &mut self,
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
        survivors: Option<&[u32]>,
        bytes_max: usize,
        compressors: &mut Compressors,
    ) -> Option<Vec<EncodedRequest>> {
        let encoding = self.compression.get();
        let compressor = compressors.of(encoding);
        let (mut requests, mut held) = (Vec::new(), 0);
        let mut finish = |request: &Request| {
            if held > bytes_max {
                return;
            }
            let request = EncodedRequest {
                payload: Payload {
                    bytes: Bytes::from(compressor.compress(&request.bytes)),
                    encoding,
                    records: request.ends.len() as u64,
                    uncompressed_bytes: request.bytes.len() as u64,
                },
                table: Arc::new(RequestTable {
                    ends: request.ends.clone(),
                    records: original(&request.records, survivors),
                }),
            };
            held += request.held_bytes();
            requests.push(request);
        };
        match &mut self.encoder {
            AnyEncoder::Otlp(encoder) => encoder.encode(envelope, parts, &mut finish),
            AnyEncoder::Ndjson(encoder) => encoder.encode(envelope, parts, &mut finish),
            AnyEncoder::Console(encoder) => encoder.encode(envelope, parts, &mut finish),
            AnyEncoder::Count => {
                let rows =
                    |part: &Part<'_>| part.rows.map_or(envelope.records as usize, <[u32]>::len);
                let rows: usize = parts.iter().map(rows).sum();
                if rows > 0 {
                    finish(&Request {
                        ends: vec![0; rows],
                        ..Request::default()
                    });
                }
                Stats::default()
            }
        };
        (held <= bytes_max).then_some(requests)
    }
}

/// The numbers of records in the batch as it was read.
fn original(rows: &[u32], survivors: Option<&[u32]>) -> Vec<u32> {
    match survivors {
        Some(survivors) => rows.iter().map(|&row| survivors[row as usize]).collect(),
        None => rows.to_vec(),
    }
}
