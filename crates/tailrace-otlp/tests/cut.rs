//! Cutting requests against opentelemetry-proto.
#![allow(clippy::unwrap_used)]

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use proptest::prelude::*;
use prost::Message;
use tailrace_otlp::extract;

fn record(text: String) -> LogRecord {
    LogRecord {
        body: Some(AnyValue {
            value: Some(any_value::Value::StringValue(text)),
        }),
        ..LogRecord::default()
    }
}

fn scope_logs() -> impl Strategy<Value = ScopeLogs> {
    let records = prop::collection::vec("[a-z]{0,300}".prop_map(record), 0..6);
    (prop::option::of("[a-z]{0,9}"), records, "[a-z]{0,9}").prop_map(|(name, log_records, url)| {
        ScopeLogs {
            scope: name.map(|name| InstrumentationScope {
                name,
                ..InstrumentationScope::default()
            }),
            log_records,
            schema_url: url,
        }
    })
}

fn request() -> impl Strategy<Value = ExportLogsServiceRequest> {
    let group = (
        prop::option::of(any::<u32>()),
        prop::collection::vec(scope_logs(), 0..4),
        "[a-z]{0,9}",
    )
        .prop_map(|(dropped, scope_logs, schema_url)| ResourceLogs {
            resource: dropped.map(|dropped_attributes_count| Resource {
                dropped_attributes_count,
                ..Resource::default()
            }),
            scope_logs,
            schema_url,
        });
    prop::collection::vec(group, 0..4)
        .prop_map(|resource_logs| ExportLogsServiceRequest { resource_logs })
}

/// What every LogRecord has around it: resource with its schema, scope with its schema, and itself.
type Placed = (ResourceLogs, ScopeLogs, LogRecord);

fn placed(request: &ExportLogsServiceRequest) -> Vec<Placed> {
    let mut all = Vec::new();
    for group in &request.resource_logs {
        let around = ResourceLogs {
            scope_logs: Vec::new(),
            ..group.clone()
        };
        for scope in &group.scope_logs {
            let within = ScopeLogs {
                log_records: Vec::new(),
                ..scope.clone()
            };
            for log in &scope.log_records {
                all.push((around.clone(), within.clone(), log.clone()));
            }
        }
    }
    all
}

proptest! {
    #[test]
    fn halves_hold_every_record_once_with_its_resource_and_scope(
        request in request(),
        at in any::<prop::sample::Index>(),
    ) {
        let all = placed(&request);
        let at = at.index(all.len() + 1);
        let bytes = request.encode_to_vec();
        let mut found = Vec::new();
        for range in [0..at, at..all.len()] {
            let cut = extract(&bytes, range.clone()).unwrap();
            let half = ExportLogsServiceRequest::decode(cut.bytes.as_slice()).unwrap();
            prop_assert!(half.resource_logs.iter().all(|group| !group.scope_logs.is_empty()));
            let records = placed(&half);
            prop_assert_eq!(records.len(), range.len());
            prop_assert_eq!(cut.ends.len(), range.len());
            for (end, (_, _, log)) in cut.ends.iter().zip(&records) {
                prop_assert!(cut.bytes[..*end as usize].ends_with(&log.encode_to_vec()));
            }
            found.extend(records);
        }
        prop_assert_eq!(found, all);
    }

    #[test]
    fn a_cut_of_a_cut_is_the_cut(request in request(), ends in any::<[prop::sample::Index; 2]>()) {
        let bytes = request.encode_to_vec();
        let count = placed(&request).len();
        let (from, to) = (ends[0].index(count + 1), ends[1].index(count + 1));
        let (from, to) = (from.min(to), from.max(to));
        let once = extract(&bytes, from..to).unwrap();
        let twice = extract(&extract(&bytes, from..count).unwrap().bytes, 0..to - from).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn anything_is_cut_or_refused_without_harm(bytes in prop::collection::vec(0u8..0x40, 0..60)) {
        let _ = extract(&bytes, 0..2);
    }
}

#[test]
fn fields_of_a_later_version_stay() {
    let log = [0x12, 0x03, 0xa2, 0x06, 0x00];
    let mut scope = Vec::from([0xaa, 0x06, 0x01, 0x78]);
    scope.extend(log);
    scope.extend(log);
    let mut group = vec![0x12, u8::try_from(scope.len()).unwrap()];
    group.extend(&scope);
    let mut request = vec![0x0a, u8::try_from(group.len()).unwrap()];
    request.extend(&group);
    let cut = extract(&request, 1..2).unwrap();
    let expected = [
        0x0a, 0x0b, 0x12, 0x09, 0xaa, 0x06, 0x01, 0x78, 0x12, 0x03, 0xa2, 0x06, 0x00,
    ];
    assert_eq!(cut.bytes, expected);
    assert_eq!(cut.ends, [13]);
    assert_eq!(extract(b"<html>", 0..1), None);
}
