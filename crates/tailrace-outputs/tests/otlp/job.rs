//! A request as the pipeline would have it, for the tests of the output.

use std::io::Write;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;
use tailrace_otlp::Compression;
use tailrace_outputs::delivery::{Delivered, Payload, Request};

/// What became of a request: its parts as they were delivered, and what was rejected.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) delivered: Vec<Delivered>,
    pub(crate) rejected: Vec<(String, String)>,
}

/// The pipeline's part of a request: any compression from an uncompressed one, halves, and a book.
pub(crate) struct Job {
    pub(crate) payload: Payload,
    pub(crate) book: Arc<Mutex<Book>>,
}

impl Request for Job {
    fn payload(&self) -> &Payload {
        &self.payload
    }

    fn recompress(&self, compression: Compression) -> Payload {
        assert_eq!(self.payload.compression, Compression::None);
        let plain = &self.payload.bytes;
        let bytes = match compression {
            Compression::None => plain.clone(),
            Compression::Zstd => Bytes::from(zstd::encode_all(&plain[..], 1).unwrap()),
            Compression::Gzip => {
                let level = flate2::Compression::fast();
                let mut writer = flate2::write::GzEncoder::new(Vec::new(), level);
                writer.write_all(plain).unwrap();
                Bytes::from(writer.finish().unwrap())
            }
        };
        Payload {
            bytes,
            compression,
            ..self.payload.clone()
        }
    }

    fn halves(self) -> (Job, Job) {
        let mut names = texts(&self.payload);
        let second = names.split_off(names.len() / 2);
        let half = |names| Job {
            payload: super::named(names),
            book: Arc::clone(&self.book),
        };
        (half(names), half(second))
    }

    fn deliver(self, delivered: &Delivered) {
        self.book.lock().unwrap().delivered.push(delivered.clone());
    }

    fn reject(&mut self, reason: &str) -> Result<(), String> {
        let mut names = texts(&self.payload);
        assert_eq!(names.len(), 1);
        let rejected = (names.remove(0), reason.to_owned());
        self.book.lock().unwrap().rejected.push(rejected);
        Ok(())
    }

    fn give_up(self, _reason: &str) {
        panic!("nothing is given up here");
    }
}

pub(crate) fn texts(payload: &Payload) -> Vec<String> {
    let request = ExportLogsServiceRequest::decode(&payload.bytes[..]).unwrap();
    let scopes = request.resource_logs.into_iter().flat_map(|r| r.scope_logs);
    scopes
        .flat_map(|scope| scope.log_records)
        .map(text)
        .collect()
}

pub(crate) fn text(log: LogRecord) -> String {
    match log.body.unwrap().value.unwrap() {
        any_value::Value::StringValue(text) => text,
        other => panic!("{other:?}"),
    }
}
