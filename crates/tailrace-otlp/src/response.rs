//! Reading and writing the small messages around a request.
//!
//! Takes bytes, gives counts, responses and statuses. What is not a protobuf message gives nothing,
//! so that a proxy's HTML is never taken for an answer. Unknown fields are passed over. Never
//! allocates more than it is given.

use std::time::Duration;

use crate::wire::{Content, Fields, push_bytes, push_varint, varint_tag};

/// The answer to an accepted request (ExportLogsServiceResponse).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportResponse {
    /// `partial_success.rejected_log_records`
    pub rejected: i64,
    /// `partial_success.error_message`; with nothing rejected it is a warning.
    pub message: String,
}

/// The answer to a refused request (`google.rpc.Status`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// gRPC status code.
    pub code: i32,
    /// What went wrong.
    pub message: String,
    /// `RetryInfo.retry_delay` among the details, if it is there and not negative.
    pub retry_delay: Option<Duration>,
}

/// Number of LogRecords in an ExportLogsServiceRequest; `None` if it cannot be read down to them.
pub fn count_log_records(request: &[u8]) -> Option<u64> {
    let mut count = 0;
    for_each_message(request, RESOURCE_LOGS, |resource_logs| {
        for_each_message(resource_logs, SCOPE_LOGS, |scope_logs| {
            for_each_message(scope_logs, LOG_RECORDS, |log_record| {
                count += 1;
                for_each_message(log_record, 0, |_| Some(()))
            })
        })
    })?;
    Some(count)
}

/// Reads the body of a 2xx answer; an empty body is full success.
pub fn read_response(body: &[u8]) -> Option<ExportResponse> {
    let mut response = ExportResponse::default();
    for_each_message(body, 1, |partial_success| {
        for_each_field(partial_success, |field, content| {
            match (field, content) {
                (1, Content::Varint(rejected)) => response.rejected = rejected as i64,
                (2, Content::Bytes(message)) => response.message = lossy(message),
                (1 | 2, _) => return None,
                _ => {}
            }
            Some(())
        })
    })?;
    Some(response)
}

/// Reads a `google.rpc.Status`: the body of an HTTP error, or what `grpc-status-details-bin` holds.
pub fn read_status(body: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    for_each_field(body, |field, content| {
        match (field, content) {
            (1, Content::Varint(code)) => status.code = code as i32,
            (2, Content::Bytes(message)) => status.message = lossy(message),
            (3, Content::Bytes(detail)) => {
                status.retry_delay = read_retry_info(detail)?.or(status.retry_delay)
            }
            (1..=3, _) => return None,
            _ => {}
        }
        Some(())
    })?;
    Some(status)
}

/// Writes an ExportLogsServiceResponse; empty if nothing was rejected and there is no message.
pub fn write_response(rejected: i64, message: &str) -> Vec<u8> {
    let mut partial_success = Vec::new();
    push_number(&mut partial_success, 1, rejected);
    push_text(&mut partial_success, 2, message);
    let mut response = Vec::new();
    if !partial_success.is_empty() {
        push_bytes(&mut response, 1, &partial_success);
    }
    response
}

/// Writes a `google.rpc.Status`.
pub fn write_status(status: &Status) -> Vec<u8> {
    let mut out = Vec::new();
    push_number(&mut out, 1, status.code.into());
    push_text(&mut out, 2, &status.message);
    if let Some(delay) = status.retry_delay {
        let mut duration = Vec::new();
        push_number(
            &mut duration,
            1,
            i64::try_from(delay.as_secs()).unwrap_or(i64::MAX),
        );
        push_number(&mut duration, 2, delay.subsec_nanos().into());
        let mut retry_info = Vec::new();
        push_bytes(&mut retry_info, 1, &duration);
        let mut detail = Vec::new();
        push_bytes(&mut detail, 1, RETRY_INFO_URL.as_bytes());
        push_bytes(&mut detail, 2, &retry_info);
        push_bytes(&mut out, 3, &detail);
    }
    out
}

const RESOURCE_LOGS: u32 = 1;
const SCOPE_LOGS: u32 = 2;
const LOG_RECORDS: u32 = 2;
const RETRY_INFO: &str = "google.rpc.RetryInfo";
const RETRY_INFO_URL: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// Reads one `google.protobuf.Any`; `Some(None)` if it holds something else than a RetryInfo with a
/// delay.
fn read_retry_info(detail: &[u8]) -> Option<Option<Duration>> {
    let (mut is_retry_info, mut value) = (false, &[][..]);
    for_each_field(detail, |field, content| {
        match (field, content) {
            (1, Content::Bytes(url)) => {
                is_retry_info =
                    url.rsplit(|byte| *byte == b'/').next() == Some(RETRY_INFO.as_bytes());
            }
            (2, Content::Bytes(bytes)) => value = bytes,
            _ => {}
        }
        Some(())
    })?;
    let mut delay = None;
    if is_retry_info {
        for_each_message(value, 1, |duration| {
            let (mut seconds, mut nanos) = (0, 0);
            for_each_field(duration, |field, content| {
                match (field, content) {
                    (1, Content::Varint(value)) => seconds = value as i64,
                    (2, Content::Varint(value)) => nanos = value as i64,
                    _ => {}
                }
                Some(())
            })?;
            let nanos = u32::try_from(nanos)
                .ok()
                .filter(|nanos| *nanos < 1_000_000_000);
            delay = u64::try_from(seconds)
                .ok()
                .zip(nanos)
                .map(|(seconds, nanos)| Duration::new(seconds, nanos));
            Some(())
        })?;
    }
    Some(delay)
}

