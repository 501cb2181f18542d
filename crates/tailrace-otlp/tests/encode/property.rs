//! OtlpEncoder against reference.

use std::collections::HashSet;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::ResourceLogs;
use proptest::prelude::*;
use prost::Message;
use tailrace_otlp::{Encoder, OtlpEncoder, OtlpEncoding, Request, SCHEMA_URL, Stats};

use crate::reference::{Counts, Expected, expected};
use crate::table::{Table, table};

proptest! {
    #[test]
    fn requests_decode_to_what_the_reference_says(tables in prop::collection::vec(table(), 1..3)) {
        let mut encoder = None;
        for table in &tables {
            // The encoder's memory is used again where the config allows it.
            let config = config(table);
            let reused = encoder.take().filter(|(known, _)| *known == config);
            let (config, mut used) = reused.unwrap_or_else(|| (config.clone(), OtlpEncoder::new(config)));
            check(table, &mut used)?;
            check(table, &mut used)?;
            encoder = Some((config, used));
        }
    }
}

fn config(table: &Table) -> OtlpEncoding {
    OtlpEncoding {
        mapping: table.mapping.clone(),
        request_bytes_max: table.request_bytes_max,
        scope_version: "1.2.3".to_owned(),
        iostream: table.iostream,
        record_uid: false,
    }
}

pub(crate) fn check(table: &Table, encoder: &mut OtlpEncoder) -> Result<(), TestCaseError> {
    let mut requests: Vec<Request> = Vec::new();
    let stats = table.with(|envelope, parts| {
        encoder.encode(envelope, parts, &mut |request| {
            requests.push(request.clone())
        })
    });
    let (expected, counts) = expected(table);
    let mut decoded = Vec::new();
    for request in &requests {
        decoded.extend(check_request(request, table.request_bytes_max)?);
    }
    prop_assert_eq!(decoded.len(), expected.len());
    for (ours, reference) in decoded.iter().zip(&expected) {
        if ours != reference {
            // By text, so that NaN is equal to itself.
            prop_assert_eq!(format!("{ours:#?}"), format!("{reference:#?}"));
        }
    }
    check_stats(&stats, &requests, &expected, &counts)
}

fn check_stats(
    stats: &Stats,
    requests: &[Request],
    expected: &[Expected],
    counts: &Counts,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(stats.log_records, expected.len() as u64);
    prop_assert_eq!(stats.requests, requests.len() as u64);
    prop_assert_eq!(
        stats.bytes,
        requests
            .iter()
            .map(|request| request.bytes.len() as u64)
            .sum::<u64>()
    );
    prop_assert_eq!(stats.unparsable_timestamps, counts.unparsable_timestamps);
    prop_assert_eq!(stats.unparsable_fields, counts.unparsable_fields);
    Ok(())
}

/// Marks are where the values are, also if a record was moved or carried over to the next request. And they make a frame
/// that has all of the request.
fn check_marks(request: &Request, decoded: &ExportLogsServiceRequest) -> Result<(), TestCaseError> {
    let places: Vec<_> = request.marks.places().collect();
    prop_assert!(places.is_sorted_by_key(|place| place.end));
    let scopes = decoded
        .resource_logs
        .iter()
        .flat_map(|group| &group.scope_logs);
    let records = scopes.flat_map(|scope| &scope.log_records);
    let mut start = 0;
    for (record, &end) in records.zip(&request.ends) {
        let end = end as usize;
        let of_record = places
            .iter()
            .filter(|place| (start + 1..=end).contains(&place.end));
        let values: Vec<&[u8]> = of_record
            .map(|place| &request.bytes[place.clone()])
            .collect();
        prop_assert_eq!(
            places.iter().filter(|place| **place == (end..end)).count(),
            1
        );
        start = end;
        if record.time_unix_nano > 0 {
            prop_assert!(values.contains(&&record.time_unix_nano.to_le_bytes()[..]));
        }
        prop_assert!(values.contains(&&record.observed_time_unix_nano.to_le_bytes()[..]));
        if !record.trace_id.is_empty() {
            prop_assert!(values.contains(&&*record.trace_id));
        }
        if let Some(Value::StringValue(body)) = record.body.as_ref().and_then(|b| b.value.as_ref())
        {
            let is_body = |value: &&[u8]| {
                value.ends_with(body.as_bytes())
                    || (!value.is_empty() && body.as_bytes().ends_with(value))
            };
            prop_assert!(values.iter().any(is_body), "{:?} {:?}", body, values);
        }
    }
    let mut compressor = tailrace_zstd::Compressor::new();
    let frame = compressor.compress(&request.bytes, &request.marks).unwrap();
    let plain = zstd::bulk::decompress(frame, request.bytes.len()).unwrap();
    prop_assert!(plain == request.bytes);
    Ok(())
}

