//! The encodings that a pipeline's outputs want, each made once per batch. Keeps the encoder between batches; a worker's
//! compressors serve all pipelines. Never sends.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use tailrace_otlp::{Choice, Compression, Compressor, Encoder, Encoding, Envelope, Part, Request};
use tailrace_outputs::delivery::Payload;

/// What an output wants its requests to look like. Outputs that want the same share the work.
#[derive(Debug, Clone)]
pub struct EncodingPlan {
    /// The format, with its options.
    pub encoding: Arc<dyn Encoding>,
    /// The compression that the outputs use now; an output may change it (until a server accepts one).
    pub compression: Arc<SharedCompression>,
}

/// The compression in use, as workers see it.
#[derive(Debug)]
pub struct SharedCompression(AtomicU8);

/// In the order of their codes.
const COMPRESSIONS: [Compression; 3] = [Compression::Zstd, Compression::Gzip, Compression::None];

impl SharedCompression {
    /// Starts with this one.
    pub fn new(compression: Compression) -> Arc<Self> {
        let shared = Self(AtomicU8::new(0));
        shared.set(compression);
        Arc::new(shared)
    }

    /// Changes it for batches to come.
    pub fn set(&self, compression: Compression) {
        let code = COMPRESSIONS.iter().position(|&known| known == compression);
        self.0.store(code.unwrap_or(0) as u8, Ordering::Relaxed);
    }

    /// The one to use.
    pub fn get(&self) -> Compression {
        COMPRESSIONS[usize::from(self.0.load(Ordering::Relaxed))]
    }
}

/// Where the LogRecords of a request end and which record each came from, so that a request can
/// be cut, and a refusal be traced to its source, without scanning anything twice.
#[derive(Debug, Default)]
pub(crate) struct RequestTable {
    /// End offset of each LogRecord in the uncompressed request.
    pub ends: Vec<u32>,
    /// Index in the batch of the record each LogRecord came from, ascending.
    pub records: Vec<u32>,
}

impl RequestTable {
    /// Number of LogRecords.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
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
    encoder: Box<dyn Encoder>,
    compression: Arc<SharedCompression>,
    /// How its requests are compressed best.
    choice: Choice,
}

/// The compressors of one worker, for all pipelines.
#[derive(Default)]
pub(crate) struct Compressors(Vec<Compressor>);

impl Compressors {
    fn of(&mut self, compression: Compression) -> &mut Compressor {
        let known = self.0.iter();
        let mut known = known.map(Compressor::compression);
        let at = known.position(|known| known == compression);
        let at = at.unwrap_or_else(|| {
            self.0.push(compressor(compression));
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

impl EncodingState {
    pub(crate) fn new(plan: &EncodingPlan, offset_s: i32) -> Self {
        Self {
            encoder: plan.encoding.encoder(offset_s),
            compression: Arc::clone(&plan.compression),
            choice: Choice::default(),
        }
    }

    /// Between two batches: keeps at most so many bytes of each buffer.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.encoder.release(bytes);
    }
}

fn compressor(compression: Compression) -> Compressor {
    Compressor::new(compression, compression.default_level())
}

/// Part of a request: some of its records as a request of their own, and where each ends. `ends` are those of the whole
/// request.
pub(crate) fn part(
    encoding: &dyn Encoding,
    payload: &Payload,
    ends: &[u32],
    records: Range<usize>,
) -> (Payload, Vec<u32>) {
    let cut = encoding.cut(&plain(payload), ends, records.clone());
    debug_assert_eq!(cut.ends.len(), records.len(), "every record is in the part");
    let payload = Payload {
        bytes: Bytes::from(compressor(payload.compression).compress(&cut.bytes)),
        compression: payload.compression,
        records: cut.ends.len() as u64,
        uncompressed_bytes: cut.bytes.len() as u64,
    };
    (payload, cut.ends)
}

/// The request without compression.
pub(crate) fn plain(payload: &Payload) -> Vec<u8> {
    let max = usize::try_from(payload.uncompressed_bytes).unwrap_or(usize::MAX);
    tailrace_otlp::decompress(payload.compression, &payload.bytes, max)
        .expect("a payload this process compressed")
}

/// The same request in another compression; for a server that does not know the first one.
pub(crate) fn recompress(payload: &Payload, compression: Compression) -> Payload {
    let bytes = Bytes::from(compressor(compression).compress(&plain(payload)));
    Payload {
        bytes,
        compression,
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
        let compression = self.compression.get();
        let compressor = compressors.of(compression);
        let (mut requests, mut held) = (Vec::new(), 0);
        let choice = &mut self.choice;
        self.encoder
            .encode(envelope, parts, &mut |request: &Request| {
                if held > bytes_max {
                    return;
                }
                let request = EncodedRequest {
                    payload: Payload {
                        bytes: Bytes::from(compressor.compress_request(request, choice)),
                        compression,
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
            });
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