/// Calls `each` for every field; gives `None` at the first that it refuses or that cannot be read.
fn for_each_field<'a>(
    message: &'a [u8],
    mut each: impl FnMut(u32, Content<'a>) -> Option<()>,
) -> Option<()> {
    let mut fields = Fields::new(message);
    for (field, content) in fields.by_ref() {
        each(field, content)?;
    }
    (!fields.is_broken()).then_some(())
}

/// Calls `each` for every field of that number, which must be a message; reads past the others.
fn for_each_message<'a>(
    message: &'a [u8],
    wanted: u32,
    mut each: impl FnMut(&'a [u8]) -> Option<()>,
) -> Option<()> {
    for_each_field(message, |field, content| match content {
        _ if field != wanted => Some(()),
        Content::Bytes(bytes) => each(bytes),
        _ => None,
    })
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn push_number(out: &mut Vec<u8>, field: u8, value: i64) {
    if value != 0 {
        out.push(varint_tag(field));
        push_varint(out, value as u64);
    }
}

fn push_text(out: &mut Vec<u8>, field: u8, text: &str) {
    if !text.is_empty() {
        push_bytes(out, field, text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    use opentelemetry_proto::tonic::collector::logs::v1::{
        ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse,
    };
    use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
    use proptest::prelude::*;
    use prost::Message;

    proptest! {
        #[test]
        fn responses_are_those_of_prost(rejected: i64, message: String, is_partial: bool) {
            let partial_success = is_partial
                .then(|| ExportLogsPartialSuccess { rejected_log_records: rejected, error_message: message.clone() });
            let encoded = ExportLogsServiceResponse { partial_success }.encode_to_vec();
            let expected = if is_partial { ExportResponse { rejected, message } } else { ExportResponse::default() };
            let written = write_response(expected.rejected, &expected.message);
            prop_assert_eq!(read_response(&written), Some(expected.clone()));
            prop_assert_eq!(read_response(&encoded), Some(expected));
            if rejected != 0 {
                prop_assert_eq!(written, encoded);
            }
        }

        #[test]
        fn statuses_come_back(code: i32, message: String, seconds in 0..i64::MAX as u64, nanos in 0..1_000_000_000u32, has_delay: bool) {
            let retry_delay = has_delay.then(|| Duration::new(seconds, nanos));
            let status = Status { code, message, retry_delay };
            prop_assert_eq!(read_status(&write_status(&status)), Some(status));
        }

        #[test]
        fn counts_are_those_of_prost(groups in prop::collection::vec(prop::collection::vec(0..5usize, 0..4), 0..4)) {
            let records = |count| vec![LogRecord { severity_text: "x".into(), ..LogRecord::default() }; count];
            let scope = |count: &usize| ScopeLogs { log_records: records(*count), schema_url: "s".into(), scope: None };
            let group = |counts: &Vec<usize>| ResourceLogs {
                scope_logs: counts.iter().map(scope).collect(),
                ..ResourceLogs::default()
            };
            let request = ExportLogsServiceRequest { resource_logs: groups.iter().map(group).collect() };
            let encoded = request.encode_to_vec();
            prop_assert_eq!(count_log_records(&encoded), Some(groups.iter().flatten().sum::<usize>() as u64));
        }

        #[test]
        fn no_bytes_make_them_panic(bytes: Vec<u8>) {
            let decoded = ExportLogsServiceRequest::decode(&*bytes).ok();
            let expected = decoded.map(|request| {
                request.resource_logs.iter().flat_map(|group| &group.scope_logs).map(|scope| scope.log_records.len()).sum::<usize>()
            });
            if let Some(count) = count_log_records(&bytes) {
                // We do not look into every field, prost does; where both can read it they agree.
                prop_assert!(expected.is_none_or(|expected| expected as u64 == count));
            }
            read_response(&bytes);
            read_status(&bytes);
        }
    }

    #[test]
    fn a_page_is_no_answer() {
        for body in [
            "<html><body>Bad Gateway</body></html>",
            "{}",
            "{\"partialSuccess\":{}}",
            "OK",
            "ok\n",
            "not found",
        ] {
            assert_eq!(read_response(body.as_bytes()), None, "{body}");
            assert_eq!(count_log_records(body.as_bytes()), None, "{body}");
        }
        assert_eq!(read_status(b"<html>"), None);
        assert_eq!(read_response(b""), Some(ExportResponse::default()));
        assert_eq!(count_log_records(b""), Some(0));
        assert_eq!(count_log_records(&[0x0a, 0x05, 0x12]), None);
    }

    #[test]
    fn other_details_of_a_status_are_passed_over() {
        let mut body = Vec::new();
        push_number(&mut body, 1, 8);
        let mut detail = Vec::new();
        push_bytes(&mut detail, 1, b"type.googleapis.com/google.rpc.BadRequest");
        push_bytes(&mut detail, 2, b"anything");
        push_bytes(&mut body, 3, &detail);
        assert_eq!(
            read_status(&body),
            Some(Status {
                code: 8,
                ..Status::default()
            })
        );
        body.extend(write_status(&Status {
            retry_delay: Some(Duration::from_millis(1500)),
            ..Status::default()
        }));
        push_bytes(&mut body, 3, &detail);
        assert_eq!(
            read_status(&body).unwrap().retry_delay,
            Some(Duration::from_millis(1500))
        );
    }
}
