//! What the agent dead-lettered: the records of `data_dir/dead-letter/PIPELINE.ndjson`, one a line, each as a request or as
//! it was read, in base64. Reads files; a line that is no such thing holds no record.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::record::{self, Identity};
use tailrace_testkit::records_of;

/// The records of all files in `dir`; none if there is no such directory.
pub(crate) fn read(dir: &Path) -> Vec<Identity> {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let texts = files.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
    texts.flat_map(|text| of_text(&text)).collect()
}

fn of_text(text: &str) -> Vec<Identity> {
    let lines = text.lines();
    lines
        .flat_map(|line| {
            of_request(line)
                .or_else(|| of_crashed(line))
                .unwrap_or_default()
        })
        .collect()
}

/// The records of an entry that a server refused.
fn of_request(line: &str) -> Option<Vec<Identity>> {
    let records = records_of(&value(line, "\"payload\":\"")?).unwrap_or_default();
    Some(
        records
            .iter()
            .filter_map(|record| record::identify(record).ok())
            .collect(),
    )
}

/// The record of an entry that could not be processed.
fn of_crashed(line: &str) -> Option<Vec<Identity>> {
    let bytes = value(line, "\"crashed\":{\"line\":\"")?;
    let text = String::from_utf8_lossy(&bytes);
    Some(record::of_text(&text).into_iter().collect())
}

fn value(line: &str, key: &str) -> Option<Vec<u8>> {
    let (_, rest) = line.split_once(key)?;
    let (encoded, _) = rest.split_once('"')?;
    STANDARD.decode(encoded).ok()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value};
    use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
    use prost::Message;

    use super::{Engine, STANDARD, of_text, record};

    fn text(stream: u32, sequence: u64) -> String {
        String::from_utf8_lossy(&record::line(stream, sequence)).into_owned()
    }

    #[test]
    fn records_are_found_in_lines() {
        let log = LogRecord {
            body: Some(AnyValue {
                value: Some(Value::StringValue(text(2, 7))),
            }),
            ..LogRecord::default()
        };
        let request = ExportLogsServiceRequest {
            resource_logs: vec![ResourceLogs {
                scope_logs: vec![ScopeLogs {
                    log_records: vec![log],
                    ..ScopeLogs::default()
                }],
                ..ResourceLogs::default()
            }],
        };
        let encoded = STANDARD.encode(request.encode_to_vec());
        let crashed = STANDARD.encode(record::line(3, 9));
        let found = of_text(&format!(
            "{{}}\n{{\"reason\":\"x\",\"payload\":\"{encoded}\"}}\nhalf\n\
             {{\"reason\":\"x\",\"crashed\":{{\"line\":\"{crashed}\"}}}}"
        ));
        let found: Vec<_> = found.iter().map(|of| (of.stream, of.sequence)).collect();
        assert_eq!(found, [(2, 7), (3, 9)]);
    }
}
