//! arrow-json's NDJSON reader, the rival that also builds Arrow columns.
//!
//! It finds the ends of lines itself. It keeps the last of duplicate keys and fails where types conflict, so it is
//! timed on clean lines only.

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;

use crate::corpus::{Answer, Chunk, Corpus};
use crate::rivals::Contender;

/// A reader with a fixed schema; keys outside it are passed over.
#[derive(Debug)]
pub struct ArrowJson {
    name: &'static str,
    decoder: Decoder,
}

impl ArrowJson {
    /// With a column for every key of the corpus.
    pub fn all_fields(corpus: &Corpus) -> ArrowJson {
        ArrowJson::new("arrow-json", schema_of(&corpus.name), corpus)
    }

    /// With `level` and `status`.
    pub fn two_fields(corpus: &Corpus) -> ArrowJson {
        let schema = schema_of(&corpus.name);
        let wanted: Vec<usize> = ["level", "status"]
            .iter()
            .map(|name| schema.index_of(name).expect("the corpus has both"))
            .collect();
        let schema = schema.project(&wanted).expect("the columns are there");
        ArrowJson::new("arrow-json projected", Arc::new(schema), corpus)
    }

    fn new(name: &'static str, schema: SchemaRef, corpus: &Corpus) -> ArrowJson {
        // A chunk is one batch; the decoder's memory is used again for the next.
        let builder = ReaderBuilder::new(schema).with_batch_size(corpus.chunk_lines_max() + 1);
        ArrowJson {
            name,
            decoder: builder.build_decoder().expect("the schema is supported"),
        }
    }

    /// One chunk as a batch.
    pub fn decode(&mut self, chunk: &Chunk) -> RecordBatch {
        let bytes = black_box(chunk.bytes());
        let read = self.decoder.decode(bytes).expect("the lines are clean");
        assert_eq!(read, bytes.len(), "a chunk is one batch");
        let batch = self.decoder.flush().expect("the types agree");
        batch.expect("a chunk has lines")
    }
}

impl Contender for ArrowJson {
    fn name(&self) -> &'static str {
        self.name
    }

    fn check(&mut self, chunk: &Chunk, _: &mut [u8]) -> Answer {
        answer(&self.decode(chunk))
    }

    fn run(&mut self, chunk: &Chunk, _: &mut [u8]) -> usize {
        self.decode(chunk).num_rows()
    }
}

/// The columns of the regular shapes.
pub fn schema_of(shape: &str) -> SchemaRef {
    let names: &[&str] = match shape {
        "narrow" => &["ts", "level", "msg"],
        "simple" => &[
            "timestamp",
            "level",
            "message",
            "status",
            "duration_ms",
            "request_id",
        ],
        _ => &[
            "timestamp",
            "level",
            "message",
            "service",
            "version",
            "environment",
            "region",
            "host",
            "namespace",
            "pod",
            "trace_id",
            "span_id",
            "method",
            "path",
            "status",
            "duration_ms",
            "bytes_in",
            "bytes_out",
            "user_id",
            "client_ip",
        ],
    };
    let field = |name: &&str| {
        let ty = match *name {
            "status" | "bytes_in" | "bytes_out" => DataType::Int64,
            "duration_ms" => DataType::Float64,
            _ => DataType::Utf8View,
        };
        Field::new(*name, ty, true)
    };
    Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

/// What the columns `level` and `status` say.
pub fn answer(batch: &RecordBatch) -> Answer {
    let levels = batch
        .column_by_name("level")
        .expect("there is a level")
        .as_string_view();
    let statuses = batch.column_by_name("status");
    let statuses = statuses.map(|column| column.as_primitive::<Int64Type>());
    let mut answer = Answer::default();
    for row in 0..batch.num_rows() {
        let status = statuses.filter(|statuses| statuses.is_valid(row));
        let status = status.map(|statuses| statuses.value(row) as u64);
        answer.add(levels.is_valid(row).then(|| levels.value(row)), status);
    }
    answer
}
