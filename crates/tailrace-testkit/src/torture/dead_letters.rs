//! What the agent set aside: the records of `data_dir/dead-letter/PIPELINE.ndjson`, one request a
//! line in base64. Reads files; a line that is no such thing holds no record.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::record::{self, Identity};
use crate::collector::decode;

/// The records of all files in `dir`; none if there is no such directory.
pub(crate) fn read(dir: &Path) -> Vec<Identity> {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let texts = files.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
    texts.flat_map(|text| of_text(&text)).collect()
}

fn of_text(text: &str) -> Vec<Identity> {
    let requests = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("\"otlp\":\"")?;
        let (encoded, _) = rest.split_once('"')?;
        STANDARD.decode(encoded).ok()
    });
    let records = requests.flat_map(|request| decode(&request).unwrap_or_default());
    records
        .filter_map(|record| record::identify(&record).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value};
    use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
    use prost::Message;

    use super::{Engine, STANDARD, of_text, record};

    #[test]
    fn records_are_found_in_lines() {
        let log = LogRecord {
            body: Some(AnyValue {
                value: Some(Value::StringValue(record::line(2, 7))),
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
        let found = of_text(&format!(
            "{{}}\n{{\"reason\":\"x\",\"otlp\":\"{encoded}\"}}\nhalf"
        ));
        let found: Vec<_> = found.iter().map(|of| (of.stream, of.sequence)).collect();
        assert_eq!(found, [(2, 7)]);
    }
}