/// Decodes a request, checks what holds for each by itself, gives its LogRecords.
fn check_request(request: &Request, bytes_max: usize) -> Result<Vec<Expected>, TestCaseError> {
    let decoded = ExportLogsServiceRequest::decode(&*request.bytes).unwrap();
    prop_assert!(
        request.bytes.len() <= bytes_max || request.ends.len() == 1,
        "{} bytes",
        request.bytes.len()
    );
    // Lengths and numbers are written as short as prost writes them, and nothing is written that it
    // would not.
    prop_assert_eq!(decoded.encoded_len(), request.bytes.len());
    prop_assert_eq!(&ends(&request.bytes), &request.ends);
    prop_assert_eq!(request.ends.len(), request.records.len());
    check_marks(request, &decoded)?;
    let mut records = Vec::new();
    let mut before: Option<&ResourceLogs> = None;
    for group in &decoded.resource_logs {
        prop_assert_eq!(&group.schema_url, SCHEMA_URL);
        prop_assert!(
            before.is_none_or(|before| before.resource != group.resource),
            "neighbours of one resource"
        );
        before = Some(group);
        let [scope_logs] = &group.scope_logs[..] else {
            panic!("one scope per resource")
        };
        prop_assert_eq!(&scope_logs.schema_url, SCHEMA_URL);
        let scope = scope_logs.scope.as_ref().unwrap();
        prop_assert_eq!(
            (scope.name.as_str(), scope.version.as_str()),
            ("tailrace", "1.2.3")
        );
        prop_assert!(!scope_logs.log_records.is_empty(), "an empty envelope");
        for log_record in &scope_logs.log_records {
            let keys: HashSet<_> = log_record
                .attributes
                .iter()
                .map(|attribute| &attribute.key)
                .collect();
            prop_assert_eq!(
                keys.len(),
                log_record.attributes.len(),
                "an attribute twice"
            );
            let resource = group.resource.clone().unwrap().attributes;
            let record = request.records[records.len()];
            records.push((resource, log_record.clone(), record));
        }
    }
    prop_assert_eq!(records.len(), request.ends.len());
    Ok(records)
}

/// Where each LogRecord ends, found by prost's primitives.
fn ends(request: &[u8]) -> Vec<u32> {
    fn fields(message: &[u8], offset: usize, wanted: u32, each: &mut dyn FnMut(&[u8], usize)) {
        use prost::encoding::{WireType, decode_key, decode_varint};
        let mut rest = message;
        while !rest.is_empty() {
            let (field, wire_type) = decode_key(&mut rest).unwrap();
            assert_eq!(wire_type, WireType::LengthDelimited);
            let len = decode_varint(&mut rest).unwrap() as usize;
            let start = message.len() - rest.len();
            if field == wanted {
                each(&rest[..len], offset + start);
            }
            rest = &rest[len..];
        }
    }
    let mut ends = Vec::new();
    fields(request, 0, 1, &mut |resource_logs, at| {
        fields(resource_logs, at, 2, &mut |scope_logs, at| {
            fields(scope_logs, at, 2, &mut |log_record, at| {
                ends.push((at + log_record.len()) as u32)
            });
        });
    });
    ends
}
